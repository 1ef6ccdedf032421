"""Language: tokenizers, chat templates, language models, vectors of texts.

    from sardonyx.text import LanguageModel, TextEmbedder, Tokenizer
    model = LanguageModel("SmolLM2-135M-Instruct.Q4_1.gguf")
    print(model.generate("The capital of France is", max_tokens=16).text)
    print(model.generate([{"role": "user", "content": "Hello"}], greedy=True).text)
    vectors = TextEmbedder("all-MiniLM-L6-v2/").embed(["The cat sits on the mat."])
    tokenizer = Tokenizer("model/")          # a folder, a tokenizer.json, a SentencePiece model, a vocab.txt, a GGUF file
    encoding = tokenizer.encode("Hello world")
    text = tokenizer.decode(encoding.ids)

Any number of threads may use these objects; what computes releases the GIL. `docs/text.md` says what the settings mean.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Callable, NamedTuple, Optional, Union

from . import _sardonyx
from ._providers import Providers, options_of
from ._stream import pieces

if TYPE_CHECKING:
    import numpy as np

    from ._options import SessionOptions

__all__ = [
    "AddedToken", "AnswerEvent", "AnswerParser", "ChatTemplate", "Choice", "Encoding", "Generation", "LanguageModel", "ParsedAnswer", "Perplexity",
    "Reranker", "TextEmbedder", "Tokenizer", "ToolCall", "parse_answer",
]

_text = _sardonyx.text()
Path = Union[str, "os.PathLike[str]"]
Messages = Sequence[Mapping[str, Any]]


class Encoding(NamedTuple):
    """A text's tokens, in order. `offsets` count code points of the text."""

    ids: list[int]
    tokens: list[str]
    offsets: list[tuple[int, int]]
    type_ids: list[int]
    attention_mask: list[int]
    special_tokens_mask: list[int]
    overflowing: list[Encoding]

    def __len__(self) -> int:
        return len(self.ids)


def _encoding(values: dict[str, Any]) -> Encoding:
    values["overflowing"] = [_encoding(part) for part in values["overflowing"]]
    return Encoding(**values)


class AddedToken(NamedTuple):
    """A token that is looked for in the text itself. normalized: in the normalised text; None: unless it is special."""

    content: str
    single_word: bool = False
    lstrip: bool = False
    rstrip: bool = False
    normalized: Optional[bool] = None
    special: bool = False


Text = Union[str, Sequence[str]]


def _input(text: Text, pair: Optional[Text], words: bool) -> tuple[list[str], Optional[list[str]], bool]:
    def part(value: Text) -> list[str]:
        if isinstance(value, str) == words:
            raise TypeError(f"expected {'a list of words' if words else 'a text'}, received {type(value).__name__}")
        return list(value) if words else [value]  # type: ignore[list-item]

    return part(text), None if pair is None else part(pair), words


