"""Training: `sardonyx.training.api` has ONNX Runtime 1.19's interface."""
