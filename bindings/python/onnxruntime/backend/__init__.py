"""ONNX's backend interface."""

from sardonyx._later import later

__all__ = ["is_compatible", "prepare", "run", "supports_device"]
__getattr__, __dir__ = later(__name__, {"backend": " ".join(__all__)}, "backend backend_rep")
