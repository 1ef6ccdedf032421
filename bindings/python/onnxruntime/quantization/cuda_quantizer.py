"""sardonyx.quantization.qdq_quantizer by its name in ONNX Runtime."""

from sardonyx.quantization.qdq_quantizer import *  # noqa: F403
