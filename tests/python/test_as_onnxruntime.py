"""The package that answers for onnxruntime, in processes of their own: in this one the real package may have been imported."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import model
from onnx import TensorProto, helper, numpy_helper

import sardonyx

# What the real package's modules import for themselves, and what is asked of them only by name.
IMPORTED_THERE = {"annotations", "contextlib", "import_capi_exception", "onnxruntime_validation", "os", "platform", "warnings"}
TABLES_OF_ITS_OPERATORS = {
    "get_all_operator_schema", "get_all_opkernel_def", "get_registered_ep_kernel_defs", "opkernel", "schemadef", "pack_fp4_weights_for_cuda_moe_gemm",
}  # fmt: skip
SOURCES = Path(__file__).resolve().parents[2] / "bindings" / "python"


def run(code, *arguments, folder=None):
    """What the program prints last, under python -m sardonyx.as_onnxruntime."""
    program = Path(folder or ".") / "program.py"
    program.write_text(code)
    command = [sys.executable, "-B", "-m", "sardonyx.as_onnxruntime", str(program), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=dict(os.environ))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_programs_see_onnxruntime(tmp_path):
    found = run(
        """
import importlib.metadata, importlib.util, json, sys
import onnxruntime as ort
from onnxruntime.capi import _pybind_state, onnxruntime_pybind11_state
from onnxruntime.capi.onnxruntime_inference_collection import InferenceSession
from onnxruntime.datasets import get_example
session = ort.InferenceSession(get_example("mul_1.onnx"), providers=["CPUExecutionProvider"])
print(json.dumps({
    "version": [ort.__version__, importlib.metadata.version("onnxruntime"), ort.get_version_string()],
    "arguments": sys.argv[1:],
    "same": InferenceSession is ort.InferenceSession and issubclass(_pybind_state.Fail, Exception),
    "place": importlib.util.find_spec("onnxruntime").origin,
    "engine": [c.__module__.split(".")[0] for c in ort.InferenceSession.__mro__],
    "sums": session.run(None, {"X": [[1, 2], [3, 4], [5, 6]]})[0].tolist(),
    "missing": [name for name in ort.__all__ if not hasattr(ort, name)],
}))
""",
        "-x",
        "y",
        folder=tmp_path,
    )
    assert found["version"] == ["1.31.1"] * 3
    assert found["arguments"] == ["-x", "y"]
    assert found["same"] and "sardonyx" in found["engine"] and not found["missing"]
    assert Path(found["place"]).resolve().parent == SOURCES / "onnxruntime"
    assert found["sums"] == [[1, 4], [9, 16], [25, 36]]


def test_lower_layers_are_attributes(tmp_path):
    # onnxruntime_extensions reaches for them so, without an import of its own.
    code = "import json, onnxruntime as o; print(json.dumps([o.capi.onnxruntime_pybind11_state.Fail.__name__, hasattr(o.capi, 'no_such')]))"
    assert run(code, folder=tmp_path) == ["Fail", False]


def test_modules_run_as_well():
    code = "import onnxruntime.capi; print(onnxruntime.capi.__file__)"
    done = subprocess.run([sys.executable, "-B", "-m", "sardonyx.as_onnxruntime", "-m", "timeit", "-n", "1", "-r", "1", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert str(SOURCES) in done.stdout


def test_all_names_of_the_real_package():
    if importlib.util.find_spec("onnxruntime") is None:  # not imported here: two of its versions in one process crash in vendors' providers
        pytest.skip("onnxruntime is not installed")
    code = "import json, sys, onnxruntime as o; from onnxruntime.capi import _pybind_state as s; print(json.dumps([dir(o), dir(s), o.__file__]))"
    clean = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    names, lower, place = json.loads(subprocess.run([sys.executable, "-B", "-c", code], env=clean, capture_output=True, text=True, check=True).stdout)
    assert "site-packages" in place
    ours = subprocess.run(
        [sys.executable, "-B", "-c", f"import sardonyx.as_onnxruntime as a; a.install(); {code}"], capture_output=True, text=True, check=True
    )
    our_names, our_lower, our_place = json.loads(ours.stdout)
    assert our_place != place
    assert {n for n in set(names) - set(our_names) if not n.startswith("_")} <= IMPORTED_THERE
    lacking = {n for n in set(lower) - set(our_lower) if not n.startswith("_") and not n.startswith("quantize_")}
    assert lacking <= IMPORTED_THERE | TABLES_OF_ITS_OPERATORS


ADDED_BY_1_32 = {
    "ModelPackage", "ModelPackageComponentContext", "ModelPackageContext", "ModelPackageOptions", "ModelPackageWriteMode",
    "set_default_logger_callback",
}  # fmt: skip


def test_names_that_the_next_version_added(tmp_path):
    code = """
