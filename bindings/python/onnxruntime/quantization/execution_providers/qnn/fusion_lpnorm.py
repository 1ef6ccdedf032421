"""FusionLpNormalization by its name in ONNX Runtime."""

from sardonyx.quantization.fusions import FusionLpNormalization  # noqa: F401
