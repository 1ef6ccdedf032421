"""OrtValue, OrtValueVector and IOBinding: values by handle, and inputs and outputs that are bound once and run many times."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np

from ._errors import InvalidArgument
from ._types import engine_name, numpy_type, onnx_number, ort_type

if TYPE_CHECKING:
    from typing import Protocol

    from ._sparse import SparseTensor

    class Session(Protocol):
        """Of an InferenceSession what bindings need."""

        def get_inputs(self) -> Sequence[Any]: ...

        def get_outputs(self) -> Sequence[Any]: ...

        def _run_into(self, names: Any, feed: Mapping[str, Any], run_options: Any, bound: Any, /) -> list[Any]: ...


class OrtValue:
    """A value that a model takes or gives: an array, a list (sequence), a dict (map), a sparse tensor or None. All values are in the CPU's
    memory."""

    _value: Any

    def __init__(self, value: Any, numpy_obj: Any = None) -> None:
        self._value = value._value if isinstance(value, OrtValue) else value
        self._keep = numpy_obj  # whose memory it is

    @classmethod
    def ortvalue_from_numpy(cls, array: np.ndarray, device_type: Any = "cpu", device_id: int = 0, vendor_id: int = -1) -> OrtValue:
        """Holds the array itself, not a copy."""
        check_device(device_type)
        return cls(np.asarray(array))

    @classmethod
    def ortvalue_from_numpy_with_onnx_type(cls, data: np.ndarray, onnx_element_type: int) -> OrtValue:
        """The bits of an array as another type of the same width, by ONNX's number (uint16 as bfloat16, …)."""
        dtype = numpy_type(onnx_element_type)
        array = np.asarray(data)
        if dtype.itemsize != array.dtype.itemsize:
            raise InvalidArgument(f"elements of {array.dtype} have {array.dtype.itemsize} bytes, those of type {onnx_element_type} {dtype.itemsize}")
        return cls(array.view(dtype))

    @classmethod
    def ortvalue_from_shape_and_type(
        cls, shape: Sequence[int], element_type: Any, device_type: Any = "cpu", device_id: int = 0, vendor_id: int = -1, memory_info: Any = None
    ) -> OrtValue:
        """An array of zeros, to bind as an output."""
        check_device("cpu" if memory_info is not None and memory_info.name == "Cpu" else device_type)
        return cls(np.zeros(tuple(shape), numpy_type(element_type)))

    ortvalue_from_shape_and_onnx_type = ortvalue_from_shape_and_type

    @classmethod
    def ortvalue_from_shape_and_type_for_memory_info(cls, shape: Sequence[int], element_type: Any, memory_info: Any) -> OrtValue:
        return cls.ortvalue_from_shape_and_type(shape, element_type, memory_info=memory_info)

    ortvalue_from_shape_and_onnx_type_for_memory_info = ortvalue_from_shape_and_type_for_memory_info

    @classmethod
    def ort_value_from_sparse_tensor(cls, sparse_tensor: SparseTensor) -> OrtValue:
        return cls(sparse_tensor)

    @classmethod
    def from_dlpack(cls, data: Any, is_bool_tensor: bool | None = None) -> OrtValue:
        """An array of another library, or a capsule of DLPack, without a copy. is_bool_tensor: its bytes are truth values."""
        from . import _dlpack

        array = _dlpack.take(data)
        return cls(array.view(np.bool_) if is_bool_tensor and array.dtype == np.uint8 else array)

    @property
    def _ortvalue(self) -> OrtValue:
        return self

    def _get_c_value(self) -> OrtValue:
        return self

    def numpy(self) -> Any:
        """The value itself: changing it changes the OrtValue."""
        if self.is_sparse_tensor():
            raise InvalidArgument("a sparse tensor is not an array: as_sparse_tensor()")
        return self._value

    def as_sparse_tensor(self) -> SparseTensor:
        """Of a dense one the elements that are not zero."""
        if self.is_sparse_tensor():
            sparse: SparseTensor = self._value
            return sparse
        from ._sparse import SparseTensor

        return SparseTensor.from_dense(self._tensor())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        array = self._tensor()
        return np.array(array, dtype=dtype) if copy or dtype not in (None, array.dtype) else array

    def __dlpack__(self, *, stream: Any = None, **wanted: Any) -> Any:
        return self._tensor().__dlpack__(**wanted)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._tensor().__dlpack_device__()

    def to_dlpack(self) -> Any:
        """A capsule; truth values as bytes."""
        array = self._tensor()
        return (array.view(np.uint8) if array.dtype == np.bool_ else array).__dlpack__()

    def update_inplace(self, array: Any) -> None:
        held = self._tensor()
        given = array._tensor() if isinstance(array, OrtValue) else array
        if held.shape != given.shape or held.dtype != given.dtype:
            raise InvalidArgument(f"expected {held.dtype} of shape {held.shape}, received {given.dtype} of shape {given.shape}")
        np.copyto(held, given)

    def shape(self) -> list[int]:
        return self._value.dense_shape() if self.is_sparse_tensor() else list(self._tensor().shape)

    def data_type(self) -> str:
        if self._value is None:
            return ""
        if isinstance(self._value, list):
            return f"seq({OrtValue(self._value[0]).data_type() if self._value else ''})"
        if isinstance(self._value, dict):
            key = next(iter(self._value), "")
            return f"map({'string' if isinstance(key, str) else 'int64'},tensor(float))"
        if self.is_sparse_tensor():
            name: str = self._value.data_type()
            return name
        return ort_type(engine_name(self._value))

    def element_type(self) -> int:
        """ONNX's number of the elements' type; of a sequence that of its tensors."""
        if self.is_tensor_sequence() and self._value:
            return onnx_number(self._value[0])
        return onnx_number(self._tensor())

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
        return hasattr(self._value, "dense_shape")

    def is_tensor_sequence(self) -> bool:
        return isinstance(self._value, list) and not any(isinstance(v, (dict, list)) for v in self._value)

    def _is_webgpu_buffer(self) -> bool:
        return False

    def _tensor(self) -> np.ndarray:
        if not isinstance(self._value, np.ndarray):
            raise InvalidArgument(f"this value is not a tensor but {self.data_type() or 'nothing'}")
        return self._value


