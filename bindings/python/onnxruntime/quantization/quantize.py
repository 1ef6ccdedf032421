"""sardonyx.quantization.quantize by its name in ONNX Runtime, with that tool's choice of operators where none are given."""

import copy
import functools
import inspect

from sardonyx.quantization.quantize import *  # noqa: F403
from sardonyx.quantization.quantize import DynamicQuantConfig, __all__  # noqa: F401
from sardonyx.quantization.quantize import quantize as _quantize
from sardonyx.quantization.quantize import quantize_dynamic as _quantize_dynamic
from sardonyx.quantization.quantize import quantize_static as _quantize_static

from .registry import IntegerOpsRegistry, QDQRegistry, QLinearOpsRegistry

_DYNAMIC = sorted(IntegerOpsRegistry)
_STATIC = sorted(QLinearOpsRegistry.keys() | QDQRegistry.keys())


def _choosing(function, ops):
    signature = inspect.signature(function)

    @functools.wraps(function)
    def call(*args, **kwargs):
        bound = signature.bind(*args, **kwargs)
        if not bound.arguments.get("op_types_to_quantize"):
            bound.arguments["op_types_to_quantize"] = list(ops)
        return function(*bound.args, **bound.kwargs)

    return call


quantize_static = _choosing(_quantize_static, _STATIC)
quantize_dynamic = _choosing(_quantize_dynamic, _DYNAMIC)


@functools.wraps(_quantize)
def quantize(model_input, model_output, quant_config):
    if not getattr(quant_config, "op_types_to_quantize", True):
        quant_config = copy.copy(quant_config)
        quant_config.op_types_to_quantize = list(_DYNAMIC if isinstance(quant_config, DynamicQuantConfig) else _STATIC)
    return _quantize(model_input, model_output, quant_config)
