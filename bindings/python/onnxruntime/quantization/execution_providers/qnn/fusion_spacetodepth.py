"""FusionSpaceToDepth by its name in ONNX Runtime."""

from sardonyx.quantization.fusions import FusionSpaceToDepth  # noqa: F401
