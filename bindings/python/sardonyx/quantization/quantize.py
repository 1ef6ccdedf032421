"""The functions that write quantised models."""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path
from typing import Any, Callable, Iterator, Mapping, Sequence

from .. import _sardonyx
from ._models import ModelInput, as_file
from .calibrate import (
    Batches,
    CalibrationDataReader,
    CalibrationMethod,
    TensorsData,
    load_tensors_data,
    save_tensors_data,
    tensors_data_of,
)
from .quant_utils import QuantFormat, QuantType, get_opset_version, needs_external_data
from .tensor_quant_overrides import check_entry

_native = _sardonyx.quantize()
_log = logging.getLogger(__name__)

# Options that change nothing here: how often the calibration of another tool runs, and targets of other engines.
_WITHOUT_EFFECT = {"extra.Sigmoid.nnapi", "CalibMaxIntermediateOutputs", "CalibStridedMinMax"}
_NOT_IMPLEMENTED = {"BlockSize"}
# What the engine adds, by its own name there.
_OWN = {"MaxLoss": "max_loss", "Accuracy": "measure_accuracy", "PreProcess": "preprocess", "CustomOps": "custom_ops"}
_KNOWN = {
    "ActivationSymmetric",
    "ActivationRestrictedAsymmetric",
    "WeightSymmetric",
    "EnableSubgraph",
    "ForceQuantizeNoInputCheck",
    "MatMulConstBOnly",
    "AddQDQPairToWeight",
    "OpTypesToExcludeOutputQuantization",
    "DedicatedQDQPair",
    "QDQOpTypePerChannelSupportToAxis",
    "QDQKeepRemovableActivations",
    "QDQDisableWeightAdjustForInt32Bias",
    "UseQDQContribOps",
    "MinimumRealRange",
    "QuantizeBias",
    "CalibTensorRangeSymmetric",
    "CalibMovingAverage",
    "CalibMovingAverageConstant",
    "CalibPercentile",
    "CalibNumBins",
    "CalibNumQuantizedBins",
    "SmoothQuant",
    "SmoothQuantAlpha",
    "SmoothQuantFolding",
}


class QuantConfig:
    """What StaticQuantConfig and DynamicQuantConfig have in common."""

    def __init__(
        self,
        activation_type: QuantType = QuantType.QUInt8,
        weight_type: QuantType = QuantType.QInt8,
        op_types_to_quantize: Sequence[str] | None = None,
        nodes_to_quantize: Sequence[str] | None = None,
        nodes_to_exclude: Sequence[str] | None = None,
        per_channel: bool = False,
        reduce_range: bool = False,
        use_external_data_format: bool = False,
    ):
        self.activation_type = activation_type
        self.weight_type = weight_type
        self.op_types_to_quantize = op_types_to_quantize or []
        self.nodes_to_quantize = nodes_to_quantize or []
        self.nodes_to_exclude = nodes_to_exclude or []
        self.per_channel = per_channel
        self.reduce_range = reduce_range
        self.use_external_data_format = use_external_data_format


class StaticQuantConfig(QuantConfig):
    """The arguments of quantize_static()."""

    def __init__(
        self,
        calibration_data_reader: Any,
        calibrate_method: CalibrationMethod = CalibrationMethod.MinMax,
        quant_format: QuantFormat = QuantFormat.QDQ,
        activation_type: QuantType = QuantType.QInt8,
        weight_type: QuantType = QuantType.QInt8,
        op_types_to_quantize: Sequence[str] | None = None,
        nodes_to_quantize: Sequence[str] | None = None,
        nodes_to_exclude: Sequence[str] | None = None,
        per_channel: bool = False,
        reduce_range: bool = False,
        use_external_data_format: bool = False,
        calibration_providers: Sequence[str] | None = None,
        extra_options: dict[str, Any] | None = None,
    ):
        super().__init__(
            activation_type,
            weight_type,
            op_types_to_quantize,
            nodes_to_quantize,
            nodes_to_exclude,
            per_channel,
            reduce_range,
            use_external_data_format,
        )
        self.calibration_data_reader = calibration_data_reader
        self.calibrate_method = calibrate_method
        self.quant_format = quant_format
        self.calibration_providers = calibration_providers
        self.extra_options = extra_options or {}


