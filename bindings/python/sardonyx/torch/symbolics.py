"""What torch.onnx writes for inference alone, written so that gradients are right too.

Each function here takes the place of the exporter's own while a module of this package is exported.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import torch
from torch.onnx import symbolic_helper

from .corners import FUNCTIONS as CORNERS
from .corners import measure
from .exporter import OPSET, number, own, registry
from .extremes import FUNCTIONS as EXTREMES

_lock = threading.Lock()  # the exporter's table is one for all threads


def _reduced(g: Any, loss: Any, reduction: Any) -> Any:
    kind = symbolic_helper._maybe_get_const(reduction, "i")
    if kind == 0:
        return loss
    return g.op("ReduceMean" if kind == 1 else "ReduceSum", loss, keepdims_i=0)


def _detach(g: Any, x: Any) -> Any:
    out = g.op("sdx::StopGradient", x)
    out.setType(x.type())
    return out


def _log_sigmoid(g: Any, x: Any) -> Any:
    """The logarithm of the sigmoid is -inf from -104 on."""
    return g.op("Neg", g.op("Softplus", g.op("Neg", x)))


def _binary_cross_entropy_with_logits(g: Any, x: Any, target: Any, weight: Any, pos_weight: Any, reduction: Any) -> Any:
    """As log(sigmoid(x)) and log(1 - sigmoid(x)) it is not finite beyond 17."""
    one = number(g, 1, x)
    present = g.op("Mul", target, g.op("Softplus", g.op("Neg", x)))
    if not symbolic_helper._is_none(pos_weight):
        present = g.op("Mul", present, pos_weight)
    loss = g.op("Add", present, g.op("Mul", g.op("Sub", one, target), g.op("Softplus", x)))
    if not symbolic_helper._is_none(weight):
        loss = g.op("Mul", loss, weight)
    return _reduced(g, loss, reduction)


@symbolic_helper.parse_args("v", "v", "i", "b", "b")  # type: ignore[untyped-decorator]
def _embedding(g: Any, weight: Any, indices: Any, padding_idx: int, scale_grad_by_freq: bool, sparse: bool) -> Any:
    """Rows of the padding have no gradient."""
    if scale_grad_by_freq or sparse:
        raise ValueError("an embedding with scale_grad_by_freq or sparse gradients")
    rows = g.op("Gather", weight, indices)
    if padding_idx < 0:
        return rows
    padding = g.op("Equal", indices, g.op("CastLike", g.op("Constant", value_t=torch.tensor(padding_idx)), indices))
    last = g.op("Constant", value_t=torch.tensor([-1]))
    return g.op("Where", g.op("Unsqueeze", padding, last), g.op("sdx::StopGradient", rows), rows)


def _embedding_bag(g: Any, *arguments: Any) -> Any:
    """The exporter leaves out that padding does not count, and divides by 0 for a bag without words, which only offsets make."""
    none = len(arguments) <= 8 or symbolic_helper._is_none(arguments[8])
    if not none and symbolic_helper._maybe_get_const(arguments[8], "i") != -1:
        raise ValueError("an embedding bag with padding_idx")
    if arguments[2].node().kind() != "onnx::Range":
        raise ValueError("an embedding bag with offsets")
    if symbolic_helper._maybe_get_const(arguments[3], "i") or symbolic_helper._maybe_get_const(arguments[5], "i"):
        raise ValueError("an embedding bag with scale_grad_by_freq or sparse gradients")
    return own("aten::embedding_bag")(g, *arguments)


@symbolic_helper.parse_args("v", "f", "f")  # type: ignore[untyped-decorator]
def _softplus(g: Any, x: Any, beta: float, threshold: float) -> Any:
    """The exporter leaves out the threshold, from which on the function is the identity."""
    scaled = x if beta == 1 else g.op("Mul", x, number(g, beta, x))
    curve = g.op("Softplus", scaled)
    curve = curve if beta == 1 else g.op("Div", curve, number(g, beta, x))
    return g.op("Where", g.op("Greater", scaled, number(g, threshold, x)), x, curve)


def _mse_loss(g: Any, x: Any, target: Any, reduction: Any) -> Any:
    d = g.op("Sub", x, target)
    return _reduced(g, g.op("Mul", d, d), reduction)


def _l1_loss(g: Any, x: Any, target: Any, reduction: Any) -> Any:
    return _reduced(g, g.op("Abs", g.op("Sub", x, target)), reduction)


def _rounded_loss(g: Any, x: Any, target: Any, reduction: Any, bound: Any, huber: bool) -> Any:
    """A square near 0 and a line from `bound` on, of slope 1 or, if `huber`, of slope `bound`."""
    width = float(symbolic_helper._maybe_get_const(bound, "f"))
    if width == 0:
        return _l1_loss(g, x, target, reduction)
    d = g.op("Sub", x, target)
    size = g.op("Abs", d)
    half = g.op("Mul", g.op("Mul", d, d), number(g, 0.5 if huber else 0.5 / width, x))
    line = g.op("Sub", size, number(g, 0.5 * width, x))
    line = g.op("Mul", line, number(g, width, x)) if huber else line
    return _reduced(g, g.op("Where", g.op("Less", size, number(g, width, x)), half, line), reduction)


def _smooth_l1_loss(g: Any, x: Any, target: Any, reduction: Any, beta: Any) -> Any:
    return _rounded_loss(g, x, target, reduction, beta, False)


def _huber_loss(g: Any, x: Any, target: Any, reduction: Any, delta: Any) -> Any:
    return _rounded_loss(g, x, target, reduction, delta, True)


def _slice(g: Any, x: Any, axis: int, start: int, end: int) -> Any:
    constants = [g.op("Constant", value_t=torch.tensor([v])) for v in (start, end, axis)]
    return g.op("Slice", x, *constants)


def _pad(g: Any, x: Any, padding: Any, mode: Any, value: Any) -> Any:
    """Some versions of the exporter wrap around other elements than PyTorch does."""
    if symbolic_helper._parse_arg(mode, "s") != "circular":
        return own("aten::pad")(g, x, padding, mode, value)
    amounts = symbolic_helper._maybe_get_const(padding, "is")
    if not isinstance(amounts, (list, tuple)):
        amounts = [symbolic_helper._get_const(v, "i", "padding") for v in symbolic_helper._unpack_list(padding)]
    rank = symbolic_helper._get_tensor_rank(x)
    if rank is None:
        raise ValueError("circular padding of a tensor of unknown rank")
    end = 2**63 - 1
    for i in range(len(amounts) // 2):
        axis, before, after = rank - 1 - i, amounts[2 * i], amounts[2 * i + 1]
        if before < 0 or after < 0:
            x = _slice(g, x, axis, max(0, -before), min(0, after) or end)
        parts = [x]
        if before > 0:
            parts.insert(0, _slice(g, x, axis, -before, end))
        if after > 0:
            parts.append(_slice(g, x, axis, 0, after))
        if len(parts) > 1:
            x = g.op("Concat", *parts, axis_i=axis)
    return x


_FUNCTIONS = {
    "aten::detach": _detach,
    "aten::log_sigmoid": _log_sigmoid,
    "aten::binary_cross_entropy_with_logits": _binary_cross_entropy_with_logits,
    "aten::embedding": _embedding,
    "aten::embedding_bag": _embedding_bag,
    "aten::pad": _pad,
    "aten::softplus": _softplus,
    "aten::mse_loss": _mse_loss,
    "aten::l1_loss": _l1_loss,
    "aten::smooth_l1_loss": _smooth_l1_loss,
    "aten::huber_loss": _huber_loss,
    **CORNERS,
    **EXTREMES,
}


def _is_users(name: str) -> bool:
    group = registry().get_function_group(name)
    return group is not None and any(group._functions.overridden(v) for v in range(1, OPSET + 1))


@contextlib.contextmanager
def for_training() -> Iterator[None]:
    """Exports inside use the functions of this file, but for operators for which the program has registered its own."""
    measure()
    table = registry()
    with _lock:
        names = [name for name in _FUNCTIONS if not _is_users(name)]
        unknown = [name for name in names if table.get_function_group(name) is None]
        for name in names:
            table.register(name, OPSET, _FUNCTIONS[name], custom=True)
        try:
            yield
        finally:
            for name in names:
                table.unregister(name, OPSET)
            for name in unknown:
                del table._registry[name]
