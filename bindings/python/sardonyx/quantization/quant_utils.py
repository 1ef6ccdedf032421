"""Types, formats and the arithmetic of scales and zero points."""

from __future__ import annotations

import copy
import json
import os
import tempfile
from enum import Enum
from pathlib import Path
from typing import Any, Mapping, TypeVar

import numpy as np

ms_domain = "com.microsoft"
ai_onnx_domain = "ai.onnx"
QUANT_OP_NAME = "QuantizeLinear"
DEQUANT_OP_NAME = "DequantizeLinear"
QUANT_INPUT_SUFFIX = "_QuantizeLinear_Input"
DEQUANT_OUTPUT_SUFFIX = "_DequantizeLinear_Output"
TENSOR_NAME_QUANT_SUFFIX = "_quantized"
MODEL_SIZE_THRESHOLD = 2147483648

_E = TypeVar("_E", bound="_Word")


class _Word(Enum):
    def __str__(self) -> str:
        return str(self.name)

    @classmethod
    def from_string(cls: type[_E], text: str) -> _E:
        try:
            return cls[text]
        except KeyError:
            raise ValueError(f"unknown {cls.__name__} {text!r}; known: {', '.join(m.name for m in cls)}") from None


class QuantizationMode(_Word):
    IntegerOps = 0
    QLinearOps = 1


class QuantizedValueType(_Word):
    Input = 0
    Initializer = 1


class QuantType(_Word):
    QInt8 = 0
    QUInt8 = 1
    QFLOAT8E4M3FN = 2
    QInt16 = 3
    QUInt16 = 4
    QInt4 = 5
    QUInt4 = 6

    @property
    def tensor_type(self) -> int:
        """The number of the type in onnx.TensorProto."""
        return _TENSOR_TYPES[self.name]


class QuantFormat(_Word):
    QOperator = 0
    QDQ = 1


_TENSOR_TYPES = {"QInt8": 3, "QUInt8": 2, "QFLOAT8E4M3FN": 17, "QInt16": 5, "QUInt16": 4, "QInt4": 22, "QUInt4": 21}
_BITS = {2: (False, 8), 3: (True, 8), 4: (False, 16), 5: (True, 16), 21: (False, 4), 22: (True, 4)}  # signed, bits
_FLOAT8 = 17


def _dtype(tensor_type: int) -> Any:
    signed, bits = _BITS[tensor_type]
    if bits == 4:
        import ml_dtypes

        return np.dtype(ml_dtypes.int4 if signed else ml_dtypes.uint4)
    return np.dtype(f"{'' if signed else 'u'}int{bits}")


