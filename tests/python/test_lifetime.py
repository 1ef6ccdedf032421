"""Nothing that a run returns shares memory with its inputs, the model's constants, other outputs or later runs; all of it outlives the session."""

import gc

import numpy as np
import pytest
from conftest import model
from onnx import TensorProto, helper

import sardonyx as ort

F = TensorProto.FLOAT
CONSTANT = helper.make_tensor("c", F, [2], [7, 8])
ZERO = helper.make_tensor("zero", TensorProto.INT64, [], [0])
ROW = helper.make_tensor("row", TensorProto.INT64, [2], [1, 2])


def branch(name):
    return helper.make_graph([helper.make_node("Identity", [name], ["b_" + name])], "branch", [], [helper.make_tensor_value_info("b_" + name, F, None)])


def loop_body():
    infos = [helper.make_tensor_value_info("i", TensorProto.INT64, []), helper.make_tensor_value_info("go", TensorProto.BOOL, []),
             helper.make_tensor_value_info("v", F, None)]
    outs = [helper.make_tensor_value_info("more", TensorProto.BOOL, []), helper.make_tensor_value_info("w", F, None),
            helper.make_tensor_value_info("e", F, None)]
    nodes = [helper.make_node("Identity", ["go"], ["more"]), helper.make_node("Identity", ["v"], ["w"]), helper.make_node("Identity", ["x"], ["e"])]
    return helper.make_graph(nodes, "body", infos, outs)


SEQUENCE = helper.make_tensor_sequence_value_info("s", F, None)
OPTIONAL = helper.make_value_info("o", helper.make_optional_type_proto(helper.make_tensor_type_proto(F, None)))
CASES = {
    "Identity": [helper.make_node("Identity", ["x"], ["a"]), helper.make_node("Identity", ["a"], ["b"])],
    "views": [helper.make_node("Reshape", ["x", "row"], ["a"]), helper.make_node("Unsqueeze", ["x", "zero"], ["b"])],
    "constant": [helper.make_node("Identity", ["c"], ["a"]), helper.make_node("Identity", ["c"], ["b"])],
    "Dropout": [helper.make_node("Dropout", ["x"], ["a"]), helper.make_node("Flatten", ["x"], ["b"], axis=0)],
    "SequenceConstruct": [helper.make_node("SequenceConstruct", ["x", "c", "x"], ["a"]), helper.make_node("SequenceAt", ["a", "zero"], ["b"])],
    "SequenceInsert": [helper.make_node("SequenceInsert", ["s", "x"], ["a"]), helper.make_node("SequenceErase", ["s"], ["b"])],
    "sequence through": [helper.make_node("Identity", ["s"], ["a"]), helper.make_node("SequenceAt", ["s", "zero"], ["b"])],
    "ConcatFromSequence": [helper.make_node("ConcatFromSequence", ["s"], ["a"], axis=0), helper.make_node("SplitToSequence", ["x"], ["b"], axis=0)],
    "If": [helper.make_node("If", ["yes"], ["a"], then_branch=branch("x"), else_branch=branch("c")),
           helper.make_node("If", ["yes"], ["b"], then_branch=branch("c"), else_branch=branch("x"))],
    "Loop": [helper.make_node("Loop", ["turns", "", "x"], ["a", "b"], body=loop_body())],
    "Loop of no turns": [helper.make_node("Loop", ["zero", "", "x"], ["a", "b"], body=loop_body())],
    "Optional": [helper.make_node("Optional", ["x"], ["a"]), helper.make_node("OptionalGetElement", ["o"], ["b"])],
}


