import json
import math
import sys
import threading
from pathlib import Path

import pytest

from sardonyx import InvalidArgument, NotImplemented
from sardonyx.text import AnswerParser, ChatTemplate, LanguageModel, Reranker, TextEmbedder, Tokenizer, parse_answer

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
    with pytest.raises(TypeError, match="no setting 'beems'"):
        model.generate("ab", beems=2)
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
    assert TextEmbedder(tmp_path / "embedder", dimensions=1).embed("a").tolist() == [[1.0]]


def test_perplexity(talker):
    model = LanguageModel(talker)
    p = model.perplexity("abababab")
    assert p.tokens == p.scored + 1 and p.windows == 1
    assert p.perplexity == pytest.approx(math.exp(p.nll))
    parts = model.perplexity(model_tokens := [2, 3, 2, 3, 2, 3], window=4, stride=2)
    assert parts.tokens == len(model_tokens) and parts.windows == 2
    with pytest.raises(InvalidArgument, match="stride"):
        model.perplexity("abab", window=2, stride=3)


def test_guesses_and_beams(talker):
    model = LanguageModel(talker)
    plain = model.generate("abab", greedy=True, max_tokens=6)
    looked = model.generate("abab", greedy=True, max_tokens=6, lookup=3)
    drafted = model.generate("abab", greedy=True, max_tokens=6, draft=LanguageModel(talker), draft_tokens=2)
    assert looked.text == drafted.text == plain.text
    assert drafted.accepted_tokens == drafted.drafted_tokens > 0
    beams = model.generate("ab", beams=3, n=2, max_tokens=2, length_penalty=1.0, early_stopping=False)
    assert len(beams.choices) == 2 and beams.choices[0].score == pytest.approx(-2.0794415)
    assert len(model.generate("ab", greedy=True, max_tokens=40, overflow="slide", keep=1).text) == 40
    with pytest.raises(InvalidArgument, match="beams"):
        model.generate("ab", beams=2, regex="b")
    with pytest.raises(InvalidArgument, match="overflow"):
        model.generate("ab", overflow="roll")
    with pytest.raises(TypeError, match="draft"):
        model.generate("ab", draft="talker.gguf")


def test_unload(talker):
    model = LanguageModel(talker)
    assert model.state == "loaded"
    with pytest.raises(NotImplemented, match="TextEmbedder"):
        model.embed("a")
    model.unload()
    assert model.state == "unloaded"
    with pytest.raises(InvalidArgument, match="unloaded"):
        model.generate("ab")


TOOLS = [{"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}]


def test_calls(talker):
    text = '<think>Hm.</think>\n\nSum:\n<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>'
    answer = parse_answer(text, "hermes")
    assert (answer.content, answer.reasoning) == ("Sum:", "Hm.")
    assert answer.calls[0].name == "add" and json.loads(answer.calls[0].arguments) == {"a": 1} and answer.calls[0].complete
    parser = AnswerParser(template=ChatTemplate("<tool_call> {{ x }}"), tools=TOOLS)
    events = [e for letter in text for e in parser.add(letter)] + parser.finish()
    assert parser.answer[:2] == answer[:2]
    assert "".join(e.text for e in events if e.kind == "arguments") == '{"a": 1}'
    assert [e.kind for e in events if e.name] == ["call_begin"]
    with pytest.raises(InvalidArgument, match="hermes"):
        AnswerParser("no such")
    with pytest.raises(InvalidArgument, match="tool"):
        AnswerParser(tools=[{"a": 1}])
    said = LanguageModel(talker).generate([{"role": "user", "content": "ab"}], tools=TOOLS, greedy=True, max_tokens=2)
    assert said.choices[0].message.content == said.text and said.choices[0].message.calls == []


def test_rerank(tmp_path):
    tiny_models.write_all(tmp_path)
    scores = Reranker(tmp_path / "reranker").score("a", ["ab a", "a"])
    assert len(scores) == 2 and all(isinstance(s, float) for s in scores)


def test_lora(talker, tmp_path):
    with pytest.raises(Exception, match="in the adapter"):
        LanguageModel(talker, loras=[tmp_path / "none"])
    with pytest.raises(Exception, match="in the adapter"):
        LanguageModel(talker, loras=[(talker, 0.5)])
