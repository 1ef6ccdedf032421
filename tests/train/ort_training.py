"""onnxruntime-training 1.19.2 in a Python of its own: SDX_ORT_TRAINING names that interpreter (`pip install onnxruntime-training-cpu`).

As a program, `ort_training.py SCRIPT ARGS...` runs a script there. The package imports torch, of which its training interface for devices
uses nothing: empty modules stand for it.
"""

import importlib.machinery
import os
import runpy
import subprocess
import sys
import types
from pathlib import Path

TORCH = ["torch", "torch.onnx", "torch.nn", "torch.utils", "torch.utils.data", "torch.utils.dlpack", "torch.utils.cpp_extension"]


class Anything(type):
    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything(name, (), {})


def stand_in_for_torch():
    for name in TORCH:
        module = types.ModuleType(name)
        module.__spec__ = importlib.machinery.ModuleSpec(name, None)
        module.__version__, module.__path__ = "1.13.1", []
        module.__getattr__ = lambda attribute: getattr(Anything("Anything", (), {}), attribute)
        sys.modules[name] = module
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], child, module)


def interpreter():
    """The interpreter, or None."""
    path = os.environ.get("SDX_ORT_TRAINING", "")
    return path if path and Path(path).exists() else None


def run(script, *arguments):
    """What the script says there."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    result = subprocess.run([interpreter(), "-B", __file__, script, *map(str, arguments)], capture_output=True, text=True, timeout=300,
                            env=environment)
    if result.returncode != 0:
        raise RuntimeError(f"{script}: {result.stderr.strip()[-2000:]}")
    return result.stdout


if __name__ == "__main__":
    stand_in_for_torch()
    sys.argv = sys.argv[1:]
    runpy.run_path(sys.argv[0], run_name="__main__")
