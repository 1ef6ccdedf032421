"""sardonyx.quantization.tensor_quant_overrides by its name in ONNX Runtime."""

from sardonyx.quantization.tensor_quant_overrides import *  # noqa: F403
