"""sardonyx.quantization: several types in one model, operators of any kind, settings for QNN, 4-bit floats."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import sardonyx
from sardonyx import quantization as q
from sardonyx.quantization import blocks, fusions, matmul_bnb4_quantizer, qnn
from sardonyx.quantization.onnx_model import ONNXModel
from sardonyx.quantization.tensor_quant_overrides import TensorQuantOverridesHelper

U8, U16 = q.QuantType.QUInt8, q.QuantType.QUInt16


class Reader(q.CalibrationDataReader):
    def __init__(self, given):
        self.batches = iter(given)

    def get_next(self):
        return next(self.batches, None)


def model_of(nodes, inputs, outputs, constants=None, opset=18, kind=TensorProto.FLOAT):
    values = [[helper.make_tensor_value_info(name, kind, shape) for name, shape in named.items()] for named in (inputs, outputs)]
    tensors = [numpy_helper.from_array(np.asarray(v), name) for name, v in (constants or {}).items()]
    graph = helper.make_graph(nodes, "g", *values, tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    return onnx.shape_inference.infer_shapes(model)


def noise(shape, seed=1, kind=np.float32):
    return np.random.default_rng(seed).uniform(-2, 2, shape).astype(kind)


def quantized(model, path, data, types, extra=None, ops=None, **more):
    kinds = dict(zip(("activation_type", "weight_type"), types))
    ops = ops or sorted({n.op_type for n in model.graph.node})
    q.quantize_static(model, path, Reader(data), op_types_to_quantize=ops, extra_options=extra, **kinds, **more)
    made = onnx.load(path)
    onnx.checker.check_model(made, True)
    return made, {t.name: t for t in made.graph.initializer}


def run(model, feed):
    given = model if isinstance(model, str) else model.SerializeToString()
    return sardonyx.InferenceSession(given).run(None, feed)[0].astype(np.float64)


def count(model, op):
    return sum(n.op_type == op for n in model.graph.node)


def branches(kind=TensorProto.FLOAT):
    nodes = [helper.make_node("Sigmoid", ["x"], ["s"], name="first")]
    nodes += [helper.make_node("Cos", ["s"], [f"y{i}"], name=f"cos{i}") for i in range(3)]
    return model_of(nodes, {"x": [2, 5]}, {f"y{i}": [2, 5] for i in range(3)}, kind=kind)


@pytest.mark.parametrize("kind, dtype", [(TensorProto.FLOAT, np.float32), (TensorProto.FLOAT16, np.float16)])
def test_two_types_for_one_tensor(tmp_path, kind, dtype):
    model, x = branches(kind), noise((2, 5), kind=dtype)
    given = {"s": [{"quant_type": U8, "convert": {"quant_type": U16, "recv_nodes": {"cos2"}}}], "y2": [{"quant_type": U16}]}
    made, constants = quantized(model, str(tmp_path / "q.onnx"), [{"x": x}], (U8, U8), {"TensorQuantOverrides": given})
    kinds = {name: constants[name].data_type for name in ("s_zero_point", "s_zero_point_convert", "y0_zero_point", "y2_zero_point")}
    assert list(kinds.values()) == [TensorProto.UINT8, TensorProto.UINT16, TensorProto.UINT8, TensorProto.UINT16]
    assert constants["s_scale"].data_type == constants["s_scale_convert"].data_type == kind
    # x, s, s again, and each result; what reads s as it is takes it from the first pair.
    assert count(made, "QuantizeLinear") == 6
    readers = {n.name: n.input[0] for n in made.graph.node if n.op_type == "Cos"}
    assert readers["cos0"] == readers["cos1"] != readers["cos2"]
    assert np.abs(run(made, {"x": x}) - run(model, {"x": x})).max() < 0.02


def test_all_readers_get_the_second_type(tmp_path):
    model, x = branches(), noise((2, 5))
    given = {"s": [{"quant_type": U8, "convert": {"quant_type": U16}}]}
    made, _ = quantized(model, str(tmp_path / "q.onnx"), [{"x": x}], (U8, U8), {"TensorQuantOverrides": given})
    assert len({n.input[0] for n in made.graph.node if n.op_type == "Cos"}) == 1
    assert count(made, "QuantizeLinear") == count(made, "DequantizeLinear") == 6
    with pytest.raises(ValueError, match="is not present in the model"):
        quantized(model, str(tmp_path / "n.onnx"), [{"x": x}], (U8, U8), {"TensorQuantOverrides": {"no": [{"quant_type": U16}]}})


def test_a_moved_value_has_the_scale_of_its_source(tmp_path):
    model = model_of(
        [helper.make_node("Transpose", ["x"], ["t"], perm=[1, 0]), helper.make_node("Cos", ["t"], ["y"])], {"x": [2, 5]}, {"y": [5, 2]}
    )
    made, constants = quantized(model, str(tmp_path / "q.onnx"), [{"x": noise((2, 5))}], (U8, U8), {"ForceQuantizeNoInputCheck": True})
    assert {"x_scale", "y_scale"} <= constants.keys() and "t_scale" not in constants
    assert count(made, "QuantizeLinear") == 3


def convolution(kind=np.float32):
    constants = {"w": noise((2, 3, 2, 2), 2, kind), "b": noise(2, 3, kind)}
    number = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    return model_of([helper.make_node("Conv", ["x", "w", "b"], ["y"], name="conv")], {"x": [1, 3, 4, 4]}, {"y": [1, 2, 3, 3]}, constants, kind=number)


@pytest.mark.parametrize("per_channel", [False, True])
def test_float16(tmp_path, per_channel):
    model, x = convolution(np.float16), noise((1, 3, 4, 4), kind=np.float16)
    made, constants = quantized(model, str(tmp_path / "q.onnx"), [{"x": x}], (U8, q.QuantType.QInt8), per_channel=per_channel)
    assert made.opset_import[0].version >= 19  # the first whose QuantizeLinear takes it
    assert {constants[n].data_type for n in ("x_scale", "w_scale", "b_scale")} == {TensorProto.FLOAT16}
    assert constants["b_quantized"].data_type == TensorProto.INT32
    assert np.abs(run(made, {"x": x}) - run(model, {"x": x})).max() < 0.15


def test_numbers_where_scripts_look_for_them(tmp_path):
    _, constants = quantized(convolution(), str(tmp_path / "q.onnx"), [{"x": noise((1, 3, 4, 4))}], (U8, q.QuantType.QInt4))
    assert constants["x_scale"].float_data[0] == numpy_helper.to_array(constants["x_scale"]) > 0
    assert constants["x_zero_point"].int32_data[0] == numpy_helper.to_array(constants["x_zero_point"]) > 0
    assert list(constants["w_zero_point"].int32_data) == [0]
    assert numpy_helper.to_array(constants["b_scale"]).shape == (1,)


def test_ranges_of_channels(tmp_path):
    channels = [{"axis": 0, "rmin": -2.0, "rmax": 4.0}, {"rmin": -1.0, "rmax": 0.5}]
    given = {"TensorQuantOverrides": {"w": channels, "b": [{"quant_type": q.QuantType.QInt8}]}}
    _, constants = quantized(convolution(), str(tmp_path / "q.onnx"), [{"x": noise((1, 3, 4, 4))}], (U8, q.QuantType.QInt8), given)
    assert np.allclose(constants["w_scale"].float_data, [8 / 254, 2 / 254])
    assert constants["b_quantized"].data_type == TensorProto.INT8  # as weights, then
    with pytest.raises(ValueError, match="rmax is for all channels or none"):
        quantized(convolution(), str(tmp_path / "q.onnx"), [], (U8, U8), {"TensorQuantOverrides": {"w": [channels[0], {"rmin": 0.0}]}})
    with pytest.raises(ValueError, match="3 ranges for weights"):
        three = {"TensorQuantOverrides": {"w": [channels[0]] * 3}}
        quantized(convolution(), str(tmp_path / "q.onnx"), [{"x": noise((1, 3, 4, 4))}], (U8, q.QuantType.QInt8), three)


def test_restricted_zero_points(tmp_path):
    model = model_of([helper.make_node("Abs", ["x"], ["y"])], {"x": [4]}, {"y": [4]})
    data = [{"x": np.array([-1, 0, 2, 3], np.float32)}]
    _, constants = quantized(model, str(tmp_path / "q.onnx"), data, (U8, U8), {"ActivationRestrictedAsymmetric": True})
    zeros = {name: constants[f"{name}_zero_point"].int32_data[0] for name in "xy"}
    assert zeros == {"x": 128, "y": 0}
    assert constants["x_scale"].float_data[0] == np.float32(3 / 127) and constants["y_scale"].float_data[0] == np.float32(3 / 255)


def test_weights_that_are_quantised_already(tmp_path):
    codes = np.random.default_rng(2).integers(-127, 128, (2, 3, 2, 2)).astype(np.int8)
    nodes = [helper.make_node("DequantizeLinear", ["codes", "step", "zero"], ["w"]), helper.make_node("Conv", ["x", "w", "b"], ["y"])]
    constants = {"codes": codes, "step": np.float32(0.01), "zero": np.int8(0), "b": noise(2)}
    model, x = model_of(nodes, {"x": [1, 3, 4, 4]}, {"y": [1, 2, 3, 3]}, constants), noise((1, 3, 4, 4))
    made, found = quantized(model, str(tmp_path / "q.onnx"), [{"x": x}], (U8, q.QuantType.QInt8), ops=["Conv"])
    assert count(made, "QuantizeLinear") == 2 and count(made, "DequantizeLinear") == 4
    assert numpy_helper.to_array(found["b_scale"])[0] == pytest.approx(0.01 * found["x_scale"].float_data[0])
    assert np.abs(run(made, {"x": x}) - run(model, {"x": x})).max() < 0.1


def gelu(scaled, order):
    half, one = np.float32(0.5), np.float32(1)
    first = {
        "div": helper.make_node("Div", ["x", "root"], ["d"]),
        "mul": helper.make_node("Mul", ["reciprocal", "x"], ["d"]),
    }[scaled]
    last = {
        "half first": [("Mul", ["x", "half"], "h"), ("Mul", ["a", "h"], "y")],
        "half last": [("Mul", ["a", "x"], "h"), ("Mul", ["half", "h"], "y")],
        "x last": [("Mul", ["half", "a"], "h"), ("Mul", ["x", "h"], "y")],
    }[order]
    nodes = [first, helper.make_node("Erf", ["d"], ["e"]), helper.make_node("Add", ["one", "e"], ["a"])]
    nodes += [helper.make_node(op, given, [out]) for op, given, out in last]
    constants = {"root": np.float32(2**0.5), "reciprocal": np.float32(0.5**0.5), "half": half, "one": one}
    return model_of(nodes, {"x": [3, 4]}, {"y": [3, 4]}, constants)


@pytest.mark.parametrize("scaled", ["div", "mul"])
@pytest.mark.parametrize("order", ["half first", "half last", "x last"])
def test_gelu(scaled, order):
    model, x = gelu(scaled, order), noise((3, 4))
    made = ONNXModel(onnx.ModelProto.FromString(model.SerializeToString()))
    assert fusions.FusionGelu(made).apply()
    assert [n.op_type for n in made.nodes()] == ["Gelu"] and not made.initializer()
    assert np.abs(run(made.model, {"x": x}) - run(model, {"x": x})).max() < 1e-6
    # Another constant, or a result inside that is wanted too.
    model.graph.initializer[2].CopyFrom(numpy_helper.from_array(np.float32(0.6), "half"))
    assert not fusions.FusionGelu(ONNXModel(model)).apply()
    wanted = gelu(scaled, order)
    wanted.graph.output.append(helper.make_tensor_value_info("a", TensorProto.FLOAT, [3, 4]))
    assert not fusions.FusionGelu(ONNXModel(wanted)).apply()


def norms(axis=-1):
    """An L2 norm, and a layer norm of it."""
    lines = [
        ("ReduceL2", ["x", "axes"], "l"), ("Clip", ["l", "least"], "c"), ("Expand", ["c", "shape"], "f"), ("Div", ["x", "f"], "n"),
        ("ReduceMean", ["n", "axes"], "m"), ("Sub", ["n", "m"], "d"), ("Pow", ["d", "two"], "p"), ("ReduceMean", ["p", "axes"], "v"),
        ("Add", ["v", "epsilon"], "g"), ("Sqrt", ["g"], "r"), ("Div", ["d", "r"], "z"), ("Mul", ["scale", "z"], "k"), ("Add", ["k", "bias"], "y"),
    ]  # fmt: skip
    constants = {"axes": np.array([axis]), "least": np.float32(1e-12), "shape": np.array([3, 4]), "two": np.float32(2)}
    constants |= {"epsilon": np.float32(1e-5), "scale": noise(4, 2), "bias": noise(4, 3)}
    return model_of([helper.make_node(op, given, [out]) for op, given, out in lines], {"x": [3, 4]}, {"y": [3, 4]}, constants)


def space_to_depth():
    nodes = [helper.make_node("Reshape", ["x", "parts"], ["s"]), helper.make_node("Transpose", ["s"], ["t"], perm=[0, 3, 5, 1, 2, 4])]
    nodes.append(helper.make_node("Reshape", ["t", "whole"], ["y"]))
    constants = {"parts": np.array([1, 3, 2, 2, 4, 2]), "whole": np.array([1, 12, 2, 4])}
    return model_of(nodes, {"x": [1, 3, 4, 8]}, {"y": [1, 12, 2, 4]}, constants)


@pytest.mark.parametrize("model, shape", [(norms(), (3, 4)), (norms(1), (3, 4)), (space_to_depth(), (1, 3, 4, 8))])
def test_preprocessing_for_qnn(tmp_path, model, shape):
    x, out = noise(shape), str(tmp_path / "p.onnx")
    assert qnn.qnn_preprocess_model(model, out, fuse_layernorm=True)
    made = [n.op_type for n in onnx.load(out).graph.node]
    assert made == (["SpaceToDepth"] if len(shape) == 4 else ["LpNormalization", "LayerNormalization"])
    assert np.abs(run(out, {"x": x}) - run(model, {"x": x})).max() < 1e-5


def test_what_is_no_norm_of_the_last_axis(tmp_path):
    model = norms(0)
    del model.graph.node[4:]
    model.graph.output[0].name = "n"
    assert not qnn.qnn_preprocess_model(model, str(tmp_path / "p.onnx"), fuse_layernorm=True)
    assert not (tmp_path / "p.onnx").exists()


def test_layouts_and_shapes_for_qnn(tmp_path):
    nodes = [helper.make_node("Abs", ["x"], ["y"], name="abs"), helper.make_node("Neg", ["y"], ["z"], name="neg")]
    model, out = model_of(nodes, {"x": ["n", 3, 4, 5]}, {"y": ["n", 3, 4, 5], "z": ["n", 3, 4, 5]}), str(tmp_path / "p.onnx")
    lists = {"inputs_to_make_channel_last": ["x"], "outputs_to_make_channel_last": ["y"]}
    assert qnn.qnn_preprocess_model(model, out, dynamic_input_shapes=[("x", "2,3,4,5")], **lists)
    made = onnx.load(out)
    shapes = {v.name: [d.dim_value for d in v.type.tensor_type.shape.dim] for v in (*made.graph.input, *made.graph.output)}
    assert shapes == {"x": [2, 4, 5, 3], "y": [2, 4, 5, 3], "z": [2, 3, 4, 5]}
    x = noise((2, 4, 5, 3))
    y, z = sardonyx.InferenceSession(out).run(None, {"x": x})
    assert np.array_equal(y, np.abs(x)) and np.array_equal(z, -np.abs(x).transpose(0, 3, 1, 2))
    for name, why in (("no", "has no input 'no'"), ("z", "has no input 'z'")):
        with pytest.raises(ValueError, match=why):
            qnn.qnn_preprocess_model(model, out, inputs_to_make_channel_last=[name])


def test_settings_for_qnn(tmp_path):
    nodes = [
        helper.make_node("Sigmoid", ["x"], ["s"], name="sigmoid"),
        helper.make_node("MatMul", ["s", "w"], ["m"], name="product"),
        helper.make_node("Tanh", ["m"], ["y"], name="tanh"),
    ]
    model = model_of(nodes, {"x": [2, 4]}, {"y": [2, 3]}, {"w": noise((4, 3))})
    data = [{"x": noise((2, 4), 5)}]
    config = qnn.get_qnn_qdq_config(model, Reader(data), activation_type=U16, weight_type=U8)
    overrides = config.extra_options["TensorQuantOverrides"]
    assert overrides["w"] == [{"quant_type": U8, "symmetric": False}]
    assert overrides["s"][0]["scale"] == np.float32(1 / 65536) and overrides["y"][0]["zero_point"] == 32768
    q.quantize(model, str(tmp_path / "q.onnx"), config)
    assert np.abs(run(str(tmp_path / "q.onnx"), data[0]) - run(model, data[0])).max() < 0.02
    # One tensor of 16 bits takes the operators beside it along.
    asked = {"m": [{"quant_type": U16}]}
    config = qnn.get_qnn_qdq_config(model, Reader(data), init_overrides=asked)
    overrides = config.extra_options["TensorQuantOverrides"]
    assert asked == {"m": [{"quant_type": U16}]}
    assert overrides["s"] == [{"quant_type": U8, "convert": {"quant_type": U16, "recv_nodes": {"product"}}}]
    assert overrides["y"][0]["quant_type"] == U16 and config.extra_options["UseQDQContribOps"]
    q.quantize(model, str(tmp_path / "m.onnx"), config)
    assert np.abs(run(str(tmp_path / "m.onnx"), data[0]) - run(model, data[0])).max() < 0.05
    with pytest.raises(ValueError, match="is not present"):
        qnn.get_qnn_qdq_config(model, Reader(data), init_overrides={"no": [{"quant_type": U16}]})
    with pytest.raises(ValueError, match="overrides want"):
        wrong = {"s": [{"quant_type": U16}], "m": [{"quant_type": q.QuantType.QInt16}]}
        qnn.get_qnn_qdq_config(model, Reader(data), init_overrides=wrong)


def test_look_ups_of_overrides():
    helper_of = TensorQuantOverridesHelper({"a": [{"quant_type": U8, "convert": {"quant_type": U16, "recv_nodes": {"n"}}}], "w": [{"axis": 0}, {}]})
    assert helper_of.get_node_input_qtype_info("a", "n", None).quant_type == U16
    assert helper_of.get_node_input_qtype_info("a", "other", None).quant_type == U8
    assert helper_of.get_quant_types() == {U8, U16} and helper_of.has_per_channel_overrides("w") and helper_of.has_per_tensor_overrides("a")
    assert not helper_of.update_tensor_overrides("a", {"quant_type": U16}, overwrite=False)
    assert helper_of.update_tensor_overrides("w", {"symmetric": True}, channels=[1]) and helper_of["w"][1] == {"symmetric": True}
    with pytest.raises(ValueError, match="for its channels"):
        helper_of.get_per_tensor_overrides("w")
    valid, why = helper_of.is_valid({}, {"a", "w"}, U8)
    assert not valid and "'w' is an activation" in why


@pytest.mark.parametrize("kind", [blocks.FP4, blocks.NF4])
def test_floats_of_four_bits(tmp_path, kind):
    weights = noise((52, 40), 4)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"], name="kept"), helper.make_node("MatMul", ["x", "w"], ["z"], name="product")]
    model, x = model_of(nodes, {"x": [3, 52]}, {"y": [3, 40], "z": [3, 40]}, {"w": weights}), noise((3, 52))
    quantizer = matmul_bnb4_quantizer.MatMulBnb4Quantizer(model, kind, 16, ["kept"])
    quantizer.process()
    quantizer.model.save_model_to_file(tmp_path / "b.onnx")
    assert [n.op_type for n in onnx.load(tmp_path / "b.onnx").graph.node] == ["MatMul", "MatMulBnb4"]
    y, z = sardonyx.InferenceSession(str(tmp_path / "b.onnx")).run(None, {"x": x})
    assert np.sum(y * z) / np.linalg.norm(y) / np.linalg.norm(z) > 0.985
    both = matmul_bnb4_quantizer.MatMulBnb4Quantizer(onnx.ModelProto.FromString(model.SerializeToString()), kind, 16)
    both.process()
    assert {t.name for t in both.model.initializer()} == {"w_Bnb4", "w_absmax"}
    with pytest.raises(ValueError, match="FP4"):
        matmul_bnb4_quantizer.MatMulBnb4Quantizer(model, 2, 16)


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("symmetric", [False, True])
def test_blocks_of_few_bits(bits, symmetric):
    k, n, block = 40, 5, 16
    w, x = noise((k, n), 6), noise((3, k))
    count, size = -(-k // block), block * bits // 8
    packed, scales, zeros = np.zeros((n, count, size), np.uint8), np.zeros((n, count), np.float32), np.zeros((n, -(-count * bits // 8)), np.uint8)
    getattr(blocks, f"quantize_matmul_{bits}bits")(packed, w, scales, zeros, block, n, k, symmetric)
    node = helper.make_node("MatMulNBits", ["x", "q", "s", "z"], ["y"], domain="com.microsoft", K=k, N=n, bits=bits, block_size=block)
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3, k])], [helper.make_tensor_value_info("y", TensorProto.FLOAT, [3, n])],
        [numpy_helper.from_array(a, b) for a, b in ((packed, "q"), (scales.reshape(-1), "s"), (zeros.reshape(-1), "z"))],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)], ir_version=8)
    y, expected = run(model, {"x": x}), x @ w
    assert np.sum(y * expected) / np.linalg.norm(y) / np.linalg.norm(expected) > {2: 0.85, 4: 0.99, 8: 0.9999}[bits]
