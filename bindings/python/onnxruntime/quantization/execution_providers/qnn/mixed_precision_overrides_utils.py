"""MixedPrecisionTensorQuantOverridesFixer by its name in ONNX Runtime."""

from sardonyx.quantization.mixed_types import MixedPrecisionTensorQuantOverridesFixer  # noqa: F401
