#!/usr/bin/env python3
"""array_stubs.py [--check]: writes the type stubs of sardonyx.array (bindings/python/sardonyx/array/*.pyi) from the package
on PYTHONPATH, or shows where they differ from it."""

import importlib
import inspect
import re
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "bindings" / "python" / "sardonyx" / "array"
MODULES = ("", "fast", "fft", "linalg", "random")

OPERAND = "_Operand"
# `bool` is also a name of sardonyx.array: its element type.
ALIASES = """_Operand: TypeAlias = "array | _bool | int | float | complex"
_Stream: TypeAlias = "Stream | Device | DeviceType | None"
_Axes: TypeAlias = int | Sequence[int] | Sequence[Sequence[int]] | None

"""
BY_NAME = {
    "axis": "_Axes",
    "axes": "_Axes",
    "keepdims": "bool",
    "stream": "_Stream",
    "device": "Device | DeviceType | None",
    "dtype": "Dtype | None",
    "shape": "int | Sequence[int]",
    "key": "array | None",
    "norm": "str",
    "arrays": "Sequence[array]",
    "a": OPERAND,
    "b": OPERAND,
    "x": OPERAND,
    "y": OPERAND,
    "loc": f"{OPERAND} | None",
    "scale": f"{OPERAND} | None",
    "weight": "array | None",
    "bias": "array | None",
}
RETURNS = {
    "array_equal": "array",
    "broadcast_arrays": "tuple[array, ...]",
    "broadcast_shapes": "tuple[int, ...]",
    "can_cast": "bool",
    "divmod": "tuple[array, array]",
    "einsum_path": "tuple[list[tuple[int, ...]], str]",
    "eval": "None",
    "async_eval": "None",
    "isdtype": "bool",
    "issubdtype": "bool",
    "meshgrid": "tuple[array, ...]",
    "nonzero": "tuple[array, ...]",
    "result_type": "Dtype",
    "split": "list[array]",
    "seed": "None",
    "unstack": "tuple[array, ...]",
    "atleast_1d": "array | list[array]",
    "atleast_2d": "array | list[array]",
    "atleast_3d": "array | list[array]",
    "item": "bool | int | float | complex",
    "tolist": "Any",
    "__len__": "int",
    "__bool__": "bool",
    "__int__": "int",
    "__float__": "float",
    "__complex__": "complex",
    "__index__": "int",
    "__hash__": "int",
    "__bytes__": "bytes",
    "__dlpack__": "Any",
    "__dlpack_device__": "tuple[int, int]",
}
PROPERTIES = {
    "shape": "tuple[int, ...]",
    "ndim": "int",
    "size": "int",
    "itemsize": "int",
    "nbytes": "int",
    "dtype": "Dtype",
    "device": "Device",
    "at": "ArrayAt",
}
OPERATORS = (
    "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift".split(),
    "neg pos abs invert".split(),
    "lt le eq ne gt ge".split(),
)
HEAD = "# Written by tools/array_stubs.py.\n\n"


def annotation(parameter):
    default = parameter.default
    if parameter.kind is parameter.VAR_POSITIONAL:
        return "Any"
    if parameter.name in BY_NAME:
        return BY_NAME[parameter.name]
    if isinstance(default, (bool, int, float, str)):
        return type(default).__name__
    return "Any"


def parameters(signature):
    out, last = [], None
    for p in signature.parameters.values():
        if last is p.POSITIONAL_ONLY and p.kind is not p.POSITIONAL_ONLY:
            out.append("/")
        if p.kind is p.KEYWORD_ONLY and last is not p.KEYWORD_ONLY and last is not p.VAR_POSITIONAL:
            out.append("*")
        star = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        if p.name == "self":
            out.append("self")
        else:
            out.append(f"{star}{p.name}: {annotation(p)}" + ("" if p.default is p.empty else " = ..."))
        last = p.kind
    if last is inspect.Parameter.POSITIONAL_ONLY:
        out.append("/")
    return ", ".join(out)


def function(name, value, indent=""):
    try:
        said = parameters(inspect.signature(value))
    except ValueError:
        said = "*args: Any, **kwargs: Any"
    return f"{indent}def {name}({said}) -> {RETURNS.get(name, 'array')}: ...\n"


def from_python(name, value):
    """A function of the package's own Python, which has annotations."""
    said = str(inspect.signature(value)).replace("'", "")
    for kind in ("Any", "Callable"):
        said = said.replace(f"typing.{kind}", kind)
    said = re.sub(r" = (?!\.\.\.)[^,)\]]+", " = ...", said)
    if said.endswith(")"):
        said += " -> Any"
    return f"def {name}{said}: ...\n"


