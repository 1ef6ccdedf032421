"""Functions of the Python array API standard (2025.12) that MLX lacks, or has in another way."""

from __future__ import annotations

import math
from collections import namedtuple
from typing import Any

from ._core import Dtype, array, core
from ._dtypes import isdtype, names_of_kind
from ._dtypes import TYPES as _TYPES
from ._streams import Device, cpu, default_device
from ._streams import _device as _checked

__array_api_version__ = "2025.12"

_WHOLE = core.int64  # of positions and counts


def _check_device(device: Any) -> None:
    if device is not None:
        _checked(device)


def asarray(
    obj: Any = None, /, dtype: Dtype | None = None, *, device: Any = None, copy: bool | None = None, **names: Any
) -> array:
    """An array of numbers, lists, buffers or other libraries' arrays. NumPy's float64 stays float64."""
    if "a" in names and obj is None:  # MLX's name
        obj = names.pop("a")
    if names:
        raise TypeError(f"asarray() has no argument '{next(iter(names))}'")
    _check_device(device)
    if isinstance(obj, array):
        if copy is False and dtype is not None and dtype is not obj.dtype:
            raise ValueError("Unable to avoid copy while creating an array as requested.")
        if dtype is not None and dtype is not obj.dtype:
            return core.astype(obj, dtype)
        return core.array(obj) if copy else obj
    return core._asarray(obj, dtype, copy)


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> array:
    """An array of another library; it shares the memory where it can, so that changing that changes the array."""
    _check_device(device)
    kind = x.__dlpack_device__()[0]
    if kind not in (1, 3, 13):  # CPU; memory of the CPU that CUDA has pinned or manages
        raise BufferError(f"[from_dlpack] the array is on DLPack's device {int(kind)}, not on the CPU (1)")
    place = {} if kind == 1 else {"dl_device": (1, 0)}  # as memory of the CPU
    try:
        capsule = x.__dlpack__(max_version=(1, 0), copy=copy, **place)
    except TypeError:  # before DLPack 1.0
        capsule = x.__dlpack__()
    return core._from_dlpack(capsule, copy)


def empty(shape: Any, dtype: Dtype | None = None, *, device: Any = None, stream: Any = None) -> array:
    return core.zeros(shape, dtype, device=device, stream=stream)


def empty_like(x: array, /, dtype: Dtype | None = None, *, device: Any = None, stream: Any = None) -> array:
    return core.zeros_like(x, dtype, device=device, stream=stream)


def _floats(*arrays: Any) -> list[array]:
    found = [a for a in arrays if isinstance(a, array)]
    out = []
    for a in arrays:
        if not isinstance(a, array):
            a = core.array(a, found[0].dtype if found else None)
        out.append(a)
    kind = core.result_type(*out)
    if not isdtype(kind, ("real floating", "complex floating")):
        kind = core.float32
    return [core.astype(a, kind) for a in out]


def hypot(x1: Any, x2: Any, /, *, stream: Any = None) -> array:
    """The square root of x1² + x2², without overflow on the way."""
    a, b = (core.abs(x) for x in _floats(x1, x2))
    most, least = core.maximum(a, b), core.minimum(a, b)
    ratio = core.divide(least, core.where(most == 0, core.ones_like(most), most))
    found = most * core.sqrt(1 + ratio * ratio)
    return core.where(core.isinf(a) | core.isinf(b), core.array(math.inf, found.dtype), found)


_BITS = {2: core.uint16, 4: core.uint32, 8: core.uint64}


def _bits(x: array) -> array:
    return core.view(x, _BITS[x.dtype.size])


def signbit(x: array, /, *, stream: Any = None) -> array:
    if isdtype(x.dtype, "real floating"):
        bits = _bits(x)
        return core.right_shift(bits, core.array(8 * x.dtype.size - 1, bits.dtype)) != 0
    return x < 0 if not isdtype(x.dtype, ("bool", "unsigned integer")) else core.zeros(x.shape, core.bool)


def copysign(x1: Any, x2: Any, /, *, stream: Any = None) -> array:
    """x1's size with x2's sign."""
    a, b = _floats(x1, x2)
    size = core.abs(a)
    return core.where(signbit(b), -size, size)


def nextafter(x1: Any, x2: Any, /, *, stream: Any = None) -> array:
    """The next number after x1 towards x2."""
    a, b = core.broadcast_arrays(*_floats(x1, x2))
    whole = _BITS[a.dtype.size]
    top = 1 << (8 * a.dtype.size - 1)
    bits = core.view(a, whole)
    one = core.array(1, whole)
    # Numbers of one sign are ordered as their bits are: away from zero is one more.
    away = (core.abs(b) > core.abs(a)) & (signbit(a) == signbit(b))
    moved = core.view(core.where(away, bits + one, bits - one), a.dtype)
    least = core.view(core.where(b > 0, one, core.array(top + 1, whole)), a.dtype)
    out = core.where(a == 0, least, moved)
    out = core.where(a == b, b, out)
    return core.where(core.isnan(a) | core.isnan(b), core.array(math.nan, a.dtype), out)


