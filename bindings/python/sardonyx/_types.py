"""Names of types: the engine's ("float32[n,3]"), ONNX's numbers (TensorProto.DataType), ONNX Runtime's ("tensor(float)"), NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np

# engine's name: (ONNX's number, ONNX Runtime's name, NumPy's name)
_TABLE = {
    "float32": (1, "float", "float32"),
    "uint8": (2, "uint8", "uint8"),
    "int8": (3, "int8", "int8"),
    "uint16": (4, "uint16", "uint16"),
    "int16": (5, "int16", "int16"),
    "int32": (6, "int32", "int32"),
    "int64": (7, "int64", "int64"),
    "string": (8, "string", "object"),
    "bool": (9, "bool", "bool"),
    "float16": (10, "float16", "float16"),
    "float64": (11, "double", "float64"),
    "uint32": (12, "uint32", "uint32"),
    "uint64": (13, "uint64", "uint64"),
    "complex64": (14, "complex64", "complex64"),
    "complex128": (15, "complex128", "complex128"),
    "bfloat16": (16, "bfloat16", "bfloat16"),
    "float8e4m3fn": (17, "float8e4m3fn", "float8_e4m3fn"),
    "float8e4m3fnuz": (18, "float8e4m3fnuz", "float8_e4m3fnuz"),
    "float8e5m2": (19, "float8e5m2", "float8_e5m2"),
    "float8e5m2fnuz": (20, "float8e5m2fnuz", "float8_e5m2fnuz"),
    "uint4": (21, "uint4", "uint4"),
    "int4": (22, "int4", "int4"),
    "float4e2m1": (23, "float4e2m1", "float4_e2m1fn"),
    "float8e8m0": (24, "float8e8m0", "float8_e8m0fnu"),
    "uint2": (25, "uint2", "uint2"),
    "int2": (26, "int2", "int2"),
    "float6e2m3": (27, "float6e2m3", "float6_e2m3fn"),
    "float6e3m2": (28, "float6e3m2", "float6_e3m2fn"),
}
_BY_NUMPY = {numpy: engine for engine, (_, _, numpy) in _TABLE.items()}
_BY_NUMBER = {number: engine for engine, (number, _, _) in _TABLE.items()}


def ort_type(text: str) -> str:
    """"sequence(map(int64, float32))" as "seq(map(int64,tensor(float)))"."""
    for prefix, name in (("sequence(", "seq"), ("optional(", "optional"), ("sparse_tensor(", "sparse_tensor")):
        if text.startswith(prefix):
            inner = text[len(prefix) : -1]
            return f"{name}({ort_type(inner) if name != 'sparse_tensor' else _element(inner)})"
    if text.startswith("map("):
        key, value = text[4:-1].split(", ", 1)
        return f"map({_element(key)},{ort_type(value)})"
    return f"tensor({_element(text)})"


def _element(text: str) -> str:
    engine = text.split("[", 1)[0]
    return _TABLE[engine][1] if engine in _TABLE else engine


def engine_name(array: np.ndarray) -> str:
    if array.dtype.kind in "OUST":
        return "string"
    return _BY_NUMPY.get(array.dtype.name, array.dtype.name)


def onnx_number(array: np.ndarray) -> int:
    name = engine_name(array)
    return _TABLE[name][0] if name in _TABLE else 0


def numpy_type(what: Any) -> np.dtype:
    """The dtype for an ONNX number, a NumPy dtype, or a name of either."""
    name = _TABLE[_BY_NUMBER[what]][2] if isinstance(what, int) and what in _BY_NUMBER else what
    try:
        return np.dtype(name)
    except TypeError:
        import ml_dtypes

        dtype: np.dtype = np.dtype(getattr(ml_dtypes, name))
        return dtype


def numpy_of(ort: str) -> np.dtype:
    """The dtype for ONNX Runtime's name of a tensor's type: "tensor(float)". TypeError for what is not a tensor."""
    for _, name, numpy in _TABLE.values():
        if ort == f"tensor({name})":
            return numpy_type(numpy)
    raise TypeError(f"{ort} is not a type of tensors")
