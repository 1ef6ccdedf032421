"""Sardonyx runs ONNX models. The names are those of ONNX Runtime's Python package, so that programs written for it run here:

    import sardonyx as ort
    session = ort.InferenceSession("model.onnx")
    outputs = session.run(None, {"input": array})
"""

from __future__ import annotations

from typing import Any

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
from ._options import ExecutionMode, ExecutionOrder, GraphOptimizationLevel, RunOptions, SessionOptions
from ._session import (
    InferenceSession,
    ModelMetadata,
    NodeArg,
    get_all_providers,
    get_available_providers,
    get_device,
    set_default_logger_severity,
)
from ._values import IOBinding, OrtValue

__version__ = _sardonyx.version()


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
]