import json, onnxruntime as o
from onnxruntime.capi import _pybind_state as s
refused = []
for use in (lambda: o.ModelPackage(), lambda: o.ModelPackage.open("p"), lambda: o.ModelPackage.compute_directory_hash("p"),
            lambda: o.ModelPackageContext("p"), lambda: o.ModelPackageOptions(o.SessionOptions()), lambda: o.ModelPackageComponentContext()):
    try:
        use()
    except NotImplementedError as error:
        refused.append(str(error))
print(json.dumps([dir(o), dir(s), refused, int(o.ModelPackageWriteMode.DENSE)]))"""
    names, lower, refused, dense = run(code, folder=tmp_path)
    assert set(names) >= ADDED_BY_1_32 and set(lower) >= ADDED_BY_1_32
    assert len(refused) == 6 and all("not supported by Sardonyx: open the .onnx file" in text for text in refused) and dense == 1


def test_log_messages_go_to_a_function(tmp_path):
    code = """
import json, os, sys, onnxruntime as o
from onnxruntime.datasets import get_example
got, hooked = [], []
def told():
    return o.InferenceSession(get_example("mul_1.onnx"))
o.set_default_logger_callback(lambda *a: got.append(a), 0)
told()
o.set_default_logger_callback(None)
first = len(got)
told()
later = len(got)
def fails(*a):
    raise ValueError("mine")
sys.unraisablehook = lambda info: hooked.append(str(info.exc_value))
o.set_default_logger_callback(fails, 0)
told()
pid = os.fork()
if pid == 0:
    told()
    os._exit(0)
ended = os.waitpid(pid, 0)[1]
o.set_default_logger_callback(None)
errors = []
for wrong in ((3,), (print, 7), (None, -1)):
    try:
        o.set_default_logger_callback(*wrong)
    except RuntimeError as error:
        errors.append(str(error))
print(json.dumps([first, later, got[:1], sorted(set(hooked)), ended, errors]))"""
    first, later, got, hooked, ended, errors = run(code, folder=tmp_path)
    assert first == later > 0 and hooked == ["mine"] and ended == 0 and len(errors) == 3
    (severity, category, logid, place, message), = got
    assert 0 <= severity <= 3 and (category, logid, place) == ("onnxruntime", "", "") and message


def real_modules():
    """Names of the modules in the real package that is installed; without a package of that name, none."""
    real = importlib.util.find_spec("onnxruntime")
    if real is None or "sardonyx" in str(real.origin):
        return []
    root = Path(real.origin).parent
    names = {".".join(path.relative_to(root).with_suffix("").parts) for path in root.rglob("*.py")}
    return sorted({name.removesuffix("__init__").removesuffix(".") for name in names} - {""})


def test_every_module_of_the_real_package_can_be_imported(tmp_path):
    code = """
import importlib, json, sys
import onnxruntime
from onnxruntime._absent_names import MODULES
failed, used = {}, 0
for name in [*MODULES, *sys.argv[1:]]:
    try:
        module = importlib.import_module("onnxruntime." + name)
        for attribute in MODULES.get(name, "").split():
            value = getattr(module, attribute)
            try:
                value()
                failed[name + "." + attribute] = "no error"
            except NotImplementedError as e:
                used += 1
                assert f"onnxruntime.{name}.{attribute} is not part of Sardonyx's package" in str(e), e
    except Exception as e:
        failed[name] = repr(e)
print(json.dumps([failed, used]))
"""
    failed, used = run(code, *real_modules(), folder=tmp_path)
    assert not failed and used > 500


def test_what_is_absent_behaves_as_a_class(tmp_path):
    code = """
import inspect, json
from onnxruntime.transformers import onnx_model_bert
from onnxruntime.transformers.onnx_model_bert import BertOnnxModel
class Mine(BertOnnxModel):
    pass
