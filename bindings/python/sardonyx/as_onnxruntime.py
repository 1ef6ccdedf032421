"""python -m sardonyx.as_onnxruntime SCRIPT|-m MODULE ARGUMENTS…: runs a program in which `import onnxruntime` is answered by Sardonyx,
whether or not ONNX Runtime is installed. importlib.metadata and packages that look for `onnxruntime` see version 1.31.1."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.metadata
import os
import sys
import threading
from types import ModuleType
from typing import Any, Iterable, Sequence

from ._run_program import run_program

_USAGE = "usage: python -m sardonyx.as_onnxruntime SCRIPT|-m MODULE [ARGUMENT…]"
_VERSION = "1.31.1"
_installing = threading.Lock()
_METADATA = f"Metadata-Version: 2.1\nName: onnxruntime\nVersion: {_VERSION}\nSummary: ONNX Runtime's package, answered by Sardonyx\n"


def _folder() -> str:
    """Where this package's own `onnxruntime` is: inside `sardonyx`, or beside it in the sources."""
    here = os.path.dirname(os.path.realpath(__file__))
    for folder in (os.path.join(here, "_onnxruntime"), os.path.dirname(here)):
        if os.path.exists(os.path.join(folder, "onnxruntime", "_names.py")):
            return folder
    raise ImportError(f"the package that answers for onnxruntime is missing in {here}: install sardonyx again")


class _Distribution(importlib.metadata.Distribution):
    def read_text(self, filename: str) -> str | None:
        return _METADATA if filename in ("METADATA", "PKG-INFO") else None

    def locate_file(self, path: Any) -> Any:
        import pathlib

        return pathlib.Path(_folder()) / path


class _Finder(importlib.abc.MetaPathFinder):
    """Comes before the path: ours is found whatever is installed."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> Any:
        if name != "onnxruntime":
            return None
        return importlib.machinery.PathFinder.find_spec(name, [self._folder])

    def find_distributions(self, context: Any = None) -> Iterable[importlib.metadata.Distribution]:
        name = getattr(context, "name", None)
        return [_Distribution()] if name is None or name.lower().replace("_", "-") == "onnxruntime" else []


def install() -> ModuleType:
    """Makes `import onnxruntime` give Sardonyx's answer from now on. RuntimeError where the real one has been imported already."""
    with _installing:
        if "onnxruntime" not in sys.modules and not any(isinstance(f, _Finder) for f in sys.meta_path):
            sys.meta_path.insert(0, _Finder(_folder()))
        present = importlib.import_module("onnxruntime")
    if not hasattr(present, "_names"):
        raise RuntimeError(f"onnxruntime has been imported from {present.__file__}: install() must come before")
    return present


def main() -> None:
    run_program(_USAGE, install)


if __name__ == "__main__":
    main()
