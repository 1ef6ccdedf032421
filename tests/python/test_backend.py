"""ONNX's Backend interface beyond what its own runner calls, and calls that programs with several backends share."""

import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from conftest import model
from onnx import helper

import sardonyx.backend as backend
from sardonyx import InvalidArgument, NotImplemented
from sardonyx.backends import AccelerationBackend, ONNXRuntimeManager

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "cli"))
import tiny_models  # noqa: E402

MESSAGES = [{"role": "user", "content": "ab"}]
GREEDY = {"greedy": True, "max_tokens": 3}


@pytest.fixture
def sub():
    return onnx.load_from_string(
        model([helper.make_node("Sub", ["a", "b"], ["c"])], [("a", 1, [2]), ("b", 1, [2])], [("c", 1, [2])])
    )


def test_prepare_and_run(sub):
    a, b = np.float32([5, 6]), np.float32([1, 2])
    rep = backend.prepare(sub, "CPU")
    outputs = rep.run([a, b])
    assert outputs[0].tolist() == [4, 4] and outputs.c.tolist() == [4, 4]
    assert rep.run({"b": a, "a": b})[0].tolist() == [-4, -4]
    assert backend.run_model(sub, [a, b])[0].tolist() == [4, 4]
    with pytest.raises(ValueError, match="2 inputs"):
        rep.run(a)


def test_run_node():
    node = helper.make_node("Clip", ["x", "", "high"], ["y"])
    (y,) = backend.run_node(node, [np.float32([-1, 5]), np.float32(2)])
    assert y.tolist() == [-1, 2]
    (y,) = backend.run_node(helper.make_node("Relu", ["x"], ["y"]), {"x": np.float32([-1, 5])}, opset_version=13)
    assert y.tolist() == [0, 5]


def test_devices_and_models(sub):
    assert backend.supports_device("CPU") and backend.supports_device("CPU:0") and not backend.supports_device("TPU")
    assert backend.is_compatible(sub)
    sub.graph.node[0].op_type = "Absent"
    assert not backend.is_compatible(sub.SerializeToString())
    with pytest.raises(RuntimeError, match="TPU"):
        backend.prepare(sub, "TPU")


@pytest.fixture
def folder(tmp_path):
    tiny_models.write_all(tmp_path)
    return tmp_path


def test_language_model(folder):
    manager = ONNXRuntimeManager()
    assert manager.get_state()["loaded"] is False
    with pytest.raises(InvalidArgument, match="no language model"):
        manager.generate(MESSAGES)
    state = manager.load_model(model_path=folder / "talker.gguf", acceleration=AccelerationBackend.CPU, config={"threads": 1})
    assert state == manager.get_state()
    assert state["kind"] == "language" and state["acceleration"] == "cpu" and state["info"]["context"] == 16
    assert [p.lower() for p in state["providers"]] == ["cpu"]
    answer = manager.generate(MESSAGES, GREEDY)
    assert answer["content"] == "aaa" and answer["finish_reason"] == "length"
    assert answer["usage"] == {"prompt_tokens": 2, "completion_tokens": 3}
    assert list(manager.generate_stream(MESSAGES, GREEDY)) == ["a", "a", "a"]
    with pytest.raises(InvalidArgument, match="no embedding model"):
        manager.generate_embeddings(["ab"])
    manager.unload_model()
    manager.unload_model()
    assert manager.get_state()["loaded"] is False


def test_embeddings(folder):
    manager = ONNXRuntimeManager()
    manager.load_model(folder / "embedder", config={"embedding": True}, tokenizer_path=folder / "embedder" / "tokenizer.json")
    assert manager.get_state()["kind"] == "embedding"
    assert manager.generate_embeddings(["ab a", "a"]).shape == (2, 1)


def test_refused(folder):
    manager = ONNXRuntimeManager()
    manager.load_model(folder / "talker.gguf")
    with pytest.raises(NotImplemented, match="cannot run models on 'vulkan'"):
        manager.load_model(folder / "talker.gguf", acceleration=AccelerationBackend.VULKAN)
    with pytest.raises(InvalidArgument, match="no acceleration 'abacus'"):
        manager.load_model(folder / "talker.gguf", acceleration="abacus")
    with pytest.raises(InvalidArgument, match="config has no 'gpu'"):
        manager.load_model(folder / "talker.gguf", config={"gpu": 1})
    with pytest.raises(NotImplemented, match="tokenizer_path"):
        manager.load_model(folder / "talker.gguf", tokenizer_path=folder / "letters" / "tokenizer.json")
    assert manager.generate(MESSAGES, GREEDY)["content"] == "aaa"  # the model before is still there
