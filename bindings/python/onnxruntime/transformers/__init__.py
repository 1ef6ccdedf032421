"""Of ONNX Runtime's tools for transformers, what other packages import: types by name and the options of fusions. Sardonyx fuses operators by
itself when a model is opened."""
