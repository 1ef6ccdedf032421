"""The same names as onnxruntime_pybind11_state, which ONNX Runtime's own code imports from here."""

from __future__ import annotations

from typing import Any

from . import onnxruntime_pybind11_state as _state

__all__ = _state.__all__


def __getattr__(name: str) -> Any:
    return getattr(_state, name)


def __dir__() -> list[str]:
    return dir(_state)
