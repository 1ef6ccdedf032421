"""sardonyx.quantization.calibrate by its name in ONNX Runtime."""

from sardonyx.quantization.calibrate import *  # noqa: F403
