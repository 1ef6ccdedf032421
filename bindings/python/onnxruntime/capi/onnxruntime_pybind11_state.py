"""The names of ONNX Runtime's compiled module."""

from __future__ import annotations

from typing import Any

from .. import _names, get_version_string  # noqa: F401

_find = _names.resolver(_names.LOWER, globals())
__all__ = sorted({*_names.LOWER, "get_version_string"})


def __getattr__(name: str) -> Any:
    if name.startswith("quantize_matmul_"):
        from sardonyx.quantization import blocks

        return getattr(blocks, name)
    return _find(name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
