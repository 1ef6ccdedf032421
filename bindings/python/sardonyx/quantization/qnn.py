"""Settings for models that Qualcomm's QNN provider runs."""

from __future__ import annotations

import copy
import logging
import os
from typing import Any, Sequence

import numpy as np

from ._models import ModelInput
from .calibrate import CalibrationMethod
from .mixed_types import MixedPrecisionTensorQuantOverridesFixer
from .qnn_preprocess import qnn_preprocess_model
from .quant_utils import QuantType, get_opset_version, needs_external_data
from .quantize import StaticQuantConfig
from .tensor_quant_overrides import TensorQuantOverridesHelper

_log = logging.getLogger(__name__)

_BYTES = {QuantType.QInt8, QuantType.QUInt8}
_WORDS = {QuantType.QInt16, QuantType.QUInt16}
_FROM_21 = _WORDS | {QuantType.QInt4, QuantType.QUInt4}  # types that QuantizeLinear of ai.onnx has from opset 21 on
_NEVER = {"Cast", "DequantizeLinear", "QuantizeLinear"}
# QNN computes these in 16 bits with one scale and zero point alone, by operator and type.
_FIXED = {
    ("Sigmoid", QuantType.QUInt16): (1 / 65536, np.array(0, np.uint16)),
    ("Sigmoid", QuantType.QInt16): (1 / 32768, np.array(0, np.int16)),
    ("Tanh", QuantType.QUInt16): (1 / 32768, np.array(32768, np.uint16)),
    ("Tanh", QuantType.QInt16): (1 / 32768, np.array(0, np.int16)),
}


class _Requirements:
    """Adds what QNN requires of single operators to the overrides."""

    def __init__(
        self, overrides: TensorQuantOverridesHelper, constants: set[str], activation: QuantType, weight: dict[str, Any], per_channel: bool
    ):
        self.overrides = overrides
        self.constants = constants
        self.activation = activation
        self.weight = weight  # the general setting
        self.per_channel = per_channel

    def add(self, node: Any) -> None:
        if node.op_type in ("Sigmoid", "Tanh"):
            self._fix_scale(node)
        elif node.op_type == "MatMul" and self.per_channel:
            # It has products with one scale for all of the weights alone.
            for name in node.input:
                if name in self.constants and name not in self.overrides:
                    self.overrides[name] = [dict(self.weight)]
        elif node.op_type in ("MatMul", "LayerNormalization") and not self.per_channel:
            self._narrow_weights(node)

    def _fix_scale(self, node: Any) -> None:
        kind = self.overrides.get_node_output_qtype_info(node.output[0], self.activation).quant_type
        if (fixed := _FIXED.get((node.op_type, kind))) is None:  # type: ignore[arg-type]
            return
        scale, zero = fixed
        values = {"quant_type": kind, "scale": np.array(scale, np.float32), "zero_point": zero}
        self.overrides.update_tensor_overrides(node.output[0], values)

    def _narrow_weights(self, node: Any) -> None:
        """Constants beside activations of 16 bits have the type of weights, not that of activations."""
        if self.weight["quant_type"] not in _BYTES:
            return
        constant, wide = None, False
        for name in filter(None, node.input[:2]):
            info = self.overrides.get_node_input_qtype_info(name, node.name, None if name in self.constants else self.activation)
            if info.axis is not None:
                return
            if name in self.constants:
                constant = name
            else:
                wide = wide or info.quant_type in _WORDS
        if constant is not None and wide and not self.overrides.update_tensor_overrides(constant, dict(self.weight), overwrite=False):
            _log.warning("the weights '%s' of %s '%s' keep the type of their override; QNN may refuse the model", constant, node.op_type, node.name)


def get_qnn_qdq_config(
    model_input: ModelInput,
    calibration_data_reader: Any,
    calibrate_method: CalibrationMethod = CalibrationMethod.MinMax,
    activation_type: QuantType = QuantType.QUInt8,
    weight_type: QuantType = QuantType.QUInt8,
    per_channel: bool = False,
    init_overrides: dict[str, list[dict[str, Any]]] | None = None,
    add_qtype_converts: bool = True,
    activation_symmetric: bool = False,
    weight_symmetric: bool | None = None,
    keep_removable_activations: bool = False,
    stride: int | None = None,
    calibration_providers: list[str] | None = None,
    op_types_to_quantize: Sequence[str] | None = None,
    nodes_to_exclude: Sequence[str] | None = None,
) -> StaticQuantConfig:
    """A configuration for quantize() that quantises all operators of the model as QNN wants them. init_overrides are
    TensorQuantOverrides, which are not changed; with add_qtype_converts, an override of one tensor's type reaches the operators beside it
    (see MixedPrecisionTensorQuantOverridesFixer)."""
    import onnx

    model: Any = model_input
    if not hasattr(model, "SerializeToString"):
        model = onnx.load_model(os.fspath(model), load_external_data=False)
    if weight_symmetric is None:
        weight_symmetric = weight_type in (QuantType.QInt8, QuantType.QInt16)
    overrides = TensorQuantOverridesHelper(copy.deepcopy(init_overrides))
    if add_qtype_converts and not overrides.empty():
        fixer = MixedPrecisionTensorQuantOverridesFixer.create_from_model(overrides, model, activation_type)
        fixer.apply(activation_type, activation_symmetric)
    constants = {tensor.name for tensor in model.graph.initializer}
    weight = {"quant_type": weight_type, "symmetric": weight_symmetric}
    requirements = _Requirements(overrides, constants, activation_type, weight, per_channel)
    ops = set()
    for node in model.graph.node:
        if (not op_types_to_quantize or node.op_type in op_types_to_quantize) and node.name not in (nodes_to_exclude or ()):
            ops.add(node.op_type)
            requirements.add(node)
    extra: dict[str, Any] = {
        "MinimumRealRange": 0.0001,
        "DedicatedQDQPair": False,
        "QDQKeepRemovableActivations": keep_removable_activations,
        "TensorQuantOverrides": overrides.get_dict(),
        "ActivationSymmetric": activation_symmetric,
        "WeightSymmetric": weight_symmetric,
        "CalibStridedMinMax": stride,
    }
    if get_opset_version(model) < 21 and _FROM_21 & {activation_type, weight_type, *overrides.get_quant_types()}:
        extra["UseQDQContribOps"] = True
    return StaticQuantConfig(
        calibration_data_reader,
        calibrate_method=calibrate_method,
        activation_type=activation_type,
        weight_type=weight_type,
        op_types_to_quantize=list(op_types_to_quantize or sorted(ops - _NEVER)),
        nodes_to_exclude=nodes_to_exclude,
        per_channel=per_channel,
        use_external_data_format=needs_external_data(model),
        calibration_providers=calibration_providers,
        extra_options=extra,
    )


__all__ = ["get_qnn_qdq_config", "qnn_preprocess_model"]
