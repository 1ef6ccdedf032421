"""The engine's own session options. Written by `make docs` from src/session/options/option_table.cc."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import os
    from typing import Literal, Mapping, Sequence


class EngineOptions:
    """Attributes that ONNX Runtime's session options do not have: docs/options.md."""

    # auto, native (our own engine) or ort (ONNX Runtime's library).
    runtime: Literal["auto", "native", "ort"]
    # warn: take the next provider with a warning; strict: fail.
    strict: bool
    # order: the first available provider; measured: the fastest provider for this model, measured once.
    select: Literal["order", "measured"]
    # Measure the cpu provider's kernels for each node and keep the fastest.
    tune: bool
    # Answer on this provider (such as cpu) while slower ones compile.
    start_on: str
    # Time limit for a run or a compilation, after which the next provider takes over, for example 2s; 0: no limit.
    provider_timeout: float
    # Delay before a failed provider is retried; 0: never retry.
    provider_retry: float
    # Treat NaN as a provider failure if the next provider produces none.
    reject_nan: bool
    # Providers that automatic selection tries, in this order, instead of the platform's order.
    provider_priority: Sequence[str]
    # Provider that automatic selection tries first on a kind of machine, for example linux_amd=migraphx.
    platform_defaults: Mapping[str, str]
    # Write a line of JSON for each run to stderr or append it to this file.
    telemetry: str
    # dynamic: matrix products with constant weights are computed in 8 bits, as if the model came from sdx quantize.
    quantize: Literal["none", "dynamic"]
    # Cores to which worker threads are pinned: auto, or a list such as 0,2-3 that begins with the caller's core.
    thread_affinity: str
    # Memory limit for tensors, for example 512MB; 0: no limit.
    memory_limit: int
    # Number of input shape combinations whose memory plans are kept.
    plan_cache_size: int
    # Keep the output of vendors' compilers and use it in later starts.
    cache: bool
    # Store the model as compiled by cpu in the cache, for later starts.
    keep_compiled: bool
    # Folder for compiled models, instead of SDX_CACHE_DIR or ~/.cache/sdx.
    cache_folder: str | os.PathLike[str]
    # Write the optimised model to this file, also usable by other engines.
    optimized_model: str | os.PathLike[str]
    # Passes that write `optimized_model` create only operators of ai.onnx.
    optimized_model_basic: bool
    # Write `optimized_model` in ONNX Runtime's format, whatever the file's extension.
    optimized_model_ort: bool
    # Map the model's files into memory, those of more than 4 MiB, instead of copying them.
    mmap: bool


DEFAULTS: dict[str, Any] = {
    "runtime": "auto",
    "strict": False,
    "select": "order",
    "tune": False,
    "start_on": "",
    "provider_timeout": 0.0,
    "provider_retry": 30.0,
    "reject_nan": False,
    "provider_priority": (),
    "platform_defaults": (),
    "telemetry": "",
    "quantize": "none",
    "thread_affinity": "",
    "memory_limit": 0,
    "plan_cache_size": 8,
    "cache": True,
    "keep_compiled": False,
    "cache_folder": "",
    "optimized_model": "",
    "optimized_model_basic": False,
    "optimized_model_ort": False,
    "mmap": True,
}
