"""InferenceSession: a loaded model."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any, Callable, Iterable, Mapping, Sequence

from . import _sardonyx, _types
from ._errors import InvalidArgument, NoSuchFile, NotImplemented
from ._options import RunOptions, SessionOptions
from ._providers import Providers, engine_options, is_own_cpu, normalize

if TYPE_CHECKING:
    from ._values import IOBinding, OrtValue


class NodeArg:
    """What a model declares about an input or output."""

    def __init__(self, name: str, type: str, shape: list[int | str | None] | None) -> None:  # noqa: A002
        self.name = name
        self.type = type  # "tensor(float)", "seq(map(int64,tensor(float)))"
        self.shape = shape  # integers, symbols ("batch"), None where nothing is known; None without a rank

    def __repr__(self) -> str:
        return f"NodeArg(name='{self.name}', type='{self.type}', shape={self.shape})"


class ModelMetadata:
    """Who made the model."""

    def __init__(self, entries: Iterable[tuple[str, str]]) -> None:
        own = dict(entries)
        self.producer_name = own.pop("producer_name", "")
        self.producer_version = own.pop("producer_version", "")
        self.domain = own.pop("domain", "")
        self.description = own.pop("description", "")
        self.version = int(own.pop("model_version", "0") or 0)
        self.graph_name = own.pop("graph_name", "")
        self.graph_description = own.pop("graph_description", "")
        self.custom_metadata_map = own


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
        # What ONNX Runtime takes by keyword for its own optimisers, and nothing else.
        unknown = set(kwargs) - {"disabled_optimizers", "enable_fallback"}
        if unknown:
            raise TypeError(f"InferenceSession takes no argument '{sorted(unknown)[0]}'")
        self._options = sess_options if sess_options is not None else SessionOptions()
        if self._options.log_severity_level >= 0:
            set_default_logger_severity(self._options.log_severity_level)
        self._wanted = normalize(providers, provider_options, self._options._is_strict())
        self._path = os.fspath(path_or_bytes) if isinstance(path_or_bytes, (str, os.PathLike)) else None
        self._open(path_or_bytes)
        specs = self._session.inputs()
        self._inputs = [NodeArg(n, _types.ort_type(t), s) for n, t, s, default in specs if not default]
        self._overridable = [NodeArg(n, _types.ort_type(t), s) for n, t, s, default in specs if default]
        self._outputs = [NodeArg(n, _types.ort_type(t), s) for n, t, s, _ in self._session.outputs()]
        self._opened_ns = time.monotonic_ns()

    def _open(self, model: Any) -> None:
        self._session = _load(model, self._options, engine_options(self._options, self._wanted))

    def get_inputs(self) -> list[NodeArg]:
        return list(self._inputs)

    def get_outputs(self) -> list[NodeArg]:
        return list(self._outputs)

    def get_overridable_initializers(self) -> list[NodeArg]:
        """Inputs with a default."""
        return list(self._overridable)

    def get_modelmeta(self) -> ModelMetadata:
        return ModelMetadata(self._session.metadata())

    def get_session_options(self) -> SessionOptions:
        return self._options

    def get_providers(self) -> list[str]:
        """ONNX Runtime's names of the providers that run nodes of this model; the CPU is always among them."""
        used = list(dict.fromkeys(_sardonyx.ort_name(p) for p in self._session.report()["providers"]))
        return used if "CPUExecutionProvider" in used else [*used, "CPUExecutionProvider"]

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """What was given for them and heeded, by the same names."""
        given: dict[str, dict[str, str]] = {}
        for name, own in self._wanted.options.items():
            given.setdefault(_sardonyx.ort_name(name), {}).update({} if is_own_cpu(name) else own)
        return {name: given.get(name, {}) for name in self.get_providers()}

    def set_providers(self, providers: Providers | None = None, provider_options: Sequence[Mapping[str, Any]] | None = None) -> None:
        """Opens the model's file again for other providers. If that fails the session stays as it was."""
        if self._path is None:
            raise NotImplemented("a session of bytes keeps none of them: make another one with these providers")
        before = self._wanted
        self._wanted = normalize(providers, provider_options, self._options._is_strict())
        try:
            self._open(self._path)
        except BaseException:
            self._wanted = before
            raise

    def enable_fallback(self) -> None:
        """For programs written for ONNX Runtime; SessionOptions.strict decides."""

    def disable_fallback(self) -> None:
        """For programs written for ONNX Runtime; SessionOptions.strict decides."""

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
        timeout, cancel = None, None
        if run_options is not None:
            cancel = run_options._cancel
            timeout = None if run_options.timeout is None else max(1, int(run_options.timeout * 1000))
        return self._session.run(input_feed if type(input_feed) is dict else dict(input_feed), output_names or [], timeout, cancel)

    def run_with_ort_values(
        self, output_names: Sequence[str] | None, input_dict_ort_values: Mapping[str, OrtValue], run_options: RunOptions | None = None
    ) -> list[OrtValue]:
        from ._values import OrtValue

        feed = {name: value.numpy() for name, value in input_dict_ort_values.items()}
        return [OrtValue(v) for v in self.run(output_names, feed, run_options)]

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
        """Writes the trace of the runs so far (for Perfetto or chrome://tracing) and returns its file's name.
        SessionOptions.enable_profiling must have been set."""
        if not self._options.enable_profiling:
            raise InvalidArgument("this session records no profile: set SessionOptions.enable_profiling before opening it")
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
            line = f"wanted {name}, took {', '.join(report['providers']) or 'cpu'}: there is no provider of that name"
            report["fallbacks"].append(line)
            report["text"] += f"fallback: {line}\n"
        return report

    def dump(self, stage: str = "simplified") -> str:
        """The graph as text at a stage: "loaded", "simplified", "claimed" or "planned". Not in ONNX Runtime."""
        return self._session.dump(stage)


def _load(model: Any, options: SessionOptions, engine: dict[str, Any]) -> Any:
    if isinstance(model, (str, os.PathLike)):
        path = os.fspath(model)
        if not os.path.exists(path):
            raise NoSuchFile(f"there is no file '{path}'")
        return _sardonyx.open(path, engine)
    if hasattr(model, "SerializeToString"):
        model = model.SerializeToString()
    if not isinstance(model, (bytes, bytearray, memoryview)):
        raise TypeError(f"InferenceSession takes a path, bytes or an onnx.ModelProto, received {type(model).__name__}")
    folder = options._config.get("session.model_external_initializers_file_folder_path", "")
    return _sardonyx.from_bytes(bytes(model), engine, folder)


def set_default_logger_severity(severity: int) -> None:
    """0 verbose, 1 info, 2 warning, 3 error, 4 fatal: how much goes to standard error, for the whole process."""
    if not 0 <= severity <= 4:
        raise InvalidArgument(f"severities are 0 (verbose) to 4 (fatal), received {severity}")
    _sardonyx.set_log_level(severity)
