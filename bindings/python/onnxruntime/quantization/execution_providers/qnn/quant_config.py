"""get_qnn_qdq_config by its name in ONNX Runtime."""

from sardonyx.quantization.qnn import get_qnn_qdq_config  # noqa: F401
