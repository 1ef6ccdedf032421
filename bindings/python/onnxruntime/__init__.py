"""ONNX Runtime's Python package, answered by Sardonyx: the names of onnxruntime 1.31 and those that 1.32 added,
over `sardonyx`. See docs/drop-in-python.md."""

from __future__ import annotations

from typing import Any

from . import _absent, _names

__version__ = version = "1.31.1"
__author__ = "Sardonyx"
package_name = "onnxruntime"
cuda_version = ""
_find = _names.resolver(_names.PUBLIC, globals())
_absent.install()
__all__ = sorted(_names.PUBLIC)


def __getattr__(name: str) -> Any:
    if name == "InferenceSession":
        from .capi.onnxruntime_inference_collection import InferenceSession

        globals()[name] = InferenceSession
        return InferenceSession
    if name in ("capi", "datasets", "backend", "quantization", "tools", "transformers"):
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    if name == "onnxruntime_validation":
        from .capi import onnxruntime_validation

        return onnxruntime_validation
    return _find(name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_names.PUBLIC, "capi"})


def get_version_string() -> str:
    """ONNX Runtime's version that this package stands for; sardonyx.__version__ is the engine's own."""
    return __version__
