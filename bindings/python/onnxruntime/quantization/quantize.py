"""sardonyx.quantization.quantize by its name in ONNX Runtime."""

from sardonyx.quantization.quantize import *  # noqa: F403