class Tokenizer:
    """Text to the numbers of a language model's tokens, and back. Any number of threads may use one.

    Names and behaviour are those of the package `tokenizers`. Methods that change settings do so for calls that begin later.
    """

    def __init__(self, path: Path) -> None:
        self._tokenizer = _text.load_tokenizer(os.fspath(path))

    @staticmethod
    def from_str(text: str) -> Tokenizer:
        """Reads the text of a tokenizer.json."""
        made = Tokenizer.__new__(Tokenizer)
        made._tokenizer = _text.tokenizer_of(text)
        return made

    @staticmethod
    def from_file(path: Path) -> Tokenizer:
        return Tokenizer(path)

    def encode(
        self, text: Text, pair: Optional[Text] = None, add_special_tokens: bool = True, *, is_pretokenized: bool = False
    ) -> Encoding:
        if is_pretokenized:
            return self.encode_batch([(text, pair)] if pair is not None else [text], True, add_special_tokens)[0]
        return _encoding(self._tokenizer.encode(text, pair, add_special_tokens))

    def encode_batch(
        self,
        input: Sequence[Union[Text, tuple[Text, Text]]],  # noqa: A002, the name that users of tokenizers know
        is_pretokenized: bool = False,
        add_special_tokens: bool = True,
    ) -> list[Encoding]:
        """Encodes texts and pairs (two in a tuple), and pads them together. is_pretokenized: texts are lists of words."""
        inputs = []
        for item in input:
            pair = isinstance(item, (tuple, list)) and len(item) == 2 and (not is_pretokenized or not isinstance(item[0], str))
            inputs.append(_input(item[0], item[1], is_pretokenized) if pair else _input(item, None, is_pretokenized))  # type: ignore[arg-type]
        return [_encoding(values) for values in self._tokenizer.encode_batch(inputs, add_special_tokens)]

    def enable_padding(
        self,
        direction: str = "right",
        pad_id: int = 0,
        pad_type_id: int = 0,
        pad_token: str = "[PAD]",
        length: Optional[int] = None,
        pad_to_multiple_of: Optional[int] = None,
    ) -> None:
        """Pads to `length` tokens; None: to the longest of a batch."""
        for name, number in (("length", length), ("pad_to_multiple_of", pad_to_multiple_of)):
            if number is not None and number < 0:
                raise ValueError(f"{name} is {number}; expected 0 or more")
        for name, number in (("pad_id", pad_id), ("pad_type_id", pad_type_id)):
            if not 0 <= number < 2**32:
                raise ValueError(f"{name} is {number}; expected 0 to {2**32 - 1}")
        self._tokenizer = self._tokenizer.with_padding(
            -1 if length is None else length, _is_left(direction), pad_to_multiple_of or 0, pad_id, pad_type_id, pad_token
        )

    def no_padding(self) -> None:
        self._tokenizer = self._tokenizer.with_padding()

    @property
    def padding(self) -> Optional[dict[str, Any]]:
        """The arguments of enable_padding(), or None."""
        found: Optional[dict[str, Any]] = self._tokenizer.padding()
        return found

    def enable_truncation(self, max_length: int, stride: int = 0, strategy: str = "longest_first", direction: str = "right") -> None:
        """Cuts texts to `max_length` tokens, special ones included. The rest is in `overflowing`, in parts that share `stride` tokens."""
        strategies = ("longest_first", "only_first", "only_second")
        if strategy not in strategies:
            raise ValueError(f"strategy is {strategy!r}; expected one of {', '.join(strategies)}")
        if max_length < 0 or stride < 0:
            raise ValueError(f"max_length is {max_length} and stride {stride}; expected 0 or more")
        self._tokenizer = self._tokenizer.with_truncation(max_length, stride, strategies.index(strategy), _is_left(direction))

    def no_truncation(self) -> None:
        self._tokenizer = self._tokenizer.with_truncation()

    @property
    def truncation(self) -> Optional[dict[str, Any]]:
        """The arguments of enable_truncation(), or None."""
        found: Optional[dict[str, Any]] = self._tokenizer.truncation()
        return found

    def add_tokens(self, tokens: Sequence[Union[str, AddedToken]]) -> int:
        """Adds tokens that the vocabulary has not; returns how many are new. Also takes AddedTokens of the package `tokenizers`."""
        return self._add([_token(t, False) for t in tokens])

    def add_special_tokens(self, tokens: Sequence[Union[str, AddedToken]]) -> int:
        """The same for tokens that decode() leaves out."""
        return self._add([_token(t, True) for t in tokens])

    def _add(self, tokens: list[tuple[Any, ...]]) -> int:
        count: int
        self._tokenizer, count = self._tokenizer.with_tokens(tokens)
        return count

    def decode(self, ids: Iterable[int], skip_special_tokens: bool = True) -> str:
        found: str = self._tokenizer.decode(ids, skip_special_tokens)
        return found

    def token_to_id(self, token: str) -> Optional[int]:
        found: Optional[int] = self._tokenizer.token_to_id(token)
        return found

    def id_to_token(self, id: int) -> Optional[str]:  # noqa: A002, the name that users of tokenizers know
        found: Optional[str] = self._tokenizer.id_to_token(id)
        return found

    @property
    def vocabulary_size(self) -> int:
        found: int = self._tokenizer.vocabulary_size()
        return found


