import json
import math
import random
import sys
import threading
from pathlib import Path

import pytest

from sardonyx import InvalidArgument
from sardonyx.text import AddedToken, AnswerParser, ChatTemplate, LanguageModel, Reranker, TextEmbedder, Tokenizer, parse_answer

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


LOWERED = json.dumps({
    "version": "1.0", "truncation": None, "padding": None, "added_tokens": [
        {"id": i, "content": c, "special": True, "normalized": False, "single_word": False, "lstrip": False, "rstrip": False}
        for i, c in enumerate(("[PAD]", "[UNK]", "[CLS]", "[SEP]"))],
    "normalizer": {"type": "Lowercase"}, "pre_tokenizer": {"type": "BertPreTokenizer"}, "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
    "post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
                                                                 {"SpecialToken": {"id": "[SEP]", "type_id": 0}}],
                       "pair": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
                                {"SpecialToken": {"id": "[SEP]", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}},
                                {"SpecialToken": {"id": "[SEP]", "type_id": 1}}],
                       "special_tokens": {c: {"id": c, "ids": [i], "tokens": [c]} for c, i in (("[CLS]", 2), ("[SEP]", 3))}},
    "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
              "vocab": {w: i for i, w in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "b", "ab", "##a", "##b", "##c", "new", ".", ","])}}})
PLAIN = json.dumps({"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None, "pre_tokenizer": {"type": "Whitespace"},
                    "post_processor": None, "decoder": None,
                    "model": {"type": "WordLevel", "unk_token": "?", "vocab": {"?": 0, "a": 1, "b": 2, "new": 3}}})


def shown(encoding):
    """The lists of an encoding and of the parts that were cut off. In parts of pairs the package has further copies of these."""
    names = ("ids", "tokens", "offsets", "type_ids", "attention_mask", "special_tokens_mask")
    return [[list(getattr(e, name)) for name in names] for e in (encoding, *encoding.overflowing)]


def outcome(call):
    try:
        return call()
    except BaseException as error:  # the package's panics are no Exceptions
        if isinstance(error, (KeyboardInterrupt, AssertionError)):
            raise
        return "refused"


def changed(chance, added_before):
    """One random call that changes settings: a function of a tokenizer and its class of added tokens. Words that a normalizer changes are added
    once: the package decodes to what their first form was."""
    words = ["new", "<x>", "AB", "a b", " . ", "é", "", "abc", "[SEP]", "b"]
    kind = chance.randrange(6)
    if kind == 0:
        settings = {"direction": chance.choice(("left", "right")), "pad_id": chance.randrange(3), "pad_type_id": chance.randrange(2),
                    "pad_token": chance.choice(("[PAD]", "x")), "length": chance.choice((None, None, 0, 5, 9)), "pad_to_multiple_of": chance.choice((None, 1, 4))}
        return lambda t, added: t.enable_padding(**settings)
    if kind == 1:
        return lambda t, added: t.no_padding()
    if kind == 2:
        settings = {"max_length": chance.choice((0, 1, 2, 3, 4, 6, 50)), "stride": chance.choice((0, 0, 1, 2)),
                    "strategy": chance.choice(("longest_first", "only_first", "only_second")), "direction": chance.choice(("left", "right"))}
        return lambda t, added: t.enable_truncation(**settings)
    if kind == 3:
        return lambda t, added: t.no_truncation()
    words = [w for w in words if w == w.lower() or w not in added_before]
    many = [(chance.choice(words), {} if chance.random() < 0.4 else {name: chance.random() < 0.5 for name in chance.sample(
        ("single_word", "lstrip", "rstrip", "special") + (("normalized",) if kind == 4 else ()), 2)}) for _ in range(chance.randrange(1, 4))]
    many = list({word: (word, flags) for word, flags in many}.values())
    added_before.update(word for word, _ in many)

    def add(t, added):
        tokens = [added(word, **flags) if flags else word for word, flags in many]
        return t.add_tokens(tokens) if kind == 4 else t.add_special_tokens(tokens)

    return add