def array_class(kind):
    lines = ["class array:\n", "    def __init__(self, val: Any, dtype: Dtype | None = ...) -> None: ...\n"]
    binary, unary, compared = OPERATORS
    for name in binary:
        kinds = ("", "r", "i") if name != "matmul" else ("", "i")
        lines += [f"    def __{k}{name}__(self, other: {OPERAND}, /) -> array: ...\n" for k in kinds]
    lines += [f"    def __{name}__(self) -> array: ...\n" for name in unary]
    lines += [f"    def __{name}__(self, other: Any, /) -> array: ...{'  # type: ignore[override]' * (name in ('eq', 'ne'))}\n" for name in compared]
    lines += [f"    def __{name}__(self) -> {RETURNS[f'__{name}__']}: ...\n" for name in ("len", "bool", "int", "float", "complex", "index", "hash", "bytes")]
    lines += ["    def __iter__(self) -> ArrayIterator: ...\n", "    def __getitem__(self, key: Any, /) -> array: ...\n",
              "    def __setitem__(self, key: Any, value: Any, /) -> None: ...\n", "    def __array__(self, dtype: Any = ..., copy: Any = ...) -> Any: ...\n",
              "    def __array_namespace__(self, api_version: str | None = ...) -> ModuleType: ...\n",
              "    def to_device(self, device: Any, /, *, stream: Any = ...) -> array: ...\n"]
    for name, value in sorted(vars(kind).items()):
        if inspect.isdatadescriptor(value):
            if not name.startswith("_"):
                lines.append(f"    @property\n    def {name}(self) -> {PROPERTIES.get(name, 'array')}: ...\n")
        elif inspect.ismethoddescriptor(value) and (not name.startswith("_") or name in ("__dlpack__", "__dlpack_device__")):
            lines.append(function(name, value, "    "))
    return "".join(lines)


IMPORTS = """from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, TypeAlias

"""


def names_of(module):
    kept = [n for n in dir(module) if not n.startswith("_") or n in ("__array_api_version__", "__array_namespace_info__")]
    return sorted(n for n in kept if not inspect.ismodule(getattr(module, n)) and n not in ("annotations", "namedtuple", "Any"))


def top(module):
    """The functions of the compiled half; what is written in Python is imported from there."""
    out, imported = [], {}
    for name in names_of(module):
        value = getattr(module, name)
        source = getattr(value, "__module__", None) or type(value).__module__
        if name == "array":
            out.append(array_class(value))
        elif isinstance(value, type) and name == "Dtype":
            out.append("class Dtype:\n    @property\n    def size(self) -> int: ...\n    @property\n    def itemsize(self) -> int: ...\n"
                       "    @property\n    def name(self) -> str: ...\n")
        elif source.startswith("sardonyx.array._") and (isinstance(value, type) or inspect.isfunction(value)):
            imported.setdefault(source.rsplit(".", 1)[1], []).append(name)
        elif callable(value):
            out.append(function(name, value))
        else:
            out.append(f"{name}: {'None' if value is None else type(value).__name__}\n")
    imported[""] = ["cuda", "distributed", "fast", "fft", "linalg", "metal", "random"]
    lines = [f"from .{source} import {n} as {n}\n" for source, found in sorted(imported.items()) for n in sorted(found)]
    body = "".join(sorted(out, key=lambda text: not text.startswith("class")))
    body = re.sub(r"(?<![\w.])bool(?!\w|: Dtype)", "_bool", body)
    return HEAD + IMPORTS.replace("\nfrom coll", "\nfrom builtins import bool as _bool\nfrom coll", 1) + "".join(lines) + "\n" + ALIASES + body


def part(module):
    out = []
    for name in names_of(module):
        value = getattr(module, name)
        if name in ("array", "Dtype"):
            continue
        if isinstance(value, type) or not callable(value):
            out.append(f"{name}: Any\n")
        elif inspect.isfunction(value):
            out.append(from_python(name, value))
        else:
            out.append(function(name, value))
    return HEAD + IMPORTS + "from . import Device, DeviceType, Dtype, Stream, _Axes, _Operand, _Stream, array\n\n" + "".join(out)


def stubs():
    """By file name: what it should hold."""
    found = {}
    for name in MODULES:
        module = importlib.import_module(f"sardonyx.array.{name}" if name else "sardonyx.array")
        found[f"{name or '__init__'}.pyi"] = part(module) if name else top(module)
    return found


def main():
    wrong = []
    for name, text in stubs().items():
        path = FOLDER / name
        if sys.argv[1:] == ["--check"]:
            if not path.exists() or path.read_text() != text:
                wrong.append(name)
        else:
            path.write_text(text)
    if wrong:
        print(f"{', '.join(wrong)}: not what sardonyx.array has; run tools/array_stubs.py")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