def diff(
    a: array, /, n: int = 1, axis: int = -1, *, prepend: array | None = None, append: array | None = None, stream: Any = None
) -> array:
    """Differences of neighbours, n times."""
    if n < 0:
        raise ValueError(f"[diff] n must not be negative, received {n}")
    if not -a.ndim <= axis < a.ndim:
        raise ValueError(f"[diff] axis {axis} of an array of {a.ndim} dimensions")
    parts = [p for p in (prepend, a, append) if p is not None]
    out = core.concatenate(parts, axis) if len(parts) > 1 else a
    before = (slice(None),) * (axis % a.ndim)
    for _ in range(n):
        high, low = out[(*before, slice(1, None))], out[(*before, slice(None, -1))]
        out = core.not_equal(high, low) if out.dtype is core.bool else core.subtract(high, low, stream=stream)
    return out


def repeat(array: Any, repeats: int | array, axis: int | None = None, *, stream: Any = None) -> array:
    """Each element several times: as often as `repeats` says, one number or one for each."""
    if not isinstance(repeats, core.array):
        return core.repeat(array, repeats, axis, stream=stream)
    if axis is None:
        array, axis = core.flatten(array), 0
    extent = array.shape[axis]
    if repeats.size == 1 and extent != 1:
        repeats = core.broadcast_to(core.flatten(repeats), (extent,))
    if repeats.ndim != 1 or repeats.size != extent:
        raise ValueError(f"[repeat] {repeats.size} numbers for {extent} elements")
    ends = core.cumsum(core.astype(repeats, _WHOLE)) if extent else repeats
    total = int(ends[-1].item()) if extent else 0
    if total == 0:
        return array[(slice(None),) * (axis % array.ndim) + (slice(0, 0),)]
    places = core.searchsorted(ends, core.arange(total, dtype=_WHOLE), side="right")
    return core.take(array, core.astype(places, _WHOLE), axis)


def _spread(x: array, axis: Any, keepdims: bool, correction: float, stream: Any) -> array:
    """The variance, for any correction."""
    count = math.prod(x.shape[i] for i in (range(x.ndim) if axis is None else [axis] if isinstance(axis, int) else axis))
    divisor = count - correction
    biased = core.var(x, axis, keepdims, stream=stream)
    return biased * (count / divisor if divisor > 0 else math.nan if count == 0 or divisor < 0 else math.inf)


def _whole(value: float) -> bool:
    return isinstance(value, int) or float(value).is_integer()


def var(
    x: array, /, axis: Any = None, keepdims: bool = False, ddof: int = 0, *, correction: float | None = None, stream: Any = None
) -> array:
    by = ddof if correction is None else correction
    if _whole(by):
        return core.var(x, axis, keepdims, int(by), stream=stream)
    return _spread(x, axis, keepdims, by, stream)


def std(
    x: array, /, axis: Any = None, keepdims: bool = False, ddof: int = 0, *, correction: float | None = None, stream: Any = None
) -> array:
    by = ddof if correction is None else correction
    if _whole(by):
        return core.std(x, axis, keepdims, int(by), stream=stream)
    return core.sqrt(_spread(x, axis, keepdims, by, stream))


def _sum_type(x: array, dtype: Dtype | None) -> Dtype:
    if dtype is not None:
        return dtype
    if isdtype(x.dtype, ("bool", "signed integer")) and x.dtype.size < 4:
        return core.int32
    if isdtype(x.dtype, "unsigned integer") and x.dtype.size < 4:
        return core.uint32
    return x.dtype


def _cumulative(run: Any, start: int, x: array, axis: int | None, dtype: Dtype | None, include_initial: bool, names: dict[str, Any]) -> array:
    if axis is None:
        if x.ndim > 1 and not names:
            raise ValueError("the axis must be given for an array of more than one axis")
        x, axis = core.flatten(x), 0
    out = run(core.astype(x, _sum_type(x, dtype)), axis, **names)
    if include_initial:
        shape = list(out.shape)
        shape[axis] = 1
        out = core.concatenate([core.full(shape, start, out.dtype), out], axis)
    return out


def cumulative_sum(
    x: array, /, axis: int | None = None, dtype: Dtype | None = None, include_initial: bool = False, **names: Any
) -> array:
    return _cumulative(core.cumsum, 0, x, axis, dtype, include_initial, names)


def cumulative_prod(
    x: array, /, axis: int | None = None, dtype: Dtype | None = None, include_initial: bool = False, **names: Any
) -> array:
    return _cumulative(core.cumprod, 1, x, axis, dtype, include_initial, names)


def minmax(a: array, /, axis: Any = None, keepdims: bool = False, *, stream: Any = None) -> tuple[array, array]:
    """The smallest and the largest element."""
    return core.min(a, axis, keepdims, stream=stream), core.max(a, axis, keepdims, stream=stream)


