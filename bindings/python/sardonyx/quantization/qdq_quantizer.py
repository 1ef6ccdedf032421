"""Quantisers of models in memory, with ranges that are known."""

from __future__ import annotations

from typing import Any, Mapping, Sequence

from .. import _sardonyx
from ._models import as_file, new_file
from ._models import load as load_model
from .calibrate import CalibrationMethod, TensorsData
from .onnx_model import ONNXModel
from .quant_utils import QuantFormat, QuantType
from .quantize import check_static_quant_arguments, options_of

_native = _sardonyx.quantize()


class RangedQuantizer:
    """quantize_model() puts the quantised model into `.model` (an ONNXModel). `tensors_range`: TensorsData, or (lowest, highest) by name."""

    quant_format = QuantFormat.QDQ

    def __init__(
        self,
        model: Any,
        per_channel: bool,
        reduce_range: bool,
        weight_qType: QuantType,  # noqa: N803, the name that callers use
        activation_qType: QuantType,  # noqa: N803
        tensors_range: TensorsData | Mapping[str, tuple[Any, Any]] | None,
        nodes_to_quantize: Sequence[str] | None,
        nodes_to_exclude: Sequence[str] | None,
        op_types_to_quantize: Sequence[str] | None,
        extra_options: dict[str, Any] | None = None,
    ):
        if isinstance(tensors_range, TensorsData) or tensors_range is None:
            self.tensors_range = tensors_range
        else:
            self.tensors_range = TensorsData(CalibrationMethod.MinMax, tensors_range)
        self.model = ONNXModel(model)
        self.per_channel = per_channel
        self.reduce_range = reduce_range
        self.weight_qType = QuantType(weight_qType)  # noqa: N815
        self.activation_qType = QuantType(activation_qType)  # noqa: N815
        self.nodes_to_quantize = nodes_to_quantize
        self.nodes_to_exclude = nodes_to_exclude
        self.op_types_to_quantize = op_types_to_quantize
        self.extra_options = extra_options or {}

    def _options(self) -> dict[str, Any]:
        options = options_of(
            self.weight_qType,
            self.op_types_to_quantize,
            self.nodes_to_quantize,
            self.nodes_to_exclude,
            self.per_channel,
            self.reduce_range,
            False,
            self.extra_options,
        )
        options.setdefault("preprocess", False)  # the ranges belong to the values as they are
        return options

    def quantize_model(self) -> Any:
        check_static_quant_arguments(self.quant_format, self.activation_qType, self.weight_qType)
        options = {
            **self._options(),
            "quant_format": str(self.quant_format),
            "activation_type": str(self.activation_qType),
        }
        if self.tensors_range is not None:
            options["calibrate_method"] = self.tensors_range.calibration_method.name
        with as_file(self.model.model) as model, new_file() as output:
            ranges = {} if self.tensors_range is None else self.tensors_range.ranges()
            _native.with_ranges(model, output, ranges, options)
            self.model = ONNXModel(load_model(output))
        return self.model.model


class QDQQuantizer(RangedQuantizer):
    pass


class CudaQuantizer(QDQQuantizer):
    """What ONNX Runtime's CUDA provider reads is the same model."""


__all__ = ["CudaQuantizer", "ONNXModel", "QDQQuantizer", "RangedQuantizer"]
