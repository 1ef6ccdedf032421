"""Arguments and results with tensors anywhere inside: flattened, and put together again."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import torch


class Unsupported(Exception):
    """What cannot be taken apart; the message says what."""


_PLAIN = (type(None), bool, int, float, str, bytes, torch.dtype, torch.device, torch.Size)


def flatten(value: Any, tensors: list[torch.Tensor]) -> tuple[Any, ...]:
    """Appends the tensors in `value` and returns a description, hashable, that rebuild() takes."""
    if isinstance(value, torch.Tensor):
        tensors.append(value)
        return ("tensor",)
    if isinstance(value, _PLAIN):
        return ("value", type(value).__name__, value)
    if isinstance(value, (list, tuple)):
        kind = type(value)
        return ("sequence", kind, tuple(flatten(item, tensors) for item in value))
    if isinstance(value, dict):
        if not all(isinstance(key, (str, int)) for key in value):
            raise Unsupported("a dict whose keys are not strings")
        return ("dict", type(value), tuple((key, flatten(item, tensors)) for key, item in value.items()))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = tuple((f.name, flatten(getattr(value, f.name), tensors)) for f in dataclasses.fields(value) if f.init)
        return ("dict", type(value), fields)
    raise Unsupported(f"{type(value).__qualname__} as an argument or result")


def rebuild(description: tuple[Any, ...], tensors: Iterator[torch.Tensor]) -> Any:
    """`tensors`: an iterator."""
    what = description[0]
    if what == "tensor":
        return next(tensors)
    if what == "value":
        return description[2]
    if what == "sequence":
        kind, items = description[1], [rebuild(item, tensors) for item in description[2]]
        if kind in (list, tuple):
            return kind(items)
        return kind(*items) if hasattr(kind, "_fields") else kind(items)  # a named tuple takes its items one by one
    fields = {key: rebuild(item, tensors) for key, item in description[2]}
    return fields if description[1] is dict else description[1](**fields)
