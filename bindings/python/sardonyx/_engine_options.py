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
    # order: the first that can be used; measured: the fastest on this model, remembered.
    select: Literal["order", "measured"]
    # Measure the cpu provider's kernels for each node, and remember the fastest.
    tune: bool
    # Answer on this provider (cpu) while slower ones compile.
    start_on: str
    # Longest run, or compilation, before the next provider takes over, for example 2s; 0: it is waited for.
    provider_timeout: float
    # How long a provider that failed is left alone before it is tried again; 0: for good.
    provider_retry: float
    # Take NaN that only a provider other than cpu makes for its failure.
    reject_nan: bool
    # What automatic selection tries, in place of the platform's own order.
    provider_priority: Sequence[str]
    # What automatic selection tries first on a kind of machine, for example linux_amd=migraphx.
    platform_defaults: Mapping[str, str]
    # A line of JSON for each run: stderr, or a file to append to.
    telemetry: str
    # Cores that worker threads stay on: auto, or a list such as 0,2-3, the caller's first.
    thread_affinity: str
    # Most memory for tensors, for example 512MB; 0: no limit.
    memory_limit: int
    # How many signatures of input shapes keep their memory plan.
    plan_cache_size: int
    # Keep what vendors' compilers make, and use what is kept.
    cache: bool
    # Write what cpu made of the model into the cache, for later starts.
    keep_compiled: bool
    # Where compiled models are kept, in place of SDX_CACHE_DIR or ~/.cache/sdx.
    cache_folder: str | os.PathLike[str]
    # File that the optimised model is written to, for other engines too.
    optimized_model: str | os.PathLike[str]
    # Only operators of ai.onnx are made in it.
    optimized_model_basic: bool
    # It is in ONNX Runtime's own format, whatever its name ends in.
    optimized_model_ort: bool


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
    "thread_affinity": "",
    "memory_limit": 0,
    "plan_cache_size": 8,
    "cache": True,
    "keep_compiled": False,
    "cache_folder": "",
    "optimized_model": "",
    "optimized_model_basic": False,
    "optimized_model_ort": False,
}
