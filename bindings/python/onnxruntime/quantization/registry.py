"""sardonyx.quantization.registry by its name in ONNX Runtime."""

from sardonyx.quantization.registry import *  # noqa: F403