def get_qmin_qmax_for_qType(qType: int, reduce_range: bool = False, symmetric: bool = False) -> tuple[Any, Any]:  # noqa: N802, N803
    """The least and the largest code of a type (a number of onnx.TensorProto), as arrays of it."""
    if qType == _FLOAT8:
        raise NotImplementedError("float 8 has no integer codes")
    if qType not in _BITS:
        raise ValueError(f"type {qType} is not among those of quantised tensors: INT8, UINT8, INT16, UINT16, INT4, UINT4")
    signed, bits = _BITS[qType]
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    if reduce_range:
        # A bit less. ONNX Runtime counts 64 and 16384 in, for signed types of 8 and 16 bits.
        low, high = (low // 2, -(low // 2) if bits > 4 else high // 2) if signed else (0, high // 2)
    elif symmetric and signed and bits > 4:
        low = -high
    return np.array(low, dtype=_dtype(qType)), np.array(high, dtype=_dtype(qType))


def get_qrange_for_qType(qType: int, reduce_range: bool = False, symmetric: bool = False) -> Any:  # noqa: N802, N803
    low, high = get_qmin_qmax_for_qType(qType, reduce_range, symmetric)
    return high - low


def compute_scale_zp(
    rmin: Any, rmax: Any, qmin: Any, qmax: Any, symmetric: bool = False, min_real_range: float | None = None
) -> list[Any]:
    """[zero point, scale] with which the codes qmin to qmax span the range rmin to rmax and 0."""
    if qmin > 0 or qmax < 0:
        raise ValueError(f"codes from {qmin} to {qmax}: 0 must be among them")
    kind = rmax.dtype
    low, high = min(float(rmin), 0.0), max(float(rmax), 0.0)
    if min_real_range is not None:
        high = max(high, low + float(min_real_range))
    if symmetric:
        high = max(-low, high)
        low = -high
    codes = float(qmax) - float(qmin)
    scale = (high - low) / codes
    if scale < float(np.finfo(kind).tiny):
        return [np.array(0, dtype=qmin.dtype), np.array(1, dtype=kind)]
    zero = (float(qmin) + float(qmax)) / 2 if symmetric else float(qmin) - low / scale
    return [np.array(np.round(zero), dtype=qmin.dtype), np.array(scale, dtype=kind)]


def compute_scale_zp_float8(element_type: int, std: Any) -> list[Any]:
    """[zero point, scale] of values with a standard deviation, for float8 (E4M3FN)."""
    if element_type != _FLOAT8:
        raise ValueError(f"type {element_type} is not float 8 (E4M3FN)")
    import ml_dtypes

    values = np.arange(256, dtype=np.uint8).view(ml_dtypes.float8_e4m3fn).astype(np.float32)
    deviation = np.std(values[np.isfinite(values)])
    return [np.array(0, dtype=ml_dtypes.float8_e4m3fn), np.array(std / deviation, dtype=np.asarray(std).dtype)]


def quantize_nparray(
    qType: int, arr: Any, scale: Any, zero_point: Any, low: int | None = None, high: int | None = None  # noqa: N803
) -> Any:
    """An array's codes."""
    if qType == _FLOAT8:
        import ml_dtypes

        return np.clip(np.asarray(arr, dtype=np.float32) / scale, -448, 448).astype(ml_dtypes.float8_e4m3fn)
    least, most = (float(v) for v in get_qmin_qmax_for_qType(qType))
    least = least if low is None else max(least, float(low))
    most = most if high is None else min(most, float(high))
    codes = np.round(np.asarray(arr, dtype=np.float32) / scale) + np.asarray(zero_point).astype(np.float32)
    return np.clip(codes, least, most).astype(_dtype(qType))


def quantize_data(
    data: Any,
    qType: int,  # noqa: N803
    symmetric: bool,
    reduce_range: bool = False,
    min_real_range: float | None = None,
    rmin_override: Any = None,
    rmax_override: Any = None,
) -> tuple[Any, Any, Any]:
    """(zero point, scale, codes) of an array."""
    data = np.asarray(data)
    kind = data.dtype
    if qType == _FLOAT8:
        zero, scale = compute_scale_zp_float8(qType, np.std(data))
    else:
        rmin = np.array(data.min() if data.size else 0, kind) if rmin_override is None else np.array(rmin_override, kind)
        rmax = np.array(data.max() if data.size else 0, kind) if rmax_override is None else np.array(rmax_override, kind)
        low, high = get_qmin_qmax_for_qType(qType, reduce_range, symmetric)
        zero, scale = compute_scale_zp(rmin, rmax, low, high, symmetric, min_real_range)
    return zero, scale, quantize_nparray(qType, data, scale, zero)


def normalize_axis(axis: int, rank: int) -> tuple[bool, int]:
    """(whether the axis is one of `rank`, the same axis counted from the front)."""
    return -rank <= axis < rank, axis + rank if axis < 0 else axis


def pack_bytes_to_4bit(src_8bit: bytes) -> bytearray:
    """Two codes to a byte, the first in the low bits."""
    codes = np.frombuffer(src_8bit, dtype=np.uint8) & 15
    if codes.size % 2:
        codes = np.append(codes, np.uint8(0))
    return bytearray((codes[0::2] | codes[1::2] << 4).tobytes())


def find_by_name(item_name: str, item_list: Any) -> Any:
    return next((item for item in item_list if item.name == item_name), None)


def attribute_to_kwarg(attribute: Any) -> dict[str, Any]:
    import onnx

    return {attribute.name: onnx.helper.get_attribute_value(attribute)}


def add_quant_suffix(tensor_name: str) -> str:
    return tensor_name + "_QuantizeLinear"


def add_quant_input_suffix(tensor_name: str) -> str:
    return tensor_name + QUANT_INPUT_SUFFIX


def add_quant_output_suffix(tensor_name: str) -> str:
    return tensor_name + "_QuantizeLinear_Output"


def add_dequant_suffix(tensor_name: str) -> str:
    return tensor_name + "_DequantizeLinear"


def add_dequant_input_suffix(tensor_name: str) -> str:
    return tensor_name + "_DequantizeLinear_Input"


def add_dequant_output_suffix(tensor_name: str) -> str:
    return tensor_name + DEQUANT_OUTPUT_SUFFIX


def generate_identified_filename(filename: Path, identifier: str) -> Path:
    return filename.parent / (filename.stem + identifier + filename.suffix)


def model_has_external_data(model_path: Path) -> bool:
    import onnx

    return _has_external_data(onnx.load(os.fspath(model_path), load_external_data=False))


def _has_external_data(model: Any) -> bool:
    import onnx

    return any(onnx.external_data_helper.uses_external_data(t) for t in model.graph.initializer)


def needs_external_data(model: Any) -> bool:
    """Whether an onnx.ModelProto is larger than a file may be, or has its data in others already."""
    return bool(model.ByteSize() >= MODEL_SIZE_THRESHOLD) or _has_external_data(model)


def optimize_model(model_path: Path, opt_model_path: Path) -> None:
    """Writes the model with constants and BatchNormalization folded."""
    from .. import _sardonyx

    _sardonyx.quantize().preprocess(os.fspath(model_path), os.fspath(opt_model_path), {})


def _tag(model: Any, key: str) -> None:
    import onnx

    tags = {p.key: p.value for p in model.metadata_props}
    onnx.helper.set_model_props(model, {**tags, key: "onnxruntime.quant"})


def _tagged(model: Any, key: str) -> bool:
    return any(p.key == key and p.value == "onnxruntime.quant" for p in model.metadata_props)


def add_pre_process_metadata(model: Any) -> None:
    _tag(model, "onnx.quant.pre_process")


def model_has_pre_process_metadata(model: Any) -> bool:
    return _tagged(model, "onnx.quant.pre_process")


def add_infer_metadata(model: Any) -> None:
    _tag(model, "onnx.infer")


def model_has_infer_metadata(model: Any) -> bool:
    return _tagged(model, "onnx.infer")


def get_opset_version(model: Any) -> int:
    versions = [o.version for o in model.opset_import if o.domain in ("", ai_onnx_domain)]
    if len(versions) != 1:
        raise ValueError("the model imports no opset of ai.onnx, or several")
    return int(versions[0])


def load_model_with_shape_infer(model_path: Path) -> Any:
    """The model with inferred types of its values."""
    import onnx

    with tempfile.TemporaryDirectory(prefix="sardonyx.quantization.") as folder:
        inferred = os.path.join(folder, "inferred.onnx")
        onnx.shape_inference.infer_shapes_path(os.fspath(model_path), inferred)
        model = onnx.load(inferred, load_external_data=False)
    onnx.external_data_helper.load_external_data_for_model(model, os.path.dirname(os.path.abspath(model_path)))
    add_infer_metadata(model)
    return model


def save_and_reload_model_with_shape_infer(model: Any) -> Any:
    import onnx

    with tempfile.TemporaryDirectory(prefix="sardonyx.quantization.") as folder:
        path = os.path.join(folder, "model.onnx")
        onnx.save_model(copy.deepcopy(model), path, save_as_external_data=True)
        return load_model_with_shape_infer(Path(path))


def tensor_proto_to_array(initializer: Any) -> Any:
    import onnx

    if initializer.data_type not in (onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16):
        kind = onnx.TensorProto.DataType.Name(initializer.data_type)
        raise ValueError(f"weights '{initializer.name}' are {kind}; expected FLOAT or FLOAT16")
    return onnx.numpy_helper.to_array(initializer)


def write_calibration_table(calibration_cache: Mapping[str, Any], dir: str = ".") -> None:  # noqa: A002
    """Writes calibration.json, calibration.cache (text) and calibration.flatbuffers: the largest value of each tensor, for TensorRT."""
    import flatbuffers

    from .calibrate import CalibrationCacheEncoder

    def largest(key: str) -> str:
        entries = calibration_cache[key].to_dict()
        return str(max(float(np.asarray(entries.get(end, 0)).item()) for end in ("highest", "lowest")))

    keys = sorted(calibration_cache.keys())
    Path(dir, "calibration.json").write_text(json.dumps(calibration_cache, cls=CalibrationCacheEncoder))
    # A table of one list of tables (key, value).
    builder = flatbuffers.Builder(1024)
    entries = []
    for key in keys:
        texts = [builder.CreateString(key), builder.CreateString(largest(key))]
        builder.StartObject(2)
        for slot, text in enumerate(texts):
            builder.PrependUOffsetTRelativeSlot(slot, text, 0)
        entries.append(builder.EndObject())
    builder.StartVector(4, len(entries), 4)
    for entry in entries:
        builder.PrependUOffsetTRelative(entry)
    table = builder.EndVector()
    builder.StartObject(1)
    builder.PrependUOffsetTRelativeSlot(0, table, 0)
    builder.Finish(builder.EndObject())
    Path(dir, "calibration.flatbuffers").write_bytes(bytes(builder.Output()))
    Path(dir, "calibration.cache").write_text("".join(f"{key} {largest(key)}\n" for key in keys))