class DynamicQuantConfig(QuantConfig):
    """The arguments of quantize_dynamic()."""

    def __init__(
        self,
        weight_type: QuantType = QuantType.QInt8,
        op_types_to_quantize: Sequence[str] | None = None,
        nodes_to_quantize: Sequence[str] | None = None,
        nodes_to_exclude: Sequence[str] | None = None,
        per_channel: bool = False,
        reduce_range: bool = False,
        use_external_data_format: bool = False,
        extra_options: dict[str, Any] | None = None,
    ):
        super().__init__(
            QuantType.QUInt8,
            weight_type,
            op_types_to_quantize,
            nodes_to_quantize,
            nodes_to_exclude,
            per_channel,
            reduce_range,
            use_external_data_format,
        )
        self.extra_options = extra_options or {}


def _type(given: QuantType | int) -> QuantType:
    """Scripts also pass numbers of onnx.TensorProto."""
    if isinstance(given, QuantType):
        return given
    found = next((t for t in QuantType if t.tensor_type == given), None)
    if found is None:
        raise ValueError(f"unknown type {given!r}; expected a QuantType: {', '.join(t.name for t in QuantType)}")
    return found


def _override(tensor: str, entries: Any) -> dict[str, Any]:
    """TensorQuantOverrides has a dict for all of a tensor, or one for each channel."""
    if isinstance(entries, Mapping):
        entries = [entries]
    if not entries:
        return {}
    for entry in entries:
        check_entry(tensor, entry)
    out: dict[str, Any] = {}
    for name in ("quant_type", "axis", "symmetric", "reduce_range"):
        values = [e[name] for e in entries if e.get(name) is not None]
        if values:
            out[name] = str(values[0]) if name == "quant_type" else values[0]
    for name in ("rmin", "rmax"):
        if any(e.get(name) is not None for e in entries):
            if not all(e.get(name) is not None for e in entries):
                raise ValueError(f"TensorQuantOverrides of '{tensor}': {name} is for all channels or none")
            out[name] = [float(e[name]) for e in entries]
    if entries[0].get("convert"):
        second = dict(entries[0]["convert"])
        nodes = second.pop("recv_nodes", None)
        out["convert"] = {**_override(tensor, second), "recv_nodes": sorted(nodes or [])}
    if any("scale" in e for e in entries):
        if not all("scale" in e for e in entries):
            raise ValueError(f"TensorQuantOverrides of '{tensor}': scale and zero_point are for all channels or none")
        out["scale"] = [float(e["scale"]) for e in entries]
        out["zero_point"] = [int(e["zero_point"]) for e in entries]
    return out


def _extra(given: Mapping[str, Any] | None, ours: dict[str, Any]) -> dict[str, Any]:
    """The engine's part of extra_options; what belongs elsewhere goes into `ours`."""
    out: dict[str, Any] = {}
    for name, value in (given or {}).items():
        if name in _OWN:
            ours[_OWN[name]] = value
        elif name == "TensorQuantOverrides":
            out[name] = {tensor: _override(tensor, entries) for tensor, entries in (value or {}).items()}
        elif name in _KNOWN:
            out[name] = value
        elif name in _NOT_IMPLEMENTED and value:
            raise NotImplementedError(f"the option {name} is not implemented")
        elif name not in _WITHOUT_EFFECT and name not in _NOT_IMPLEMENTED:
            _log.warning("extra_options has an unknown entry %r, which has no effect", name)
    return out


