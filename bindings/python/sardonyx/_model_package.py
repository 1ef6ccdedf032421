"""Model packages of ONNX Runtime 1.32: folders with variants of a model for several providers. Nothing here reads or writes them."""

from __future__ import annotations

import enum
from typing import Any, NoReturn

_ADVICE = (
    "model packages (folders with variants of a model for several providers) are not supported by Sardonyx: open the .onnx file of the variant "
    "that you want with InferenceSession(path), or take this step with ONNX Runtime's own package, in another environment"
)


class ModelPackageWriteMode(enum.IntEnum):
    PRESERVE = 0
    DENSE = 1


class _Refused:
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._refuse(type(self).__name__)

    @staticmethod
    def _refuse(name: str) -> NoReturn:
        raise NotImplementedError(f"{name}: {_ADVICE}")


class ModelPackage(_Refused):
    """Refused: see the module."""

    @staticmethod
    def open(*args: Any, **kwargs: Any) -> ModelPackage:
        _Refused._refuse("ModelPackage.open")

    @staticmethod
    def compute_directory_hash(*args: Any, **kwargs: Any) -> str:
        _Refused._refuse("ModelPackage.compute_directory_hash")


class ModelPackageContext(_Refused):
    """Refused: see the module."""


class ModelPackageComponentContext(_Refused):
    """Refused: see the module."""


class ModelPackageOptions(_Refused):
    """Refused: see the module."""
