"""`Trainer`: forward pass, backward pass and update of a torch.nn.Module as one compiled step."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Mapping
from typing import Any, Callable, Optional, Union

import torch

from .._errors import InvalidArgument
from ..training.api import CheckpointState
from ..training.api import Trainer as _Steps
from ..training.checkpoint import _training
from .export import export, named_state
from .module import capsule
from .structure import flatten, rebuild
from .trace import Shown, refuse_own_backward

# The defaults of PyTorch's optimisers.
_DEFAULTS = {
    "adamw": {"epsilon": 1e-8, "weight_decay": 0.01, "adam_mode": 0},
    "adam": {"epsilon": 1e-8},
    "rmsprop": {"epsilon": 1e-8},
    "adagrad": {"epsilon": 1e-10},
}
_NAMES = {  # by class: the kind, and where its settings go; what is not listed must be as it is by default
    torch.optim.AdamW: ("adamw", {"eps": "epsilon", "weight_decay": "weight_decay"}),
    torch.optim.Adam: ("adam", {"eps": "epsilon", "weight_decay": "weight_decay"}),
    torch.optim.SGD: ("sgd", {n: n for n in ("momentum", "dampening", "nesterov", "weight_decay")}),
    torch.optim.RMSprop: ("rmsprop", {"eps": "epsilon", "alpha": "alpha", "momentum": "momentum", "weight_decay": "weight_decay"}),
    torch.optim.Adagrad: (
        "adagrad",
        {"eps": "epsilon", "weight_decay": "weight_decay", "initial_accumulator_value": "initial_accumulator"},
    ),
}
_REFUSED = ("amsgrad", "maximize", "centered", "lr_decay")


def optimizer_settings(optimizer: Any) -> tuple[dict[str, Any], Union[float, None]]:
    """The settings that the compiled step takes, and the learning rate where `optimizer` has one. A name means PyTorch's
    defaults, a dict with `kind` changes some of them, and an optimiser of torch.optim is taken as it is."""
    if isinstance(optimizer, str):
        optimizer = {"kind": optimizer}
    if isinstance(optimizer, Mapping):
        kind = optimizer.get("kind", "adamw")
        return {"kind": kind, **_DEFAULTS.get(kind, {}), **optimizer}, None
    if type(optimizer) not in _NAMES:
        known = ", ".join(c.__name__ for c in _NAMES)
        raise InvalidArgument(f"{type(optimizer).__qualname__} is not an optimiser that can be compiled: {known}, or a name")
    if len(optimizer.param_groups) != 1:
        raise InvalidArgument("an optimiser with several groups of parameters cannot be compiled")
    if any(float(of.get("step", 1)) > 0 for of in optimizer.state.values()):
        raise InvalidArgument("the optimiser has taken steps already: what it remembers would be lost")
    kind, names = _NAMES[type(optimizer)]
    group = optimizer.param_groups[0]
    for name in _REFUSED:
        if group.get(name):
            raise InvalidArgument(f"{type(optimizer).__name__} with {name} cannot be compiled")
    settings = {"kind": kind, **{ours: group[theirs] for theirs, ours in names.items()}}
    if "betas" in group:
        settings["beta1"], settings["beta2"] = group["betas"]
    if kind == "adamw":
        settings["adam_mode"] = 0
    return settings, group["lr"]


class _WithLoss(torch.nn.Module):
    """Tensors in; the loss, then what the module gave."""

    def __init__(self, model: torch.nn.Module, loss: Optional[Callable[..., Any]], arguments: tuple[Any, ...]) -> None:
        super().__init__()
        self.model = model
        self.loss = loss if isinstance(loss, torch.nn.Module) else None
        self._compute = loss
        self._arguments = arguments
        self.results: tuple[Any, ...] = ()

    def forward(self, *tensors: torch.Tensor) -> tuple[Any, ...]:
        inputs, targets = rebuild(self._arguments, iter(tensors))
        with Shown():
            result = self.model(**inputs) if isinstance(inputs, dict) else self.model(*inputs)
            loss = result if self._compute is None else self._compute(result, *targets)
        refuse_own_backward([loss])
        out: list[torch.Tensor] = []
        self.results = flatten(None if self._compute is None else result, out)
        return (loss, *out)


def _as_arguments(given: Any) -> Union[tuple[Any, ...], dict[str, Any]]:
    return given if isinstance(given, (tuple, dict)) else tuple(given) if isinstance(given, list) else (given,)


class Trainer:
    """Trains `model`, whose parameters and buffers are changed where they lie, step by step.

    loss: a function or module of what the model gives and the targets, with one number as its result; None: the model gives the
    loss itself. optimizer: "adamw", "adam", "sgd", "rmsprop", "adagrad", "lion", with PyTorch's defaults; a dict with `kind` and
    settings; or an optimiser of torch.optim that has taken no step. Further options: those of sardonyx.training.api.Trainer
    (learning_rate, schedule, warmup, total, accumulate, clip_norm, threads, seed, …). dynamic: as for Module.

    The first step exports the model, in the modes that it has then, and compiles; it raises what Module warns of. Parameters must
    be float32, on the CPU. Only those that require gradients then are trained.
    """

    def __init__(
        self,
        model: torch.nn.Module,
        loss: Optional[Callable[..., Any]] = None,
        optimizer: Any = "adamw",
        *,
        dynamic: bool = True,
        **options: Any,
    ) -> None:
        if not isinstance(model, torch.nn.Module):
            raise TypeError(f"expected a torch.nn.Module, received {type(model).__qualname__}")
        self.model = model
        self._loss = loss
        settings, rate = optimizer_settings(optimizer)
        for name in ("clip_norm",):
            if name in options:
                settings[name] = options.pop(name)
        if rate is not None:
            options.setdefault("learning_rate", rate)
        self._settings, self._options = settings, options
        self._dynamic = dynamic
        self._steps: Optional[_Steps] = None

    def train_step(self, inputs: Any, targets: Any = ()) -> float:
        """One batch: the loss before the update. inputs: the model's arguments, a tensor, a tuple or a dict; targets: what the
        loss takes besides."""
        description, tensors = self._taken(inputs, targets)
        steps = self._steps
        if steps is None:
            steps = self._start(description, tensors)
        elif description != self._description:
            raise InvalidArgument("the arguments have another structure than in the first step")
        loss = steps.train_step(self._arrays(tensors))
        for m in self._counters:
            m.num_batches_tracked += 1
        return loss

    def last_outputs(self) -> Any:
        """What the model gave in the last step."""
        if self._steps is None:
            raise InvalidArgument("there has been no step yet")
        return rebuild(self._results, iter([torch.from_numpy(o) for o in self._steps.last_outputs()[1:]]))

    def save_checkpoint(self, path: Union[str, os.PathLike[str]]) -> None:
        """Parameters and the optimiser's state, for sardonyx.training.api or load_checkpoint()."""
        self._started().save_checkpoint(path)

    @property
    def steps(self) -> int:
        """Updates made so far."""
        return 0 if self._steps is None else self._steps.steps

    @property
    def learning_rate(self) -> float:
        found: float = self._options.get("learning_rate", 0.001) if self._steps is None else self._steps.learning_rate
        return found

    @learning_rate.setter
    def learning_rate(self, rate: float) -> None:
        if self._steps is None:
            self._options["learning_rate"] = rate
        else:
            self._steps.learning_rate = rate

    def _started(self) -> _Steps:
        if self._steps is None:
            raise InvalidArgument("there has been no step yet")
        return self._steps

    @staticmethod
    def _taken(inputs: Any, targets: Any) -> tuple[tuple[Any, ...], list[torch.Tensor]]:
        tensors: list[torch.Tensor] = []
        return flatten((_as_arguments(inputs), _as_arguments(targets)), tensors), tensors

    def _arrays(self, tensors: list[torch.Tensor]) -> list[Any]:
        return [tensors[i].detach().contiguous().numpy() for i in self._order]

    def _start(self, description: tuple[Any, ...], tensors: list[torch.Tensor]) -> _Steps:
        flat = _WithLoss(self.model, self._loss, description)
        flat.training = self.model.training
        state = named_state(flat)
        for name, value in state.items():
            if value.device.type != "cpu":
                raise InvalidArgument(f"'{name}' is on '{value.device}': only the CPU is supported")
            if isinstance(value, torch.nn.Parameter) and value.requires_grad and value.dtype is not torch.float32:
                raise InvalidArgument(f"'{name}' is {value.dtype}: trained parameters must be float32")
        norms = [m for m in self.model.modules() if isinstance(m, torch.nn.modules.batchnorm._BatchNorm)]
        if len({m.training for m in norms}) > 1:
            raise InvalidArgument("some batch normalisations train and others do not")
        names = [f"argument_{i}" for i in range(len(tensors))]
        model = export(flat, tensors, names, self._dynamic, parameters=True)
        folder = tempfile.mkdtemp(prefix="sardonyx_torch_")  # of the artifacts
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        initializers, outputs = _training.names_in(model)
        held = set(initializers)
        trained = [n for n, v in state.items() if n in held and isinstance(v, torch.nn.Parameter) and v.requires_grad]
        options = {
            "loss": "none",
            "requires_grad": trained,
            "frozen": [n for n in state if n in held and n not in trained],
            "optimizer": None,
            "train_batch_norm": any(m.training for m in norms),
            "additional_outputs": outputs[1:],
            "shares_parameters": True,  # the export has joined nothing
        }
        _training.generate_artifacts(model, folder, options)
        self.state = CheckpointState.load_checkpoint(os.path.join(folder, "checkpoint"))
        for name, value in state.items():
            if name in held:
                _training.adopt(self.state._state, name, capsule(self._dense(value)))
        self._description, self._results = description, flat.results
        self._counters = [m for m in norms if m.training and m.num_batches_tracked is not None]
        steps = _Steps(folder, self.state, self._settings, **self._options)
        self._order = [names.index(n) for n in steps.input_names()]
        self._steps = steps
        return steps

    @staticmethod
    def _dense(value: torch.Tensor) -> torch.Tensor:
        if not value.is_contiguous():
            value.data = value.data.contiguous()
        return value
