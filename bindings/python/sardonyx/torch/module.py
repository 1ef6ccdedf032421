"""`Module`: a torch.nn.Module whose forward and backward passes Sardonyx computes."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.autograd.function import once_differentiable
from torch.utils.dlpack import from_dlpack, to_dlpack

from .._errors import Error
from ..training.checkpoint import _training
from .export import Exported, named_state
from .structure import Unsupported, flatten, rebuild


def capsule(tensor: torch.Tensor) -> Any:
    tensor = tensor.detach()
    if tensor.dtype is torch.bool:  # DLPack's truths are newer than some of PyTorch's versions
        tensor = tensor.view(torch.uint8)
    return to_dlpack(tensor.contiguous())


def _autocast() -> bool:
    try:
        return bool(torch.is_autocast_enabled("cpu"))
    except TypeError:  # before PyTorch 2.4
        return bool(torch.is_autocast_cpu_enabled())


class _Plan:
    """One exported model: for modes of training, a structure of arguments, and their types."""

    def __init__(self, module: torch.nn.Module, arguments: tuple[Any, ...], tensors: Sequence[torch.Tensor], dynamic: bool) -> None:
        exported = Exported(module, arguments, tensors, dynamic)
        self.results, self.types = exported.results, exported.types
        self.model = _training.autograd_model(exported.model)
        self.random = self.model.random()
        numbers = {name: i for i, name in enumerate(exported.argument_names)}
        state = named_state(module)
        self.sources: list[int | str] = []  # by input: the number of an argument, or the name of a parameter or buffer
        for name in self.model.inputs():
            own = name[len(exported.PREFIX) :]
            if name in numbers:
                self.sources.append(numbers[name])
            elif name.startswith(exported.PREFIX) and own in state:
                self.sources.append(own)
            else:
                raise ValueError(f"the exported model takes '{name}', which is neither an argument nor a parameter")
        self.updates = [self.sources[i] for i in self.model.updates()]
        if len(set(self.updates)) < len(self.updates):
            raise ValueError("a batch normalisation is called more than once")
        self.counters = [
            m
            for m in module.modules()
            if isinstance(m, torch.nn.modules.batchnorm._BatchNorm) and m.training and m.num_batches_tracked is not None
        ]
        self._places: list[Any] = [None] * len(self.sources)  # by input: where the parameter lay when it was handed over

    def inputs(self, tensors: Sequence[torch.Tensor], state: Mapping[str, torch.Tensor]) -> list[torch.Tensor]:
        return [tensors[s] if isinstance(s, int) else state[s] for s in self.sources]

    def run(self, inputs: Sequence[torch.Tensor], wanted: bytes, seed: int) -> tuple[list[torch.Tensor], Any, list[int], list[int]]:
        """The outputs, new statistics behind them; the token or None; what must not change until the backward pass."""
        given: list[Any] = [None] * len(inputs)
        for i, (tensor, source) in enumerate(zip(inputs, self.sources)):
            if isinstance(source, int):
                given[i] = capsule(tensor)
                continue
            place = (tensor.data_ptr(), tensor.shape)
            if self._places[i] != place or not tensor.is_contiguous():
                self.model.fix(i, capsule(tensor))
                self._places[i] = place
        results, token, reads, shown = self.model.forward(given, wanted, seed)
        outputs = [from_dlpack(r) for r in results]
        for i, dtype in enumerate(self.types):
            if dtype is torch.bool:
                outputs[i] = outputs[i].view(torch.bool)
        return outputs, token, reads, shown


class _Function(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, plan: _Plan, wanted: bytes, seed: int, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        outputs, token, reads, shown = plan.run(inputs, wanted, seed)
        ctx.plan = plan
        if token is not None:
            # PyTorch notices when one of these changes before the backward pass, and lets go of all after it.
            kept = [from_dlpack(token), *(inputs[i] for i in reads), *(outputs[i] for i in shown)]
            ctx.save_for_backward(*kept)
        floats = len(plan.types)
        ctx.mark_non_differentiable(*(o for i, o in enumerate(outputs) if i >= floats or not o.is_floating_point()))
        return tuple(outputs)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[Any, ...]:
        plan: _Plan = ctx.plan
        given = [capsule(g) for g, dtype in zip(gradients, plan.types) if dtype.is_floating_point]
        results = plan.model.backward(int(ctx.saved_tensors[0]), given)
        return (None, None, None, *(None if r is None else from_dlpack(r) for r in results))


class Module(torch.nn.Module):
    """`module`, whose parameters, buffers, modes and state_dict() stay its own, with passes that Sardonyx computes.

    The first call with arguments of new types, and the first after a change of mode, exports `module` to ONNX (by a trace) and
    differentiates that. `dynamic`: extents of arguments may change from call to call without another export; where the module
    decides by extents in Python, say False. What cannot be exported or differentiated runs as `module` itself would, after one
    warning that says why: sardonyx_status() says it too.
    """

    _original: torch.nn.Module
    _dynamic: bool
    _plans: dict[Any, _Plan | str]  # by key: a plan, or why there is none
    _warned: set[str]

    def __init__(self, module: torch.nn.Module, *, dynamic: bool = True) -> None:
        if not isinstance(module, torch.nn.Module):
            raise TypeError(f"expected a torch.nn.Module, received {type(module).__qualname__}")
        super().__init__()
        object.__setattr__(self, "_original", module)
        # All that torch.nn.Module does with parameters, buffers and children it does with those of the original.
        for part in ("_parameters", "_buffers", "_modules", "_non_persistent_buffers_set"):
            object.__setattr__(self, part, getattr(module, part))
        object.__setattr__(self, "training", module.training)
        object.__setattr__(self, "_dynamic", dynamic)
        object.__setattr__(self, "_plans", {})
        object.__setattr__(self, "_warned", set())

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        original = self._original
        key: Any = None
        plan: _Plan | str | None
        try:
            key, arguments, tensors = self._key(args, kwargs)
            plan = self._plans.get(key)
            if plan is None:
                plan = self._plans[key] = self._made(arguments, tensors)
        except Unsupported as e:
            plan = str(e)
        if not isinstance(plan, str):
            try:
                return self._run(plan, tensors)
            except Error as e:
                plan = str(e)
                if e.code in ("not_implemented", "invalid_model"):
                    self._plans[key] = plan
        self._warn(plan)
        return original(*args, **kwargs)

    @property
    def module(self) -> torch.nn.Module:
        return self._original

    def sardonyx_status(self) -> dict[str, Any]:
        """`active`: whether some call was computed by Sardonyx; `reasons`: why others were not; `exports`, `programs`: how many
        models and, for shapes of arguments, compiled programs are held."""
        plans = [p for p in self._plans.values() if not isinstance(p, str)]
        return {
            "active": bool(plans),
            "reasons": sorted(self._warned),
            "exports": len(plans),
            "programs": sum(p.model.programs() for p in plans),
        }

    def train(self, mode: bool = True) -> Module:
        self._original.train(mode)
        object.__setattr__(self, "training", mode)
        return self

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(object.__getattribute__(self, "_original"), name)

    def __deepcopy__(self, memo: dict[int, Any]) -> Module:
        return Module(copy.deepcopy(self._original, memo), dynamic=self._dynamic)

    def __reduce__(self) -> tuple[Any, ...]:
        return _open, (self._original, self._dynamic)

    def _apply(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        self._plans.clear()  # types may change
        return super()._apply(fn, *args, **kwargs)

    def _save_to_state_dict(self, *args: Any, **kwargs: Any) -> None:
        self._original._save_to_state_dict(*args, **kwargs)

    def _load_from_state_dict(self, *args: Any, **kwargs: Any) -> None:
        self._original._load_from_state_dict(*args, **kwargs)

    def _key(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, tuple[Any, ...], list[torch.Tensor]]:
        tensors: list[torch.Tensor] = []
        arguments = ("sequence", tuple, (flatten(args, tensors), flatten(kwargs, tensors)))
        for t in tensors:
            if t.device.type != "cpu" or t.layout is not torch.strided:
                raise Unsupported(f"an argument on '{t.device}', {t.layout}: only dense tensors on the CPU are taken")
        if _autocast():
            raise Unsupported("autocast")
        modes = tuple(m.training for m in self._original.modules())
        # Fixed extents belong to the key.
        kinds = tuple((t.dtype, t.dim() if self._dynamic else t.shape, t.requires_grad) for t in tensors)
        key = (modes, arguments, kinds)
        try:
            hash(key)
        except TypeError as e:
            raise Unsupported(f"arguments that have no hash ({e})") from None
        return key, arguments, tensors

    def _made(self, arguments: tuple[Any, ...], tensors: Sequence[torch.Tensor]) -> _Plan | str:
        for name, value in named_state(self._original).items():
            if value.device.type != "cpu":
                return f"'{name}' is on '{value.device}': only the CPU is supported"
        try:
            return _Plan(self._original, arguments, tensors, self._dynamic)
        except Exception as e:  # whatever the exporter throws
            return f"{type(e).__name__}: {str(e).strip() or 'no reason given'}"

    def _run(self, plan: _Plan, tensors: Sequence[torch.Tensor]) -> Any:
        state = named_state(self._original)
        inputs = plan.inputs(tensors, state)
        seed = int(torch.randint(2**62, (1,))) if plan.random else 0
        grad = torch.is_grad_enabled()
        wanted = bytes(grad and t.requires_grad for t in inputs)
        if any(wanted):
            outputs = _Function.apply(plan, wanted, seed, *inputs)
        else:
            outputs = plan.run(inputs, wanted, seed)[0]
        with torch.no_grad():
            for name, value in zip(plan.updates, outputs[len(plan.types) :]):
                state[name].copy_(value)
            for m in plan.counters:
                m.num_batches_tracked += 1
        return rebuild(plan.results, iter(outputs))

    def _warn(self, reason: str) -> None:
        if reason in self._warned:
            return
        self._warned.add(reason)
        name = type(self._original).__qualname__
        warnings.warn(f"Sardonyx does not compute {name}, which runs in PyTorch alone: {reason}", stacklevel=4)


def _open(module: torch.nn.Module, dynamic: bool) -> Module:
    return Module(module, dynamic=dynamic)
