"""sardonyx.quantization.matmul_nbits_quantizer by its name in ONNX Runtime."""

from sardonyx.quantization.matmul_nbits_quantizer import *  # noqa: F403
