"""Providers and their options, as programs written for ONNX Runtime give them; with a vendor's library where tools/runtimes.sh has
installed one."""

import re
import threading
from pathlib import Path

import numpy as np
import pytest
from conftest import model
from onnx import TensorProto, helper

import sardonyx as ort

RUNTIMES = Path(__file__).resolve().parents[2] / "build" / "runtimes"
VENDORS = {
    "ort-newest": ("onnxruntime/capi/libonnxruntime.so*", "SDX_ORT_LIB", "ort:cpu", "CPUExecutionProvider"),
    "ort-oldest": ("sherpa_onnx/lib/libonnxruntime.so*", "SDX_ORT_LIB", "ort:cpu", "CPUExecutionProvider"),
    "ort-openvino": ("onnxruntime/capi/libonnxruntime.so*", "SDX_ORT_LIB", "ort:openvino", "OpenVINOExecutionProvider"),
    "openvino": ("openvino/libs/libopenvino_c.so*", "SDX_OPENVINO_LIB", "openvino", "OpenVINOExecutionProvider"),
}


@pytest.fixture
def data():
    add = [helper.make_node("Add", ["x", "x"], ["y"])]
    return model(add, [("x", TensorProto.FLOAT, ["n"])], [("y", TensorProto.FLOAT, ["n"])], opset=17)


@pytest.fixture
def without(monkeypatch):
    """No vendor's library, whatever is installed."""
    monkeypatch.setenv("SDX_ORT_LIB", "/nonexistent/libonnxruntime.so")
    monkeypatch.setenv("SDX_OPENVINO_LIB", "/nonexistent/libopenvino_c.so")


@pytest.fixture(params=sorted(VENDORS))
def vendor(request, monkeypatch, tmp_path):
    """Short name and ONNX Runtime's name of a provider that can be used."""
    pattern, variable, short, name = VENDORS[request.param]
    found = sorted((RUNTIMES / request.param).glob(pattern))
    if not found:
        pytest.skip(f"tools/runtimes.sh has not installed {request.param}")
    monkeypatch.setenv(variable, str(found[-1]))
    monkeypatch.setenv("SDX_CACHE_DIR", str(tmp_path))
    return short, name


def test_names_and_options_without_libraries(data, without):
    for providers in (["cpu"], ["CPUExecutionProvider"], [("CPUExecutionProvider", {})], "cpu", ("cuda", "cpu")):
        session = ort.InferenceSession(data, providers=providers)
        assert session.get_providers() == ["CPUExecutionProvider"]
        assert session.get_provider_options() == {"CPUExecutionProvider": {}}
        assert session.run(None, {"x": [1, 2]})[0].tolist() == [2, 4]


def test_a_fallback_is_in_the_report(data, without):
    with pytest.warns(UserWarning, match="Specified provider 'CUDAExecutionProvider' is not in available provider names") as said:
        session = ort.InferenceSession(data, providers=[("CUDAExecutionProvider", {"device_id": 0}), "CPUExecutionProvider"])
    (fallback,) = session.report()["fallbacks"]
    assert fallback.startswith("requested cuda, using cpu: ")
    (warning,) = said
    assert "Available providers: '" in str(warning.message) and "CPUExecutionProvider'" in str(warning.message)
    assert fallback in str(warning.message) and warning.filename == __file__
    options = ort.SessionOptions()
    options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    with pytest.raises(ort.EPFail, match="cuda"):
        ort.InferenceSession(data, options, providers=["CUDAExecutionProvider"])


@pytest.mark.parametrize("arguments, message", [
    ({"providers": ["cdua"]}, "did you mean 'cuda'"),
    ({"providers": [("cuda", {"device_idd": 1})]}, "did you mean 'device_id'"),
    ({"providers": [("cuda", {"device_id": "first"})]}, "must be a whole number"),
    ({"providers": ["cuda"], "provider_options": [{"cudnn_conv_algo_search": "BEST"}]}, "EXHAUSTIVE"),
    ({"providers": ["cuda"], "provider_options": []}, "as many as providers"),
    ({"providers": [("cuda", {"device_id": 1})], "provider_options": [{"device_id": 2}]}, "given twice"),
    ({"providers": [("cuda", 3)]}, "name and options"),
    ({"providers": [7]}, "name and options"),
    ({"provider_options": [{}]}, "need providers"),
])
def test_what_cannot_be_says_why(data, without, arguments, message):
    with pytest.raises(ort.InvalidArgument, match=message):
        ort.InferenceSession(data, **arguments)


