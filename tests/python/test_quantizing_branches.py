"""Models whose products lie in branches and loops: whatever is quantised, the file is a valid model that computes nearly the same."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import sardonyx
from sardonyx import quantization as q
from sardonyx.quantization import float16
from sardonyx.quantization import matmul_nbits_quantizer as nbits

FLOAT, BOOL, INT64 = TensorProto.FLOAT, TensorProto.BOOL, TensorProto.INT64
RNG = np.random.default_rng(5)


def weights(name, *shape):
    return numpy_helper.from_array((RNG.standard_normal(shape) / 4).astype(np.float32), name)


def layers(source, mark, result, inner=False):
    """Two layers; their weights are the graph's own or, if `inner`, of the graph around."""
    nodes = [
        helper.make_node("MatMul", [source, "shared" if inner else f"w{mark}"], [f"p{mark}"], name=f"product{mark}"),
        helper.make_node("Add", [f"p{mark}", f"b{mark}"], [f"s{mark}"], name=f"sum{mark}"),
        helper.make_node("Relu", [f"s{mark}"], [f"r{mark}"], name=f"relu{mark}"),
        helper.make_node("Gemm", [f"r{mark}", f"v{mark}", f"b{mark}"], [f"g{mark}"], name=f"gemm{mark}"),
        helper.make_node("Tanh", [f"g{mark}"], [result], name=f"tanh{mark}"),
    ]
    held = [weights(f"v{mark}", 32, 32), weights(f"b{mark}", 32)]
    return nodes, held if inner else [weights(f"w{mark}", 32, 32), *held]


def branch(mark, source="x", inner=False, deeper=None):
    nodes, held = layers(source, mark, f"o{mark}", inner)
    if deeper is not None:
        nodes[-1].output[0] = f"i{mark}"
        nodes.append(helper.make_node("If", ["other"], [f"o{mark}"], then_branch=deeper[0], else_branch=deeper[1]))
    out = helper.make_tensor_value_info(f"o{mark}", FLOAT, ["n", 32])
    return helper.make_graph(nodes, f"branch{mark}", [], [out], held)


def finished(nodes, held, inputs):
    graph = helper.make_graph(nodes, "graph", [helper.make_tensor_value_info("x", FLOAT, ["n", 32]), *inputs],
                              [helper.make_tensor_value_info("y", FLOAT, ["n", 32])], held)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(made, full_check=True)
    return made


def conditional(inner):
    """The same operand is quantised outside, in both branches, and in a branch of a branch."""
    nodes, held = layers("x", "0", "outside")
    deeper = branch("3", "x"), branch("4", "i1")
    nodes.append(helper.make_node("If", ["choice"], ["inside"], then_branch=branch("1", inner=inner, deeper=deeper),
                                  else_branch=branch("2", "outside")))
    nodes.append(helper.make_node("Add", ["outside", "inside"], ["y"]))
    flags = [helper.make_tensor_value_info(name, BOOL, []) for name in ("choice", "other")]
    return finished(nodes, [*held, weights("shared", 32, 32)], flags)


def looping():
    inside, held = layers("state", "5", "next")
    body = helper.make_graph(
        [helper.make_node("Identity", ["go"], ["on"]), *inside], "body",
        [helper.make_tensor_value_info("i", INT64, []), helper.make_tensor_value_info("go", BOOL, []),
         helper.make_tensor_value_info("state", FLOAT, ["n", 32])],
        [helper.make_tensor_value_info("on", BOOL, []), helper.make_tensor_value_info("next", FLOAT, ["n", 32])], held)
    nodes = [helper.make_node("Loop", ["turns", "", "x"], ["y"], body=body)]
    return finished(nodes, [numpy_helper.from_array(np.array(3), "turns")], [])


def feeds(model):
    x = np.random.default_rng(6).standard_normal((4, 32)).astype(np.float32)
    if len(model.graph.input) == 1:
        return [{"x": x}]
    return [{"x": x, "choice": np.array(a), "other": np.array(b)} for a in (True, False) for b in (True, False)]


class Reader(q.CalibrationDataReader):
    def __init__(self, model):
        self.batches = iter(feeds(model))

    def get_next(self):
        return next(self.batches, None)


def dynamic(model, path, **more):
    q.quantize_dynamic(model, path, extra_options={"EnableSubgraph": True}, **more)


def half(model, path):
    onnx.save(float16.convert_float_to_float16(model, keep_io_types=True), path)


def few_bits(model, path):
    quantizer = nbits.MatMulNBitsQuantizer(model, block_size=32, is_symmetric=True)
    quantizer.process()
    onnx.save(quantizer.model.model, path)


MODES = {
    "dynamic": dynamic,
    "dynamic, by channel": lambda m, p: dynamic(m, p, per_channel=True),
    "dynamic, products alone": lambda m, p: dynamic(m, p, op_types_to_quantize=["MatMul"]),
    "static": lambda m, p: q.quantize_static(m, p, Reader(m)),
    "static, operators": lambda m, p: q.quantize_static(m, p, Reader(m), quant_format=q.QuantFormat.QOperator),
    "half": half,
    "few bits": few_bits,
}


def runs(model, given):
    """Of our engine, and of ONNX Runtime where it is installed."""
    yield sardonyx.InferenceSession(model).run(None, given)[0]
    try:
        import onnxruntime
    except ImportError:
        return
    if "sardonyx" in (onnxruntime.__author__ or "").lower():
        return
    yield onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"]).run(None, given)[0]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("which", ["conditional", "conditional, weights outside", "looping"])
def test_valid_and_near(tmp_path, which, mode):
    model = looping() if which == "looping" else conditional("outside" in which)
    path = tmp_path / "q.onnx"
    MODES[mode](model, path)
    made = onnx.load(path)
    known = {"", "ai.onnx"}
    if all(o.domain in known for o in made.opset_import):
        onnx.checker.check_model(made, full_check=True)
    else:
        onnx.checker.check_model(made)
    if mode.startswith("dynamic"):
        assert "MatMulInteger" in str(made.graph) and 'op_type: "MatMul"' not in str(made.graph)
    for given in feeds(model):
        expected = sardonyx.InferenceSession(model.SerializeToString()).run(None, given)[0]
        for found in runs(made.SerializeToString(), given):
            assert np.sum(found * expected) / np.linalg.norm(found) / np.linalg.norm(expected) > 0.97
