"""ONNX Runtime's lower layer, as far as other packages reach into it."""
