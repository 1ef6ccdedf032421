"""The fusions of sardonyx.quantization by their names in ONNX Runtime."""

from sardonyx.quantization.fusions import Fusion, FusionGelu, FusionLayerNormalization  # noqa: F401
