"""python -m sardonyx.as_mlx SCRIPT|-m MODULE ARGUMENTS…: runs a program in which `import mlx.core` is answered by sardonyx.array.

`mlx.nn`, `mlx.optimizers` and `mlx.utils` are those of the installed `mlx` package, which are pure Python; its native core is not
loaded.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import sys
import threading
from types import ModuleType
from typing import Any

from ._run_program import run_program

_USAGE = "usage: python -m sardonyx.as_mlx SCRIPT|-m MODULE [ARGUMENT…]"
_installing = threading.Lock()
_MODULES = ("cuda", "distributed", "fast", "fft", "linalg", "metal", "random")


def _core() -> ModuleType:
    import sardonyx.array
    from sardonyx.array import _members
    from sardonyx.array._core import core

    source: Any = sardonyx.array  # with names that its stub leaves out
    module: Any = ModuleType("mlx.core", source.__doc__)
    present = dict(vars(source))  # other threads may import modules of it
    names = {k: v for k, v in present.items() if not k.startswith("_") and not isinstance(v, ModuleType)}
    names.update(source._as_mlx())  # MLX's where the standard's differ
    for name in ("asarray", "broadcast_shapes", "from_dlpack"):
        names[name] = getattr(source, f"_mlx_{name}")
    names.update({"__array_namespace_info__": source.__array_namespace_info__, "__version__": "0.32.4"})
    vars(module).update(names)
    module.__path__ = []
    for name in _MODULES:
        part = importlib.import_module(f"sardonyx.array.{name}")
        setattr(module, name, part)
        sys.modules[f"mlx.core.{name}"] = part
    module.matrix_norm = module.linalg.norm
    core._act_as("mlx.core")
    _members.namespace_is_mlx = True
    made: ModuleType = module
    return made


def install() -> ModuleType:
    """Puts sardonyx.array at sys.modules["mlx.core"]; makes an empty package `mlx` where none is installed."""
    with _installing:
        return sys.modules.get("mlx.core") or _installed()


def _installed() -> ModuleType:
    module = _core()
    module.__spec__ = importlib.machinery.ModuleSpec("mlx.core", None, is_package=True)
    if importlib.util.find_spec("mlx") is None:
        sys.modules["mlx"] = package = ModuleType("mlx")
        package.__path__ = []
    import mlx

    mlx.core = module
    sys.modules["mlx.core"] = module
    return module


def main() -> None:
    run_program(_USAGE, install)


if __name__ == "__main__":
    main()