def matrix_transpose(x: array, /, *, stream: Any = None) -> array:
    return core.matrix_transpose(x, stream=stream)


UniqueAllResult = namedtuple("UniqueAllResult", ["values", "indices", "inverse_indices", "counts"])
UniqueCountsResult = namedtuple("UniqueCountsResult", ["values", "counts"])
UniqueInverseResult = namedtuple("UniqueInverseResult", ["values", "inverse_indices"])


def _sorted_runs(x: array) -> tuple[array, array, array, array]:
    """Elements in order, where they come from, whether each is the first of its kind, and where those are."""
    flat = core.flatten(x)
    order = core.argsort(flat)
    values = core.take(flat, order)
    if flat.size == 0:
        first = core.zeros((0,), core.bool)
    else:
        first = core.concatenate([core.array([True]), values[1:] != values[:-1]])
    return values, core.astype(order, _WHOLE), first, core.nonzero(first)[0]


def unique_all(x: array, /) -> UniqueAllResult:
    """Elements without repetition, where the first of each is, the way back, and how often each is there. NaNs are all distinct."""
    values, order, first, places = _sorted_runs(x)
    ends = core.concatenate([places[1:], core.array([x.size], _WHOLE)]) if places.size else places
    number = core.cumsum(core.astype(first, _WHOLE)) - 1
    inverse = core.put_along_axis(core.zeros_like(order), order, number, 0) if x.size else order
    return UniqueAllResult(values[places], order[places], core.reshape(inverse, x.shape), ends - places)


def unique_counts(x: array, /) -> UniqueCountsResult:
    found = unique_all(x)
    return UniqueCountsResult(found.values, found.counts)


def unique_inverse(x: array, /) -> UniqueInverseResult:
    found = unique_all(x)
    return UniqueInverseResult(found.values, found.inverse_indices)


def unique_values(x: array, /) -> array:
    values, _, _, places = _sorted_runs(x)
    return values[places]


def unique(
    a: array,
    /,
    size: int | None = None,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    fill_value: Any = None,
    *,
    stream: Any = None,
) -> Any:
    """Elements without repetition, `size` of them: cut, or filled with `fill_value` (the smallest one). Counts of filled ones are 0."""
    found = unique_all(a)
    have = found.values.size
    want = have if size is None else size
    if size is not None and size < 0:
        raise ValueError(f"[unique] size must not be negative, received {size}")

    def fitted(part: array, fill: Any) -> array:
        if want <= have:
            return part[:want]
        return core.concatenate([part, core.full((want - have,), fill, part.dtype)])

    fill = fill_value if fill_value is not None else found.values[0] if have else 0
    out = [fitted(found.values, fill)]
    if return_index:
        out.append(core.astype(fitted(found.indices, found.indices[0] if have else 0), core.uint32))
    if return_inverse:
        out.append(core.astype(core.flatten(found.inverse_indices), core.uint32))
    if return_counts:
        out.append(core.astype(fitted(found.counts, 0), core.uint32))
    return out[0] if len(out) == 1 else tuple(out)


def isin(x1: Any, x2: Any, /, *, invert: bool = False) -> array:
    """Whether each element of x1 is in x2."""
    if not isinstance(x1, array):
        x1 = core.array(x1, x2.dtype)
    if not isinstance(x2, array):
        x2 = core.array(x2, x1.dtype)
    kind = core.result_type(x1, x2)
    pool = core.sort(core.flatten(core.astype(x2, kind)))
    if pool.size == 0:
        found = core.zeros(x1.shape, core.bool)
    else:
        wanted = core.astype(x1, kind)
        at = core.minimum(core.astype(core.searchsorted(pool, wanted), _WHOLE), pool.size - 1)
        found = core.take(pool, at) == wanted
    return core.logical_not(found) if invert else found


class ArrayNamespaceInfo:
    """What __array_namespace_info__() tells."""

    def capabilities(self) -> dict[str, Any]:
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> Device:
        return default_device()

    def default_dtypes(self, *, device: Any = None) -> dict[str, Dtype]:
        _check_device(device)
        return {
            "real floating": core.float32,
            "complex floating": core.complex64,
            "integral": core.int32,
            "indexing": core.int64,
        }

    def devices(self) -> tuple[Device, ...]:
        return (Device(cpu),)

    def dtypes(self, *, device: Any = None, kind: str | tuple[str, ...] | None = None) -> dict[str, Dtype]:
        _check_device(device)
        standard = {k: v for k, v in _TYPES.items() if k not in ("float16", "bfloat16")}
        if kind is None:
            return standard
        if not isinstance(kind, (str, tuple)):
            raise ValueError(f"Unsupported dtype kind: {kind!r}")
        names = {n for k in ((kind,) if isinstance(kind, str) else kind) for n in names_of_kind(k)}
        return {k: v for k, v in standard.items() if k in names}


def __array_namespace_info__() -> ArrayNamespaceInfo:
    return ArrayNamespaceInfo()
