"""InferenceSession: a loaded model."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, Any, Callable, Iterable, Mapping, Sequence

from ._errors import Error, Fail, InvalidArgument, InvalidGraph, InvalidProtobuf, ModelLoadCanceled, NoSuchFile, NotImplemented
from ._options import RunOptions, SessionOptions
from ._providers import Providers, engine_options, is_own_cpu, normalize, warn_of_unavailable
from ._sardonyx import Session, from_bytes, is_model, ort_name
from ._sardonyx import declared as declared_by
from ._sardonyx import open as open_file
from ._sardonyx import set_log_level as set_engine_log_level
from ._sardonyx import set_seed as set_engine_seed
from ._types import engine_name, ort_type

if TYPE_CHECKING:
    from ._devices import OrtEpAssignedSubgraph, OrtEpDevice, OrtMemoryInfo
    from ._values import IOBinding, OrtValue, OrtValueVector


class NodeArg:
    """What a model declares about an input or output."""

    def __init__(self, name: str, type: str, shape: list[int | str | None] | None) -> None:  # noqa: A002
        self.name = name
        self.type = type  # "tensor(float)", "seq(map(int64,tensor(float)))"
        self.shape = shape  # integers, symbols ("batch"), None where nothing is known; None without a rank

    def __repr__(self) -> str:
        return f"NodeArg(name='{self.name}', type='{self.type}', shape={self.shape})"


class ModelMetadata:
    """What the model's file says about itself."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self.producer_name: str = fields["producer_name"]
        self.producer_version: str = fields["producer_version"]
        self.domain: str = fields["domain"]
        self.description: str = fields["description"]
        self.version: int = fields["version"]
        self.graph_name: str = fields["graph_name"]
        self.graph_description: str = fields["graph_description"]
        self.custom_metadata_map: dict[str, str] = fields["custom"]


