"""A torch.nn.Module as an ONNX model whose parameters and buffers are inputs."""

from __future__ import annotations

import inspect
import io
import warnings
from collections.abc import Sequence
from typing import Any

import torch

from .exporter import OPSET
from .structure import flatten, rebuild
from .symbolics import for_training
from .trace import Buffers, Shown, gradients_of_all, refuse_own_backward


class _Flat(torch.nn.Module):
    """Tensors in, a tuple of tensors out, whatever the module takes and gives."""

    def __init__(self, module: torch.nn.Module, arguments: tuple[Any, ...]) -> None:
        super().__init__()
        self.module = module
        self._arguments = arguments
        self.results: tuple[Any, ...] = ()
        self.types: list[torch.dtype] = []

    def forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        args, kwargs = rebuild(self._arguments, iter(tensors))
        out: list[torch.Tensor] = []
        with Shown():
            result = self.module(*args, **kwargs)
        self.results = flatten(result, out)
        refuse_own_backward(out)
        self.types = [t.dtype for t in out]
        return tuple(out)


def named_state(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Parameters and buffers by each of their names."""
    state = {}
    for prefix, part in module.named_modules(remove_duplicate=False):
        for name, value in [*part._parameters.items(), *part._buffers.items()]:
            if value is not None:
                state[f"{prefix}.{name}" if prefix else name] = value
    return state


def refuse_what_a_trace_hides(module: torch.nn.Module) -> None:
    """Raises ValueError for what a trace would show wrongly."""
    for name, part in module.named_modules():
        where = f"'{name}' " if name else "the module "
        if part._forward_hooks or part._forward_pre_hooks or part._backward_hooks:
            raise ValueError(where + "has hooks, which would not be called")
        if isinstance(part, torch.nn.modules.batchnorm._BatchNorm) and part.training and part.momentum is None:
            raise ValueError(where + "averages its statistics over all batches (momentum is None)")


def export(
    flat: torch.nn.Module, tensors: Sequence[torch.Tensor], names: list[str], dynamic: bool, parameters: bool = False
) -> bytes:
    """`flat`: a module of tensors alone, in the modes that it has; `parameters`: as initializers, else as inputs."""
    refuse_what_a_trace_hides(flat)
    axes = {}
    if dynamic:
        axes = {n: {a: f"{n}_{a}" for a in range(t.dim())} for n, t in zip(names, tensors)}
    # Tensors of their own: the trace adds nothing to the graph of the caller's.
    examples = tuple(t.detach().clone().requires_grad_(t.requires_grad) for t in tensors)
    modes = [(m, m.training) for m in flat.modules()]
    # Unless the outermost module is in training mode, the exporter joins parameters and buffers of equal
    # values into one.
    flat.training = True
    buffers = Buffers(flat)
    file = io.BytesIO()
    options = {
        "input_names": names,
        "opset_version": OPSET,
        "export_params": parameters,
        "do_constant_folding": False,
        "keep_initializers_as_inputs": not parameters,
        "dynamic_axes": axes,
        "training": torch.onnx.TrainingMode.PRESERVE,
    }
    taken = inspect.signature(torch.onnx.export).parameters
    if "dynamo" in taken:
        options["dynamo"] = False  # which keeps modes of training and names of parameters
    if "autograd_inlining" in taken:
        options["autograd_inlining"] = False  # functions with a backward pass of their own are refused
    try:
        with torch.random.fork_rng(devices=[]), warnings.catch_warnings(), gradients_of_all(flat), for_training():
            warnings.simplefilter("ignore")
            torch.onnx.export(flat, examples, file, **options)
        buffers.refuse_changes()
    finally:  # the trace is not a step of training
        for m, training in modes:
            m.training = training
        buffers.restore()
    return file.getvalue()


class Exported:
    """`model`: bytes. `results`, `types`: the structure of what the module gives, and the types of its tensors."""

    PREFIX = "module."  # of names of parameters and buffers

    def __init__(self, module: torch.nn.Module, arguments: tuple[Any, ...], tensors: Sequence[torch.Tensor], dynamic: bool) -> None:
        flat = _Flat(module, arguments)
        flat.training = module.training
        self.argument_names = [f"argument_{i}" for i in range(len(tensors))]
        self.model = export(flat, tensors, self.argument_names, dynamic)
        self.results, self.types = flat.results, flat.types
