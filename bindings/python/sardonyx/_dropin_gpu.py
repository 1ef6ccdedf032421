"""SDX_DROPIN_GPU=vulkan: programs written for ONNX Runtime that ask for one of its providers for GPUs get Sardonyx's own (docs/drop-in.md)."""

from __future__ import annotations

import os
from typing import Any, Mapping, Sequence

from . import _providers
from ._errors import InvalidArgument

SERVED = ("CUDAExecutionProvider", "DmlExecutionProvider", "WebGpuExecutionProvider")
BY = "VulkanExecutionProvider"


def _is_asked_for() -> bool:
    gpu = os.environ.get("SDX_DROPIN_GPU", "")
    if gpu not in ("", "vulkan"):
        raise InvalidArgument(f"SDX_DROPIN_GPU must be vulkan, received '{gpu}'")
    return gpu != ""


def served(providers: Any, provider_options: Sequence[Mapping[str, Any]] | None) -> tuple[Any, Any]:
    """Both with Sardonyx's provider in place of those that it serves, once. Of their options only the device counts; number 0 stands for
    the default device."""
    if not isinstance(providers, Sequence) or isinstance(providers, str) or not _is_asked_for():
        return providers, provider_options
    if provider_options is not None and len(provider_options) != len(providers):
        return providers, provider_options  # an error, which others report
    kept: list[Any] = []
    options: list[Mapping[str, Any]] = []
    for i, item in enumerate(providers):
        name = item if isinstance(item, str) else item[0] if isinstance(item, (tuple, list)) and item else None
        own: Mapping[str, Any] = provider_options[i] if provider_options is not None else {}
        if name in SERVED:
            given = {**own, **(item[1] if not isinstance(item, str) and len(item) == 2 else {})}
            device = str(given.get("device_id", 0))
            own = {} if device == "0" else {"device_id": device}
            if any(isinstance(k, tuple) and k[0] == BY for k in kept):
                continue
            item, own = (BY, own), {}
        kept.append(item)
        options.append(own)
    return kept, options if provider_options is not None else None


def get_available_providers() -> list[str]:
    """ONNX Runtime's names of the providers that work on this machine, and of those that another one serves."""
    available = _providers.get_available_providers()
    if not _is_asked_for() or BY not in available:
        return available
    return [name for name in SERVED if name not in available] + available