def feedable(value: Any) -> Any:
    """What a session takes of a value that may be an OrtValue or a sparse tensor."""
    if isinstance(value, OrtValue):
        value = value._value
    return value.to_dense() if hasattr(value, "to_dense") and hasattr(value, "dense_shape") else value


def check_device(device: Any) -> None:
    """A name, or an OrtDevice."""
    name = device if isinstance(device, str) else ("cpu" if device.device_type() == 0 else f"of type {device.device_type()}")
    if name.lower() != "cpu":
        raise InvalidArgument(f"values live in the CPU's memory; device '{name}' is not available")


class OrtValueVector:
    """A list of values that runs take and fill."""

    def __init__(self, values: Iterable[OrtValue] = ()) -> None:
        self._values = list(values)

    def push_back(self, value: Any, is_bool_tensor: bool = False) -> None:
        """An OrtValue, or a capsule of DLPack."""
        self._values.append(value if isinstance(value, OrtValue) else OrtValue.from_dlpack(value, is_bool_tensor))

    def push_back_batch(
        self,
        tensors: Sequence[Any],
        addresses: Sequence[int],
        element_types: Sequence[Any],
        shapes: Sequence[Sequence[int]],
        devices: Sequence[Any],
    ) -> None:
        """Values in memory of other libraries' tensors, which they keep alive."""
        for tensor, address, element_type, shape, device in zip(tensors, addresses, element_types, shapes, devices):
            check_device(device)
            self._values.append(OrtValue(array_at(address, element_type, shape), tensor))

    def reserve(self, count: int) -> None:
        pass

    def shrink_to_fit(self) -> None:
        pass

    def bool_tensor_indices(self) -> list[int]:
        return [i for i, v in enumerate(self._values) if v.is_tensor() and v.numpy().dtype == np.bool_]

    def element_type_at(self, index: int) -> int:
        return self._values[index].element_type()

    def dlpack_at(self, index: int) -> Any:
        return self._values[index].to_dlpack()

    def to_dlpacks(self, to_tensor: Callable[[Any], Any] | None = None) -> list[Any]:
        """Capsules, or what to_tensor makes of each."""
        capsules = (v.to_dlpack() for v in self._values)
        return list(capsules) if to_tensor is None else [to_tensor(c) for c in capsules]

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, index: int) -> OrtValue:
        return self._values[index]

    def __iter__(self) -> Iterator[OrtValue]:
        return iter(self._values)


