"""Norms, deviations and greatest elements: at zero, and where several elements are the greatest, PyTorch has slopes of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.onnx import symbolic_helper

from .exporter import number, own, slopes


def _ints(value: Any) -> list[int] | None:
    """A list of axes, or None for all."""
    if value is None or symbolic_helper._is_none(value):
        return None
    found = symbolic_helper._maybe_get_const(value, "is")
    if isinstance(found, int):
        return [found]
    if not isinstance(found, (list, tuple)):
        found = [symbolic_helper._get_const(v, "i", "dim") for v in symbolic_helper._unpack_list(value)]
    return list(found) or None


def _flag(value: Any) -> int:
    return int(symbolic_helper._maybe_get_const(value, "i")) if value is not None else 0


def _root(g: Any, x: Any, power: float | None = None) -> Any:
    """Without a slope at 0, where it would be infinite, and the product with what is behind it not a number."""
    zero = g.op("Equal", x, number(g, 0.0, x))
    safe = g.op("Where", zero, number(g, 1.0, x), x)
    root = g.op("Sqrt", safe) if power is None else g.op("Pow", safe, number(g, power, x))
    return g.op("Where", zero, number(g, 0.0, x), root)


def _vector_norm(g: Any, x: Any, order: float, axes: list[int] | None, keep: int) -> Any:
    options: dict[str, Any] = {"keepdims_i": keep}
    if axes is not None:
        options["axes_i"] = axes
    if order in (1.0, 2.0):
        return g.op("ReduceL1" if order == 1.0 else "ReduceL2", x, **options)
    size = g.op("Abs", x)
    if order in (float("inf"), float("-inf")):
        return g.op("ReduceMax" if order > 0 else "ReduceMin", size, **options)
    power = g.op("Pow", size, number(g, order, x))
    over = [] if axes is None else [g.op("Constant", value_t=torch.tensor(axes))]
    total = g.op("ReduceSum", power, *over, keepdims_i=keep)
    return _root(g, total, 1.0 / order)


def _is_plain(x: Any, dtype: Any) -> bool:
    return bool(symbolic_helper._is_fp(x)) and (dtype is None or bool(symbolic_helper._is_none(dtype)))


def _order(value: Any) -> float | None:
    """2 where none is given; None where it is no positive number."""
    if value is None or symbolic_helper._is_none(value):
        return 2.0
    found = symbolic_helper._maybe_get_const(value, "t")
    if isinstance(found, torch.Tensor) and found.dim() == 0:
        found = found.item()
    return float(found) if isinstance(found, (int, float)) and (found >= 1 or found == float("-inf")) else None


def _of_vectors(name: str) -> Callable[..., Any]:
    def write(g: Any, x: Any, order: Any, *rest: Any) -> Any:
        dim, keepdim, dtype = (*rest, None, None, None)[:3]
        p = _order(order)
        if p is None or not _is_plain(x, dtype):
            return own(name)(g, x, order, *rest)
        return _vector_norm(g, x, p, _ints(dim), _flag(keepdim))

    return write


def _linalg_norm(g: Any, x: Any, order: Any, dim: Any, keepdim: Any, dtype: Any) -> Any:
    axes, p = _ints(dim), _order(order)
    rank = len(axes) if axes is not None else symbolic_helper._get_tensor_rank(x)
    vectors = symbolic_helper._is_none(order) or rank == 1
    if p is None or not vectors or not _is_plain(x, dtype):
        return own("aten::linalg_norm")(g, x, order, dim, keepdim, dtype)
    return _vector_norm(g, x, p, axes, _flag(keepdim))


def _frobenius_norm(g: Any, x: Any, dim: Any = None, keepdim: Any = None) -> Any:
    return _vector_norm(g, x, 2.0, _ints(dim), _flag(keepdim))


def _std(g: Any, x: Any, *arguments: Any) -> Any:
    return _root(g, own("aten::std")(g, x, *arguments).node().inputsAt(0))


def _std_mean(g: Any, x: Any, *arguments: Any) -> Any:
    deviation, mean = own("aten::std_mean")(g, x, *arguments)
    return _root(g, deviation.node().inputsAt(0)), mean


def _of_rows(name: str, choice: str) -> Callable[..., Any]:
    """Of equal elements one has the gradient: that whose index PyTorch gives."""

    def write(g: Any, x: Any, dim: Any = None, keepdim: Any = None) -> Any:
        if dim is None or keepdim is None or not symbolic_helper._is_fp(x):
            return own(name)(g, x, dim, keepdim)
        axis, keep = int(symbolic_helper._get_const(dim, "i", "dim")), _flag(keepdim)
        if symbolic_helper._get_tensor_rank(x) == 0:
            return own(name)(g, x, dim, keepdim)
        index = g.op(choice, x, axis_i=axis, keepdims_i=1)
        value = g.op("GatherElements", x, index, axis_i=axis)
        if keep:
            return value, index
        axes = g.op("Constant", value_t=torch.tensor([axis]))
        return g.op("Squeeze", value, axes), g.op("Squeeze", index, axes)

    return write


def _adaptive_max_pool(d: int) -> Callable[..., Any]:
    name = f"aten::adaptive_max_pool{d}d"

    def write(g: Any, x: Any, size: Any) -> Any:
        rank = symbolic_helper._get_tensor_rank(x)
        if _ints(size) != [1] * d or rank is None:
            return own(name)(g, x, size)
        kept = rank - d  # axes that are not pooled
        flat = g.op("Reshape", x, g.op("Constant", value_t=torch.tensor([0] * kept + [-1])))
        value = g.op("GatherElements", flat, g.op("ArgMax", flat, axis_i=kept, keepdims_i=1), axis_i=kept)
        rest = list(range(kept + 1, rank))
        return g.op("Unsqueeze", value, g.op("Constant", value_t=torch.tensor(rest))) if rest else value, None

    return write


def _distance(g: Any, difference: Any, p: Any, keep: int) -> Any:
    order = _order(p)
    if order is None or order in (float("inf"), float("-inf")):
        raise ValueError("a distance whose order is no number from 1 on")
    return _vector_norm(g, difference, order, [-1], keep)


def _pairwise_distance(g: Any, x: Any, y: Any, p: Any, eps: Any, keepdim: Any) -> Any:
    small = float(symbolic_helper._maybe_get_const(eps, "f"))
    return _distance(g, g.op("Add", g.op("Sub", x, y), number(g, small, x)), p, _flag(keepdim))


def _cdist(g: Any, x: Any, y: Any, p: Any, mode: Any = None) -> Any:
    def with_axis(value: Any, axis: int) -> Any:
        return g.op("Unsqueeze", value, g.op("Constant", value_t=torch.tensor([axis])))

    return _distance(g, g.op("Sub", with_axis(x, -2), with_axis(y, -3)), p, 0)


@symbolic_helper.parse_args("v", "v", "i", "f")  # type: ignore[untyped-decorator]
def _cosine_similarity(g: Any, x: Any, y: Any, axis: int, eps: float) -> Any:
    def unit(value: Any) -> Any:
        norm, small = _vector_norm(g, value, 2.0, [axis], 1), number(g, eps, value)
        return g.op("Div", value, g.op("Where", g.op("Greater", norm, small), norm, small))

    return g.op("ReduceSum", g.op("Mul", unit(x), unit(y)), g.op("Constant", value_t=torch.tensor([axis])), keepdims_i=0)


def least(x: torch.Tensor) -> torch.Tensor:
    return torch.clamp_min(x, torch.zeros_like(x))


def clamp_by(name: str, g: Any, x: Any, *bounds: Any) -> Any:
    """By tensors: where an element and its bound are equal, older versions give the gradient to the element alone."""
    if slopes(least, 0.0) != [1.0]:
        return own(name)(g, x, *bounds)
    choices = ("LessOrEqual",) if name == "aten::clamp_max" else ("GreaterOrEqual", "LessOrEqual")
    for choice, bound in zip(choices, bounds):
        if not symbolic_helper._is_none(bound):
            x = g.op("Where", g.op(choice, x, bound), x, g.op("CastLike", bound, x))
    return x


def _atan2(g: Any, *arguments: Any) -> Any:
    raise ValueError("atan2, which the exporter writes without the axes")


FUNCTIONS = {
    "aten::linalg_vector_norm": _of_vectors("aten::linalg_vector_norm"),
    "aten::linalg_norm": _linalg_norm,
    "aten::norm": _of_vectors("aten::norm"),
    "aten::frobenius_norm": _frobenius_norm,
    "aten::std": _std,
    "aten::std_mean": _std_mean,
    "aten::max": _of_rows("aten::max", "ArgMax"),
    "aten::min": _of_rows("aten::min", "ArgMin"),
    **{f"aten::adaptive_max_pool{d}d": _adaptive_max_pool(d) for d in (1, 2, 3)},
    "aten::pairwise_distance": _pairwise_distance,
    "aten::cdist": _cdist,
    "aten::cosine_similarity": _cosine_similarity,
    "aten::atan2": _atan2,
}