def arrays(values):
    for v in values:
        if isinstance(v, list):
            yield from arrays(v)
        elif v is not None:
            yield v


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("case", CASES)
def test_outputs_stand_alone(case, optimize):
    weights = [CONSTANT, ZERO, ROW, helper.make_tensor("yes", TensorProto.BOOL, [], [1]), helper.make_tensor("turns", TensorProto.INT64, [], [3])]
    used = {n for node in CASES[case] for n in node.input}
    inputs = [("x", F, [2])] + [i for i in (SEQUENCE, OPTIONAL) if i.name in used]
    outputs = [helper.ValueInfoProto(name=n) for n in ("a", "b")]
    options = ort.SessionOptions()
    if not optimize:
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(model(CASES[case], inputs, outputs, weights), options)
    given = {"x": np.float32([1, 2]), "s": [np.float32([3, 4]), np.float32([5])], "o": np.float32([6, 7])}
    feed = {i if isinstance(i, str) else i.name: given[i if isinstance(i, str) else i.name] for i in [v[0] if isinstance(v, tuple) else v for v in inputs]}
    before = [np.array(v) for v in arrays(feed.values())]
    first = list(arrays(session.run(None, feed)))
    expected = [np.array(v) for v in first]
    fed = list(arrays(feed.values()))
    for i, v in enumerate(first):
        assert not any(np.shares_memory(v, w) for w in [*fed, *first[:i]])
        v[...] = -1
    for v, w in zip(fed, before):
        np.testing.assert_array_equal(v, w)
    second = list(arrays(session.run(None, feed)))
    for v in fed:
        v[...] = -2
    del session, feed, fed, given, v
    gc.collect()
    np.ones(1 << 20, np.float32).sum()  # reuses memory that was given back
    assert len(first) == len(second) > 1
    for v, w in zip(second, expected):
        np.testing.assert_array_equal(v, w)


def test_models_may_be_freed_and_overwritten():
    weights = np.arange(1 << 16, dtype=np.float32)
    data = bytearray(model([helper.make_node("Add", ["x", "w"], ["y"])], [("x", F, [1])], [("y", F, None)],
                           [helper.make_tensor("w", F, weights.shape, weights.tobytes(), raw=True)]))
    session = ort.InferenceSession(data)
    data[:] = b"\0" * len(data)
    del data
    gc.collect()
    np.testing.assert_array_equal(session.run(None, {"x": [1]})[0], weights + 1)


def test_inputs_of_an_asynchronous_run_are_kept():
    import threading

    session = ort.InferenceSession(model([helper.make_node("Neg", ["x"], ["y"])], [("x", F, ["n"])], [("y", F, ["n"])]))
    done, seen = threading.Event(), []

    def callback(outputs, data, error):
        seen.append((outputs, error))
        done.set()

    session.run_async(None, {"x": np.full(1 << 16, 3, np.float32)}, callback, None)
    del session
    gc.collect()
    assert done.wait(20) and seen[0][1] == "" and (seen[0][0][0] == -3).all()


def test_calls_leave_no_objects_behind(tmp_path):
    """Blocks of Python's own allocator: a reference that is not given back shows after some calls."""
    import sys

    inputs = [helper.make_tensor_value_info("x", F, ["n"]), helper.make_tensor_value_info("t", TensorProto.STRING, [None]), SEQUENCE]
    nodes = [helper.make_node("Neg", ["x"], ["y"]), helper.make_node("Identity", ["t"], ["u"]), helper.make_node("Identity", ["s"], ["r"])]
    outputs = [helper.make_tensor_value_info("y", F, ["n"]), helper.make_tensor_value_info("u", TensorProto.STRING, [None])]
    outputs.append(helper.make_tensor_sequence_value_info("r", F, None))
    data = model(nodes, inputs, outputs, opset=17)
    session = ort.InferenceSession(data, providers=["cpu"])
    x = np.ones(300, np.float32)
    feed = {"x": x, "t": np.array(["a", "bb"], object), "s": [x, x[::2]]}

    def fails(call):
        with pytest.raises(Exception):
            call()

    calls = {
        "run": lambda: session.run(None, feed),
        "lists": lambda: session.run(["y"], {"x": [1, 2, 3], "t": ["a"], "s": [[1.0]]}),
        "report": session.report,
        "errors": lambda: (fails(lambda: session.run(None, {"x": object(), "t": ["a"], "s": []})), fails(lambda: session.run(["q"], feed))),
        "wrong arguments": lambda: (fails(lambda: session._session.run({}, [1], None, None, None)), fails(lambda: session._session.run({}))),
        "open": lambda: ort.InferenceSession(data, providers=[("CPUExecutionProvider", {"use_arena": 1})]).get_inputs(),
        "providers": lambda: ort.pass_names(),
        "options": lambda: ort.RunOptions(),
    }
    def counts():
        gc.collect()
        return np.array([sys.getallocatedblocks(), sys.getrefcount(x), sys.getrefcount(None)])

    for name, call in calls.items():
        growths = []
        for _ in range(4):  # NumPy's and Python's own stores fill up, some later than others; what is lost is lost in each round
            before = counts()
            for _ in range(200):
                call()
            growths.append(counts() - before)
        assert (np.min(growths, axis=0) < 100).all(), (name, growths)
