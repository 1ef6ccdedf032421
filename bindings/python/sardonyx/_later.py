"""Names that a package's own modules define, each imported when somebody asks for it.

A package that imports its modules while it is imported itself holds Python's lock of its name all that time. A thread that imports one of
these modules meanwhile holds the module's lock and waits for the package's: Python ends one of the two imports with an error.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any, Callable, Mapping


class _Package(ModuleType):
    """Python puts each module that it imports into its package. A name that the package takes from there, and that is the module's own
    too, stays what the package takes."""

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, ModuleType) and self.__dict__["__later__"].get(name) == name:
            value = getattr(value, name)
        super().__setattr__(name, value)


def later(package: str, names: Mapping[str, str], modules: str = "") -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The package's __getattr__ and __dir__. `names`: what it takes from each module, with spaces between; `modules`: those that are
    attributes, though nobody has imported them."""
    sources = {name: module for module, listed in names.items() for name in listed.split()}
    parts = set(modules.split())
    made = sys.modules[package]
    made.__dict__["__later__"] = sources
    made.__class__ = _Package

    def get(name: str) -> Any:
        if name not in sources and name not in parts:
            raise AttributeError(f"module '{package}' has no attribute '{name}'")
        import importlib

        module = importlib.import_module(f"{package}.{sources.get(name, name)}")
        value = made.__dict__[name] = getattr(module, name) if name in sources else module
        return value

    return get, lambda: sorted({*made.__dict__, *sources, *parts})
