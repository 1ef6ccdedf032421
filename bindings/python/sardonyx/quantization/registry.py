"""Which operators are quantised, by name: the keys. A value says what the operator becomes."""

from __future__ import annotations

from .. import _sardonyx
from .quant_utils import QuantFormat, QuantizationMode

_dynamic, _static = _sardonyx.quantize().operators()

IntegerOpsRegistry = {op: QuantizationMode.IntegerOps for op in _dynamic}
QLinearOpsRegistry = {op: QuantizationMode.QLinearOps for op in _static}
QDQRegistry = {op: QuantFormat.QDQ for op in _static}
CommonOpsRegistry = {op: QuantizationMode.IntegerOps for op in _dynamic if op in _static}

__all__ = ["CommonOpsRegistry", "IntegerOpsRegistry", "QDQRegistry", "QLinearOpsRegistry"]