ARENA = {"arena_extend_strategy": "kSameAsRequested"}


@pytest.mark.parametrize("arguments", [
    {"providers": [("CPUExecutionProvider", ARENA)]},
    {"providers": ["CPUExecutionProvider"], "provider_options": [ARENA]},
    {"providers": [("cpu", {**ARENA, "use_arena": 0, "max_mem": 1})]},
])
def test_options_of_the_cpu_provider_are_noted_and_ignored(data, without, arguments, recwarn):
    session = ort.InferenceSession(data, **arguments)
    assert session.run(None, {"x": [1, 2]})[0].tolist() == [2, 4]
    (note,) = session.report()["warnings"]
    assert "no effect" in note and "arena_extend_strategy" in note
    assert note in session.report()["text"]
    assert session.get_provider_options() == {"CPUExecutionProvider": {}}
    assert not recwarn


def test_options_that_no_cpu_provider_has_are_left_out_with_a_warning(data, without):
    with pytest.warns(UserWarning, match="has no option 'fast'") as said:
        session = ort.InferenceSession(data, providers=[("CPUExecutionProvider", {"fast": True, **ARENA})])
    assert [w.filename for w in said] == [__file__]
    (note,) = session.report()["warnings"]
    assert "fast" not in note


UNKNOWN = ["CANNExecutionProvider", "ACLExecutionProvider", "NvTensorRTRTXExecutionProvider", "NextYearsExecutionProvider"]


@pytest.mark.parametrize("name", UNKNOWN)
def test_execution_providers_that_nobody_knows_are_left_out_with_a_warning(data, without, name):
    for providers in ([name], [name, "CPUExecutionProvider"], [(name, {"device_id": 0}), ("CPUExecutionProvider", {})]):
        with pytest.warns(UserWarning, match=f"Specified provider '{name}' is not in available provider names") as said:
            session = ort.InferenceSession(data, providers=providers)
        assert [w.filename for w in said] == [__file__]
        assert session.get_providers() == ["CPUExecutionProvider"]
        assert session.get_provider_options() == {"CPUExecutionProvider": {}}
        assert session.run(None, {"x": [1, 2]})[0].tolist() == [2, 4]
        (fallback,) = session.report()["fallbacks"]
        assert fallback == f"requested {name}, using cpu: there is no provider of that name"
        assert fallback in session.report()["text"]


def test_execution_providers_that_nobody_knows_are_an_error_when_strict(data, without):
    options = ort.SessionOptions()
    options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    with pytest.raises(ort.InvalidArgument, match="unknown provider 'CANNExecutionProvider'"):
        ort.InferenceSession(data, options, providers=["CANNExecutionProvider", "CPUExecutionProvider"])


def test_known_providers_that_are_not_there_fall_back(data, without):
    session = ort.InferenceSession(data, providers=["AzureExecutionProvider", "CPUExecutionProvider"])
    assert session.get_providers() == ["CPUExecutionProvider"]
    (fallback,) = session.report()["fallbacks"]
    assert fallback.startswith("requested azure, using cpu: ")


def test_the_first_of_two_counts(data, without):
    with pytest.warns(UserWarning, match="Duplicate provider 'cpu' encountered, ignoring"):
        session = ort.InferenceSession(data, providers=[("CPUExecutionProvider", ARENA), ("cpu", {"max_mem": 1})])
    (note,) = session.report()["warnings"]
    assert "arena_extend_strategy" in note and "max_mem" not in note


def test_set_providers_opens_the_file_again(data, without, tmp_path):
    path = tmp_path / "add.onnx"
    path.write_bytes(data)
    session = ort.InferenceSession(path, providers=["cpu"])
    session.set_providers(["CUDAExecutionProvider", "CPUExecutionProvider"], [{"device_id": 0}, {}])
    assert session.report()["fallbacks"][0].startswith("requested cuda, using cpu")
    with pytest.raises(ort.InvalidArgument, match="did you mean 'cuda'"):
        session.set_providers(["cdua"])
    assert session.report()["fallbacks"][0].startswith("requested cuda, using cpu")
    session.set_providers(["CPUExecutionProvider"])
    assert session.report()["fallbacks"] == []
    assert session.run(None, {"x": [1, 2]})[0].tolist() == [2, 4]
    of_bytes = ort.InferenceSession(data, providers=["cpu"])
    of_bytes.set_providers(["CPUExecutionProvider"])  # which it runs on
    with pytest.raises(ort.NotImplemented, match="make another one"):
        of_bytes.set_providers(["CUDAExecutionProvider", "CPUExecutionProvider"])


