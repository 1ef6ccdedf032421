"""OrtValue and IOBinding: values by handle, and inputs and outputs that are bound once and run many times."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence

import numpy as np

from . import _types
from ._errors import InvalidArgument

if TYPE_CHECKING:
    from ._session import InferenceSession


class OrtValue:
    """A value that a model takes or gives: an array, a list (sequence), a dict (map) or None. All values are in the CPU's memory."""

    def __init__(self, value: Any) -> None:
        self._value = value

    @classmethod
    def ortvalue_from_numpy(cls, array: np.ndarray, device_type: str = "cpu", device_id: int = 0) -> OrtValue:
        """Holds the array itself, not a copy."""
        _check_device(device_type)
        return cls(np.asarray(array))

    @classmethod
    def ortvalue_from_numpy_with_onnx_type(cls, data: np.ndarray, onnx_element_type: int) -> OrtValue:
        """The bits of an array as another type of the same width, by ONNX's number (uint16 as bfloat16, …)."""
        return cls(np.asarray(data).view(_types.numpy_type(onnx_element_type)))

    @classmethod
    def ortvalue_from_shape_and_type(
        cls, shape: Sequence[int], element_type: Any, device_type: str = "cpu", device_id: int = 0
    ) -> OrtValue:
        """An array of zeros, to bind as an output."""
        _check_device(device_type)
        return cls(np.zeros(tuple(shape), _types.numpy_type(element_type)))

    def numpy(self) -> Any:
        """The value itself: changing it changes the OrtValue."""
        return self._value

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        array = self._tensor()
        return np.array(array, dtype=dtype) if copy or dtype not in (None, array.dtype) else array

    def update_inplace(self, array: np.ndarray) -> None:
        held = self._tensor()
        if held.shape != array.shape or held.dtype != array.dtype:
            raise InvalidArgument(f"expected {held.dtype} of shape {held.shape}, received {array.dtype} of shape {array.shape}")
        np.copyto(held, array)

    def shape(self) -> list[int]:
        return list(self._tensor().shape)

    def data_type(self) -> str:
        if self._value is None:
            return ""
        if isinstance(self._value, list):
            return f"seq({OrtValue(self._value[0]).data_type() if self._value else ''})"
        if isinstance(self._value, dict):
            key = next(iter(self._value), "")
            return f"map({'string' if isinstance(key, str) else 'int64'},tensor(float))"
        return _types.ort_type(_types.engine_name(self._value))

    def element_type(self) -> int:
        """ONNX's number of the elements' type."""
        return _types.onnx_number(self._tensor())

    def tensor_size_in_bytes(self) -> int:
        return self._tensor().nbytes

    def data_ptr(self) -> int:
        return self._tensor().ctypes.data

    def device_name(self) -> str:
        return "cpu"

    def has_value(self) -> bool:
        return self._value is not None

    def is_tensor(self) -> bool:
        return isinstance(self._value, np.ndarray)

    def is_sparse_tensor(self) -> bool:
        return False

    def is_tensor_sequence(self) -> bool:
        return isinstance(self._value, list) and not any(isinstance(v, (dict, list)) for v in self._value)

    def _tensor(self) -> np.ndarray:
        if not isinstance(self._value, np.ndarray):
            raise InvalidArgument(f"this value is no tensor but {self.data_type() or 'nothing'}")
        return self._value


def _check_device(device_type: str) -> None:
    if device_type.lower() != "cpu":
        raise InvalidArgument(f"values live in the CPU's memory; device '{device_type}' is not available")


class IOBinding:
    """Inputs and outputs of a session, bound by name."""

    def __init__(self, session: InferenceSession) -> None:
        self._session = session
        self._inputs: dict[str, OrtValue] = {}
        self._outputs: dict[str, OrtValue | None] = {}
        self._results: list[OrtValue] = []

    def bind_cpu_input(self, name: str, arr_on_cpu: np.ndarray) -> None:
        self.bind_ortvalue_input(name, OrtValue(np.asarray(arr_on_cpu)))

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        self._check(name, [i.name for i in self._session.get_inputs()], "input")
        self._inputs[name] = ortvalue

    def bind_input(
        self, name: str, device_type: str, device_id: int, element_type: Any, shape: Sequence[int], buffer_ptr: int
    ) -> None:
        """An input in memory that the caller keeps alive."""
        _check_device(device_type)
        self.bind_ortvalue_input(name, OrtValue(_array_at(buffer_ptr, element_type, shape)))

    def bind_output(
        self,
        name: str,
        device_type: str = "cpu",
        device_id: int = 0,
        element_type: Any = None,
        shape: Sequence[int] | None = None,
        buffer_ptr: int | None = None,
    ) -> None:
        """An output: allocated by the run, or copied to memory that the caller keeps alive."""
        _check_device(device_type)
        if buffer_ptr is None:
            self.bind_ortvalue_output(name, None)
        elif element_type is None or shape is None:
            raise InvalidArgument(f"output '{name}': memory needs its element type and shape")
        else:
            self.bind_ortvalue_output(name, OrtValue(_array_at(buffer_ptr, element_type, shape)))

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue | None) -> None:
        self._check(name, [o.name for o in self._session.get_outputs()], "output")
        self._outputs[name] = ortvalue

    def clear_binding_inputs(self) -> None:
        self._inputs.clear()

    def clear_binding_outputs(self) -> None:
        self._outputs.clear()
        self._results = []

    def synchronize_inputs(self) -> None:
        pass

    def synchronize_outputs(self) -> None:
        pass

    def get_outputs(self) -> list[OrtValue]:
        """Of the last run, in the order in which they were bound."""
        return list(self._results)

    def copy_outputs_to_cpu(self) -> list[Any]:
        return [v.numpy() for v in self._results]

    def _check(self, name: str, names: list[str], what: str) -> None:
        if name not in names:
            raise InvalidArgument(f"the model has no {what} '{name}'; it has: {', '.join(names)}")

    def _run(self, run_options: Any) -> None:
        names = list(self._outputs) or [o.name for o in self._session.get_outputs()]
        values = self._session.run(names, {n: v.numpy() for n, v in self._inputs.items()}, run_options)
        results = []
        for name, value in zip(names, values):
            bound = self._outputs.get(name)
            if bound is None:
                bound = OrtValue(value)
            else:
                bound.update_inplace(value)
            results.append(bound)
        self._results = results


def _array_at(address: int, element_type: Any, shape: Sequence[int]) -> np.ndarray:
    import ctypes

    dtype = _types.numpy_type(element_type)
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    return np.frombuffer((ctypes.c_ubyte * size).from_address(address), dtype=np.uint8).view(dtype).reshape(tuple(shape))
