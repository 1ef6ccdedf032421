"""Where and in which order operations are computed."""

from __future__ import annotations

import os
import platform
import threading
from typing import Any

from ._core import core


class DeviceType:
    """`cpu` or `gpu`."""

    cpu: DeviceType
    gpu: DeviceType

    def __init__(self, name: str, number: int) -> None:
        self.name, self.value = name, number
        self._place = (0, 0, number, 0)

    def __repr__(self) -> str:
        return f"DeviceType.{self.name}"

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Device):
            return other == self
        return self is other

    def __hash__(self) -> int:
        return self.value


cpu = DeviceType("cpu", 0)
gpu = DeviceType("gpu", 1)
DeviceType.cpu, DeviceType.gpu = cpu, gpu


class Device:
    def __init__(self, type: DeviceType, index: int = 0) -> None:
        if isinstance(type, Device):
            type, index = type.type, type.index
        self.type, self.index = type, index
        self._place = (0, 0, type.value, index)

    def __repr__(self) -> str:
        return f"Device({self.type.name}, {self.index})"

    def __eq__(self, other: object) -> bool:
        if isinstance(other, DeviceType):
            return self.type is other
        return isinstance(other, Device) and self._place == other._place

    def __hash__(self) -> int:
        return hash(self._place)


class Stream:
    """A queue of operations on one device."""

    def __init__(self, index: int, device: Device) -> None:
        self.index, self.device = index, device
        self._place = (1, index, device.type.value, device.index)

    def __repr__(self) -> str:
        return f"Stream({self.device}, {self.index})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and self._place == other._place

    def __hash__(self) -> int:
        return hash(self._place)


class ThreadLocalStream:
    """A stream for each thread that uses it."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self._local = threading.local()

    @property
    def _stream(self) -> Stream:
        if not hasattr(self._local, "stream"):
            self._local.stream = new_stream(self.device)
        stream: Stream = self._local.stream
        return stream

    @property
    def _place(self) -> tuple[int, int, int, int]:
        return self._stream._place

    def __repr__(self) -> str:
        return f"ThreadLocalStream({self.device})"


def _device(device: Any) -> Device:
    if isinstance(device, DeviceType):
        device = Device(device)
    if not isinstance(device, Device):
        raise TypeError(f"expected a Device or DeviceType, received {device!r}")
    if not is_available(device):
        raise ValueError(f"{device} is not available: this machine computes arrays on {cpu!r}")
    return device


def _made(numbers: tuple[int, int, int]) -> Stream:
    index, kind, number = numbers
    return Stream(index, Device(gpu if kind else cpu, number))


def default_device() -> Device:
    kind, number = core._default_device()
    return Device(gpu if kind else cpu, number)


def set_default_device(device: Device | DeviceType) -> None:
    device = _device(device)
    core._set_default_device(device.type.value, device.index)


def is_available(device: Device | DeviceType) -> bool:
    if isinstance(device, DeviceType):
        device = Device(device)
    return device.index == 0 and (device.type is cpu or core.get_backend() in ("cuda", "metal", "webgpu"))


def device_count(device_type: DeviceType) -> int:
    return int(is_available(device_type))


def device_info(d: Device | DeviceType | None = None) -> dict[str, Any]:
    _device(default_device() if d is None else d)
    name = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo") as lines:
            name = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), name)
    except OSError:
        pass
    return {"device_name": name, "architecture": platform.machine(), "cores": os.cpu_count() or 1}


def default_stream(device: Device | DeviceType) -> Stream:
    device = _device(device)
    return _made(core._default_stream(device.type.value, device.index))


def set_default_stream(stream: Stream) -> None:
    core._set_default_stream(stream.index, stream.device.type.value, stream.device.index)


def new_stream(device: Device | DeviceType) -> Stream:
    device = _device(device)
    return _made(core._new_stream(device.type.value, device.index))


new_thread_unsafe_stream = new_stream


def new_thread_local_stream(device: Device | DeviceType) -> ThreadLocalStream:
    return ThreadLocalStream(_device(device))


def clear_streams() -> None:
    """Waits for all that was put into the default stream."""
    core._synchronize()


class StreamContext:
    """`with stream(s):` makes it the default meanwhile."""

    def __init__(self, s: Stream | ThreadLocalStream | Device | DeviceType) -> None:
        if s is None:
            raise RuntimeError("[StreamContext] Invalid argument, please specify a stream or device.")
        self._stream = s._stream if isinstance(s, ThreadLocalStream) else s if isinstance(s, Stream) else default_stream(s)

    def __enter__(self) -> None:
        self._before = default_device(), default_stream(self._stream.device)
        set_default_device(self._stream.device)
        set_default_stream(self._stream)

    def __exit__(self, exc_type: Any = None, exc_value: Any = None, traceback: Any = None) -> None:
        device, stream = self._before
        set_default_stream(stream)
        set_default_device(device)


def stream(s: Stream | ThreadLocalStream | Device | DeviceType) -> StreamContext:
    return StreamContext(s)


def synchronize(stream: Stream | ThreadLocalStream | Device | DeviceType | None = None) -> None:
    """Waits until all that was put into the stream is computed."""
    core._synchronize(stream)
