"""What concerns the whole process in ONNX Runtime's package: telemetry, thread pools, information for reports of errors."""

from __future__ import annotations

import enum
import os
from typing import Any, Mapping, Sequence

from ._errors import InvalidArgument, InvalidProtobuf
from ._options import SessionOptions
from ._sardonyx import declared as declared_by
from ._sardonyx import ort_name
from ._sardonyx import providers as engine_providers
from ._sardonyx import version as engine_version
from ._values import OrtValue


def enable_telemetry_events() -> None:
    """Nothing is ever sent: there is nothing to switch on."""


def disable_telemetry_events() -> None:
    """Nothing is ever sent."""


def get_build_info() -> str:
    return f"ORT Build Info: Sardonyx {engine_version()}, build type=Release"


def has_collective_ops() -> bool:
    return False


def preload_dlls(cuda: bool = True, cudnn: bool = True, msvc: bool = True, directory: str | None = None) -> None:
    """Loads nothing: a provider finds its vendor's libraries when it is used (docs/providers.md)."""


def print_debug_info() -> None:
    """Versions and providers, for reports of errors."""
    import platform
    import sys

    print(f"Sardonyx {engine_version()}, Python {sys.version.split()[0]}, {platform.platform()}")
    for provider in engine_providers():
        print(f"{provider['ort_name']}: {'available' if provider['available'] else provider['reason']}")


global_pool = False  # whether a program has asked for one


def set_global_thread_pool_sizes(intra_op_num_threads: int = 0, inter_op_num_threads: int = 0) -> None:
    """How many threads the pool has that sessions share; before the first session. 0: one a core."""
    import os

    if intra_op_num_threads < 0 or inter_op_num_threads < 0:
        raise InvalidArgument(f"numbers of threads are 0 and more, received {intra_op_num_threads} and {inter_op_num_threads}")
    global global_pool
    global_pool = True
    if intra_op_num_threads:
        os.environ["SDX_THREADS"] = str(intra_op_num_threads)


def copy_tensors(src: Sequence[OrtValue], dst: Sequence[OrtValue], stream: Any = None) -> None:
    """Copies each of the first into the one at its place among the second."""
    if len(src) != len(dst):
        raise InvalidArgument(f"{len(src)} tensors cannot be copied to {len(dst)}")
    for source, target in zip(src, dst):
        target.update_inplace(source)


class SessionObjectInitializer:
    """Where ONNX Runtime keeps defaults of sessions."""


def get_session_initializer() -> SessionObjectInitializer:
    return SessionObjectInitializer()


def get_default_session_options() -> SessionOptions:
    return SessionOptions()


class OrtEpContextData:
    """Compiled parts of a model, as a view that can be read."""

    def __init__(self, data: bytes) -> None:
        self._data = memoryview(data)

    def size(self) -> int:
        return len(self._data)

    def read(self, offset: int = 0, length: int | None = None) -> bytes:
        end = len(self._data) if length is None else offset + length
        if offset < 0 or end < offset or end > len(self._data):
            raise InvalidArgument(f"bytes {offset} to {end} are wanted of {len(self._data)}")
        return bytes(self._data[offset:end])


class OrtEpContextDataBuffer:
    """Memory that a reader of compiled parts fills."""

    def __init__(self, max_size: int) -> None:
        self._most = max_size
        self._data: bytearray | None = None

    def max_size(self) -> int:
        return self._most

    def allocate(self, size: int) -> None:
        if not 0 <= size <= self._most:
            raise InvalidArgument(f"{size} bytes are wanted; the limit is {self._most}")
        self._data = bytearray(size)

    def is_allocated(self) -> bool:
        return self._data is not None

    def size(self) -> int:
        return len(self._data or b"")

    def write(self, data: bytes, offset: int = 0) -> None:
        if self._data is None or offset < 0 or offset + len(data) > len(self._data):
            raise InvalidArgument(f"{len(data)} bytes at {offset} do not fit into {self.size()}")
        self._data[offset : offset + len(data)] = data


class OrtCompiledModelCompatibility(enum.IntEnum):
    EP_NOT_APPLICABLE = 0
    EP_SUPPORTED_OPTIMAL = 1
    EP_SUPPORTED_PREFER_RECOMPILATION = 2
    EP_UNSUPPORTED = 3


class OrtDeviceEpIncompatibilityReason(enum.IntEnum):
    NONE = 0
    DRIVER_INCOMPATIBLE = 1
    DEVICE_INCOMPATIBLE = 2
    MISSING_DEPENDENCY = 4
    UNKNOWN = -(2**31)


def get_compatibility_info_from_model(path: str, provider: str) -> str | None:
    """What a plugin noted in a model that it compiled."""
    return _noted(os.fspath(path), provider)


def get_compatibility_info_from_model_bytes(model: bytes, provider: str) -> str | None:
    return _noted(model, provider)


def _noted(model: str | bytes, provider: str) -> str | None:
    declared = declared_by(model)
    if declared is None:
        raise InvalidProtobuf(f"{repr(model) if isinstance(model, str) else 'the bytes'} hold no ONNX model")
    text: str | None = declared["custom"].get(f"ep_compatibility_info.{provider}")
    return text


def get_model_compatibility_for_ep_devices(devices: Sequence[Any], info: str) -> OrtCompiledModelCompatibility:
    """No provider here keeps compiled parts in models."""
    if not isinstance(info, str):
        raise TypeError(f"what a provider notes in a model is a text, received {type(info).__name__}")
    if not devices:
        raise InvalidArgument("no devices are given whose provider could say anything about the model")
    return OrtCompiledModelCompatibility.EP_NOT_APPLICABLE


def get_hardware_device_ep_incompatibility_details(provider: str, device: Any) -> Mapping[str, Any]:
    name = ort_name(provider)
    found = next((p for p in engine_providers() if p["ort_name"] == name), None)
    available = found is not None and found["available"]
    reason = OrtDeviceEpIncompatibilityReason.NONE if available else OrtDeviceEpIncompatibilityReason.UNKNOWN
    return {"reasons_bitmask": int(reason) & 0xFFFFFFFF, "error_code": 0, "notes": "" if available or found is None else found["reason"]}