def test_session_options_of_ours(data, without, tmp_path):
    options = ort.SessionOptions()
    options.runtime = "ort"
    (fallback,) = ort.InferenceSession(data, options).report()["fallbacks"]
    assert "/nonexistent/libonnxruntime.so" in fallback
    options.strict = True
    with pytest.raises(ort.EPFail, match="nonexistent"):
        ort.InferenceSession(data, options)
    options = ort.SessionOptions()
    options.telemetry = str(tmp_path / "runs.jsonl")
    options.provider_timeout, options.provider_retry, options.reject_nan = 1.5, 0.5, True
    options.select, options.start_on = "measured", "cpu"
    session = ort.InferenceSession(data, options, providers=["cpu"])
    assert session.run(None, {"x": [1]})[0].tolist() == [2]
    assert re.search('"runtime":"native","provider":"cpu"', (tmp_path / "runs.jsonl").read_text())
    for name, value in (("select", "fastest"), ("runtime", "onnx"), ("start_on", "cdua")):
        options = ort.SessionOptions()
        setattr(options, name, value)
        with pytest.raises(ort.InvalidArgument, match=value):
            ort.InferenceSession(data, options, providers=["cpu"])


def test_a_vendor_runs(data, vendor):
    short, name = vendor
    for given in ([short], [(short, {})]):
        session = ort.InferenceSession(data, providers=given)
        assert session.get_providers() == list(dict.fromkeys([name, "CPUExecutionProvider"]))
        assert session.report()["providers"] == [short]
        for n in (1, 5, 3):
            x = np.arange(n, dtype=np.float32)
            assert session.run(["y"], {"x": x})[0].tolist() == (2 * x).tolist()


def test_a_vendors_options(data, vendor):
    short, name = vendor
    own = {"session.intra_op.allow_spinning": 0} if short == "ort:cpu" else {"device_type": "CPU", "num_of_threads": 1}
    shown = {k: str(v) for k, v in own.items()}
    for arguments in ({"providers": [(short, own), "cpu"]}, {"providers": [short, "cpu"], "provider_options": [own, {}]}):
        session = ort.InferenceSession(data, **arguments)
        assert session.get_provider_options()[name] == shown
        assert session.run(None, {"x": [3]})[0].tolist() == [6]
    wrong = {"session.intra_op_thread_affinities": "x"} if short == "ort:cpu" else {"device_type": "XPU9"}
    options = ort.SessionOptions()
    options.strict, options.intra_op_num_threads = True, 2
    with pytest.raises(ort.Error, match="ffinit|XPU9"):
        ort.InferenceSession(data, options, providers=[(short, wrong)])


def test_a_vendors_runs_have_options_and_threads(data, vendor):
    session = ort.InferenceSession(data, providers=[vendor[0]])
    wrong = []

    def work(k):
        for i in range(20):
            options = ort.RunOptions()
            options.timeout = 60
            x = np.full(1 + i % 3, k * 100 + i, np.float32)
            if session.run(None, {"x": x}, options)[0].tolist() != (2 * x).tolist():
                wrong.append((k, i))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
    options = ort.RunOptions()
    options.terminate = True
    with pytest.raises(ort.Cancelled):
        session.run(None, {"x": [1]}, options)


def test_lists_of_providers(without):
    everything = {p["ort_name"] for p in ort.providers()}
    assert set(ort.get_available_providers()) <= set(ort.get_all_providers()) == everything
    assert {"TensorrtExecutionProvider", "CUDAExecutionProvider", "OpenVINOExecutionProvider", "CPUExecutionProvider"} <= everything
    for p in ort.providers():
        assert p["available"] or p["reason"], p


@pytest.mark.parametrize("name", ["text.LanguageModel", "text.TextEmbedder", "faces.FaceDetector"])
def test_warnings_name_the_line_that_makes_the_object(name, tmp_path):
    from sardonyx import faces, text

    kind = getattr({"text": text, "faces": faces}[name.split(".")[0]], name.split(".")[1])
    with pytest.warns(UserWarning, match="Specified provider") as said, pytest.raises(ort.Error):
        kind(tmp_path / "none", providers=["NextYearsExecutionProvider"])
    assert [w.filename for w in said] == [__file__]