def _is_left(direction: str) -> bool:
    if direction not in ("left", "right"):
        raise ValueError(f"direction is {direction!r}; expected left or right")
    return direction == "left"


def _token(token: Any, special: bool) -> tuple[Any, ...]:
    if isinstance(token, str):
        return (token, False, False, False, None, special)
    names = ("content", "single_word", "lstrip", "rstrip", "normalized", "special")
    if not all(hasattr(token, name) for name in names):
        raise TypeError(f"expected a text or an AddedToken, received {type(token).__name__}")
    values = [getattr(token, name) for name in names]
    # Tokens of the package `tokenizers` do not tell its default from what was asked for.
    if not isinstance(token, AddedToken) and special and not values[5] and values[4]:
        values[4] = None
    return (*values[:5], special or bool(values[5]))


class ChatTemplate:
    """What a model was trained to see of a conversation. source: a template's text, a model's folder, or a .gguf file."""

    def __init__(self, source: Path) -> None:
        named = isinstance(source, str) and ("{" in source or "\n" in source)
        self._template = _text.make_template(source) if named else _text.load_template(os.fspath(source))

    @property
    def source(self) -> str:
        """The text of the template that conversations without tools get."""
        found: str = self._template.source()
        return found

    def render(
        self,
        messages: Messages,
        tools: Optional[Sequence[Mapping[str, Any]]] = None,
        add_generation_prompt: bool = False,
        now: str = "",
        **variables: Any,
    ) -> str:
        """The prompt. now: what strftime_now() tells, "2026-01-02"; "": the local time."""
        found: str = self._template.render(
            _json(messages), "" if tools is None else _json(tools), add_generation_prompt, now, _json(variables) if variables else ""
        )
        return found


def _json(value: Any) -> str:
    return json.dumps(value if isinstance(value, Mapping) else list(value), ensure_ascii=False)


class ToolCall(NamedTuple):
    """A call of a function. arguments: JSON text; of an object, if complete."""

    id: str
    name: str
    arguments: str
    complete: bool


class ParsedAnswer(NamedTuple):
    content: str
    reasoning: str
    calls: list[ToolCall]


class AnswerEvent(NamedTuple):
    """kind: "content" and "reasoning" (text), "call_begin" (index, id, name), "arguments" (index, text), "call_end" (index, complete)."""

    kind: str
    index: int  # type: ignore[assignment]  # tuples have a method of that name
    text: str
    id: str
    name: str
    complete: bool


class AnswerParser:
    """Reads an answer as its text comes: content, reasoning, calls. docs/tool-calls.md says what they look like.

    format: "hermes", "llama", "mistral" …; None: the template's, and without one whatever the answer turns out to have. prompt: the text
    that the answer goes on with. For one answer, and one thread at a time.
    """

    def __init__(
        self,
        format: Optional[str] = None,  # noqa: A002, what it is
        *,
        template: Optional[ChatTemplate] = None,
        tools: Optional[Sequence[Mapping[str, Any]]] = None,
        prompt: str = "",
    ) -> None:
        self._parser = _text.make_parser(format, None if template is None else template.source, "" if not tools else _json(tools), prompt)

    def add(self, text: str) -> list[AnswerEvent]:
        return [AnswerEvent(**e) for e in self._parser.add(text)]

    def finish(self) -> list[AnswerEvent]:
        """What was held back. Nothing may follow."""
        return [AnswerEvent(**e) for e in self._parser.finish()]

    @property
    def answer(self) -> ParsedAnswer:
        """So far."""
        parsed = self._parser.answer()
        return ParsedAnswer(parsed["content"], parsed["reasoning"], [ToolCall(*c) for c in parsed["calls"]])


def parse_answer(text: str, format: Optional[str] = None, **known: Any) -> ParsedAnswer:  # noqa: A002
    """A whole answer; the arguments are AnswerParser's."""
    parser = AnswerParser(format, **known)
    parser.add(text)
    parser.finish()
    return parser.answer


