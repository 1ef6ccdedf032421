"""What happens in a module's forward pass and a trace does not show: it is shown, or refused."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Optional

import torch
from torch.overrides import TorchFunctionMode

_GRADIENTS_OF_ITS_OWN = (torch.autograd.grad, torch.autograd.backward, torch.Tensor.backward)
_HOOKS = (torch.Tensor.register_hook, getattr(torch.Tensor, "register_post_accumulate_grad_hook", None))


def _detached(value: Any, arguments: tuple[Any, ...]) -> Any:
    """Without what is an argument itself: a function that works in place returns it."""
    if isinstance(value, torch.Tensor):
        return value.detach() if value.is_floating_point() and not any(value is a for a in arguments) else value
    if type(value) in (tuple, list):
        return type(value)(_detached(item, arguments) for item in value)
    return value


class Shown(TorchFunctionMode):  # type: ignore[misc]
    """While it is active, what torch.no_grad() and .data cut off from gradients goes through detach(), which a trace records."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Optional[Mapping[str, Any]] = None
    ) -> Any:
        if func in _GRADIENTS_OF_ITS_OWN:
            raise ValueError("the module computes gradients itself, of which a trace shows only the result")
        if func in _HOOKS:
            raise ValueError("the module registers hooks of tensors, which would not be called")
        if func == torch.Tensor.data.__get__:
            return args[0].detach()
        result = func(*args, **(kwargs or {}))
        return result if torch.is_grad_enabled() else _detached(result, args)


def refuse_own_backward(results: Iterable[torch.Tensor]) -> None:
    """Raises ValueError where a torch.autograd.Function has part in the results: a trace shows its forward pass alone."""
    waiting = [r.grad_fn for r in results if r.grad_fn is not None]
    seen = set(waiting)
    while waiting:
        step = waiting.pop()
        if isinstance(step, torch.autograd.function.BackwardCFunction):
            name = type(step).__name__
            raise ValueError(f"'{name}': a function with a backward pass of its own, which would not be called")
        following = {n for n, _ in step.next_functions if n is not None} - seen
        seen |= following
        waiting.extend(following)


@contextlib.contextmanager
def gradients_of_all(module: torch.nn.Module) -> Iterator[None]:
    """What is frozen now may be trained later: inside, PyTorch follows the gradients of all parameters."""
    frozen = [p for p in module.parameters() if not p.requires_grad and p.is_leaf and p.is_floating_point()]
    try:
        for p in frozen:
            p.requires_grad_(True)
        with torch.inference_mode(False), torch.enable_grad():
            yield
    finally:
        for p in frozen:
            p.requires_grad_(False)


class Buffers:
    """The buffers of a module, which a trace may change: it is no step of training."""

    def __init__(self, module: torch.nn.Module) -> None:
        self._before = [
            (f"{prefix}.{name}" if prefix else name, part, name, buffer, buffer._version, buffer.detach().clone())
            for prefix, part in module.named_modules()
            for name, buffer in part._buffers.items()
            if buffer is not None
        ]
        self._parameters = [(name, p, p._version) for name, p in module.named_parameters()]

    def restore(self) -> None:
        with torch.no_grad():
            for _, part, name, buffer, _, value in self._before:
                part._buffers[name] = buffer
                buffer.copy_(value)

    def refuse_changes(self) -> None:
        """Raises ValueError where the forward pass changes what only PyTorch's own would keep. Before restore()."""
        for where, part, name, buffer, version, _ in self._before:
            known = isinstance(part, torch.nn.modules.batchnorm._BatchNorm) and part.training
            if not known and (part._buffers.get(name) is not buffer or buffer._version != version):
                raise ValueError(f"the forward pass changes the buffer '{where}', which would be lost")
        for where, parameter, version in self._parameters:
            if parameter._version != version:
                raise ValueError(f"the forward pass changes the parameter '{where}', which would be lost")
