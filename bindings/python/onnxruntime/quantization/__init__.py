"""onnxruntime.quantization, answered by sardonyx.quantization."""

import sardonyx.quantization as _answering
from sardonyx._later import later
from sardonyx.quantization import __all__ as __all__

_own, __dir__ = later(
    __name__,
    {"quantize": "quantize quantize_dynamic quantize_static"},
    "calibrate cuda_quantizer execution_providers fusions matmul_bnb4_quantizer matmul_nbits_quantizer onnx_model onnx_quantizer preprocess "
    "qdq_loss_debug qdq_quantizer quant_utils registry shape_inference static_quantize_runner tensor_quant_overrides",
)


def __getattr__(name):
    try:
        return _own(name)
    except AttributeError:
        if name not in __all__:
            raise
    value = globals()[name] = getattr(_answering, name)
    return value