def said(use):
    try:
        return repr(use())
    except NotImplementedError as e:
        return str(e)
inspect.getmembers(onnx_model_bert), inspect.signature(len), repr(BertOnnxModel), hash(BertOnnxModel)
print(json.dumps([said(use) for use in (Mine, lambda: BertOnnxModel.create, lambda: [*BertOnnxModel], lambda: BertOnnxModel["x"], lambda: BertOnnxModel + [1])]
    + [hasattr(onnx_model_bert, "Nonsense"), isinstance(3, BertOnnxModel), "BertOnnxModel" in dir(onnx_model_bert)]))
"""
    *said, nonsense, instance, listed = run(code, folder=tmp_path)
    assert len(said) == 5 and all("BertOnnxModel is not part of Sardonyx's package" in text and "leave the step out" in text for text in said)
    assert not nonsense and not instance and listed
    command = [sys.executable, "-B", "-m", "sardonyx.as_onnxruntime", "-m", "onnxruntime.transformers.optimizer"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 1 and done.stderr.startswith("onnxruntime.transformers.optimizer is not part of")


def test_types_by_name(tmp_path):
    code = """
import json
import numpy as np
import onnxruntime as ort
from onnxruntime.datasets import get_example
from onnxruntime.transformers.io_binding_helper import TypeHelper
session = ort.InferenceSession(get_example("mul_1.onnx"))
refused = 0
for name in ("tensor(string)", "tensor(bfloat16)", "seq(tensor(float))", "float"):
    try:
        TypeHelper.ort_type_to_numpy_type(name)
    except ValueError as e:
        refused += name + " not found" in str(e)
print(json.dumps([
    TypeHelper.get_input_type(session, "X"), TypeHelper.get_output_type(session, "Y"), refused,
    {n: np.dtype(t).name for n, t in TypeHelper.get_io_numpy_type_map(session).items()}, TypeHelper.get_io_onnx_type_map(session),
    [np.dtype(TypeHelper.ort_type_to_numpy_type(f"tensor({t})")).name for t in ("double", "float16", "bool", "uint8", "int64", "complex64")],
]))
"""
    assert run(code, folder=tmp_path) == [
        "tensor(float)", "tensor(float)", 4, {"X": "float32", "Y": "float32"}, {"X": 1, "Y": 1},
        ["float64", "float16", "bool", "uint8", "int64", "complex64"],
    ]  # fmt: skip


def test_options_of_fusions(tmp_path):
    code = """
import argparse, json
from onnxruntime.transformers.fusion_options import AttentionMaskFormat, AttentionOpType, FusionOptions
parser = argparse.ArgumentParser()
FusionOptions.add_arguments(parser)
arguments = parser.parse_args(["--disable_gelu", "--no_attention_mask", "--disable_nhwc_conv"])
found = []
for arguments.model_type in ("bert", "unet"):
    options = FusionOptions.parse(arguments)
    found.append([options.enable_gelu, options.enable_layer_norm, options.attention_mask_format, getattr(options, "enable_nhwc_conv", None)])
