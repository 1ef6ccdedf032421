"""sardonyx.quantization.quant_utils by its name in ONNX Runtime."""

from sardonyx.quantization.quant_utils import *  # noqa: F403