def options_of(
    weight_type: QuantType,
    op_types_to_quantize: Sequence[str] | None,
    nodes_to_quantize: Sequence[str] | None,
    nodes_to_exclude: Sequence[str] | None,
    per_channel: bool,
    reduce_range: bool,
    use_external_data_format: bool,
    extra_options: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """The engine's options. Names that the model lacks are passed over, as ONNX Runtime's tool does."""
    options: dict[str, Any] = {
        "weight_type": str(_type(weight_type)),
        "op_types_to_quantize": list(op_types_to_quantize or []),
        "nodes_to_quantize": list(nodes_to_quantize or []),
        "nodes_to_exclude": list(nodes_to_exclude or []),
        "ignore_unknown": True,
        "per_channel": bool(per_channel),
        "reduce_range": bool(reduce_range),
        "external_above": 0 if use_external_data_format else None,
    }
    options["extra"] = _extra(extra_options, options)
    return options


def check_static_quant_arguments(quant_format: QuantFormat, activation_type: QuantType, weight_type: QuantType) -> None:
    """Raises ValueError for combinations that no operator has."""
    if activation_type == QuantType.QInt8 and weight_type == QuantType.QUInt8:
        raise ValueError("activations of QInt8 go with weights of QInt8, received QUInt8")
    if (activation_type == QuantType.QFLOAT8E4M3FN) != (weight_type == QuantType.QFLOAT8E4M3FN):
        raise ValueError(f"QFLOAT8E4M3FN is for activations and weights together, received {activation_type} and {weight_type}")
    wide = (QuantType.QInt16, QuantType.QUInt16)
    if quant_format != QuantFormat.QDQ and (activation_type in wide or weight_type in wide):
        raise ValueError("only QuantFormat.QDQ has types of 16 bits")


def _strided(reader: Any, stride: int) -> Iterator[dict[str, Any]]:
    total = len(reader)
    if total % stride:
        raise ValueError(f"the reader has {total} samples, which CalibStridedMinMax ({stride}) does not divide")
    for start in range(0, total, stride):
        reader.set_range(start_index=start, end_index=start + stride)
        while (batch := reader.get_next()) is not None:
            yield batch


class _Strided(CalibrationDataReader):
    def __init__(self, reader: Any, stride: int):
        self._batches = _strided(reader, stride)

    def get_next(self) -> dict[str, Any] | None:
        return next(self._batches, None)


def _cached(path: Path, method: CalibrationMethod, smooth: bool) -> TensorsData | None:
    """What the cache holds; None: nothing that can be used."""
    if path.exists() and not path.is_file():
        raise ValueError(f"calibration_cache_path '{path}' is not a file")
    if not path.is_file():
        return None
    if bool(json.loads(path.read_text()).get("smooth_quant", False)) != smooth:
        _log.warning("the calibration cache '%s' comes from another setting of SmoothQuant; it is made anew", path)
        return None
    found = load_tensors_data(path)
    if found.calibration_method != method:
        raise ValueError(f"the calibration cache '{path}' comes from {found.calibration_method}, not {method}; delete it")
    return found


def quantize_static(
    model_input: ModelInput,
    model_output: str | os.PathLike[str],
    calibration_data_reader: Any | None = None,
    quant_format: QuantFormat = QuantFormat.QDQ,
    op_types_to_quantize: Sequence[str] | None = None,
    per_channel: bool = False,
    reduce_range: bool = False,
    activation_type: QuantType = QuantType.QInt8,
    weight_type: QuantType = QuantType.QInt8,
    nodes_to_quantize: Sequence[str] | None = None,
    nodes_to_exclude: Sequence[str] | None = None,
    use_external_data_format: bool = False,
    calibrate_method: CalibrationMethod = CalibrationMethod.MinMax,
    calibration_providers: Sequence[str] | None = None,
    extra_options: dict[str, Any] | None = None,
    calibration_cache_path: str | os.PathLike[str] | None = None,
) -> dict[str, Any]:
    """Quantises weights and activations, whose ranges come from running the model on the reader's data.

    Without op_types_to_quantize, products and convolutions are quantised, and what lies between them and gains by it; with it, exactly
    these operators, as ONNX Runtime's tool does. extra_options are that tool's, and: MaxLoss (layers stay float until the outputs' loss
    is at most this), Accuracy (True: measure the result), PreProcess (False: fold nothing first), CustomOps (libraries of operators).
    Returns a report of what was done.
    """
    activation_type, weight_type = _type(activation_type), _type(weight_type)
    wants_float8 = QuantType.QFLOAT8E4M3FN in (activation_type, weight_type)
    if wants_float8 and calibrate_method != CalibrationMethod.Distribution:
        raise ValueError("float 8 needs calibrate_method=CalibrationMethod.Distribution")
    check_static_quant_arguments(quant_format, activation_type, weight_type)
    options = options_of(
        weight_type,
        op_types_to_quantize,
        nodes_to_quantize,
        nodes_to_exclude,
        per_channel,
        reduce_range,
        use_external_data_format,
        extra_options,
    )
    options["quant_format"] = str(quant_format)
    options["activation_type"] = str(activation_type)
    options["calibrate_method"] = calibrate_method.name
    stride = (extra_options or {}).get("CalibStridedMinMax")
    reader = _Strided(calibration_data_reader, stride) if stride and calibration_data_reader is not None else calibration_data_reader
    output = os.fspath(model_output)
    with as_file(model_input) as model:
        if calibration_cache_path is None:
            if reader is None:
                raise ValueError("quantize_static needs a calibration_data_reader, or a calibration_cache_path with what one gave")
            found: dict[str, Any] = json.loads(_native.calibrated(model, output, reader, options))
            return found
        cache = Path(calibration_cache_path)
        smooth = bool(options["extra"].get("SmoothQuant", False))
        if smooth:
            raise ValueError("SmoothQuant changes weights by the data: it cannot work from a calibration_cache_path")
        data = _cached(cache, calibrate_method, smooth)
        if data is None:
            if reader is None:
                raise ValueError(f"there is no calibration cache '{cache}' yet: a calibration_data_reader is needed")
            data = tensors_data_of(_native.ranges(model, reader, options, False), calibrate_method)
            save_tensors_data(data, cache, smooth_quant=smooth)
        result: dict[str, Any] = json.loads(_native.with_ranges(model, output, data.ranges(), options))
        return result


def quantize_dynamic(
    model_input: ModelInput,
    model_output: str | os.PathLike[str],
    op_types_to_quantize: Sequence[str] | None = None,
    per_channel: bool = False,
    reduce_range: bool = False,
    weight_type: QuantType = QuantType.QInt8,
    nodes_to_quantize: Sequence[str] | None = None,
    nodes_to_exclude: Sequence[str] | None = None,
    use_external_data_format: bool = False,
    extra_options: dict[str, Any] | None = None,
    calibration_data_reader: Any | None = None,
) -> dict[str, Any]:
    """Quantises weights; ranges of activations are found in each run. extra_options has MaxLoss and Accuracy too (see quantize_static()),
    which need a reader. Returns a report of what was done."""
    options = options_of(
        weight_type,
        op_types_to_quantize,
        nodes_to_quantize,
        nodes_to_exclude,
        per_channel,
        reduce_range,
        use_external_data_format,
        extra_options,
    )
    with as_file(model_input) as model:
        result: dict[str, Any] = json.loads(_native.dynamic(model, os.fspath(model_output), options, calibration_data_reader))
        return result


def convert_to_half(
    model_input: ModelInput,
    model_output: str | os.PathLike[str],
    to: str = "float16",
    keep_io_types: bool = False,
    op_block_list: Sequence[str] | None = None,
    node_block_list: Sequence[str] | None = None,
    calibration_data_reader: Any | None = None,
) -> dict[str, Any]:
    """Writes a model that computes in float16 or bfloat16. What would lose too much stays float32, as do the blocked operators and nodes.
    Returns a report; with a reader it says how near the result is to the float32 model."""
    options = {
        "dtype": to,
        "keep_io": bool(keep_io_types),
        "keep_ops": list(op_block_list or []),
        "keep_nodes": list(node_block_list or []),
        "measure_accuracy": calibration_data_reader is not None,
    }
    with as_file(model_input) as model:
        result: dict[str, Any] = json.loads(_native.half(model, os.fspath(model_output), options, calibration_data_reader))
        return result


def quantize(model_input: ModelInput, model_output: str | os.PathLike[str], quant_config: QuantConfig) -> dict[str, Any]:
    """quantize_static() or quantize_dynamic(), by the kind of the configuration."""
    common = (
        "op_types_to_quantize",
        "nodes_to_quantize",
        "nodes_to_exclude",
        "per_channel",
        "reduce_range",
        "weight_type",
        "use_external_data_format",
        "extra_options",
    )
    static = ("calibrate_method", "quant_format", "activation_type", "calibration_providers")
    if isinstance(quant_config, DynamicQuantConfig):
        return quantize_dynamic(model_input, model_output, **{name: getattr(quant_config, name) for name in common})
    if not isinstance(quant_config, StaticQuantConfig):
        raise TypeError(f"the configuration is a StaticQuantConfig or a DynamicQuantConfig, received {type(quant_config).__name__}")
    settings = {name: getattr(quant_config, name) for name in common + static}
    return quantize_static(model_input, model_output, quant_config.calibration_data_reader, **settings)


def get_qdq_config(
    model_input: ModelInput,
    calibration_data_reader: Any,
    calibrate_method: CalibrationMethod = CalibrationMethod.MinMax,
    calibrate_args: dict[str, Any] | None = None,
    activation_type: QuantType = QuantType.QUInt8,
    weight_type: QuantType = QuantType.QInt8,
    activation_symmetric: bool = False,
    weight_symmetric: bool | None = None,
    per_channel: bool = False,
    reduce_range: bool = False,
    keep_removable_activations: bool = False,
    min_real_range: float | None = None,
    tensor_quant_overrides: dict[str, list[dict[str, Any]]] | None = None,
    calibration_providers: list[str] | None = None,
    op_types_to_quantize: list[str] | None = None,
    nodes_to_exclude: list[str] | Callable[[Any, Any], bool] | None = None,
    extra_options: dict[str, Any] | None = None,
) -> StaticQuantConfig:
    """A configuration that quantises all operators of the model, except Cast, QuantizeLinear and DequantizeLinear."""
    import onnx

    model: Any = model_input
    if not hasattr(model, "SerializeToString"):
        model = onnx.load_model(os.fspath(model), load_external_data=False)
    excluded = set(nodes_to_exclude) if nodes_to_exclude and not callable(nodes_to_exclude) else set()
    ops = set()
    for node in model.graph.node:
        if (op_types_to_quantize and node.op_type not in op_types_to_quantize) or node.name in excluded:
            continue
        if callable(nodes_to_exclude) and nodes_to_exclude(model, node):
            excluded.add(node.name)
        else:
            ops.add(node.op_type)
    extra: dict[str, Any] = {
        "MinimumRealRange": min_real_range,
        "QDQKeepRemovableActivations": keep_removable_activations,
        "ActivationSymmetric": activation_symmetric,
        "WeightSymmetric": weight_symmetric,
        "ForceQuantizeNoInputCheck": True,
        "TensorQuantOverrides": dict(tensor_quant_overrides or {}),
    }
    renamed = {
        "symmetric": "CalibTensorRangeSymmetric",
        "moving_average": "CalibMovingAverage",
        "averaging_constant": "CalibMovingAverageConstant",
        "max_intermediate_outputs": "CalibMaxIntermediateOutputs",
        "percentile": "CalibPercentile",
    }
    extra.update({renamed[name]: value for name, value in (calibrate_args or {}).items() if name in renamed})
    types = [activation_type, weight_type]
    types += [e["quant_type"] for entries in extra["TensorQuantOverrides"].values() for e in entries if "quant_type" in e]
    # 16 bits raise the opset to 21, which has 4 bits too; alone they are com.microsoft's.
    narrow = any(t in (QuantType.QInt4, QuantType.QUInt4) for t in types)
    wide = any(t in (QuantType.QInt16, QuantType.QUInt16) for t in types)
    if narrow and not wide and get_opset_version(model) < 21:
        extra["UseQDQContribOps"] = True
    extra.update(extra_options or {})
    return StaticQuantConfig(
        calibration_data_reader,
        calibrate_method=calibrate_method,
        quant_format=QuantFormat.QDQ,
        activation_type=activation_type,
        weight_type=weight_type,
        op_types_to_quantize=op_types_to_quantize or sorted(ops - {"Cast", "DequantizeLinear", "QuantizeLinear"}),
        nodes_to_exclude=sorted(excluded),
        per_channel=per_channel,
        reduce_range=reduce_range,
        use_external_data_format=needs_external_data(model),
        calibration_providers=calibration_providers,
        extra_options=extra,
    )


def compare_quantized(
    model: ModelInput, quantized: ModelInput, calibration_data_reader: Any, samples: int = 0
) -> dict[str, Any]:
    """How near a quantised model is to the float one on the reader's data, or on its first `samples` batches: its loss, the share of rows
    with the same largest score (top1), and cosine and signal to noise of outputs and layers."""
    with as_file(model) as before, as_file(quantized) as after:
        found: dict[str, Any] = json.loads(_native.compare(before, after, calibration_data_reader, samples))["accuracy"]
        return found


__all__ = [
    "Batches",
    "DynamicQuantConfig",
    "QuantConfig",
    "StaticQuantConfig",
    "check_static_quant_arguments",
    "compare_quantized",
    "convert_to_half",
    "get_qdq_config",
    "quantize",
    "quantize_dynamic",
    "quantize_static",
]