class InferenceSession:
    """Loads a model and runs it. Thread-safe: any number of threads may call run at once; run releases the GIL.

    path_or_bytes: a file's path, the file's bytes, or an onnx.ModelProto.
    providers: names in order of preference, ONNX Runtime's or short ones, each alone or with its options; None: chosen automatically.
    """

    def __init__(
        self,
        path_or_bytes: str | os.PathLike[str] | bytes | Any,
        sess_options: SessionOptions | None = None,
        providers: Providers | None = None,
        provider_options: Sequence[Mapping[str, Any]] | None = None,
        **kwargs: Any,
    ) -> None:
        # Keyword arguments that ONNX Runtime accepts for its own optimisers only.
        unknown = set(kwargs) - {"disabled_optimizers", "enable_fallback", "read_config_from_model"}
        if unknown:
            raise TypeError(f"InferenceSession takes no argument '{sorted(unknown)[0]}'")
        self._options = sess_options if sess_options is not None else SessionOptions()
        if kwargs.get("read_config_from_model", os.environ.get("ORT_LOAD_CONFIG_FROM_MODEL") == "1"):
            self._options = self._options._with_those_of(path_or_bytes)
        if providers is None and self._options.has_providers():
            providers = self._options._wanted_providers()
        if self._options.log_severity_level >= 0:
            set_default_logger_severity(self._options.log_severity_level)
        self._wanted = normalize(providers, provider_options, self._options._is_strict())
        self._path = os.fspath(path_or_bytes) if isinstance(path_or_bytes, (str, os.PathLike)) else None
        self._open(path_or_bytes)
        specs = self._session.inputs()
        self._inputs = [NodeArg(n, ort_type(t), s) for n, t, s, default in specs if not default]
        self._overridable = [NodeArg(n, ort_type(t), s) for n, t, s, default in specs if default]
        self._opened_ns = time.monotonic_ns()

    _session: Session
    _file: dict[str, Any] | None = None  # what the model's file says; None: not asked for yet

    def _open(self, model: Any) -> None:
        self._check_loading()
        self._session, source = _load(model, self._options, engine_options(self._options, self._wanted))
        self._file = None if isinstance(source, str) else declared_by(source)
        self._check_loading()
        if any(not is_own_cpu(name) for name in self._wanted.names):
            warn_of_unavailable(self._wanted, self._session.report()["fallbacks"])

    def _check_loading(self) -> None:
        if self._options._load_cancelled:
            raise ModelLoadCanceled("loading the model was cancelled: SessionOptions.set_load_cancellation_flag")

    def _declared(self) -> dict[str, Any]:
        """Of a file it is read when it is first asked for: starts do without."""
        if self._file is None:
            try:
                self._file = declared_by(self._path) if self._path is not None else None
            except Error:
                pass  # the file is gone
        if self._file is None:
            own = dict(self._session.metadata())
            names = ("producer_name", "producer_version", "domain", "description", "graph_name", "graph_description")
            version = int(own.get("model_version", "0"))
            custom = dict(self._session.custom_metadata())
            self._file = {**{n: own.get(n, "") for n in names}, "version": version, "custom": custom, "shapes": {}}
        return self._file

    @property
    def _outputs(self) -> list[NodeArg]:
        shapes = self._declared()["shapes"]
        return [NodeArg(n, ort_type(t), _shown(s, shapes.get(n))) for n, t, s, _ in self._session.outputs()]

    def get_inputs(self) -> list[NodeArg]:
        return list(self._inputs)

    def get_outputs(self) -> list[NodeArg]:
        return self._outputs

    def get_overridable_initializers(self) -> list[NodeArg]:
        """Inputs with a default."""
        return list(self._overridable)

    def get_modelmeta(self) -> ModelMetadata:
        return ModelMetadata(self._declared())

    def get_session_options(self) -> SessionOptions:
        return self._options

    def get_providers(self) -> list[str]:
        """ONNX Runtime's names of the providers that run nodes of this model; the CPU is always among them."""
        used = list(dict.fromkeys(ort_name(p) for p in self._session.report()["providers"]))
        return used if "CPUExecutionProvider" in used else [*used, "CPUExecutionProvider"]

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """What was given for them and heeded, by the same names."""
        given: dict[str, dict[str, str]] = {}
        for name, own in self._wanted.options.items():
            given.setdefault(ort_name(name), {}).update({} if is_own_cpu(name) else own)
        return {name: given.get(name, {}) for name in self.get_providers()}

    def set_providers(self, providers: Providers | None = None, provider_options: Sequence[Mapping[str, Any]] | None = None) -> None:
        """Opens the model's file again for other providers. If that fails the session stays as it was."""
        before = self._wanted
        wanted = normalize(providers, provider_options, self._options._is_strict())
        model = self._model_again()
        if model is None:
            if wanted == before or (wanted.names == ["CPUExecutionProvider"] == self.get_providers()):
                return
            raise NotImplemented("a session of bytes keeps none of them: make another one with these providers")
        self._wanted = wanted
        try:
            self._open(model)
        except BaseException:
            self._wanted = before
            raise

    def _model_again(self) -> Any:
        """What set_providers opens; None: nothing is kept."""
        return self._path

    def enable_fallback(self) -> None:
        """For programs written for ONNX Runtime; SessionOptions.strict decides."""

    def disable_fallback(self) -> None:
        """For programs written for ONNX Runtime; SessionOptions.strict decides."""

    @property
    def _sess(self) -> LowerSession:
        """What ONNX Runtime's package keeps here, and programs reach for."""
        return LowerSession._of(self)

    @property
    def _model_path(self) -> str | None:
        return self._path

    @property
    def _sess_options(self) -> SessionOptions:
        return self._options

    def get_input_memory_infos(self) -> list[OrtMemoryInfo]:
        """Where inputs are expected: in the CPU's memory, all of them."""
        from . import _devices

        return [_devices.cpu_memory() for _ in self._inputs]

    def get_output_memory_infos(self) -> list[OrtMemoryInfo]:
        from . import _devices

        return [_devices.cpu_memory() for _ in self._session.outputs()]

    def get_input_epdevices(self) -> list[OrtEpDevice]:
        """The provider, with its device, that each input is for: the CPU."""
        from . import _devices

        cpu = next(d for d in _devices.get_ep_devices() if d.ep_name == "CPUExecutionProvider")
        return [cpu for _ in self._inputs]

    def get_provider_graph_assignment_info(self) -> list[OrtEpAssignedSubgraph]:
        """Which nodes each provider runs, in neighbouring groups in order of execution."""
        from itertools import groupby

        from ._devices import OrtEpAssignedNode, OrtEpAssignedSubgraph

        groups = groupby(self._session.report()["nodes"], key=lambda n: n["provider"])
        return [
            OrtEpAssignedSubgraph(ort_name(p), [OrtEpAssignedNode(n["name"], *_domain_and_type(n["op"])) for n in nodes])
            for p, nodes in groups
        ]

    def create_ortvalue_from_shape_and_type(
        self, shape: Sequence[int], element_type: Any, device_type: Any = "cpu", device_id: int = 0, vendor_id: int = -1
    ) -> OrtValue:
        from ._values import OrtValue

        return OrtValue.ortvalue_from_shape_and_type(shape, element_type, device_type, device_id)

    def release_captured_graph(self, graph_annotation_id: int = 0) -> None:
        """Nothing is captured here that could be released."""

    def set_ep_dynamic_options(self, options: Mapping[str, str]) -> None:
        """Options that a provider takes while it runs; those here have none, and as in ONNX Runtime that is no error."""
        for key, value in options.items():
            if not isinstance(key, str) or not isinstance(value, str):
                raise InvalidArgument(f"dynamic options are texts by name, received {key!r}: {value!r}")

    def get_tuning_results(self) -> list[dict[str, Any]]:
        """ONNX Runtime's, of its GPU kernels: none. SessionOptions.tune keeps this engine's own."""
        return []

    def set_tuning_results(self, results: Sequence[Mapping[str, Any]], *, error_on_invalid: bool = False) -> None:
        for result in results if error_on_invalid else []:
            raise Fail(f"Cannot find execution provider {result.get('ep')} with tuning results")

    def run(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        run_options: RunOptions | None = None,
    ) -> list[Any]:
        """Runs the model: a list with the outputs that were asked for (None or empty: all), in that order.

        Inputs are NumPy arrays (not copied when contiguous), or what numpy.asarray makes arrays of; lists for sequences, dicts for maps,
        None for an empty optional. Outputs are arrays of their own, lists, dicts or None. Raises sardonyx.Error and its subclasses.
        """
        if run_options is not None or "sardonyx._values" in sys.modules:
            return self._run_into(output_names, input_feed, run_options, None)
        feed = input_feed if type(input_feed) is dict else dict(input_feed)
        try:
            return self._session.run(feed, output_names or [], None, None, None)
        except InvalidArgument as e:
            raise self._explained(e, feed, output_names) from None

    def _run_into(
        self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any], run_options: RunOptions | None, bound: dict[str, Any] | None
    ) -> list[Any]:
        """Values may be of this package's own classes. bound: arrays for outputs to be written into; these come back as None."""
        from ._values import feedable

        feed = {name: feedable(value) for name, value in input_feed.items()}
        timeout, cancel = None, None
        if run_options is not None:
            cancel = run_options._cancel
            timeout = None if run_options.timeout is None else max(1, int(run_options.timeout * 1000))
            for adapter in run_options._adapters:
                feed.update(adapter.parameters)
        try:
            return self._session.run(feed, output_names or [], timeout, cancel, bound or None)
        except InvalidArgument as e:
            raise self._explained(e, feed, output_names) from None

    def _explained(self, error: InvalidArgument, feed: Mapping[str, Any], outputs: Sequence[str] | None) -> InvalidArgument:
        """In ONNX Runtime's words, which programs look for and people search for, and then in the engine's."""
        missing = [i.name for i in self._inputs if i.name not in feed and not i.type.startswith("optional")]
        if missing:
            return InvalidArgument(f"Required inputs ({missing}) are missing from input feed ({list(feed)}). {error}")
        declared = {i.name: i.type for i in (*self._inputs, *self._overridable)}
        for name, value in feed.items():
            if name not in declared:
                return InvalidArgument(f"Invalid input name: {name}. {error}")
            is_array = hasattr(getattr(value, "dtype", None), "kind")
            actual = ort_type(engine_name(value)) if is_array else declared[name]
            if declared[name].startswith("tensor(") and actual != declared[name]:
                return InvalidArgument(f"Unexpected input data type. Actual: ({actual}) , expected: ({declared[name]}). {error}")
        known = {name for name, *_ in self._session.outputs()}
        for name in outputs or []:
            if name not in known:
                return InvalidArgument(f"Invalid output name:{name}. {error}")
        return error

    def run_with_ort_values(
        self, output_names: Sequence[str] | None, input_dict_ort_values: Mapping[str, OrtValue], run_options: RunOptions | None = None
    ) -> list[OrtValue]:
        from ._values import OrtValue

        return [OrtValue(v) for v in self._run_into(output_names, input_dict_ort_values, run_options, None)]

    def run_with_ortvaluevector(
        self,
        run_options: RunOptions | None,
        feed_names: Sequence[str],
        feeds: OrtValueVector,
        fetch_names: Sequence[str],
        fetches: OrtValueVector,
        fetch_devices: Sequence[Any],
    ) -> None:
        """Inputs and outputs by position. `fetches` holds memory for the results, or nothing yet."""
        from ._values import IOBinding, check_device

        if len(feed_names) != len(feeds):
            raise InvalidArgument(f"{len(feed_names)} names of inputs, but {len(feeds)} values")
        for device in fetch_devices:
            check_device(device)
        binding = IOBinding(self)
        for name, value in zip(feed_names, feeds):
            binding.bind_ortvalue_input(name, value)
        given = list(fetches)
        for i, name in enumerate(fetch_names):
            binding.bind_ortvalue_output(name, given[i] if i < len(given) and given[i].has_value() else None)
        binding._run(run_options)
        fetches._values = binding.get_outputs()

    def run_async(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        callback: Callable[[list[Any], Any, str], None],
        user_data: Any,
        run_options: RunOptions | None = None,
    ) -> None:
        """Runs in a thread of its own; then calls callback(outputs, user_data, error), where error is "" after success."""
        import threading

        def work() -> None:
            results: list[Any] = []
            error = ""
            try:
                results = self.run(output_names, input_feed, run_options)
            except Exception as e:  # noqa: BLE001, handed on to the callback
                error = str(e) or type(e).__name__
            callback(results, user_data, error)

        threading.Thread(target=work, daemon=True).start()

    def io_binding(self) -> IOBinding:
        from ._values import IOBinding

        return IOBinding(self)

    def run_with_iobinding(self, iobinding: IOBinding, run_options: RunOptions | None = None) -> None:
        iobinding._run(run_options)

    def end_profiling(self) -> str:
        """Writes the trace of the runs so far as ONNX Runtime does (for its tools, Perfetto or chrome://tracing) and returns its file's
        name; "" where SessionOptions.enable_profiling was not set."""
        if not self._options.enable_profiling:
            return ""
        path = f"{self._options.profile_file_prefix}_{time.strftime('%Y-%m-%d_%H-%M-%S')}_{os.getpid()}_{id(self) & 0xFFFF:04x}.json"
        self._session.write_trace(path)
        return path

    def get_profiling_start_time_ns(self) -> int:
        return self._opened_ns

    def report(self) -> dict[str, Any]:
        """What ran where, and why: providers, per node the kernel and the refusals of better ones, fallbacks, warnings, times.
        `report()["text"]` is the same for people. Not in ONNX Runtime."""
        report = self._session.report()
        for name in self._wanted.unknown:
            line = f"requested {name}, using {', '.join(report['providers']) or 'cpu'}: there is no provider of that name"
            report["fallbacks"].append(line)
            report["text"] += f"fallback: {line}\n"
        return report

    def dump(self, stage: str = "simplified") -> str:
        """The graph as text at a stage: "loaded", "simplified", "claimed" or "planned". Not in ONNX Runtime."""
        return self._session.dump(stage)