@pytest.mark.parametrize("source", [LOWERED, PLAIN], ids=["lowered", "plain"])
def test_settings_as_in_tokenizers(source):
    tokenizers = pytest.importorskip("tokenizers")
    texts = ["a", "", "ab abc new, AB.", "a b <x> NEW new <X>", " .  é . ", "[SEP] a b c", "b " * 12]
    for seed in range(150):
        chance = random.Random(seed)
        ours, theirs, added_before = Tokenizer.from_str(source), tokenizers.Tokenizer.from_str(source), {"[SEP]"} if source == LOWERED else set()
        foreign = chance.random() < 0.5
        for _ in range(6):
            change = changed(chance, added_before)
            made = [outcome(lambda t=t, a=a: change(t, a)) for t, a in ((ours, tokenizers.AddedToken if foreign else AddedToken), (theirs, tokenizers.AddedToken))]
            assert made[0] == made[1], (seed, made)
            assert ours.padding == theirs.padding and ours.truncation == theirs.truncation, seed
            batch = [chance.choice(texts) if chance.random() < 0.6 else (chance.choice(texts), chance.choice(texts)) for _ in range(chance.randrange(1, 4))]
            special = chance.random() < 0.7
            for given, words in ((batch, False), ([t.split() for t in texts], True), ([(["a", "b a"], ["new"])], True)):
                a, b = (outcome(lambda t=t: [shown(e) for e in t.encode_batch(given, is_pretokenized=words, add_special_tokens=special)]) for t in (ours, theirs))
                assert a == b, (seed, given, a, b)
            ids = [chance.randrange(16) for _ in range(6)]
            for skip in (True, False):
                assert ours.decode(ids, skip_special_tokens=skip) == theirs.decode(ids, skip_special_tokens=skip), (seed, ids)
            for word in ("new", "<x>", "AB", "é"):
                assert ours.token_to_id(word) == theirs.token_to_id(word), (seed, word)


def test_settings(tokenizer):
    tokenizer.enable_padding(pad_id=1, pad_token="<s>", length=6)
    assert [e.ids for e in tokenizer.encode_batch(["é", ("é", "ab")])] == [[1, 3, 2, 1, 1, 1], [1, 3, 2, 4, 2, 1]]
    tokenizer.no_padding()
    tokenizer.enable_truncation(3)
    first = tokenizer.encode("é ab é")
    assert (first.ids, [part.ids for part in first.overflowing]) == ([1, 3, 2], [[1, 4, 2], [1, 3, 2]])
    tokenizer.no_truncation()
    assert (tokenizer.padding, tokenizer.truncation) == (None, None)
    assert tokenizer.add_tokens(["<x>", "ab"]) == 2 and tokenizer.add_special_tokens([AddedToken("<y>", rstrip=True)]) == 1
    assert tokenizer.encode("<x>é<y> ab").ids == [1, 5, 3, 6, 4, 2]
    assert tokenizer.decode([5, 6]) == "<x>"
    assert tokenizer.encode(["é", "ab"], is_pretokenized=True).ids == [1, 3, 4, 2]
    assert Tokenizer.from_str(PLAIN).encode("a b").ids == [1, 2]
    for wrong in (lambda: tokenizer.enable_padding(direction="up"), lambda: tokenizer.enable_padding(pad_id=-1), lambda: tokenizer.enable_padding(length=-1),
                  lambda: tokenizer.enable_truncation(4, strategy="both"), lambda: tokenizer.enable_truncation(-1),
                  lambda: tokenizer.enable_truncation(4, stride=9), lambda: Tokenizer.from_str("{"), lambda: tokenizer.add_tokens(["x" * 2000])):
        with pytest.raises((ValueError, RuntimeError)):
            wrong()
    for wrong in (lambda: tokenizer.encode_batch([7]), lambda: tokenizer.encode_batch(["a"], is_pretokenized=True), lambda: tokenizer.add_tokens([3]),
                  lambda: tokenizer.encode_batch([["a", "b", "c"]])):
        with pytest.raises(TypeError):
            wrong()
    assert tokenizer.encode("é").ids == [1, 3, 2]


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
    vectors = model.embed(["a", "ab"])
    assert vectors.shape[0] == 2 and vectors.tolist() == TextEmbedder(talker).embed(["a", "ab"]).tolist()
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
