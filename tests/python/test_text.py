import json
import math
import sys
import threading
from pathlib import Path

import pytest

from sardonyx import InvalidArgument
from sardonyx.text import ChatTemplate, LanguageModel, TextEmbedder, Tokenizer

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "cli"))
import tiny_models  # noqa: E402


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


@pytest.fixture
def talker(tmp_path):
    """Tokens a b 1 2 blank " c <end>, all equally likely; the first comes first."""
    path = tmp_path / "talker.gguf"
    path.write_bytes(tiny_models.gguf(["a", "b", "1", "2", "\u0120", '"', "c", "<end>"]))
    return path


def test_generate(talker):
    model = LanguageModel(talker)
    assert model.info["architecture"] == "llama" and model.info["context"] == 16
    answer = model.generate("ab", greedy=True, max_tokens=3, logprobs=1)
    assert answer.text == "aaa"
    assert answer.choices[0].finish_reason == "length"
    assert answer.choices[0].logprobs[0] == (0, pytest.approx(-2.0794415))
    assert model.generate([{"role": "user", "content": "ab"}], greedy=True, max_tokens=2, logit_bias={1: 5}).text == "bb"
    assert model.generate("ab", seed=1, json_schema={"enum": [12]}).text == "12"
    assert model.generate("ab", seed=1, regex="b[12]c").text in ("b1c", "b2c")
    assert "".join(model.stream("ab", greedy=True, max_tokens=4)) == "aaaa"
    with pytest.raises(TypeError, match="no setting 'beams'"):
        model.generate("ab", beams=2)
    with pytest.raises(InvalidArgument, match="temperature"):
        model.generate("ab", temperature=-1)
    with pytest.raises(InvalidArgument):
        model.generate("ab", regex="a", grammar='root ::= "a"')


def test_generate_callback(talker):
    model = LanguageModel(talker)
    seen = []

    def two(choice, token, text):
        seen.append((choice, token, text))
        return len(seen) < 2

    answer = model.generate("ab", greedy=True, on_token=two)
    assert answer.choices[0].finish_reason == "cancelled"
    assert seen == [(0, 0, "a"), (0, 0, "a")]

    def bad(choice, token, text):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        model.generate("ab", on_token=bad)
    for part in model.stream("ab", greedy=True):
        assert part == "a"
        break


def test_chat_template(talker, tmp_path):
    messages = [{"role": "user", "content": "é"}]
    assert ChatTemplate("{{ messages[0].content }}{{ x }}{{ tools | length }}").render(messages, tools=[{}, {}], x="y") == "éy2"
    assert ChatTemplate(talker).render(messages) == "é"
    (tmp_path / "chat_template.jinja").write_text("{% if add_generation_prompt %}go{% endif %}")
    assert ChatTemplate(tmp_path).render(messages=messages, add_generation_prompt=True) == "go"


def test_embed(tmp_path):
    tiny_models.write_all(tmp_path)
    vectors = TextEmbedder(tmp_path / "embedder", pooling="max", normalize=False).embed(["ab a", "a"])
    assert vectors.tolist() == [[4.0], [3.0]]
    assert TextEmbedder(tmp_path / "embedder").embed("a", prompt="query").tolist() == [[1.0]]


def test_perplexity(talker):
    model = LanguageModel(talker)
    p = model.perplexity("abababab")
    assert p.tokens == p.scored + 1 and p.windows == 1
    assert p.perplexity == pytest.approx(math.exp(p.nll))
    parts = model.perplexity(model_tokens := [2, 3, 2, 3, 2, 3], window=4, stride=2)
    assert parts.tokens == len(model_tokens) and parts.windows == 2
    with pytest.raises(InvalidArgument, match="stride"):
        model.perplexity("abab", window=2, stride=3)
