"""Module, Optimizer, LinearLRScheduler and Trainer. See `sardonyx.training.api`."""

from __future__ import annotations

import os
import weakref
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Optional, Union

from .._errors import InvalidArgument
from .._values import OrtValue
from .checkpoint import CheckpointState, Path, _training

if TYPE_CHECKING:
    import numpy as np

    from .._options import SessionOptions


def _path(path: Optional[Path]) -> Optional[str]:
    return None if path is None else os.fspath(path)


def _show_gradients(state: CheckpointState, module: Module) -> None:
    """The state's parameters have the module's gradients, as long as there is the module."""
    of = weakref.ref(module)

    def gradient(name: str) -> Optional[np.ndarray]:
        now = of()
        return None if now is None else now._module.gradient(name)

    state._gradient = gradient


class Module:
    """A training model and its eval model over the parameters of one state.

    train_model_uri, eval_model_uri: paths of artifacts. state: is changed in place. device: "cpu". session_options: of these
    intra_op_num_threads takes effect. Beyond ONNX Runtime's: seed of random operators, 0: the clock's; bfloat16: products and
    convolutions in bfloat16, parameters in float32.
    """

    training: bool

    def __init__(
        self,
        train_model_uri: Path,
        state: CheckpointState,
        eval_model_uri: Optional[Path] = None,
        device: str = "cpu",
        session_options: Optional[SessionOptions] = None,
        *,
        seed: int = 0,
        bfloat16: bool = False,
    ) -> None:
        if device.split(":")[0] != "cpu":
            raise InvalidArgument(f"training runs on the device 'cpu', received '{device}'")
        threads = 0 if session_options is None else session_options.intra_op_num_threads
        self.training = True
        self._state = state
        self._module = _training.make_module(_path(train_model_uri), state._state, _path(eval_model_uri), threads, seed, bfloat16)
        _show_gradients(state, self)

    def __call__(self, *user_inputs: Any) -> Any:
        """One step of training or evaluation, whichever is set. Arrays give arrays, OrtValues give OrtValues: one, or a tuple."""
        handles = bool(user_inputs) and all(isinstance(i, OrtValue) for i in user_inputs)
        inputs = [i.numpy() if isinstance(i, OrtValue) else i for i in user_inputs]
        results = self._module.train_step(inputs) if self.training else self._module.eval_step(inputs)
        if handles:
            results = [OrtValue(r) for r in results]
        return results[0] if len(results) == 1 else tuple(results)

    def train(self, mode: bool = True) -> Module:
        self.training = mode
        return self

    def eval(self) -> Module:
        return self.train(False)

    def lazy_reset_grad(self) -> None:
        """The next step of training overwrites the gradients instead of adding to them."""
        self._module.lazy_reset_grad()

    def get_parameters_size(self, trainable_only: bool = True) -> int:
        return self._state.size(trainable_only)

    def get_contiguous_parameters(self, trainable_only: bool = False) -> OrtValue:
        """A copy of all parameters, one after the other: float32[size]."""
        return OrtValue(self._state.to_buffer(trainable_only))

    def copy_buffer_to_parameters(self, buffer: Union[OrtValue, np.ndarray], trainable_only: bool = True) -> None:
        self._state.from_buffer(buffer.numpy() if isinstance(buffer, OrtValue) else buffer, trainable_only)

    def export_model_for_inferencing(self, inference_model_uri: Path, graph_output_names: Sequence[str]) -> None:
        """Of the eval model what these outputs need, with the parameters inside."""
        self._module.export(os.fspath(inference_model_uri), list(graph_output_names))

    def input_names(self) -> list[str]:
        found: list[str] = self._module.input_names(not self.training)
        return found

    def output_names(self) -> list[str]:
        found: list[str] = self._module.output_names(not self.training)
        return found


class Optimizer:
    """Applies a module's gradients, as an optimizer model says."""

    def __init__(self, optimizer_uri: Path, module: Module) -> None:
        self._optimizer = _training.make_optimizer(os.fspath(optimizer_uri), module._module)

    def step(self) -> None:
        self._optimizer.step()

    def set_learning_rate(self, learning_rate: float) -> None:
        self._optimizer.set_learning_rate(learning_rate)

    def get_learning_rate(self) -> float:
        found: float = self._optimizer.learning_rate()
        return found


class LinearLRScheduler:
    """From 0 to initial_lr in warmup_step_count steps, then down to 0 at total_step_count. (ONNX Runtime 1.19.2 exchanges the two.)"""

    def __init__(self, optimizer: Optimizer, warmup_step_count: int, total_step_count: int, initial_lr: float) -> None:
        self._scheduler = _training.make_scheduler(optimizer._optimizer, warmup_step_count, total_step_count, initial_lr)

    def step(self) -> None:
        self._scheduler.step()


