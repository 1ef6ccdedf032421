"""The exporter's table of functions, which write operators of PyTorch as nodes of ONNX."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

OPSET = 17


def registry() -> Any:
    try:
        from torch.onnx._internal.torchscript_exporter import registration
    except ImportError:  # before PyTorch 2.9
        from torch.onnx._internal import registration
    return registration.registry


def own(name: str) -> Callable[..., Any]:
    """The exporter's own function."""
    functions = registry().get_function_group(name)._functions._base
    found: Callable[..., Any] = functions[max(v for v in functions if v <= OPSET)]
    return found


def number(g: Any, value: float, like: Any) -> Any:
    return g.op("CastLike", g.op("Constant", value_t=torch.tensor(value, dtype=torch.float64)), like)


@functools.lru_cache(maxsize=None)
def slopes(function: Callable[[torch.Tensor], torch.Tensor], *places: float) -> list[float]:
    """What the installed PyTorch takes for the slope there. Of many elements: the last few, which fill no vector, can have another one."""
    with torch.inference_mode(False), torch.enable_grad():
        x = torch.tensor([[p] * 64 for p in places], dtype=torch.float32, device="cpu", requires_grad=True)
        return [float(row[0]) for row in torch.autograd.grad(function(x).sum(), x)[0]]
