"""sardonyx.quantization.onnx_model by its name in ONNX Runtime."""

from sardonyx.quantization.onnx_model import *  # noqa: F403
