"""Modules without content in place of PyTorch's, which onnxruntime.training asks for when it is imported and does not need here."""

import importlib.machinery
import sys
import types

NAMES = ("torch", "torch.onnx", "torch.nn", "torch.utils", "torch.utils.data", "torch.utils.dlpack", "torch.utils.cpp_extension")


class Anything(type):
    """Classes whose attributes are such classes: base classes and annotations."""

    def __getattr__(cls, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything(name, (), {})


def install() -> None:
    for name in NAMES:
        module = types.ModuleType(name)
        module.__spec__ = importlib.machinery.ModuleSpec(name, None, is_package=True)
        module.__path__ = []
        module.__version__ = "2.0.0"
        module.__getattr__ = lambda attribute: Anything.__getattr__(Anything, attribute)
        sys.modules[name] = module
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], child, module)
