"""Sardonyx runs ONNX models. The names are those of ONNX Runtime's Python package, so that programs written for it run here:

    import sardonyx as ort
    session = ort.InferenceSession("model.onnx")
    outputs = session.run(None, {"input": array})
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _sardonyx
from ._errors import (
    Cancelled,
    DeadlineExceeded,
    EPFail,
    Error,
    Fail,
    InvalidArgument,
    InvalidGraph,
    InvalidProtobuf,
    NoSuchFile,
    NotImplemented,
    OutOfMemory,
    RuntimeException,
)
from ._options import RunOptions, SessionOptions
from ._providers import get_all_providers, get_available_providers, get_device
from ._session import InferenceSession, ModelMetadata, NodeArg, set_default_logger_severity, set_default_logger_verbosity, set_seed

if TYPE_CHECKING:
    from ._enums import ExecutionMode, ExecutionOrder, GraphOptimizationLevel
    from ._values import IOBinding, OrtValue

__version__ = _sardonyx.version()

# What most programs never ask for is imported when they do: a quarter of the package's import.
_LATER = {
    "ExecutionMode": "_enums",
    "ExecutionOrder": "_enums",
    "GraphOptimizationLevel": "_enums",
    "IOBinding": "_values",
    "OrtValue": "_values",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    import importlib

    value = globals()[name] = getattr(importlib.import_module(f"{__name__}.{_LATER[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})


def get_version_string() -> str:
    return __version__


def providers() -> list[dict[str, Any]]:
    """Every provider that has a name: available or the reason why not, devices, versions, what to do about it."""
    return _sardonyx.providers()


def pass_names() -> list[str]:
    """Names of the graph passes, in the order in which they run; for SessionOptions.disabled_passes."""
    return _sardonyx.pass_names()


__all__ = [
    "Cancelled",
    "DeadlineExceeded",
    "EPFail",
    "Error",
    "ExecutionMode",
    "ExecutionOrder",
    "Fail",
    "GraphOptimizationLevel",
    "IOBinding",
    "InferenceSession",
    "InvalidArgument",
    "InvalidGraph",
    "InvalidProtobuf",
    "ModelMetadata",
    "NoSuchFile",
    "NodeArg",
    "NotImplemented",
    "OrtValue",
    "OutOfMemory",
    "RunOptions",
    "RuntimeException",
    "SessionOptions",
    "get_all_providers",
    "get_available_providers",
    "get_device",
    "get_version_string",
    "pass_names",
    "providers",
    "set_default_logger_severity",
    "set_default_logger_verbosity",
    "set_seed",
]
