"""The names of ONNX Runtime's compiled module."""

from __future__ import annotations

from typing import Any

from .. import _names, get_version_string  # noqa: F401

_find = _names.resolver(_names.LOWER, globals())
__all__ = sorted({*_names.LOWER, "get_version_string"})


def __getattr__(name: str) -> Any:
    if name.startswith("quantize_"):  # of weights, which quantization has
        from sardonyx import quantization

        return getattr(quantization, name)
    return _find(name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