_SETTINGS = {"learning_rate": 0.001, "schedule": "constant", "warmup": 0, "total": 0, "end": 0.0, "accumulate": 1,
             "refuse_non_finite": True, "threads": 0, "seed": 0, "bfloat16": False}
_OPTIMIZER = ("beta1", "beta2", "epsilon", "weight_decay", "adam_mode", "correct_bias", "momentum", "dampening", "nesterov", "alpha",
              "initial_accumulator", "clip_norm")


def _optimizer_settings(optimizer: Union[None, str, Path, Mapping[str, Any]], options: dict[str, Any]) -> Any:
    """None: from the artifacts; a path; or the settings of one, among which are those in `options`."""
    given = {name: options.pop(name) for name in _OPTIMIZER if name in options}
    if isinstance(optimizer, Mapping):
        unknown = set(optimizer) - {"kind", *_OPTIMIZER}
        if unknown:
            raise TypeError(f"an optimizer has no {sorted(unknown)}; it has kind, {', '.join(_OPTIMIZER)}")
        return {**optimizer, **given}
    if isinstance(optimizer, str) and not optimizer.endswith(".onnx"):
        return {"kind": optimizer, **given}
    if given:
        raise TypeError(f"{', '.join(given)}: name the optimizer whose settings these are, such as optimizer='adamw'")
    return _path(optimizer)


class Trainer:
    """Forward, backward and update in one program.

    training_model: the folder of the artifacts, or the training model in it. checkpoint: a state, which is changed in place, or a
    checkpoint's path. optimizer: None: the optimizer model beside the training model, else AdamW; an optimizer model's path; or
    "adamw", "adam", "sgd", "rmsprop", "adagrad", "lion", with settings by keyword (beta1, beta2, epsilon, weight_decay, momentum, …,
    clip_norm). Further options: learning_rate, schedule ("constant", "linear", "cosine") with warmup, total and end, accumulate,
    refuse_non_finite, threads, seed, bfloat16.
    """

    def __init__(
        self,
        training_model: Path,
        checkpoint: Union[CheckpointState, Path],
        optimizer: Union[None, str, Path, Mapping[str, Any]] = None,
        **options: Any,
    ) -> None:
        self.state = checkpoint if isinstance(checkpoint, CheckpointState) else CheckpointState.load_checkpoint(checkpoint)
        chosen = _optimizer_settings(optimizer, options)
        unknown = set(options) - set(_SETTINGS)
        if unknown:
            raise TypeError(f"Trainer has no option {sorted(unknown)}; it has {', '.join(_SETTINGS)}")
        self._trainer = _training.make_trainer(os.fspath(training_model), self.state._state, chosen, {**_SETTINGS, **options})

    def _inputs(self, batch: Union[Mapping[str, Any], Sequence[Any]]) -> list[Any]:
        if isinstance(batch, Mapping):
            names = self.input_names()
            if set(batch) != set(names):
                raise InvalidArgument(f"the model's inputs are {names}, received {list(batch)}")
            batch = [batch[name] for name in names]
        return [i.numpy() if isinstance(i, OrtValue) else i for i in batch]

    def train_step(self, batch: Union[Mapping[str, Any], Sequence[Any]]) -> float:
        """The loss before the update. batch: arrays in the order of input_names(), or a dict by name."""
        found: float = self._trainer.train_step(self._inputs(batch))
        return found

    def eval_step(self, batch: Union[Mapping[str, Any], Sequence[Any]]) -> Any:
        """The eval model's output, or a tuple of them."""
        results = self._trainer.eval_step(self._inputs(batch))
        return results[0] if len(results) == 1 else tuple(results)

    def last_outputs(self) -> list[np.ndarray]:
        """All outputs of the last step of training, the loss first."""
        found: list[np.ndarray] = self._trainer.last_outputs()
        return found

    def save_checkpoint(self, path: Path) -> None:
        """With the optimizer's state: a trainer made from it goes on with the same losses."""
        self._trainer.save_checkpoint(os.fspath(path))

    def export_model_for_inferencing(self, path: Path, outputs: Sequence[str]) -> None:
        self._trainer.export(os.fspath(path), list(outputs))

    def input_names(self) -> list[str]:
        found: list[str] = self._trainer.input_names()
        return found

    def output_names(self) -> list[str]:
        found: list[str] = self._trainer.output_names()
        return found

    @property
    def steps(self) -> int:
        """Updates made so far."""
        found: int = self._trainer.steps()
        return found

    @property
    def learning_rate(self) -> float:
        """Of the next update. What is assigned holds from now on, instead of the schedule."""
        found: float = self._trainer.learning_rate()
        return found

    @learning_rate.setter
    def learning_rate(self, rate: float) -> None:
        self._trainer.set_learning_rate(rate)