class IOBinding:
    """Inputs and outputs of a session, bound by name."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._inputs: dict[str, OrtValue] = {}
        self._outputs: dict[str, OrtValue | None] = {}
        self._results: list[OrtValue] = []

    @property
    def _iobinding(self) -> IOBinding:
        return self

    def bind_cpu_input(self, name: str, arr_on_cpu: np.ndarray) -> None:
        self.bind_ortvalue_input(name, OrtValue(np.asarray(arr_on_cpu)))

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        self._check(name, [i.name for i in self._session.get_inputs()], "input")
        self._inputs[name] = ortvalue

    def bind_input(
        self, name: str, device_type: Any, device_id: int, element_type: Any, shape: Sequence[int], buffer_ptr: int
    ) -> None:
        """An input in memory that the caller keeps alive."""
        check_device(device_type)
        self.bind_ortvalue_input(name, OrtValue(array_at(buffer_ptr, element_type, shape)))

    def bind_output(
        self,
        name: str,
        device_type: Any = "cpu",
        device_id: int = 0,
        element_type: Any = None,
        shape: Sequence[int] | None = None,
        buffer_ptr: int | None = None,
    ) -> None:
        """An output: allocated by the run, or copied to memory that the caller keeps alive."""
        check_device(device_type)
        if buffer_ptr is None:
            self.bind_ortvalue_output(name, None)
        elif element_type is None or shape is None:
            raise InvalidArgument(f"output '{name}': memory needs its element type and shape")
        else:
            self.bind_ortvalue_output(name, OrtValue(array_at(buffer_ptr, element_type, shape)))

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

    def get_outputs_as_ortvaluevector(self) -> OrtValueVector:
        return OrtValueVector(self._results)

    def copy_outputs_to_cpu(self) -> list[Any]:
        return [v.numpy() for v in self._results]

    def _check(self, name: str, names: list[str], what: str) -> None:
        if name not in names:
            raise InvalidArgument(f"the model has no {what} '{name}'; it has: {', '.join(names)}")

    def _run(self, run_options: Any) -> None:
        names = list(self._outputs) or [o.name for o in self._session.get_outputs()]
        bound = {name: value for name, value in self._outputs.items() if value is not None}
        direct = {name: value._value for name, value in bound.items() if _takes_results(value._value)}
        feed = {name: feedable(v) for name, v in self._inputs.items()}
        results = []
        for name, value in zip(names, self._session._run_into(names, feed, run_options, direct)):
            held = bound.get(name)
            if held is None:
                held = OrtValue(value)
            elif name not in direct:
                held.update_inplace(value)
            results.append(held)
        self._results = results


class SessionIOBinding(IOBinding):
    """IOBinding with devices in place of their names: bind_input(name, device, type, shape, address)."""

    def __init__(self, session: Any) -> None:
        super().__init__(getattr(session, "_session_of_caller", session))

    def bind_input(self, name: str, *where: Any) -> None:
        if len(where) == 1:
            self.bind_cpu_input(name, where[0])
        else:
            device, element_type, shape, address = where
            super().bind_input(name, device, 0, element_type, shape, address)

    def bind_output(self, name: str, *where: Any) -> None:
        if len(where) <= 1:
            super().bind_output(name, *where)
        else:
            device, element_type, shape, address = where
            super().bind_output(name, device, 0, element_type, shape, address)

    def get_outputs(self) -> OrtValueVector:  # type: ignore[override]  # as in ONNX Runtime's package
        return OrtValueVector(self._results)


def _takes_results(value: Any) -> bool:
    """Whether a run may write into this memory itself; else what it makes is copied there."""
    return isinstance(value, np.ndarray) and value.flags.c_contiguous and value.flags.writeable and value.dtype.kind in "biufc" and value.size > 0


def array_at(address: int, element_type: Any, shape: Sequence[int]) -> np.ndarray:
    import ctypes

    dtype = numpy_type(element_type)
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    memory: Any = (ctypes.c_ubyte * size).from_address(address)
    return np.frombuffer(memory, dtype=np.uint8).view(dtype).reshape(tuple(shape))
