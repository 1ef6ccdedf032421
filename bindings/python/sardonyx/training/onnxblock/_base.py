"""The model that blocks add to: one at a time."""

from __future__ import annotations

import contextlib
import copy
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Optional, Union

if TYPE_CHECKING:
    import onnx


class ModelAccessor:
    """Holds the model while blocks add to it."""

    def __init__(self, model: onnx.ModelProto, path: Optional[str] = None) -> None:
        self.model, self._path = model, path
        self.libraries: list[str] = []

    @property
    def has_path(self) -> bool:
        return self._path is not None

    @property
    def path(self) -> str:
        if self._path is None:
            raise RuntimeError("the model came without a path")
        return self._path


_current: Optional[ModelAccessor] = None
_libraries: list[str] = []
_count = 0


def current() -> ModelAccessor:
    if _current is None:
        raise RuntimeError("blocks are built within `with onnxblock.base(model):` or `with onnxblock.empty_base():`")
    return _current


def libraries() -> list[str]:
    return list(_libraries)


def new_name(what: str) -> str:
    """A name that no other value or node has."""
    global _count
    _count += 1
    return f"onnx::{what}::{_count}"


@contextlib.contextmanager
def _held(accessor: ModelAccessor) -> Iterator[ModelAccessor]:
    global _current
    if _current is not None:
        raise RuntimeError("Base onnx model already exists. Cannot create multiple ModelAccessors.")
    _current = accessor
    try:
        yield accessor
    finally:
        _current = None


@contextlib.contextmanager
def base(model: onnx.ModelProto, model_path: Optional[str] = None) -> Iterator[ModelAccessor]:
    """Blocks within add to a copy of the model, which the context's value holds."""
    if model is None:
        raise RuntimeError("Base onnx model cannot be None. Please use onnxblock.empty_base to build a model from scratch.")
    with _held(ModelAccessor(copy.deepcopy(model), model_path)) as accessor:
        yield accessor


@contextlib.contextmanager
def empty_base(opset_version: Optional[int] = None) -> Iterator[ModelAccessor]:
    """Blocks within build a model from nothing."""
    import onnx

    model = onnx.ModelProto(ir_version=10, producer_name="sardonyx")
    model.graph.name = "graph"
    newest = min(onnx.defs.onnx_opset_version(), 21)
    opset = onnx.helper.make_opsetid
    model.opset_import.extend([opset("com.microsoft", 1), opset("", opset_version or newest)])
    with _held(ModelAccessor(model)) as accessor:
        yield accessor


@contextlib.contextmanager
def custom_op_library(custom_op_library_path: Union[str, os.PathLike[str]]) -> Iterator[Any]:
    """Within, models may have the operators of this library."""
    path = os.fspath(custom_op_library_path)
    if not os.path.exists(path):
        raise RuntimeError(f"Custom op library path {path} does not exist.")
    _libraries.append(path)
    try:
        yield path
    finally:
        _libraries.remove(path)
