"""ONNX Runtime's lower layer, as far as other packages reach into it."""

from __future__ import annotations

import importlib
from types import ModuleType

_SUBMODULES = ("_ld_preload", "_pybind_state", "build_and_package_info", "onnxruntime_inference_collection", "onnxruntime_pybind11_state",
               "onnxruntime_validation")  # fmt: skip


def __getattr__(name: str) -> ModuleType:
    # Programs reach for them as attributes: with ONNX Runtime, `import onnxruntime` has imported them all.
    if name in _SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
