"""sardonyx.quantization.qnn by its name in ONNX Runtime."""

from sardonyx.quantization.qnn import get_qnn_qdq_config, qnn_preprocess_model  # noqa: F401
