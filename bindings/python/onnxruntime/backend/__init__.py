"""ONNX's backend interface."""

from .backend import is_compatible, prepare, run, supports_device  # noqa: F401
