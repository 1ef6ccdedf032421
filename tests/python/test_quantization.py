"""sardonyx.quantization: the functions of onnxruntime.quantization. Where the real package is installed, models are run there too."""

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import sardonyx
from sardonyx import quantization as q
from sardonyx.quantization import calibrate, float16, onnx_model, registry
from sardonyx.quantization import matmul_nbits_quantizer as nbits
from sardonyx.quantization import qdq_loss_debug as debug
from sardonyx.quantization import quant_utils as utils


def network(opset=13):
    rng = np.random.default_rng(3)
    weights = {
        "w": rng.standard_normal((8, 3, 3, 3)),
        "b": rng.standard_normal(8),
        "m": rng.standard_normal((8, 5)),
    }
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], name="conv", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"], name="relu"),
        helper.make_node("GlobalAveragePool", ["r"], ["p"], name="pool"),
        helper.make_node("Flatten", ["p"], ["f"], name="flat"),
        helper.make_node("MatMul", ["f", "m"], ["y"], name="product"),
    ]
    graph = helper.make_graph(
        nodes,
        "network",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, 8, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 5])],
        [numpy_helper.from_array(v.astype(np.float32), name) for name, v in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def batches(count=4):
    return [{"x": np.random.default_rng(i).standard_normal((2, 3, 8, 8)).astype(np.float32)} for i in range(count)]


class Reader(q.CalibrationDataReader):
    def __init__(self, given=None):
        self.batches = iter(batches() if given is None else given)

    def get_next(self):
        return next(self.batches, None)


def operators(path):
    return [n.op_type for n in onnx.load(path).graph.node]


def results(path, given):
    """Of our engine, and of ONNX Runtime where it is installed."""
    out = [[sardonyx.InferenceSession(str(path)).run(None, b)[0] for b in given]]
    try:
        import onnxruntime
    except ImportError:
        return out
    if "sardonyx" in (onnxruntime.__author__ or "").lower():
        return out
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return out + [[session.run(None, b)[0] for b in given]]


def close(path, least=0.999):
    """Cosine to the float model in all engines. Without VNNI ONNX Runtime's products of unsigned and signed bytes saturate in 16 bits."""
    given = batches()
    expected = np.concatenate([sardonyx.InferenceSession(network().SerializeToString()).run(None, b)[0].ravel() for b in given])
    for engine, got in enumerate(results(path, given)):
        if engine == 1 and "vnni" not in Path("/proc/cpuinfo").read_text():
            least = min(least, 0.99)
        y = np.concatenate([v.ravel() for v in got])
        assert expected @ y / np.linalg.norm(expected) / np.linalg.norm(y) > least


def test_static_qdq(tmp_path):
    report = q.quantize_static(network(), tmp_path / "q.onnx", Reader(), extra_options={"Accuracy": True})
    assert report["quantized_by_op"] == {"Conv": 1, "Relu": 1, "GlobalAveragePool": 1, "Flatten": 1, "MatMul": 1}
    assert report["accuracy"]["loss"] < 1e-3
    assert all(layer["cosine"] > 0.99 for layer in report["accuracy"]["layers"])
    assert "Relu" not in operators(tmp_path / "q.onnx")  # bounded by its zero point
    close(tmp_path / "q.onnx")


@pytest.mark.parametrize("activation, weight", [("QUInt8", "QUInt8"), ("QUInt8", "QInt8"), ("QUInt16", "QInt8"), ("QInt16", "QInt16"), ("QInt8", "QInt4")])
@pytest.mark.parametrize("per_channel", [False, True])
def test_types(tmp_path, activation, weight, per_channel):
    types = {"activation_type": q.QuantType[activation], "weight_type": q.QuantType[weight]}
    q.quantize_static(network(), tmp_path / "q.onnx", Reader(), per_channel=per_channel, **types)
    codes = {t.name: t.data_type for t in onnx.load(tmp_path / "q.onnx").graph.initializer}
    assert codes["w_quantized"] == q.QuantType[weight].tensor_type
    close(tmp_path / "q.onnx", 0.95 if weight == "QInt4" else 0.999)


def test_qoperator(tmp_path):
    q.quantize_static(network(), tmp_path / "q.onnx", Reader(), q.QuantFormat.QOperator, activation_type=q.QuantType.QUInt8)
    assert "QLinearConv" in operators(tmp_path / "q.onnx")
    close(tmp_path / "q.onnx")


@pytest.mark.parametrize("method", ["Entropy", "Percentile", "MSE"])
def test_calibration_methods_and_cache(tmp_path, method):
    chosen = q.CalibrationMethod[method]
    cache = tmp_path / "ranges.json"
    q.quantize_static(network(), tmp_path / "a.onnx", Reader(), calibrate_method=chosen, calibration_cache_path=cache)
    assert json.loads(cache.read_text())["calibration_method"]["value"] == f"CalibrationMethod.{method}"
    q.quantize_static(network(), tmp_path / "b.onnx", None, calibrate_method=chosen, calibration_cache_path=cache)
    assert (tmp_path / "a.onnx").read_bytes() == (tmp_path / "b.onnx").read_bytes()
    with pytest.raises(ValueError, match="comes from"):
        q.quantize_static(network(), tmp_path / "b.onnx", None, calibration_cache_path=cache)
    close(tmp_path / "a.onnx", 0.99)


def test_dynamic(tmp_path):
    onnx.save(network(), tmp_path / "f.onnx")
    settings = {"weight_type": q.QuantType.QUInt8, "per_channel": True}
    q.quantize_dynamic(tmp_path / "f.onnx", tmp_path / "d.onnx", **settings)
    assert {"Conv", "DequantizeLinear", "MatMulInteger"} <= set(operators(tmp_path / "d.onnx"))
    close(tmp_path / "d.onnx")
    q.quantize_dynamic(tmp_path / "f.onnx", tmp_path / "d.onnx", ["Conv", "MatMul"], **settings)
    assert {"ConvInteger", "MatMulInteger"} <= set(operators(tmp_path / "d.onnx"))
    close(tmp_path / "d.onnx")


def test_configurations(tmp_path):
    q.quantize(network(), tmp_path / "d.onnx", q.DynamicQuantConfig(op_types_to_quantize=["MatMul"]))
    assert "ConvInteger" not in operators(tmp_path / "d.onnx")
    q.quantize(network(), tmp_path / "s.onnx", q.StaticQuantConfig(Reader(), nodes_to_exclude=["product", "no such node"]))
    assert onnx.load(tmp_path / "s.onnx").graph.node[-1].input[1] == "m"
    config = q.get_qdq_config(network(), Reader(), activation_type=q.QuantType.QUInt16, nodes_to_exclude=lambda m, n: n.op_type == "Relu")
    assert config.op_types_to_quantize == ["Conv", "Flatten", "GlobalAveragePool", "MatMul"]
    q.quantize(network(), tmp_path / "c.onnx", config)
    assert "Relu" in operators(tmp_path / "c.onnx")
    with pytest.raises(TypeError):
        q.quantize(network(), tmp_path / "x.onnx", q.QuantConfig())


def test_refusals(tmp_path):
    out = tmp_path / "q.onnx"
    with pytest.raises(ValueError, match="QInt8"):
        q.quantize_static(network(), out, Reader(), activation_type=q.QuantType.QInt8, weight_type=q.QuantType.QUInt8)
    with pytest.raises(ValueError, match="Distribution"):
        q.quantize_static(network(), out, Reader(), activation_type=q.QuantType.QFLOAT8E4M3FN, weight_type=q.QuantType.QFLOAT8E4M3FN)
    with pytest.raises(ValueError, match="no batch"):
        q.quantize_static(network(), out, Reader([]))
    with pytest.raises(NotImplementedError, match="BlockSize"):
        q.quantize_static(network(), out, Reader(), extra_options={"BlockSize": 32})
    with pytest.raises(sardonyx.InvalidArgument):
        q.quantize_static(network(), out, Reader([[1, 2]]))

    class Raises(Reader):
        def get_next(self):
            raise KeyError("from the reader")

    with pytest.raises(KeyError, match="from the reader"):
        q.quantize_static(network(), out, Raises())
    assert not out.exists()


def test_overrides(tmp_path):
    given = {"x": [{"scale": 0.125, "zero_point": 3}], "w": [{"axis": 0, "quant_type": q.QuantType.QInt8}], "r": [{"rmin": 0.0, "rmax": 51.0}]}
    types = {"activation_type": q.QuantType.QUInt8}
    q.quantize_static(network(), tmp_path / "q.onnx", Reader(), extra_options={"TensorQuantOverrides": given}, **types)
    constants = {t.name: numpy_helper.to_array(t) for t in onnx.load(tmp_path / "q.onnx").graph.initializer}
    assert constants["x_scale"] == np.float32(0.125) and constants["x_zero_point"] == 3
    assert constants["w_scale"].shape == (8,)
    assert constants["r_scale"] == pytest.approx(51 / 255)


def test_max_loss(tmp_path):
    types = {"activation_type": q.QuantType.QUInt8, "weight_type": q.QuantType.QInt4}
    loose = q.quantize_static(network(21), tmp_path / "a.onnx", Reader(), extra_options={"Accuracy": True}, **types)
    wanted = loose["accuracy"]["loss"] / 10
    tight = q.quantize_static(network(21), tmp_path / "b.onnx", Reader(), extra_options={"MaxLoss": wanted}, **types)
    assert tight["accuracy"]["loss"] <= wanted
    again = q.compare_quantized(network(21), tmp_path / "b.onnx", Reader())
    assert again["loss"] <= wanted and tight["quantized"] < loose["quantized"]


def test_max_loss_and_accuracy_of_dynamic(tmp_path):
    loose = q.quantize_dynamic(network(), tmp_path / "a.onnx", extra_options={"Accuracy": True}, calibration_data_reader=Reader())
    wanted = loose["accuracy"]["loss"] / 2
    tight = q.quantize_dynamic(network(), tmp_path / "b.onnx", extra_options={"MaxLoss": wanted}, calibration_data_reader=Reader())
    assert tight["accuracy"]["loss"] <= wanted and tight["quantized"] < loose["quantized"]
    with pytest.raises(sardonyx.InvalidArgument, match="needs data"):
        q.quantize_dynamic(network(), tmp_path / "c.onnx", extra_options={"MaxLoss": wanted})


def test_smooth_quant(tmp_path):
    rng = np.random.default_rng(4)
    uneven = np.where(np.arange(64) % 16 == 3, 60, 1).astype(np.float32)
    weights = (rng.standard_normal((64, 24)) / uneven[:, None]).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"], name="product")],
        "product",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 64])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 24])],
        [numpy_helper.from_array(weights, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    data = [{"x": (rng.standard_normal((16, 64)) * uneven).astype(np.float32)} for _ in range(4)]
    losses = []
    for smooth in (False, True):
        extra = {"SmoothQuant": smooth, "SmoothQuantAlpha": 0.5, "Accuracy": True}
        losses.append(q.quantize_static(model, tmp_path / "q.onnx", Reader(data), extra_options=extra)["accuracy"]["loss"])
    assert losses[1] < losses[0] / 5


def test_sixteen_bits(tmp_path):
    report = q.convert_to_half(network(), tmp_path / "h.onnx", keep_io_types=True, calibration_data_reader=Reader())
    assert report["mode"] == "float16" and report["accuracy"]["loss"] < 1e-3
    close(tmp_path / "h.onnx")
    model = float16.convert_float_to_float16(network(), keep_io_types=True, op_block_list=["Conv"])
    kinds = {t.name: t.data_type for t in model.graph.initializer}
    assert TensorProto.FLOAT in [kinds[n] for n in kinds if n.startswith("w")] and TensorProto.FLOAT16 in kinds.values()
    assert float16.convert_float_to_bfloat16(network()).graph.input[0].type.tensor_type.elem_type == TensorProto.BFLOAT16


def test_registry():
    assert {"MatMul", "LSTM", "Attention"} <= set(registry.IntegerOpsRegistry)
    assert {"Conv", "Gemm", "Add", "Relu"} <= set(registry.QLinearOpsRegistry)
    assert {"MatMul", "LayerNormalization", "Softmax"} <= set(registry.QDQRegistry)


def test_when_a_session_opens_the_model():
    options = sardonyx.SessionOptions()
    options.quantize = "dynamic"
    plain, quantized = (sardonyx.InferenceSession(network().SerializeToString(), o) for o in (None, options))
    for batch in batches():
        a, b = plain.run(None, batch)[0], quantized.run(None, batch)[0]
        assert not np.array_equal(a, b) and np.abs(a - b).max() < 0.05 * np.abs(a).max()


def test_calibrators(tmp_path):
    onnx.save(network(), tmp_path / "f.onnx")
    calibrator = q.create_calibrator(tmp_path / "f.onnx", ["Conv"])
    for batch in batches():
        calibrator.collect_data(Reader([batch]))
    found = calibrator.compute_data()
    assert set(found.keys()) == {"x", "c"}
    x = np.stack([b["x"] for b in batches()])
    assert found["x"].range_value == (x.min(), x.max())
    with pytest.raises(ValueError, match="no batch"):
        calibrator.collect_data(Reader([]))
    q.save_tensors_data(found, tmp_path / "deep" / "ranges.json")
    assert q.load_tensors_data(tmp_path / "deep" / "ranges.json")["x"].range_value == found["x"].range_value
    utils.write_calibration_table(found.data, str(tmp_path)) if _has("flatbuffers") else None
    for method in q.CalibrationMethod:
        calibrator = q.create_calibrator(tmp_path / "f.onnx", calibrate_method=method)
        calibrator.collect_data(Reader())
        assert set(calibrator.compute_data().keys()) == {"x", "c", "r", "p", "f", "y"}


def _has(module):
    import importlib.util

    return importlib.util.find_spec(module) is not None


def test_quantizer_of_known_ranges():
    ranges = {name: (np.float32(-4), np.float32(4)) for name in ("x", "c", "r", "p", "f", "y")}
    ops = ["Conv", "MatMul"]
    quantizer = q.QDQQuantizer(network(), True, False, q.QuantType.QInt8, q.QuantType.QUInt8, q.TensorsData(q.CalibrationMethod.MinMax, ranges), [], [], ops)
    model = quantizer.quantize_model()
    assert numpy_helper.to_array(quantizer.model.get_initializer("x_scale")) == np.float32(8 / 255)
    assert [n.op_type for n in model.graph.node].count("QuantizeLinear") == 4  # x, c, f and y


def test_preprocess(tmp_path):
    model = network()
    for i in range(4):
        model.graph.initializer.append(numpy_helper.from_array(np.full(5, 1 + i / 10, np.float32), f"n{i}"))
    model.graph.node.append(helper.make_node("Add", ["n0", "n1"], ["s"]))
    model.graph.node.append(helper.make_node("Add", ["y", "s"], ["z"]))
    model.graph.output[0].name = "z"
    q.quant_pre_process(model, tmp_path / "p.onnx")
    assert operators(tmp_path / "p.onnx").count("Add") == 1
    q.quant_pre_process(model, tmp_path / "s.onnx", skip_optimization=True)
    assert operators(tmp_path / "s.onnx").count("Add") == 2
    with pytest.raises(AssertionError):
        q.quant_pre_process(model)


def test_loss_debug(tmp_path):
    onnx.save(network(), tmp_path / "f.onnx")
    q.quantize_static(network(), tmp_path / "q.onnx", Reader(), activation_type=q.QuantType.QUInt8)
    found = []
    for name in ("f", "q"):
        debug.modify_model_output_intermediate_tensors(tmp_path / f"{name}.onnx", tmp_path / f"{name}_all.onnx")
        found.append(debug.collect_activations(str(tmp_path / f"{name}_all.onnx"), Reader()))
    errors = debug.compute_activation_error(debug.create_activation_matching(found[1], found[0]))
    assert set(errors) == {"x", "r", "p", "f"} and all(e["xmodel_err"] > 30 for e in errors.values())
    weights = debug.compute_weight_error(debug.create_weight_matching(str(tmp_path / "f.onnx"), str(tmp_path / "q.onnx")))
    assert set(weights) == {"w", "b", "m"} and all(e > 30 for e in weights.values())


def test_few_bits(tmp_path):
    rng = np.random.default_rng(1)
    weights = rng.standard_normal((64, 32)).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"], name="product")],
        "product",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 64])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 32])],
        [numpy_helper.from_array(weights, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    data = [{"x": rng.standard_normal((16, 64)).astype(np.float32)} for _ in range(4)]
    gptq = nbits.GPTQWeightOnlyQuantConfig(Reader(data))
    for config in (None, nbits.RTNWeightOnlyQuantConfig(), nbits.HQQWeightOnlyQuantConfig(block_size=32), nbits.KQuantWeightOnlyQuantConfig(), gptq):
        quantizer = nbits.MatMulNBitsQuantizer(model, block_size=32, algo_config=config)
        report = quantizer.process()
        assert [n.op_type for n in quantizer.model.nodes()] == ["MatMulNBits"]
        assert report["quantized"][0]["block_size"] == 32 and report["quantized"][0]["error"] < 0.12
        got = sardonyx.InferenceSession(quantizer.model.model.SerializeToString()).run(None, data[0])[0]
        expected = data[0]["x"] @ weights
        assert np.sum(got * expected) / np.linalg.norm(got) / np.linalg.norm(expected) > 0.99
    measured = nbits.MatMulNBitsQuantizer(model, block_size=32).process_to(tmp_path / "m.onnx", Reader(data))
    assert measured["accuracy"]["loss"] > 0 and measured["accuracy"]["outputs"][0]["cosine"] > 0.98
    kept = nbits.MatMulNBitsQuantizer(model, block_size=32).process_to(tmp_path / "m.onnx", Reader(data), max_loss=0)
    assert kept["quantized"] == [] and kept["accuracy"]["loss"] == 0
    excluded = nbits.MatMulNBitsQuantizer(model, nodes_to_exclude=["product"])
    excluded.process()
    assert [n.op_type for n in excluded.model.nodes()] == ["MatMul"]
    qdq = nbits.MatMulNBitsQuantizer(model, quant_format=q.QuantFormat.QDQ, block_size=32)
    qdq.process()
    assert "DequantizeLinear" in [n.op_type for n in qdq.model.nodes()]


def test_arithmetic():
    zero, scale = utils.compute_scale_zp(np.float32(-1), np.float32(2), *utils.get_qmin_qmax_for_qType(TensorProto.UINT8))
    assert zero == 85 and scale == np.float32(3 / 255)
    zero, scale = utils.compute_scale_zp(np.float32(1), np.float32(2), np.int8(-127), np.int8(127), symmetric=True)
    assert zero == 0 and scale == np.float32(2 / 127)
    codes = utils.quantize_nparray(TensorProto.INT8, np.array([-9, 0.3, 9], np.float32), np.float32(0.1), np.int8(1), low=-100)
    assert codes.tolist() == [-89, 4, 91]
    assert utils.pack_bytes_to_4bit(bytes([1, 0xF2, 3])) == bytes([0x21, 0x03])
    assert q.QuantType.from_string("QUInt4").tensor_type == TensorProto.UINT4 and str(q.QuantFormat.QDQ) == "QDQ"
    with pytest.raises(ValueError):
        q.QuantType.from_string("QInt7")


def test_runner_with_data_beside_the_model(tmp_path, monkeypatch):
    from sardonyx.quantization import static_quantize_runner

    onnx.save(network(), tmp_path / "model.onnx")
    for i, batch in enumerate(batches(12)):
        folder = tmp_path / f"test_data_set_{i}"
        folder.mkdir()
        (folder / "input_0.pb").write_bytes(numpy_helper.from_array(batch["x"]).SerializeToString())
    out = tmp_path / "q.onnx"
    (tmp_path / "own.json").write_text('{"x": [{"scale": 0.125, "zero_point": 3}]}')
    given = ["-i", str(tmp_path / "model.onnx"), "-o", str(out), "--per_channel", "--tensor_quant_overrides", str(tmp_path / "own.json")]
    monkeypatch.setattr("sys.argv", ["runner", *given])
    static_quantize_runner.main()
    constants = {t.name: numpy_helper.to_array(t) for t in onnx.load(out).graph.initializer}
    assert constants["x_scale"] == np.float32(0.125) and constants["w_scale"].shape == (8,)
    monkeypatch.setattr("sys.argv", ["runner", *given[:4], "--quant_format", "qoperator", "--calibration_method", "entropy"])
    static_quantize_runner.main()
    assert "QLinearConv" in operators(out)


def test_overrides_that_contradict():
    def refused(entry, match):
        with pytest.raises(ValueError, match=match):
            q.quantize_static(network(), "q.onnx", Reader(), extra_options={"TensorQuantOverrides": {"x": [entry]}})

    refused({"scale": 1.0}, "Must provide both 'scale' and 'zero_point'")
    refused({"scale": 1.0, "zero_point": 0, "rmax": 2.0}, r"option\(s\) \[rmax\] are invalid with 'scale' and 'zero_point'")


def test_nodes_in_order():
    model = network()
    nodes = list(model.graph.node)
    model.graph.ClearField("node")
    model.graph.node.extend(reversed(nodes))
    sorted_model = onnx_model.ONNXModel(model)
    sorted_model.topological_sort()
    assert [n.name for n in sorted_model.nodes()] == [n.name for n in nodes]
    model.graph.node[0].input[0] = nodes[-1].output[0]
    with pytest.raises(ValueError, match="circle"):
        sorted_model.topological_sort()


def test_divergence():
    assert calibrate.entropy([1, 1], [1, 3]) == pytest.approx(0.5 * np.log(0.5 / 0.25) + 0.5 * np.log(0.5 / 0.75))
    assert calibrate.entropy([1, 1], [1, 0]) == np.inf
    assert calibrate.entropy([0, 2], [1, 1], base=2) == pytest.approx(1)
