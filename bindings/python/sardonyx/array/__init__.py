"""Arrays: lazy, computed by the engine, with the names of `mlx.core` 0.32; also a namespace of the Python array API standard.

    import sardonyx.array as mx
    a = mx.array([1.0, 2.0, 3.0])
    print(mx.sum(a * a))
"""

from __future__ import annotations

import importlib as _importlib
import math as _math
from typing import Any as _Any

from . import _dtypes, _members, _memory, _print, _standard, _streams, _transforms
from ._core import core as _core
from ._dtypes import DtypeCategory, _dtype, can_cast, finfo, iinfo, isdtype, issubdtype
from ._files import load, save, save_gguf, save_safetensors, savez, savez_compressed
from ._members import ArrayAt, ArrayIterator, ArrayLike
from ._memory import get_array_buffer_size, get_memory_limit, set_memory_limit, set_wired_limit
from ._print import PrintOptions, export_to_dot, get_printoptions, printoptions, set_printoptions
from ._standard import __array_api_version__, __array_namespace_info__
from ._streams import (
    Device,
    DeviceType,
    Stream,
    StreamContext,
    ThreadLocalStream,
    clear_streams,
    cpu,
    default_device,
    default_stream,
    device_count,
    device_info,
    gpu,
    is_available,
    new_stream,
    new_thread_local_stream,
    new_thread_unsafe_stream,
    set_default_device,
    set_default_stream,
    stream,
    synchronize,
)
from ._transforms import checkpoint, compile, custom_function, grad, jvp, value_and_grad, vjp, vmap

_members.add_members()

e = _math.e
euler_gamma = 0.57721566490153286
inf = _math.inf
nan = _math.nan
pi = _math.pi
newaxis = None

complexfloating = DtypeCategory.complexfloating
floating = DtypeCategory.floating
inexact = DtypeCategory.inexact
signedinteger = DtypeCategory.signedinteger
unsignedinteger = DtypeCategory.unsignedinteger
integer = DtypeCategory.integer
number = DtypeCategory.number
generic = DtypeCategory.generic

_ALIASES = {
    "acos": "arccos",
    "acosh": "arccosh",
    "asin": "arcsin",
    "asinh": "arcsinh",
    "atan": "arctan",
    "atan2": "arctan2",
    "atanh": "arctanh",
    "bitwise_left_shift": "left_shift",
    "bitwise_right_shift": "right_shift",
    "concat": "concatenate",
    "conj": "conjugate",
    "cumulative_prod": "cumprod",
    "cumulative_sum": "cumsum",
    "empty": "zeros",
    "empty_like": "zeros_like",
    "pow": "power",
    "bool_": "bool",
}

# The standard's, where MLX has nothing of that name.
_ADDED = (
    "asarray",
    "copysign",
    "diff",
    "from_dlpack",
    "hypot",
    "isin",
    "minmax",
    "nextafter",
    "signbit",
    "unique",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
)
# The standard and MLX differ in these names. `mlx.core`, as sardonyx.as_mlx creates it, has MLX's.
_INSTEAD = ("cumulative_prod", "cumulative_sum", "empty", "empty_like", "repeat", "std", "var")
_MODULES = ("cuda", "distributed", "fast", "fft", "linalg", "metal", "random")


def _mlx_asarray(a: _Any, dtype: _Any = None, *, copy: bool | None = None) -> _Any:
    if copy is False and (isinstance(a, _core.array) or not hasattr(a, "__array_interface__")):
        raise ValueError("Unable to avoid copy while creating an array as requested.")
    return _standard.asarray(a, dtype, copy=copy)


def _mlx_broadcast_shapes(*shapes: _Any) -> tuple[int, ...]:
    if not shapes:
        raise ValueError("[broadcast_shapes] Must provide at least one shape.")
    return _core.broadcast_shapes(*shapes)


_NARROW = {"float64": "float32", "complex128": "complex64"}


def _mlx_from_dlpack(x: _Any, /, *, copy: bool | None = None) -> _Any:
    made = _standard.from_dlpack(x, copy=copy)
    narrow = None if isinstance(x, _core.array) else _NARROW.get(made.dtype.name)
    return made if narrow is None else _core.astype(made, _dtype(narrow))


def _as_mlx() -> dict[str, _Any]:
    """Everything that has a name in `mlx.core`."""
    names = {k: v for k, v in vars(_core).items() if not k.startswith("_")}
    names.update({alias: names[name] for alias, name in _ALIASES.items() if name in names})
    names.update({k: getattr(_standard, k) for k in _ADDED})
    return names


globals().update(_as_mlx())
globals().update({k: getattr(_standard, k) for k in _INSTEAD})
globals().update({k: v for k, v in vars(_core._standard).items() if not k.startswith("_")})


def __getattr__(name: str) -> _Any:
    if name == "matrix_norm":  # MLX's name for linalg.norm
        return _importlib.import_module(f"{__name__}.linalg").norm
    if name in _MODULES:
        return _importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted([*(n for n in globals() if not n.startswith("_") or n.startswith("__array")), *_MODULES])