masks = [FusionOptions(t).attention_mask_format for t in ("bert", "vit", "gpt2")]
print(json.dumps([found, masks, str(AttentionOpType.PagedAttention), FusionOptions("clip").enable_embed_layer_norm]))
"""
    found = run(code, folder=tmp_path)
    assert found == [[[False, True, 3, None], [False, True, 3, False]], [0, 3, 2], "PagedAttention", False]


def test_writers_errors_are_failures():
    from sardonyx._compiler import ModelCompiler

    def refuse(part):
        raise ValueError("no room")

    relu = model([helper.make_node("Relu", ["x"], ["y"])], [("x", TensorProto.FLOAT, [3])], [("y", TensorProto.FLOAT, [3])])
    with pytest.raises(sardonyx.Fail, match="no room") as failed:
        ModelCompiler(sardonyx.SessionOptions(), relu).compile_to_stream(refuse)
    assert isinstance(failed.value.__cause__, ValueError)


def test_compatibility_needs_devices():
    from sardonyx import _devices, _process

    with pytest.raises(RuntimeError, match="no devices"):
        _process.get_model_compatibility_for_ep_devices([], "info")
    with pytest.raises(TypeError):
        _process.get_model_compatibility_for_ep_devices(_devices.get_ep_devices(), None)


def vectorizer():
    """From a map of numbers by number to a row."""
    made = helper.make_graph(
        [helper.make_node("DictVectorizer", ["m"], ["row"], domain="ai.onnx.ml", int64_vocabulary=[1, 2, 5])],
        "vectorizer",
        [helper.make_value_info("m", helper.make_map_type_proto(TensorProto.INT64, helper.make_tensor_type_proto(TensorProto.FLOAT, [])))],
        [helper.make_tensor_value_info("row", TensorProto.FLOAT, None)],
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(made, opset_imports=opsets, ir_version=10).SerializeToString()


def test_keys_of_maps():
    session = sardonyx.InferenceSession(vectorizer())
    assert session.run(None, {"m": {1: 0.5, 5: 2.0}})[0].ravel().tolist() == [0.5, 0, 2]
    with pytest.raises(sardonyx.InvalidArgument, match="Unexpected key type  <class 'str'>, it cannot be linked to C type int64_t"):
        session.run(None, {"m": {1: 0.5, "a": 2.0}})


def test_backend_takes_a_map_as_the_only_input():
    from sardonyx import backend

    rep = backend.prepare(vectorizer())
    assert rep.run({1: 0.5, 5: 2.0})[0].ravel().tolist() == [0.5, 0, 2]
    assert rep.run({"m": {2: 3.0}})[0].ravel().tolist() == [0, 3, 0]


def test_sizes_and_threads_are_held_to_as_there(tmp_path):
    data = model([helper.make_node("Add", ["x", "x"], ["y"])], [("x", TensorProto.FLOAT, [2, "n"])], [("y", TensorProto.FLOAT, [2, "n"])])
    (tmp_path / "add.onnx").write_bytes(data)
    found = run(
        """
import json, sys
import numpy as np
import onnxruntime as ort
def said(call, *arguments):
    try:
        return np.asarray(call(*arguments)).tolist()
    except Exception as e:
        return f"{type(e).__name__}: {e}"
data = open(sys.argv[1], "rb").read()
session = ort.InferenceSession(data, providers=["CPUExecutionProvider"])
session.set_providers(["cpu"])
binding = session.io_binding()
binding.bind_cpu_input("x", np.zeros((3, 1), np.float32))
given = [np.ones((2, 1), np.float32), np.ones((3, 4), np.float32), np.ones(2, np.float32), [[1.0], [2.0]], [[1.0]]]
found = {
    "run": [said(session.run, None, {"x": x}) for x in given],
    "binding": said(session.run_with_iobinding, binding),
    "value": said(session.run_with_ort_values, None, {"x": ort.OrtValue.ortvalue_from_numpy(np.ones((1, 1), np.float32))}),
    "missing": said(session.run, None, {}),
}
ort.set_global_thread_pool_sizes(2, 1)
found["own threads"] = said(ort.InferenceSession, data)
options = ort.SessionOptions()
options.use_per_session_threads = False
found["shared threads"] = ort.InferenceSession(data, options).run(None, {"x": given[0]})[0].tolist()
print(json.dumps(found))
""",
        str(tmp_path / "add.onnx"),
        folder=tmp_path,
    )
    extents = "InvalidArgument: Got invalid dimensions for input: x for the following indices\n index: 0 Got: {} Expected: 2\n Please fix either"
    assert found["run"][0] == [[[2.0], [2.0]]] and found["run"][3] == [[[2.0], [4.0]]]
    assert found["run"][1].startswith(extents.format(3)) and found["run"][4].startswith(extents.format(1))
    assert found["run"][2].startswith("InvalidArgument: Invalid rank for input: x Got: 1 Expected: 2 Please fix either the inputs/outputs")
    assert found["binding"].startswith(extents.format(3)) and found["value"].startswith(extents.format(1))
    assert "missing" in found["missing"]
    assert found["own threads"].startswith("Fail: use_per_session_threads must be false")
    assert found["shared threads"] == [[2.0], [2.0]]


def test_quantising_takes_the_operators_of_onnxruntime(tmp_path):
    # Alone, a MaxPool gains nothing by 8 bits: sardonyx.quantization leaves it, ONNX Runtime's tool does not.
    path = tmp_path / "model.onnx"
    path.write_bytes(
        model(
            [
                helper.make_node("Conv", ["x", "w"], ["c"]),
                helper.make_node("MaxPool", ["c"], ["y"], kernel_shape=[2, 2]),
            ],
            [("x", TensorProto.FLOAT, [1, 1, 4, 4])],
            [("y", TensorProto.FLOAT, [1, 1, 3, 3])],
            [numpy_helper.from_array(np.full((1, 1, 1, 1), 2, np.float32), "w")],
        )
    )
    found = run(
        """
