"""Operations that are one step of the engine."""

from __future__ import annotations

from typing import Any

from ._core import core as _core

globals().update({k: v for k, v in vars(_core._fast).items() if not k.startswith("_")})


def _no_gpu(*args: Any, **kwargs: Any) -> Any:
    raise RuntimeError("kernels of one's own need a GPU, which this machine's arrays are not on")


metal_kernel = cuda_kernel = precompiled_cuda_kernel = _no_gpu
