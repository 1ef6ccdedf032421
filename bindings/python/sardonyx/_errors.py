"""The exceptions: ONNX Runtime's class names, one base class, and Python's own classes where there is one that fits."""

from __future__ import annotations


class Error(RuntimeError):
    """Base of everything that this package raises of its own. `code` is the engine's name for the kind of error."""

    code = "internal"


class Fail(Error):
    """Something else went wrong; the message says what."""


class InvalidArgument(Error, ValueError):
    """The caller passed something that cannot be used."""

    code = "invalid_argument"


class NoSuchFile(Error):
    """A file is missing or cannot be read."""

    code = "io"


class InvalidGraph(Error):
    """The model breaks a rule of the format or of an operator."""

    code = "invalid_model"


class InvalidProtobuf(InvalidGraph):
    """The bytes are no model at all."""


class NotImplemented(Error, NotImplementedError):  # noqa: A001, the name that users of ONNX Runtime catch
    """Valid, but this build has no code for it."""

    code = "not_implemented"


class EPFail(Error):
    """A provider that was asked for cannot be used here."""

    code = "provider_unavailable"


class OutOfMemory(Error, MemoryError):
    """An allocation or a configured limit was exceeded."""

    code = "out_of_memory"


class RuntimeException(Error):
    """Running the model failed."""

    code = "runtime_failure"


class Cancelled(RuntimeException):
    """`RunOptions.terminate` was set during the run."""

    code = "cancelled"


class DeadlineExceeded(RuntimeException, TimeoutError):
    """The run took longer than `RunOptions.timeout`."""

    code = "deadline_exceeded"


class NoModel(Error):
    """A session was used before it had a model."""


class ModelLoaded(Error):
    """A session that has a model was given another."""


class EngineError(Error):
    """A part of ONNX Runtime's own that this engine does not have."""


class NotFound(Error):
    """Something that was asked for by name is not there."""


class ModelLoadCanceled(Error):
    """SessionOptions.set_load_cancellation_flag(True) ended the loading."""

    code = "cancelled"


class ModelRequiresCompilation(Error):
    """Compiling was switched off, and the model needs it."""


class DeviceReset(Error):
    """A device lost its state."""


_CLASSES = {
    c.code: c
    for c in (InvalidArgument, NoSuchFile, InvalidGraph, NotImplemented, EPFail, OutOfMemory, RuntimeException, Cancelled, DeadlineExceeded)
}


def make(code: str, message: str) -> Error:
    """The exception for one of the engine's errors."""
    error = _CLASSES.get(code, Fail)(message)
    error.code = code
    return error
