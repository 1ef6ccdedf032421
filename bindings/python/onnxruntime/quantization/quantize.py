"""sardonyx.quantization.quantize by its name in ONNX Runtime, with that tool's choice of operators where none are given."""

import copy
import functools
import inspect

from sardonyx.quantization.quantize import *  # noqa: F403
from sardonyx.quantization.quantize import DynamicQuantConfig, QuantConfig, __all__  # noqa: F401
from sardonyx.quantization.quantize import quantize as _quantize
from sardonyx.quantization.quantize import quantize_dynamic as _quantize_dynamic
from sardonyx.quantization.quantize import quantize_static as _quantize_static

from .registry import IntegerOpsRegistry, QDQRegistry, QLinearOpsRegistry

_DYNAMIC = sorted(IntegerOpsRegistry)
_STATIC = sorted(QLinearOpsRegistry.keys() | QDQRegistry.keys())


def _dynamic(ops):
    # There, Gemm becomes MatMul and Add first.
    ops = list(ops or _DYNAMIC)
    return [*ops, "Gemm"] if "MatMul" in ops else ops


def _static(ops):
    return list(ops or _STATIC)


def _choosing(function, chosen):
    signature = inspect.signature(function)

    @functools.wraps(function)
    def call(*args, **kwargs):
        bound = signature.bind(*args, **kwargs)
        bound.arguments["op_types_to_quantize"] = chosen(bound.arguments.get("op_types_to_quantize"))
        return function(*bound.args, **bound.kwargs)

    return call


quantize_static = _choosing(_quantize_static, _static)
quantize_dynamic = _choosing(_quantize_dynamic, _dynamic)


@functools.wraps(_quantize)
def quantize(model_input, model_output, quant_config):
    if isinstance(quant_config, QuantConfig):
        chosen = _dynamic if isinstance(quant_config, DynamicQuantConfig) else _static
        quant_config = copy.copy(quant_config)
        quant_config.op_types_to_quantize = chosen(quant_config.op_types_to_quantize)
    return _quantize(model_input, model_output, quant_config)
