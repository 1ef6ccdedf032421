"""onnxruntime.quantization, answered by sardonyx.quantization."""

from sardonyx.quantization import *  # noqa: F403
from sardonyx.quantization import __all__  # noqa: F401

from .quantize import quantize, quantize_dynamic, quantize_static  # noqa: F401
