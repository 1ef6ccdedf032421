"""Arrays of other libraries by DLPack's capsules."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._errors import InvalidArgument


class _Offer:
    """A capsule as an object that NumPy takes arrays from."""

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __dlpack__(self, **wanted: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def _is_capsule(data: Any) -> bool:
    return type(data).__name__ == "PyCapsule"


def take(data: Any) -> np.ndarray:
    """An array over the memory of `data`, which may be written where it may be there."""
    if _is_capsule(data):
        _, device, _, _ = _head(data)
        if device != 1:
            raise InvalidArgument(f"values live in the CPU's memory; DLPack's device {device} is not available")
        data = _Offer(data)
    elif not hasattr(data, "__dlpack__"):
        raise TypeError(f"expected an array with __dlpack__ or a capsule, received {type(data).__name__}")
    array = np.from_dlpack(data)
    if array.flags.writeable or not array.flags.c_contiguous or not array.size:
        return array
    # NumPy treats memory as read-only because the protocol's older form cannot say otherwise. This memory
    # belongs to the capsule's owner.
    import ctypes

    memory: Any = (ctypes.c_ubyte * array.nbytes).from_address(array.ctypes.data)
    memory._owner = array
    return np.frombuffer(memory, np.uint8).view(array.dtype).reshape(array.shape)


def _head(capsule: Any) -> tuple[int, int, int, int]:
    """Address, device type, and the elements' code and bits, of DLPack's older form."""
    import ctypes

    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    at = get(capsule, b"dltensor")
    device = ctypes.c_int32.from_address(at + 8).value
    code, bits = (ctypes.c_uint8.from_address(at + 20 + i).value for i in range(2))
    return ctypes.c_uint64.from_address(at).value, device, code, bits


def is_dlpack_uint8_tensor(capsule: Any) -> bool:
    """Whether a capsule's elements are unsigned bytes, as truth values are handed over."""
    if not _is_capsule(capsule):
        raise TypeError(f"expected a capsule of DLPack, received {type(capsule).__name__}")
    return _head(capsule)[2:] == (1, 8)
