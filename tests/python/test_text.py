import json
import threading

import pytest

from sardonyx.text import Tokenizer


@pytest.fixture
def tokenizer(tmp_path):
    special = [{"id": i, "content": c, "special": True, "normalized": False} for i, c in ((1, "<s>"), (2, "</s>"))]
    (tmp_path / "tokenizer.json").write_text(json.dumps({
        "version": "1.0", "added_tokens": special, "pre_tokenizer": {"type": "WhitespaceSplit"},
        "post_processor": {"type": "BertProcessing", "cls": ["<s>", 1], "sep": ["</s>", 2]},
        "model": {"type": "WordLevel", "unk_token": "[UNK]", "vocab": {"[UNK]": 0, "<s>": 1, "</s>": 2, "é": 3, "ab": 4}}}))
    return Tokenizer(tmp_path)


def test_encode(tokenizer):
    encoding = tokenizer.encode("é ab")
    assert encoding.ids == [1, 3, 4, 2]
    assert encoding.tokens == ["<s>", "é", "ab", "</s>"]
    assert encoding.offsets == [(0, 0), (0, 1), (2, 4), (0, 0)]
    assert tokenizer.encode("é", add_special_tokens=False).ids == [3]
    pair = tokenizer.encode("é", "ab")
    assert pair.ids == [1, 3, 2, 4, 2]
    assert pair.type_ids == [0, 0, 0, 1, 1]


def test_decode(tokenizer):
    assert tokenizer.decode([1, 3, 4, 2]) == "é ab"
    assert tokenizer.decode((1, 3), skip_special_tokens=False) == "<s> é"
    assert tokenizer.decode([99]) == ""
    assert tokenizer.id_to_token(4) == "ab"
    assert tokenizer.id_to_token(99) is None
    assert tokenizer.token_to_id("ab") == 4
    assert tokenizer.vocabulary_size == 5


def test_errors(tokenizer, tmp_path):
    with pytest.raises(RuntimeError, match="nowhere"):
        Tokenizer(tmp_path / "nowhere")
    (tmp_path / "tokenizer.json").write_text("{")
    with pytest.raises(RuntimeError, match="not valid JSON"):
        Tokenizer(tmp_path)
    with pytest.raises(TypeError):
        tokenizer.encode(7)
    with pytest.raises((ValueError, OverflowError)):
        tokenizer.decode([-1])
    with pytest.raises(ValueError):
        tokenizer.decode([2**32])
    with pytest.raises(ValueError):
        tokenizer.encode("\udc80")


def test_threads(tokenizer):
    wrong = []

    def work():
        for _ in range(200):
            if tokenizer.encode("é ab").ids != [1, 3, 4, 2]:
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