class LowerSession:
    """A session as ONNX Runtime's own package holds it: opened in two steps, and run with arguments in another order."""

    def __init__(self, options: SessionOptions | None, model: str | bytes, is_path: bool, read_config_from_model: bool = False) -> None:
        self._options = options
        self._model = model
        self._opened: InferenceSession | None = None
        if is_path != isinstance(model, str):
            raise TypeError(f"expected {'a path' if is_path else 'bytes'}, received {type(model).__name__}")

    @classmethod
    def _of(cls, session: InferenceSession) -> LowerSession:
        self = cls.__new__(cls)
        self._opened = session
        return self

    def initialize_session(
        self, providers: Sequence[str] = (), provider_options: Sequence[Mapping[str, Any]] = (), disabled_optimizers: Iterable[str] = ()
    ) -> None:
        self._opened = InferenceSession(self._model, self._options, list(providers) or None, list(provider_options) or None)

    @property
    def _session_of_caller(self) -> InferenceSession:
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
        from ._values import OrtValueVector

        return OrtValueVector(self._session_of_caller.run_with_ort_values(output_names, feed, run_options))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._session_of_caller, name)


def _shown(inferred: list[int | str | None] | None, declared: list[int | str | None] | None) -> list[int | str | None] | None:
    """An output's shape: as the file declares it, with what inference adds; what was inferred where the two contradict each other."""
    if inferred is None or declared is None:
        return inferred if declared is None else declared
    pairs = list(zip(inferred, declared))
    if len(inferred) != len(declared) or any(isinstance(i, int) and isinstance(d, int) and i != d for i, d in pairs):
        return inferred
    return [i if d is None or (isinstance(i, int) and isinstance(d, str)) else d for i, d in pairs]


