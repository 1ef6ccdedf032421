import sys
from pathlib import Path

import pytest

from sardonyx import InvalidArgument, NotImplemented
from sardonyx.backends import AccelerationBackend, ONNXRuntimeManager

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "cli"))
import tiny_models  # noqa: E402

MESSAGES = [{"role": "user", "content": "ab"}]
GREEDY = {"greedy": True, "max_tokens": 3}


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
