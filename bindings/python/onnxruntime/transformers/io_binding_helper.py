"""Types of inputs and outputs by name, in NumPy, PyTorch and ONNX. PyTorch is needed for its own types only."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _absent

__getattr__ = _absent.attributes("transformers.io_binding_helper", "CudaSession GpuBinding GpuBindingManager IOBindingHelper ShapeDict")

# Type by name, with NumPy's (None: it has none), PyTorch's and ONNX's.
_TYPES: dict[str, tuple[Any, str, str]] = {
    "float": (np.float32, "float32", "FLOAT"),
    "double": (np.float64, "float64", "DOUBLE"),
    "float16": (np.float16, "float16", "FLOAT16"),
    "bfloat16": (None, "bfloat16", "BFLOAT16"),
    "bool": (bool, "bool", "BOOL"),
    **{
        f"{sign}int{bits}": (getattr(np, f"{sign}int{bits}"), f"{sign}int{bits}", f"{sign}int{bits}".upper()) for sign in ("", "u") for bits in (8, 16, 32, 64)
    },
    "int4": (None, "int4", "INT4"),
    "uint4": (None, "uint4", "UINT4"),
    "complex64": (np.complex64, "complex64", "COMPLEX64"),
    "complex128": (np.complex128, "complex128", "COMPLEX128"),
    **{f"float8{kind}": (None, f"float8_{kind}", f"float8{kind}".upper()) for kind in ("e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz")},
    "float4e2m1": (None, "", "FLOAT4E2M1"),
    "string": (None, "", "STRING"),
}


def _types_of(ort_type: str) -> tuple[Any, str, str]:
    name = ort_type[len("tensor(") : -1] if ort_type.startswith("tensor(") and ort_type.endswith(")") else ""
    if name not in _TYPES:
        raise ValueError(f"{ort_type} not found in map")
    return _TYPES[name]


def _type_named(values: Any, name: str, where: str) -> str:
    for value in values:
        if value.name == name:
            return value.type
    raise ValueError(f"{where} name {name} not found")


class TypeHelper:
    @staticmethod
    def get_input_type(ort_session: Any, name: str) -> str:
        """As sessions write it: "tensor(float)"."""
        return _type_named(ort_session.get_inputs(), name, "input")

    @staticmethod
    def get_output_type(ort_session: Any, name: str) -> str:
        return _type_named(ort_session.get_outputs(), name, "output")

    @staticmethod
    def ort_type_to_numpy_type(ort_type: str) -> Any:
        found = _types_of(ort_type)[0]
        if found is None:
            raise ValueError(f"{ort_type} not found in map")
        return found

    @staticmethod
    def ort_type_to_torch_type(ort_type: str) -> Any:
        import torch

        name = _types_of(ort_type)[1]
        if not name or not hasattr(torch, name):
            raise ValueError(f"{ort_type} not found in map")
        return getattr(torch, name)

    @staticmethod
    def ort_type_to_onnx_type(ort_type: str) -> int:
        from onnx import TensorProto

        return int(getattr(TensorProto, _types_of(ort_type)[2]))

    @staticmethod
    def numpy_type_to_torch_type(numpy_type: Any) -> Any:
        import torch

        for own, name, _ in _TYPES.values():
            if own is not None and np.dtype(own) == np.dtype(numpy_type):
                return getattr(torch, name)
        raise ValueError(f"{numpy_type} not found in map")

    @staticmethod
    def torch_type_to_numpy_type(torch_type: Any) -> Any:
        import torch

        for own, name, _ in _TYPES.values():
            if own is not None and getattr(torch, name, None) is torch_type:
                return own
        raise ValueError(f"{torch_type} not found in map")

    @staticmethod
    def get_io_numpy_type_map(ort_session: Any) -> dict[str, Any]:
        """By the names of all inputs and outputs."""
        return _map_of(ort_session, TypeHelper.ort_type_to_numpy_type)

    @staticmethod
    def get_io_torch_type_map(ort_session: Any) -> dict[str, Any]:
        return _map_of(ort_session, TypeHelper.ort_type_to_torch_type)

    @staticmethod
    def get_io_onnx_type_map(ort_session: Any) -> dict[str, int]:
        return _map_of(ort_session, TypeHelper.ort_type_to_onnx_type)


def _map_of(session: Any, convert: Any) -> dict[str, Any]:
    return {value.name: convert(value.type) for value in (*session.get_inputs(), *session.get_outputs())}
