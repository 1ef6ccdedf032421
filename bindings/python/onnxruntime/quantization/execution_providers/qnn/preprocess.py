"""qnn_preprocess_model by its name in ONNX Runtime."""

from sardonyx.quantization.qnn_preprocess import qnn_preprocess_model  # noqa: F401
