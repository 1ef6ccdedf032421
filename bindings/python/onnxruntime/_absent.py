"""Modules of ONNX Runtime's package that this one does not have. Programs can import them, and names from them; using what they name raises
NotImplementedError, which says what to do instead. So a package that imports more than it uses works."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
from types import CodeType, ModuleType
from typing import Any, Callable, Sequence

from ._absent_names import MODULES

_PACKAGE = __package__
_FUSED = "Sardonyx fuses operators by itself when a model is opened: leave the step out, or take it with ONNX Runtime's own package"
_OWN = "take this step with ONNX Runtime's own package, in another environment; the model that it writes can be used here"
# Advice by the beginning of a module's name; the first match counts.
_ADVICE: tuple[tuple[str, str], ...] = (
    ("transformers.optimizer", _FUSED),
    ("transformers.fusion_", _FUSED),
    ("transformers.onnx_model", _FUSED),
    ("tools.symbolic_shape_infer", "Sardonyx infers shapes by itself when a model is opened, and `sdx inspect` shows them"),
    ("tools.convert_onnx_models_to_ort", "Sardonyx reads .onnx files as fast as .ort files, and keeps compiled models: docs/cache.md"),
)


def reason(module: str, name: str = "") -> str:
    """Why it cannot be used, and what to do."""
    advice = next((text for start, text in _ADVICE if module.startswith(start)), _OWN)
    full = f"{_PACKAGE}.{module}.{name}" if name else f"{_PACKAGE}.{module}"
    return f"{full} is not part of Sardonyx's package `{_PACKAGE}`: {advice}"


class _Absent(type):
    """The type of everything that is not there. A class: programs call, subclass and ask for instances of what they import."""

    _reason: str

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(cls._reason)

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("_"):  # how Python and its tools look at objects
            raise AttributeError(name)
        raise NotImplementedError(cls._reason)

    def _refuse(cls, *args: Any) -> Any:
        raise NotImplementedError(cls._reason)

    __iter__ = __len__ = __getitem__ = __contains__ = __add__ = __radd__ = _refuse

    def __repr__(cls) -> str:
        return f"<{cls._reason}>"


def _stand_in(module: str, name: str) -> Any:
    return _Absent(name, (), {"__module__": f"{_PACKAGE}.{module}", "_reason": reason(module, name)})


def attributes(module: str, names: str) -> Callable[[str], Any]:
    """A module's __getattr__ for names that it lacks."""
    known = frozenset(names.split())

    def get(name: str) -> Any:
        if name not in known:
            raise AttributeError(f"module '{_PACKAGE}.{module}' has no attribute '{name}'")
        made = _stand_in(module, name)
        setattr(sys.modules[f"{_PACKAGE}.{module}"], name, made)
        return made

    return get


class _Loader(importlib.abc.InspectLoader):
    def __init__(self, module: str) -> None:
        self._module = module

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        names = MODULES[self._module]
        module.__doc__ = reason(self._module)
        module.__dict__["__getattr__"] = attributes(self._module, names)
        module.__dict__["__dir__"] = lambda: sorted({*module.__dict__, *names.split()})

    def is_package(self, fullname: str) -> bool:
        return any(other.startswith(self._module + ".") for other in MODULES)

    def get_source(self, fullname: str) -> str | None:
        return None

    def get_code(self, fullname: str) -> CodeType:
        """For `python -m`."""
        return compile(f"raise SystemExit({reason(self._module)!r})", f"<{fullname}>", "exec")


class Finder(importlib.abc.MetaPathFinder):
    """Asked after all others: what is there is found as always."""

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> importlib.machinery.ModuleSpec | None:
        start, _, module = name.partition(".")
        if start != _PACKAGE or module not in MODULES:
            return None
        loader = _Loader(module)
        return importlib.machinery.ModuleSpec(name, loader, is_package=loader.is_package(name))


def install() -> None:
    if not any(isinstance(finder, Finder) for finder in sys.meta_path):
        sys.meta_path.append(Finder())
