"""Arrays in files: .npy, .npz, .safetensors and .gguf."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from typing import Any

from ._core import array, core

_FORMATS = ("npy", "npz", "safetensors", "gguf")


def _path(file: Any, ending: str) -> str:
    path: str = os.fspath(file)
    return path if path.endswith(ending) else path + ending


def _write(file: Any, ending: str, write: Callable[[str], None]) -> None:
    """To a path, or by way of a temporary file to an object with write()."""
    if not hasattr(file, "write"):
        write(_path(file, ending))
        return
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "arrays" + ending)
        write(path)
        with open(path, "rb") as made:
            file.write(made.read())


def save(file: Any, arr: array) -> None:
    """One array as .npy."""
    _write(file, ".npy", lambda path: core._save(path, arr))


def _numbered(args: tuple[Any, ...], kwargs: dict[str, array]) -> dict[str, array]:
    arrays = dict(kwargs)
    for i, a in enumerate(args):
        if f"arr_{i}" in arrays:
            raise ValueError(f"Cannot use un-named variables and keyword arr_{i}")
        arrays[f"arr_{i}"] = a
    return arrays


def savez(file: Any, *args: array, **kwargs: array) -> None:
    """Several arrays as .npz; those without a name are arr_0, arr_1, …"""
    arrays = _numbered(args, kwargs)
    _write(file, ".npz", lambda path: core._savez(path, arrays, False))


def savez_compressed(file: Any, *args: array, **kwargs: array) -> None:
    arrays = _numbered(args, kwargs)
    _write(file, ".npz", lambda path: core._savez(path, arrays, True))


def save_safetensors(file: Any, arrays: dict[str, array], metadata: dict[str, str] | None = None) -> None:
    _write(file, ".safetensors", lambda path: core._save_safetensors(path, arrays, metadata))


def save_gguf(file: Any, arrays: dict[str, array], metadata: dict[str, Any] | None = None) -> None:
    _write(file, ".gguf", lambda path: core._save_gguf(path, arrays, metadata))


def _format_of(file: Any, format: str | None) -> str:
    name = os.fspath(file) if isinstance(file, (str, os.PathLike)) else getattr(file, "name", "")
    found = format or os.path.splitext(str(name))[1][1:]
    if found not in _FORMATS:
        raise ValueError(f"[load] Unknown file format {found!r}; expected one of {', '.join(_FORMATS)}")
    return found


def _load(path: str, format: str, return_metadata: bool) -> Any:
    if format in ("npy", "npz") and return_metadata:
        raise ValueError(f"[load] metadata not supported for format {format}")
    if format == "npy":
        return core._load_npy(path)
    arrays, metadata = core._load(path, format)
    return (arrays, metadata) if return_metadata else arrays


def load(file: Any, /, format: str | None = None, return_metadata: bool = False, *, stream: Any = None) -> Any:
    """An array (.npy), or a dict of them, and what is said about them where it is asked for."""
    kind = _format_of(file, format)
    if not hasattr(file, "read"):
        return _load(os.fspath(file), kind, return_metadata)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "arrays." + kind)
        with open(path, "wb") as made:
            made.write(file.read())
        return _load(path, kind, return_metadata)
