"""sardonyx.quantization.onnx_quantizer by its name in ONNX Runtime."""

from sardonyx.quantization.onnx_quantizer import *  # noqa: F403
