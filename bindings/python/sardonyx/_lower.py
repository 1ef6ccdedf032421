"""What onnxruntime.capi.onnxruntime_pybind11_state calls InferenceSession: the lower layer of ONNX Runtime's classes."""

from __future__ import annotations

from ._session import LowerSession

InferenceSession = LowerSession