class Choice(NamedTuple):
    """An answer. finish_reason: "stop", "length", "cancelled"; stop: the stop text that ended it. logprobs: (token, natural logarithm).

    message: of a conversation with tools, the text read as content, reasoning and calls. score: of beam search.
    """

    text: str
    tokens: list[int]
    finish_reason: str
    stop: str
    logprobs: list[tuple[int, float]]
    top_logprobs: list[list[tuple[int, float]]]
    score: float = 0.0
    message: Optional[ParsedAnswer] = None


class Generation(NamedTuple):
    choices: list[Choice]
    prompt_tokens: int
    completion_tokens: int
    drafted_tokens: int
    accepted_tokens: int
    first_token_ms: float
    prompt_tokens_per_s: float
    tokens_per_s: float

    @property
    def text(self) -> str:
        return self.choices[0].text


class Perplexity(NamedTuple):
    """nll: the mean negative logarithm of the scored tokens' shares; perplexity: e to that power."""

    perplexity: float
    nll: float
    tokens: int
    scored: int
    windows: int
    seconds: float
    tokens_per_s: float


_SETTINGS = frozenset(
    "max_tokens min_tokens n logprobs stop stop_tokens ignore_end greedy temperature top_k top_p min_p typical_p repetition_penalty "
    "presence_penalty frequency_penalty seed logit_bias json_schema grammar regex lookup draft draft_tokens beams length_penalty "
    "early_stopping overflow keep".split()
)


def _settings(given: Mapping[str, Any]) -> dict[str, Any]:
    unknown = sorted(set(given) - _SETTINGS)
    if unknown:
        raise TypeError(f"generate takes no setting '{unknown[0]}'; there are {', '.join(sorted(_SETTINGS))}")
    settings = dict(given)
    if isinstance(settings.get("stop"), str):
        settings["stop"] = [settings["stop"]]
    if isinstance(settings.get("logit_bias"), Mapping):
        settings["logit_bias"] = list(settings["logit_bias"].items())
    if settings.get("draft") is not None:
        if not isinstance(settings["draft"], LanguageModel):
            raise TypeError("draft must be a LanguageModel")
        settings["draft"] = settings["draft"]._model
    if isinstance(settings.get("json_schema"), (Mapping, bool)):
        settings["json_schema"] = json.dumps(settings["json_schema"])
    return settings