import json, sys
import numpy as np
import onnx
import onnxruntime.quantization as q
import sardonyx.quantization as plain
class Reader(q.CalibrationDataReader):
    def __init__(self):
        self.left = 2
    def get_next(self):
        self.left -= 1
        return {"x": np.ones((1, 1, 4, 4), np.float32) * self.left} if self.left >= 0 else None
def ops(path):
    return sorted(n.op_type for n in onnx.load(path).graph.node)
def pairs(run):
    run("q.onnx")
    return ops("q.onnx").count("QuantizeLinear")
source = sys.argv[1]
config = q.StaticQuantConfig(None)
def by_config(out):
    config.calibration_data_reader = Reader()
    q.quantize(source, out, config)
q.quantize_dynamic(source, "d.onnx")
dynamic = "ConvInteger" in ops("d.onnx")
plain.quantize_dynamic(source, "d.onnx")
print(json.dumps([
    pairs(lambda out: q.quantize_static(source, out, Reader())), pairs(by_config),
    pairs(lambda out: plain.quantize_static(source, out, Reader())), dynamic, "ConvInteger" in ops("d.onnx"),
]))
""",
        str(path),
        folder=tmp_path,
    )
    assert found[0] == found[1] > found[2]
    assert found[3:] == [True, False]


def test_requests_for_gpus_are_served(monkeypatch):
    from sardonyx import _dropin_gpu

    monkeypatch.delenv("SDX_DROPIN_GPU", raising=False)
    asked = [("CUDAExecutionProvider", {"device_id": 1, "arena_extend_strategy": "x"}), "DmlExecutionProvider", "CPUExecutionProvider"]
    assert _dropin_gpu.served(asked, None) == (asked, None)
    monkeypatch.setenv("SDX_DROPIN_GPU", "vulkan")
    assert _dropin_gpu.served(asked, None) == ([("VulkanExecutionProvider", {"device_id": "1"}), "CPUExecutionProvider"], None)
    names = ["WebGpuExecutionProvider", "CPUExecutionProvider"]
    kept, options = _dropin_gpu.served(names, [{"device_id": "0"}, {"a": "b"}])
    assert kept == [("VulkanExecutionProvider", {}), "CPUExecutionProvider"] and options == [{}, {"a": "b"}]
    monkeypatch.setenv("SDX_DROPIN_GPU", "metal")
    with pytest.raises(sardonyx.InvalidArgument, match="SDX_DROPIN_GPU must be vulkan"):
        _dropin_gpu.served(names, None)


def test_a_request_for_a_gpu_runs_on_vulkan(tmp_path, monkeypatch):
    monkeypatch.setenv("SDX_DROPIN_GPU", "vulkan")
    monkeypatch.setenv("SDX_VULKAN_DEVICE", "llvmpipe")
    path = tmp_path / "model.onnx"
    ends = [[(name, TensorProto.FLOAT, [1, 2])] for name in ("x", "y")]
    path.write_bytes(model([helper.make_node("Relu", ["x"], ["y"])], *ends))
    seen = run(
        f"""
import json, numpy as np, onnxruntime as ort
listed = ort.get_available_providers()
if "VulkanExecutionProvider" not in listed:
    print(json.dumps([listed]))
    raise SystemExit
session = ort.InferenceSession({str(path)!r}, providers=["CUDAExecutionProvider", "CPUExecutionProvider"])
feed = {{session.get_inputs()[0].name: np.array([[-1, 2]], np.float32)}}
print(json.dumps([listed, session.get_providers(), session.run(None, feed)[0].tolist()]))
""",
        folder=tmp_path,
    )
    if len(seen) == 1:
        assert "CUDAExecutionProvider" not in seen[0]
        pytest.skip("no software driver of Vulkan")
    assert "CUDAExecutionProvider" in seen[0] and seen[1][0] == "VulkanExecutionProvider" and seen[2] == [[0, 2]]
