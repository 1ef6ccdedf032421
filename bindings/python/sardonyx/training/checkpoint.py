"""What is trained: parameters, the optimizer's state, properties. See `sardonyx.training.api`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Callable, Optional, Union

from .. import _sardonyx

if TYPE_CHECKING:
    import numpy as np

_training = _sardonyx.training()
Path = Union[str, "os.PathLike[str]"]


class Parameter:
    """A parameter of a state, by its name."""

    def __init__(self, name: str, state: CheckpointState) -> None:
        self._name, self._state = name, state

    @property
    def name(self) -> str:
        return self._name

    @property
    def data(self) -> np.ndarray:
        """A copy. Assigning an array of the same type and shape changes the parameter."""
        found: np.ndarray = self._state._state.get(self._name)
        return found

    @data.setter
    def data(self, value: np.ndarray) -> None:
        self._state._state.assign(self._name, value)

    @property
    def grad(self) -> Optional[np.ndarray]:
        """The gradient that a Module has accumulated; None where there is none."""
        return self._state._gradient(self._name) if self._state._gradient is not None else None

    @property
    def requires_grad(self) -> bool:
        found: bool = self._state._state.requires_grad(self._name)
        return found

    def __repr__(self) -> str:
        return f"Parameter(name={self.name}, requires_grad={self.requires_grad})"


class _Named:
    """What parameters and properties have in common: as in ONNX Runtime, iterating gives pairs."""

    _kind = ""

    def __init__(self, state: CheckpointState) -> None:
        self._owner, self._state = state, state._state

    def keys(self) -> list[str]:
        raise NotImplementedError

    def __getitem__(self, name: str) -> Any:
        raise NotImplementedError

    def _check(self, name: str) -> None:
        if name not in self:
            raise KeyError(f"{self._kind} {name} not found.")

    def __contains__(self, name: object) -> bool:
        return name in self.keys()

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        for name in self.keys():
            yield name, self[name]

    def values(self) -> list[Any]:
        return [value for _, value in self]

    def items(self) -> list[tuple[str, Any]]:
        return list(self)

    def __len__(self) -> int:
        return len(self.keys())

    def __repr__(self) -> str:
        return repr(self.keys())


class Parameters(_Named):
    """Parameters by name. `state.parameters["fc.weight"] = array` changes one."""

    _kind = "Parameter"

    def keys(self) -> list[str]:
        return [name for name, _, _, _ in self._state.parameters()]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._state.has(name)

    def __getitem__(self, name: str) -> Parameter:
        self._check(name)
        return Parameter(name, self._owner)

    def __setitem__(self, name: str, value: np.ndarray) -> None:
        self._check(name)
        self._state.assign(name, value)


class Properties(_Named):
    """The user's own values, kept with the checkpoint: int, float (of 32 bits) and str."""

    _kind = "Property"

    def keys(self) -> list[str]:
        found: list[str] = self._state.property_names()
        return found

    def __getitem__(self, name: str) -> Union[int, float, str]:
        self._check(name)
        found: Union[int, float, str] = self._state.get_property(name)
        return found

    def __setitem__(self, name: str, value: Union[int, float, str]) -> None:
        self._state.set_property(name, value)


class CheckpointState:
    """Made by load_checkpoint() or from_bytes(). Whoever trains it changes its parameters in place."""

    def __init__(self, state: Any) -> None:
        if not isinstance(state, _training.CheckpointState):
            raise TypeError(f"a CheckpointState comes from CheckpointState.load_checkpoint(), not from {type(state).__name__}")
        self._state = state
        self._gradient: Optional[Callable[[str], Optional[np.ndarray]]] = None  # a Module's
        self._parameters = Parameters(self)
        self._properties = Properties(self)

    @classmethod
    def load_checkpoint(cls, checkpoint_uri: Path) -> CheckpointState:
        return cls(_training.load(os.fspath(checkpoint_uri)))

    @classmethod
    def save_checkpoint(cls, state: CheckpointState, checkpoint_uri: Path, include_optimizer_state: bool = False) -> None:
        """An earlier file of that name stays whole until the new one is."""
        state._state.save(os.fspath(checkpoint_uri), include_optimizer_state)

    @property
    def parameters(self) -> Parameters:
        return self._parameters

    @property
    def properties(self) -> Properties:
        return self._properties

    # The members below do not exist in ONNX Runtime's class.

    @classmethod
    def from_bytes(cls, data: bytes) -> CheckpointState:
        """From what a checkpoint's file holds."""
        return cls(_training.from_bytes(data))

    def to_bytes(self, include_optimizer_state: bool = False) -> bytes:
        found: bytes = self._state.to_bytes(include_optimizer_state)
        return found

    @property
    def nominal(self) -> bool:
        """Names, types and shapes only."""
        found: bool = self._state.nominal()
        return found

    @property
    def optimizers(self) -> dict[str, dict[str, Any]]:
        """By group: `step`, `initial_learning_rate` and `moments`, copies by parameter and by the moment's name."""
        return {group: {"step": step, "initial_learning_rate": rate, "moments": moments}
                for group, (step, rate, moments) in self._state.optimizers().items()}

    def clone(self) -> CheckpointState:
        return type(self)(self._state.clone())

    def size(self, trainable_only: bool = True) -> int:
        """Elements of all parameters."""
        found: int = self._state.size(trainable_only)
        return found

    def to_buffer(self, trainable_only: bool = True) -> np.ndarray:
        """All parameters' elements, one parameter after the other: float32[size]."""
        found: np.ndarray = self._state.to_buffer(trainable_only)
        return found

    def from_buffer(self, buffer: np.ndarray, trainable_only: bool = True) -> None:
        self._state.from_buffer(buffer, trainable_only)

    def diff(self, base: CheckpointState) -> CheckpointState:
        """This state minus `base`."""
        return type(self)(_training.difference(self._state, base._state))

    def apply(self, delta: CheckpointState, factor: float = 1.0) -> CheckpointState:
        """A new state: this one plus `factor` times `delta`."""
        return type(self)(_training.sum(self._state, delta._state, factor))

    @classmethod
    def average(cls, states: Iterable[CheckpointState], weights: Optional[Sequence[float]] = None) -> CheckpointState:
        """The weighted mean: federated averaging, with the numbers of samples as weights."""
        return cls(_training.average([s._state for s in states], [] if weights is None else list(weights)))