class LanguageModel:
    """A .gguf file, or a folder: with genai_config.json, as optimum and transformers.js export it, or with config.json and
    model.safetensors. max_context: tokens; 0: the model's. accuracy_level: the least precise type of activations beside weights
    in blocks, as MatMulNBits has it: 1 float32, 2 float16, 3 bfloat16, 4 int8; 0: as the files ask, which is int8 in .gguf files.

    loras: LoRA adapters: paths, or pairs of a path and a scale. providers, sess_options: as for InferenceSession.
    """

    def __init__(
        self,
        path: Path,
        *,
        max_context: int = 0,
        accuracy_level: int = 0,
        loras: Sequence[Union[Path, tuple[Path, float]]] = (),
        providers: Optional[Providers] = None,
        sess_options: Optional[SessionOptions] = None,
    ) -> None:
        self._path = os.fspath(path)
        adapters = [(os.fspath(a[0]), float(a[1])) if isinstance(a, tuple) else (os.fspath(a), 1.0) for a in loras]
        self._model = _text.load_model(self._path, options_of(providers, sess_options), max_context, adapters, accuracy_level)
        self._template: Optional[ChatTemplate] = None

    @property
    def info(self) -> dict[str, Any]:
        """format, architecture, context, vocabulary, layers, eos, load_ms, and the providers that run it."""
        found: dict[str, Any] = self._model.info()
        return found

    def _prompt(self, prompt: Union[str, Messages], tools: Optional[Sequence[Mapping[str, Any]]]) -> tuple[str, bool]:
        """A text, and whether the tokenizer adds special tokens: templates write them."""
        if isinstance(prompt, str):
            return prompt, True
        return self.chat_template.render(prompt, tools=tools, add_generation_prompt=True), False

    def generate(
        self,
        prompt: Union[str, Messages],
        *,
        on_token: Optional[Callable[[int, int, str], Optional[bool]]] = None,
        tools: Optional[Sequence[Mapping[str, Any]]] = None,
        **settings: Any,
    ) -> Generation:
        """Answers to a text, or to a conversation. What is not set is as the model's files recommend.

        on_token(choice, token, text): for each token; False ends the answer.
        """
        text, special = self._prompt(prompt, tools)
        calls = bool(tools) and not isinstance(prompt, str)
        plain = self._model.generate(text, special, _settings(settings), on_token, calls)
        plain["choices"] = [Choice(**c) for c in plain["choices"]]
        if calls:
            template = self.chat_template
            plain["choices"] = [
                c._replace(message=parse_answer(c.text, template=template, tools=tools, prompt=text)) for c in plain["choices"]
            ]
        return Generation(**plain)

    @property
    def chat_template(self) -> ChatTemplate:
        if self._template is None:
            self._template = ChatTemplate(self._path)
        return self._template

    def embed(self, texts: Union[str, Iterable[str]]) -> np.ndarray:
        """Vectors of texts. Raises NotImplemented for an ONNX network that gives logits alone: TextEmbedder takes embedding models."""
        found: np.ndarray = self._model.embed([texts] if isinstance(texts, str) else list(texts))
        return found

    @property
    def state(self) -> str:
        """ "loaded" or "unloaded"."""
        found: str = self._model.state()
        return found

    def unload(self) -> None:
        """Lets go of the model; what runs ends first, in its own thread. Other calls raise InvalidArgument from then on."""
        self._model.unload()

    def perplexity(self, text: Union[str, Sequence[int]], *, window: int = 0, stride: int = 0) -> Perplexity:
        """How well the model foretells a text, or tokens. window: tokens seen at once (0: the context, 2048 at most); stride: 0: half."""
        return Perplexity(**self._model.perplexity(text if isinstance(text, str) else list(text), window, stride))

    def stream(self, prompt: Union[str, Messages], **settings: Any) -> Iterator[str]:
        """The texts of one answer as they come. Whoever stops reading ends it."""

        def work(put: Callable[[str], bool]) -> None:
            self.generate(prompt, on_token=lambda choice, token, text: put(text), **settings)

        return (text for text in pieces(work) if text)


class TextEmbedder:
    """A folder as sentence-transformers and Optimum write it, or a .gguf file. pooling: "cls", "mean", "max", "last"; None, as normalize: the
    folder's. dimensions: the first so many numbers of each vector, normalised again; 0: all."""

    def __init__(
        self,
        path: Path,
        *,
        pooling: Optional[str] = None,
        normalize: Optional[bool] = None,
        max_length: int = 0,
        batch: int = 32,
        dimensions: int = 0,
        accuracy_level: int = 0,
        providers: Optional[Providers] = None,
        sess_options: Optional[SessionOptions] = None,
    ) -> None:
        session, modes = options_of(providers, sess_options), [pooling] if pooling else []
        self._embedder = _text.load_embedder(
            os.fspath(path), session, modes, normalize, max_length, batch, dimensions, accuracy_level
        )

    def embed(self, texts: Union[str, Iterable[str]], prompt: str = "") -> np.ndarray:
        """float32[texts, dimensions]. prompt: the folder's prompt of that name comes before each text."""
        found: np.ndarray = self._embedder.embed([texts] if isinstance(texts, str) else list(texts), prompt)
        return found


class Reranker:
    """A folder with a cross-encoder, as sentence-transformers and Optimum write it."""

    def __init__(
        self,
        path: Path,
        *,
        max_length: int = 0,
        batch: int = 32,
        accuracy_level: int = 0,
        providers: Optional[Providers] = None,
        sess_options: Optional[SessionOptions] = None,
    ) -> None:
        session = options_of(providers, sess_options)
        self._reranker = _text.load_reranker(os.fspath(path), session, max_length, batch, accuracy_level)

    def score(self, query: str, documents: Iterable[str]) -> list[float]:
        """How well each document answers the query, in the order of the documents."""
        found: list[float] = self._reranker.score(query, list(documents))
        return found
