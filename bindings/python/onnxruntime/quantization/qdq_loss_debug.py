"""sardonyx.quantization.qdq_loss_debug by its name in ONNX Runtime."""

from sardonyx.quantization.qdq_loss_debug import *  # noqa: F403
