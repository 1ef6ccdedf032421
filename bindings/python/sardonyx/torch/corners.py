"""Functions with corners, where each of two slopes would do: PyTorch's choice differs from the operators' own, and by its version."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.onnx import symbolic_helper

from .exporter import number, own, slopes
from .extremes import clamp_by, least


def _clamped(x: torch.Tensor) -> torch.Tensor:
    return torch.clamp(x, -1.0, 1.0)


def measure() -> None:
    """Before an export: within a trace PyTorch would write these down too."""
    slopes(_clamped, -1.0, 1.0)
    slopes(torch.nn.functional.hardswish, -3.0, 3.0)
    slopes(least, 0.0)


def _within(g: Any, x: Any, low: float | None, high: float | None) -> Any:
    """Bounds have no slope. What is not a number stays."""
    y = x
    if high is not None:
        bound = number(g, high, x)
        y = g.op("Where", g.op("GreaterOrEqual", x, bound), bound, y)
    if low is not None:
        bound = number(g, low, x)
        y = g.op("Where", g.op("LessOrEqual", x, bound), bound, y)
    return y


@symbolic_helper.parse_args("v", "f", "f")  # type: ignore[untyped-decorator]
def _hardtanh(g: Any, x: Any, low: float, high: float) -> Any:
    return _within(g, x, low, high)


@symbolic_helper.parse_args("v", "f", "f")  # type: ignore[untyped-decorator]
def _threshold(g: Any, x: Any, threshold: float, value: float) -> Any:
    return g.op("Where", g.op("Greater", x, number(g, threshold, x)), x, number(g, value, x))


@symbolic_helper.parse_args("v", "f", "f", "b", "none")  # type: ignore[untyped-decorator]
def _rrelu(g: Any, x: Any, lower: float, upper: float, training: bool, generator: Any) -> Any:
    """The exporter draws slopes when the module evaluates too."""
    if not training:
        return g.op("LeakyRelu", x, alpha_f=(lower + upper) / 2)
    return g.op("PRelu", x, g.op("RandomUniformLike", x, low_f=lower, high_f=upper))


def _relu6(g: Any, x: Any) -> Any:
    return _within(g, x, 0.0, 6.0)


def _is_number(value: Any) -> bool:
    """Bounds of one element each that the module itself names; tensors of more elements keep their slope in every version."""
    found = symbolic_helper._maybe_get_const(value, "t")
    return isinstance(found, (int, float)) or (isinstance(found, torch.Tensor) and found.dim() == 0)


def _bounded(name: str) -> Callable[..., Any]:
    def write(g: Any, x: Any, *bounds: Any) -> Any:
        low, high = bounds if name == "aten::clamp" else (bounds[0], None) if name == "aten::clamp_min" else (None, bounds[0])
        given = [b for b in (low, high) if b is not None and not symbolic_helper._is_none(b)]
        kept = slopes(_clamped, -1.0, 1.0) == [1.0, 1.0]  # as Clip does
        if not symbolic_helper._is_fp(x) or (kept and all(_is_number(b) for b in given)):
            return own(name)(g, x, *bounds)
        if not all(_is_number(b) for b in given):
            return clamp_by(name, g, x, *bounds)

        def limit(value: Any) -> float | None:
            return None if value is None or symbolic_helper._is_none(value) else float(symbolic_helper._maybe_get_const(value, "t"))

        least, greatest = limit(low), limit(high)
        if least is not None and greatest is not None and least > greatest:
            return own(name)(g, x, *bounds)
        return _within(g, x, least, greatest)

    return write


def _hardswish(g: Any, x: Any) -> Any:
    low, high = slopes(torch.nn.functional.hardswish, -3.0, 3.0)
    if (low, high) == (0.0, 1.0):
        return own("aten::hardswish")(g, x)
    # Between -3 and 3 the function is x * (x + 3) / 6; Clip keeps infinities out of its derivative.
    three = number(g, 3.0, x)
    least = g.op("Neg", three)
    inner = g.op("Clip", x, least, three)
    curve = g.op("Div", g.op("Mul", inner, g.op("Add", inner, three)), number(g, 6.0, x))
    up_to = g.op("Where", g.op("Less" if high == 1.0 else "LessOrEqual", x, three), curve, x)
    return g.op("Where", g.op("LessOrEqual" if low == 0.0 else "Less", x, least), number(g, 0.0, x), up_to)


FUNCTIONS = {
    "aten::hardtanh": _hardtanh,
    "aten::relu6": _relu6,
    "aten::rrelu": _rrelu,
    "aten::threshold": _threshold,
    "aten::hardswish": _hardswish,
    "aten::clamp": _bounded("aten::clamp"),
    "aten::clamp_min": _bounded("aten::clamp_min"),
    "aten::clamp_max": _bounded("aten::clamp_max"),
}
