"""ONNX Runtime's tools, which this package does not have. Their names can be imported; using them raises NotImplementedError."""

from __future__ import annotations

from .. import _absent

__getattr__ = _absent.attributes("tools", "infer_input_info")
