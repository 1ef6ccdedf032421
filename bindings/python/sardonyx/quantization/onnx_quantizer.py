"""The quantiser of integer operators: with ranges that are known, or none."""

from __future__ import annotations

from typing import Any, Sequence

from .. import _sardonyx
from ._models import as_file, new_file
from ._models import load as load_model
from .onnx_model import ONNXModel
from .qdq_quantizer import RangedQuantizer
from .quant_utils import QuantFormat, QuantizationMode, QuantType

_native = _sardonyx.quantize()


class ONNXQuantizer(RangedQuantizer):
    quant_format = QuantFormat.QOperator

    def __init__(
        self,
        model: Any,
        per_channel: bool,
        reduce_range: bool,
        mode: QuantizationMode,
        static: bool,
        weight_qType: QuantType,  # noqa: N803, the name that callers use
        activation_qType: QuantType,  # noqa: N803
        tensors_range: Any,
        nodes_to_quantize: Sequence[str] | None,
        nodes_to_exclude: Sequence[str] | None,
        op_types_to_quantize: Sequence[str] | None,
        extra_options: dict[str, Any] | None = None,
    ):
        super().__init__(
            model,
            per_channel,
            reduce_range,
            weight_qType,
            activation_qType,
            tensors_range,
            nodes_to_quantize,
            nodes_to_exclude,
            op_types_to_quantize,
            extra_options,
        )
        self.mode = mode
        self.static = static

    def quantize_model(self) -> Any:
        if self.static:
            return super().quantize_model()
        with as_file(self.model.model) as model, new_file() as output:
            _native.dynamic(model, output, self._options(), None)
            self.model = ONNXModel(load_model(output))
        return self.model.model
