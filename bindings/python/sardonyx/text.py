"""Language: tokenizers.

    from sardonyx.text import Tokenizer
    tokenizer = Tokenizer("model/")          # a folder, a tokenizer.json, a SentencePiece model, a vocab.txt, a GGUF file
    encoding = tokenizer.encode("Hello world")
    text = tokenizer.decode(encoding.ids)
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import NamedTuple, Optional, Union

from . import _text

__all__ = ["Encoding", "Tokenizer"]


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


def _encoding(values: dict) -> Encoding:
    values["overflowing"] = [_encoding(part) for part in values["overflowing"]]
    return Encoding(**values)


class Tokenizer:
    """Text to the numbers of a language model's tokens, and back. Any number of threads may use one."""

    def __init__(self, path: Union[str, os.PathLike]) -> None:
        self._tokenizer = _text.load_tokenizer(os.fspath(path))

    def encode(self, text: str, pair: Optional[str] = None, add_special_tokens: bool = True) -> Encoding:
        return _encoding(self._tokenizer.encode(text, pair, add_special_tokens))

    def decode(self, ids: Iterable[int], skip_special_tokens: bool = True) -> str:
        return self._tokenizer.decode(ids, skip_special_tokens)

    def token_to_id(self, token: str) -> Optional[int]:
        return self._tokenizer.token_to_id(token)

    def id_to_token(self, id: int) -> Optional[str]:  # noqa: A002, the name that users of tokenizers know
        return self._tokenizer.id_to_token(id)

    @property
    def vocabulary_size(self) -> int:
        return self._tokenizer.vocabulary_size()