def _domain_and_type(op: str) -> tuple[str, str]:
    domain, _, kind = op.rpartition(".")
    return domain, kind


def _load(model: Any, options: SessionOptions, engine: dict[str, Any]) -> tuple[Session, str | bytes]:
    """The session, and what it was opened from."""
    if isinstance(model, (str, os.PathLike)):
        path = os.fspath(model)
        if not os.path.exists(path):
            raise NoSuchFile(f"Load model from {path} failed. File doesn't exist")
        with _telling_what_is_no_model(path):
            return open_file(path, engine, options._extras()), path
    if hasattr(model, "SerializeToString"):
        model = model.SerializeToString()
    if not isinstance(model, (bytes, bytearray, memoryview)):
        raise TypeError(f"InferenceSession takes a path, bytes or an onnx.ModelProto, received {type(model).__name__}")
    data = bytes(model)
    folder = options._config.get("session.model_external_initializers_file_folder_path", "")
    with _telling_what_is_no_model(data):
        return from_bytes(data, engine, folder, options._extras()), data


class _telling_what_is_no_model:
    """Of what breaks a rule InvalidGraph is raised, of what is no model at all InvalidProtobuf."""

    def __init__(self, model: str | bytes) -> None:
        self._model = model

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, InvalidGraph) and not is_model(self._model):
            raise InvalidProtobuf(str(error)) from None


def set_default_logger_severity(severity: int) -> None:
    """0 verbose, 1 info, 2 warning, 3 error, 4 fatal: how much goes to standard error, for the whole process."""
    if not 0 <= severity <= 4:
        raise InvalidArgument(f"severities are 0 (verbose) to 4 (fatal), received {severity}")
    set_engine_log_level(severity)


def set_default_logger_verbosity(verbosity: int) -> None:
    """How much a verbose log of ONNX Runtime says. Severity alone decides here."""
    if verbosity < 0:
        raise InvalidArgument(f"verbosities are 0 and more, received {verbosity}")


def set_seed(seed: int) -> None:
    """Where random operators without a seed of their own start, in sessions that are opened from now on."""
    set_engine_seed(seed)
