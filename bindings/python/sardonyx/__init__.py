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
from ._later import later
from ._options import RunOptions, SessionOptions
from ._providers import get_all_providers, get_available_providers, get_device
from ._session import InferenceSession, ModelMetadata, NodeArg, set_default_logger_severity, set_default_logger_verbosity, set_seed

if TYPE_CHECKING:
    from ._enums import ExecutionMode, ExecutionOrder, GraphOptimizationLevel
    from ._values import IOBinding, OrtValue

__version__ = _sardonyx.version()

# Names that most programs never use are imported on first use, which saves a quarter of the package's import
# time.
__getattr__, __dir__ = later(__name__, {"_enums": "ExecutionMode ExecutionOrder GraphOptimizationLevel", "_values": "IOBinding OrtValue"})


def get_version_string() -> str:
    return __version__


def providers() -> list[dict[str, Any]]:
    """Every provider that has a name: available or the reason why not, devices, versions, what to do about it."""
    return _sardonyx.providers()


def pass_names() -> list[str]:
    """Names of the graph passes, in the order in which they run; for SessionOptions.disabled_passes."""
    return _sardonyx.pass_names()


def survive_mapped_faults() -> None:
    """From now on, a file that is cut short while it is in use makes runs fail with an error instead of ending the process by SIGBUS. Installs a
    handler of that signal for the whole process, which passes other faults on to the handler before it: faulthandler.enable() comes first."""
    _sardonyx.survive_mapped_faults()


def check_mapped_files() -> None:
    """Raises an error naming the file if any part of a mapped file could not be read since survive_mapped_faults(). Sessions check this by
    themselves; whoever computes with arrays from files asks before the results are used."""
    _sardonyx.check_mapped_files()


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
    "check_mapped_files",
    "get_all_providers",
    "get_available_providers",
    "get_device",
    "get_version_string",
    "pass_names",
    "providers",
    "set_default_logger_severity",
    "set_default_logger_verbosity",
    "set_seed",
    "survive_mapped_faults",
]
