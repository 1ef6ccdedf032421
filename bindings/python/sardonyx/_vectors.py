"""ONNX Runtime's lower layer of classes (onnxruntime.capi.onnxruntime_pybind11_state), over this package's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np

from ._errors import InvalidArgument
from ._options import RunOptions, SessionOptions
from ._values import IOBinding, OrtValue, array_at, check_device

if TYPE_CHECKING:
    from ._session import InferenceSession as Session


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


class InferenceSession:
    """A session as ONNX Runtime's own package holds it: opened in two steps, and run with arguments in another order."""

    def __init__(self, options: SessionOptions | None, model: str | bytes, is_path: bool, read_config_from_model: bool = False) -> None:
        self._options = options
        self._model = model
        self._opened: Session | None = None
        if is_path != isinstance(model, str):
            raise TypeError(f"expected {'a path' if is_path else 'bytes'}, received {type(model).__name__}")

    @classmethod
    def _of(cls, session: Session) -> InferenceSession:
        self = cls.__new__(cls)
        self._opened = session
        return self

    def initialize_session(
        self, providers: Sequence[str] = (), provider_options: Sequence[Mapping[str, Any]] = (), disabled_optimizers: Iterable[str] = ()
    ) -> None:
        from ._session import InferenceSession as Opened

        self._opened = Opened(self._model, self._options, list(providers) or None, list(provider_options) or None)

    @property
    def _session_of_caller(self) -> Session:
        if self._opened is None:
            raise InvalidArgument("the session has not been initialized: initialize_session()")
        return self._opened

    inputs_meta = property(lambda self: self._session_of_caller.get_inputs())
    outputs_meta = property(lambda self: self._session_of_caller.get_outputs())
    overridable_initializers = property(lambda self: self._session_of_caller.get_overridable_initializers())
    model_meta = property(lambda self: self._session_of_caller.get_modelmeta())
    session_options = property(lambda self: self._session_of_caller.get_session_options())
    get_profiling_start_time_ns = property(lambda self: self._session_of_caller.get_profiling_start_time_ns())
    input_meminfos = property(lambda self: self._session_of_caller.get_input_memory_infos())
    output_meminfos = property(lambda self: self._session_of_caller.get_output_memory_infos())
    input_epdevices = property(lambda self: self._session_of_caller.get_input_epdevices())

    def run(self, output_names: Sequence[str], feed: Mapping[str, Any], run_options: RunOptions | None = None) -> list[Any]:
        return self._session_of_caller.run(output_names, feed, run_options)

    def run_with_iobinding(self, binding: IOBinding, run_options: RunOptions | None = None) -> None:
        self._session_of_caller.run_with_iobinding(binding, run_options)

    def run_with_ort_values(self, feed: Mapping[str, OrtValue], output_names: Sequence[str], run_options: RunOptions | None = None) -> OrtValueVector:
        return OrtValueVector(self._session_of_caller.run_with_ort_values(output_names, feed, run_options))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._session_of_caller, name)


def run_with_vectors(
    session: Session,
    run_options: RunOptions | None,
    feed_names: Sequence[str],
    feeds: OrtValueVector,
    fetch_names: Sequence[str],
    fetches: OrtValueVector,
    fetch_devices: Sequence[Any],
) -> None:
    """Runs with values by position. `fetches`: memory for results where it holds values, else filled with them."""
    if len(feed_names) != len(feeds):
        raise InvalidArgument(f"{len(feed_names)} names of inputs, but {len(feeds)} values")
    for device in fetch_devices:
        check_device(device)
    binding = IOBinding(session)
    for name, value in zip(feed_names, feeds):
        binding.bind_ortvalue_input(name, value)
    given = list(fetches)
    for i, name in enumerate(fetch_names):
        binding.bind_ortvalue_output(name, given[i] if i < len(given) and given[i].has_value() else None)
    binding._run(run_options)
    fetches._values = binding.get_outputs()
