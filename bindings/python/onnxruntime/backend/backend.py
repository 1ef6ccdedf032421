"""onnxruntime.backend's functions, over sardonyx.backend."""

from __future__ import annotations

from typing import Any

from sardonyx.backend import SardonyxBackend as OnnxRuntimeBackend

from .backend_rep import OnnxRuntimeBackendRep  # noqa: F401

is_compatible = OnnxRuntimeBackend.is_compatible
prepare = OnnxRuntimeBackend.prepare
supports_device = OnnxRuntimeBackend.supports_device
run_model = OnnxRuntimeBackend.run_model
run_node = OnnxRuntimeBackend.run_node


def run(model: Any, inputs: Any, device: str = "CPU", **kwargs: Any) -> tuple[Any, ...]:
    """Prepares the model and runs it once."""
    return prepare(model, device, **kwargs).run(inputs, **kwargs)
