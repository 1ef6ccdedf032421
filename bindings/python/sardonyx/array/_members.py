"""Members of `array` that are written in Python."""

from __future__ import annotations

import reprlib
import sys
from typing import Any

from ._core import array, core
from ._dtypes import _dtype
from ._print import text

# Numbers of sdx::array::Update.
_ADD, _SUBTRACT, _MULTIPLY, _DIVIDE, _MAXIMUM, _MINIMUM = range(1, 7)


class ArrayAt:
    """`a.at[i].add(v)`: `a` with `v` added at `i`, each time that `i` names a place."""

    def __init__(self, a: array, *indices: Any) -> None:
        self._array, self._indices = a, indices

    def __getitem__(self, indices: Any) -> ArrayAt:
        return ArrayAt(self._array, indices)

    def _update(self, value: Any, mode: int) -> array:
        if not self._indices:
            raise ValueError("Must give indices to array.at (e.g. `x.at[0].add(5)`).")
        return core._updated(self._array, self._indices[0], value, mode)

    def add(self, value: Any) -> array:
        return self._update(value, _ADD)

    def subtract(self, value: Any) -> array:
        return self._update(value, _SUBTRACT)

    def multiply(self, value: Any) -> array:
        return self._update(value, _MULTIPLY)

    def divide(self, value: Any) -> array:
        return self._update(value, _DIVIDE)

    def maximum(self, value: Any) -> array:
        return self._update(value, _MAXIMUM)

    def minimum(self, value: Any) -> array:
        return self._update(value, _MINIMUM)


class ArrayLike:
    """Any object with a method `__mlx_array__` that returns an array."""

    def __init__(self, arg: Any, /) -> None:
        self._held = arg

    def __mlx_array__(self) -> array:
        return self._held.__mlx_array__()


class ArrayIterator:
    """Goes along the first axis."""

    def __init__(self, a: array) -> None:
        if a.ndim == 0:
            raise TypeError("iteration over a 0-d array")
        self._array, self._at = a, 0
        # One operation for all elements, where they are not too many.
        self._parts = core.unstack(a) if 0 < a.shape[0] <= 10 else None

    def __next__(self) -> array:
        if self._at >= self._array.shape[0]:
            raise StopIteration
        self._at += 1
        return self._parts[self._at - 1] if self._parts is not None else self._array[self._at - 1]

    def __iter__(self) -> ArrayIterator:
        return self


def _iterate(self: array) -> ArrayIterator:
    return ArrayIterator(self)


def _at(self: array) -> ArrayAt:
    return ArrayAt(self)


def _rebuild(kind: type, shape: tuple[int, ...], name: str, data: bytes) -> array:
    return kind(core._from_bytes(data, _dtype(name), shape))


def _reduce_ex(self: array, protocol: int) -> tuple[Any, ...]:
    return _rebuild, (type(self), self.shape, self.dtype.name, bytes(self))


def _array_protocol(self: array, dtype: Any = None, copy: Any = None) -> Any:
    import numpy

    if self.dtype is core.bfloat16:
        raise TypeError("bfloat16 arrays cannot be converted to NumPy.")
    made = numpy.array(memoryview(self), copy=True) if copy else numpy.asarray(memoryview(self))
    return made if dtype is None else made.astype(dtype, copy=False)


def _namespace(self: array, api_version: str | None = None) -> Any:
    if api_version not in (None, "2021.12", "2022.12", "2023.12", "2024.12", "2025.12"):
        raise ValueError(f"the array API of version {api_version} is not known; known are 2021.12 to 2025.12")
    return sys.modules.get("mlx.core") if namespace_is_mlx else sys.modules["sardonyx.array"]


def _device(self: array) -> Any:
    from ._streams import default_device

    return default_device()


def _to_device(self: array, device: Any, /, *, stream: Any = None) -> array:
    from ._streams import _device as check

    check(device)
    return core.array(self)


def _format(self: array, spec: str) -> str:
    if not spec or self.ndim != 0:
        return text(self) if not spec else format(self.tolist(), spec)
    return format(self.item(), spec)


# Whether arrays say that they belong to `mlx.core` (sardonyx.as_mlx).
namespace_is_mlx = False


def add_members() -> None:
    array.__repr__ = text
    array.__iter__ = _iterate
    array.__format__ = _format
    array.at = property(_at, doc="`a.at[i].add(v)`, …: a changed copy.")
    array.device = property(_device, doc="Where the array is.")
    array.to_device = _to_device
    array.__reduce_ex__ = _reduce_ex
    array.__array__ = _array_protocol
    array.__array_namespace__ = _namespace
    array.__div__ = array.__truediv__
    array.__rdiv__ = array.__rtruediv__


# reprlib chooses by the name of the class, and takes these for those of the module `array`.
_repr_of_arrays = reprlib.Repr.repr_array


def _repr_array(self: reprlib.Repr, x: Any, level: int) -> str:
    return self.repr_instance(x, level) if isinstance(x, array) else _repr_of_arrays(self, x, level)


setattr(reprlib.Repr, "repr_array", _repr_array)  # noqa: B010, a method of the class may not be assigned to
