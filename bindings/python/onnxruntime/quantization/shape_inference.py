"""sardonyx.quantization.shape_inference by its name in ONNX Runtime."""

from sardonyx.quantization.shape_inference import *  # noqa: F403
