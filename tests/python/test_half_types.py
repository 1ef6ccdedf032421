"""float16 and bfloat16: what models sum, count or square on the way is wider, in gradients too."""

import numpy as np
import pytest

ml_dtypes = pytest.importorskip("ml_dtypes")
onnx = pytest.importorskip("onnx")

import sardonyx  # noqa: E402
from onnx import TensorProto, helper  # noqa: E402

TYPES = {"float16": (TensorProto.FLOAT16, np.float16), "bfloat16": (TensorProto.BFLOAT16, ml_dtypes.bfloat16), "float32": (TensorProto.FLOAT, np.float32)}
node = helper.make_node


def run(name, nodes, inputs, result, integers=(), extents=True):
    """The model's result on `inputs` in this type, in float64."""
    element, dtype = TYPES[name]
    given = [helper.make_tensor_value_info(k, element, v.shape if extents else [f"{k}{i}" for i in range(v.ndim)]) for k, v in inputs.items()]
    constants = [helper.make_tensor(k, TensorProto.INT64, v.shape, v.ravel().tolist()) for k, v in dict(integers).items()]
    graph = helper.make_graph(nodes, "g", given, [helper.make_tensor_value_info(result, element, None)], constants)
    domains = [helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.preview.training", 1)]
    session = sardonyx.InferenceSession(helper.make_model(graph, opset_imports=domains, ir_version=10).SerializeToString())
    return np.asarray(session.run(None, {k: v.astype(dtype) for k, v in inputs.items()})[0]).astype(np.float64)


def gradient(name, nodes, inputs, integers=(), extents=True):
    last = node("Gradient", ["x"], ["dx"], domain="ai.onnx.preview.training", xs=["x"], y="y")
    return run(name, [*nodes, last], inputs, "dx", integers, extents)


def near(got, want, name):
    np.testing.assert_allclose(got, want, rtol={"float16": 1e-2, "bfloat16": 2e-2}[name], atol=1e-7)


AXES = {"axes": np.array([1])}
LABELS = {"t": np.ones(70000, np.int64)}


@pytest.mark.parametrize("extents", [True, False])
@pytest.mark.parametrize("name", ["float16", "bfloat16"])
@pytest.mark.parametrize("op", ["ReduceMean", "ReduceMax", "ReduceMin"])
def test_gradients_of_many_elements(op, name, extents):
    got = gradient(name, [node(op, ["x"], ["y"], keepdims=0)], {"x": np.ones((1, 70000))}, extents=extents)
    near(got, np.full((1, 70000), 1 / 70000), name)


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
@pytest.mark.parametrize("op", ["NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"])
def test_gradients_of_many_labels(op, name):
    nodes, inputs = [node(op, ["x", "t"], ["y"])], {"x": np.ones((70000, 2))}
    near(gradient(name, nodes, inputs, LABELS), gradient("float32", nodes, inputs, LABELS), name)


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
@pytest.mark.parametrize("op", ["LayerNormalization", "InstanceNormalization", "MeanVarianceNormalization"])
def test_gradients_of_norms_of_large_numbers(op, name):
    rng = np.random.default_rng(1)
    inputs = {"x": rng.integers(-8, 8, (1, 2, 4)) * 256.0, "k": rng.integers(1, 8, (1, 2, 4)) * 1.0}
    weights = {"LayerNormalization": {"w": np.ones(4)}, "InstanceNormalization": {"w": np.ones(2), "b": np.zeros(2)}}.get(op, {})
    attributes = {"axes": [0, 2]} if op == "MeanVarianceNormalization" else {}
    nodes = [node(op, ["x", *weights], ["n"], **attributes), node("Mul", ["n", "k"], ["m"]), node("ReduceSum", ["m"], ["y"], keepdims=0)]
    got, want = (gradient(t, nodes, {**inputs, **weights}) for t in (name, "float32"))
    assert np.abs(want).max() > 1e-4
    near(got, want, name)


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
@pytest.mark.parametrize("op", ["ReduceSum", "ReduceMean", "ReduceL2", "ReduceLogSumExp", "Softmax", "LogSoftmax", "CumSum"])
def test_long_rows(op, name):
    inputs = {"x": np.full((2, 80000), 0.25)}
    if op.startswith("Reduce"):
        nodes, integers = [node(op, ["x", "axes"], ["y"])], AXES
    elif op == "CumSum":
        nodes, integers = [node(op, ["x", "axes"], ["y"])], {"axes": np.array(1)}
    else:
        nodes, integers = [node(op, ["x"], ["y"], axis=1)], {}
    near(run(name, nodes, inputs, "y", integers), run("float32", nodes, inputs, "y", integers), name)


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
@pytest.mark.parametrize("op", ["ScatterElements", "ScatterND"])
def test_many_updates_of_one_element(op, name):
    places = np.zeros(20000, np.int64)
    inputs = {"x": np.array([1.0, 2, 3]), "u": np.ones(20000)}
    nodes = [node(op, ["x", "i", "u"], ["y"], reduction="add")]
    near(run(name, nodes, inputs, "y", {"i": places if op == "ScatterElements" else places[:, None]}), [20001, 2, 3], name)
