"""Element types: categories, limits, promotion."""

from __future__ import annotations

import enum
from typing import Any

from ._core import Dtype, array, core

NAMES = ("bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64",
         "complex64", "complex128")
TYPES: dict[str, Dtype] = {name: getattr(core, name) for name in NAMES}


def _dtype(name: str) -> Dtype:
    return TYPES[name]


class DtypeCategory(enum.Enum):
    """Kinds of element types, as issubdtype() takes them."""

    complexfloating = 0
    floating = 1
    inexact = 2
    signedinteger = 3
    unsignedinteger = 4
    integer = 5
    number = 6
    generic = 7

    def __repr__(self) -> str:
        return str(self)


_C = DtypeCategory
_PARENT = {_C.complexfloating: _C.inexact, _C.floating: _C.inexact, _C.inexact: _C.number, _C.signedinteger: _C.integer,
           _C.unsignedinteger: _C.integer, _C.integer: _C.number, _C.number: _C.generic}


def _category(dtype: Dtype) -> DtypeCategory:
    name = dtype.name
    if name == "bool":
        return _C.generic
    if name.startswith("uint"):
        return _C.unsignedinteger
    if name.startswith("int"):
        return _C.signedinteger
    return _C.complexfloating if name.startswith("complex") else _C.floating


def issubdtype(arg1: Dtype | DtypeCategory, arg2: Dtype | DtypeCategory) -> bool:
    """Whether the first is the second, or of that category."""
    if isinstance(arg2, Dtype):
        return arg1 is arg2
    category = _category(arg1) if isinstance(arg1, Dtype) else arg1
    while category is not None:
        if category is arg2:
            return True
        category = _PARENT.get(category)
    return False


_KINDS = {
    "bool": ("bool",),
    "signed integer": ("int8", "int16", "int32", "int64"),
    "unsigned integer": ("uint8", "uint16", "uint32", "uint64"),
    "real floating": ("float16", "bfloat16", "float32", "float64"),
    "complex floating": ("complex64", "complex128"),
}
_KINDS["integral"] = _KINDS["signed integer"] + _KINDS["unsigned integer"]
_KINDS["numeric"] = _KINDS["integral"] + _KINDS["real floating"] + _KINDS["complex floating"]


def names_of_kind(kind: str) -> tuple[str, ...]:
    if kind not in _KINDS:
        raise ValueError(f"Unsupported dtype kind: {kind!r}; expected one of {', '.join(map(repr, _KINDS))}")
    return _KINDS[kind]


def isdtype(dtype: Dtype, kind: Dtype | str | tuple[Dtype | str, ...]) -> bool:
    """Whether the type is of that kind ("bool", "integral", "real floating", …), or one of several."""
    if isinstance(kind, tuple):
        return any(isdtype(dtype, k) for k in kind)
    if isinstance(kind, str):
        return dtype.name in names_of_kind(kind)
    if not isinstance(kind, Dtype):
        raise TypeError(f"expected a kind's name or a type, received {kind!r}")
    return dtype is kind


def can_cast(from_: array | Dtype, to: Dtype) -> bool:
    """Whether promotion leads from the first type to the second."""
    source = from_.dtype if isinstance(from_, array) else from_
    if source is to or source.name == "bool":
        return True
    if isdtype(source, ("real floating", "complex floating")) and isdtype(to, "integral"):
        return False
    try:
        return core.result_type(source, to) is to
    except ValueError:
        return False


_REAL = {"complex64": "float32", "complex128": "float64"}
_FLOATS = {  # bits, largest, eps, smallest normal
    "float16": (16, 65504.0, 2.0**-10, 2.0**-14),
    "bfloat16": (16, (2 - 2.0**-7) * 2.0**127, 2.0**-7, 2.0**-126),
    "float32": (32, (2 - 2.0**-23) * 2.0**127, 2.0**-23, 2.0**-126),
    "float64": (64, (2 - 2.0**-52) * 2.0**1023, 2.0**-52, 2.0**-1022),
}


def _type_of(arg: Any) -> Dtype:
    return arg if isinstance(arg, Dtype) else arg.dtype


class finfo:
    """Limits of a floating point type; of a complex type, those of its parts."""

    def __init__(self, arg: Dtype | array, /) -> None:
        dtype = _type_of(arg)
        name = _REAL.get(dtype.name, dtype.name)
        if name not in _FLOATS:
            raise ValueError(f"[finfo] dtype {name} is not inexact.")
        self.dtype = TYPES[name]
        self.bits, self.max, self.eps, self.smallest_normal = _FLOATS[name]
        self.min = -self.max

    def __repr__(self) -> str:
        return f"finfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype.name})"


class iinfo:
    """Limits of an integer type."""

    def __init__(self, arg: Dtype | array, /) -> None:
        dtype = _type_of(arg)
        if not isdtype(dtype, "integral"):
            raise ValueError(f"[iinfo] dtype {dtype.name} is not integral.")
        self.dtype = dtype
        self.bits = 8 * dtype.size
        signed = dtype.name.startswith("int")
        self.min = -(1 << (self.bits - 1)) if signed else 0
        self.max = (1 << (self.bits - signed)) - 1

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype.name})"
