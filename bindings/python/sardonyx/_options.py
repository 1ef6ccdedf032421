"""SessionOptions and RunOptions: the attributes of ONNX Runtime's, and a few of this engine's own."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Callable, Mapping, Sequence

from ._engine_options import DEFAULTS, EngineOptions
from ._errors import InvalidArgument
from ._sardonyx import cancel_token
from ._sardonyx import declared as declared_by
from ._sardonyx import pass_names as engine_pass_names

if TYPE_CHECKING:
    from ._adapters import LoraAdapter
    from ._devices import OrtEpDevice, OrtExecutionProviderDevicePolicy
    from ._enums import ExecutionMode, ExecutionOrder, GraphOptimizationLevel
    from ._values import OrtValue

# Options whose default is a member of an enumeration. The member is looked up when the option is first read.
_MEMBERS = {
    "execution_mode": ("ExecutionMode", "ORT_SEQUENTIAL"),
    "execution_order": ("ExecutionOrder", "DEFAULT"),
    "graph_optimization_level": ("GraphOptimizationLevel", "ORT_ENABLE_ALL"),
}


class _Options:
    """Refuses attributes that do not exist: a misspelt option must not pass unnoticed."""

    _defaults: dict[str, Any] = {}

    def __init__(self) -> None:
        for name, value in self._defaults.items():
            if name not in _MEMBERS:
                object.__setattr__(self, name, value)

    if not TYPE_CHECKING:  # a type checker would take any name for an option

        def __getattr__(self, name: str) -> Any:
            if name not in _MEMBERS or name not in self._defaults:
                raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
            from . import _enums

            enumeration, member = _MEMBERS[name]
            value = getattr(getattr(_enums, enumeration), member)
            object.__setattr__(self, name, value)
            return value

        def __setattr__(self, name: str, value: Any) -> None:
            if not name.startswith("_") and name not in self._defaults and not isinstance(getattr(type(self), name, None), property):
                import difflib  # 1 ms of every start, for an error

                near = difflib.get_close_matches(name, self._defaults, 1)
                hint = f"; did you mean '{near[0]}'?" if near else ""
                raise AttributeError(f"{type(self).__name__} has no option '{name}'{hint}")
            object.__setattr__(self, name, value)


class SessionOptions(_Options, EngineOptions):
    """How a session loads and runs its model.

    Of ONNX Runtime's options these take effect: intra_op_num_threads (0: the pool shared by all sessions), graph_optimization_level,
    enable_profiling, profile_file_prefix, log_severity_level (of the whole process), optimized_model_filepath, free dimension overrides,
    initializers, providers and policies, custom operators, and the configuration entries "session.disable_cpu_ep_fallback",
    "session.model_external_initializers_file_folder_path", "session.optimized_model_external_initializers_file_name" and
    "session.optimized_model_external_initializers_min_size_in_bytes".
    The others are accepted and change nothing here.

    EngineOptions has this engine's own; docs/options.md lists all, with their ranges. Times are seconds, sizes bytes.
    """

    enable_cpu_mem_arena: bool
    enable_mem_pattern: bool
    enable_mem_reuse: bool
    enable_profiling: bool
    execution_mode: ExecutionMode
    execution_order: ExecutionOrder
    graph_optimization_level: GraphOptimizationLevel
    inter_op_num_threads: int
    intra_op_num_threads: int
    log_severity_level: int
    log_verbosity_level: int
    logid: str
    profile_file_prefix: str
    use_deterministic_compute: bool
    use_per_session_threads: bool

    _defaults = {
        "enable_cpu_mem_arena": True,
        "enable_mem_pattern": True,
        "enable_mem_reuse": True,
        "enable_profiling": False,
        "execution_mode": None,
        "execution_order": None,
        "graph_optimization_level": None,
        "inter_op_num_threads": 0,
        "intra_op_num_threads": 0,
        "log_severity_level": -1,
        "log_verbosity_level": 0,
        "logid": "",
        "profile_file_prefix": "sardonyx_profile",
        "use_deterministic_compute": False,
        "use_per_session_threads": True,
        **DEFAULTS,
    }

    def __init__(self) -> None:
        super().__init__()
        self._config: dict[str, str] = {}
        self._dimensions: list[tuple[str, int]] = []
        self._custom_ops: list[str] = []
        self._disabled_passes: list[str] = []
        self._denotations: dict[str, int] = {}
        self._initializers: dict[str, OrtValue] = {}
        self._external: dict[str, OrtValue] = {}
        self._files: dict[str, bytes] = {}
        self._providers: list[tuple[str, dict[str, str]]] = []
        self._policy: Any = None
        self._load_cancelled = False

    @property
    def disabled_passes(self) -> list[str]:
        """Names of graph passes to leave out; see pass_names()."""
        return self._disabled_passes

    @disabled_passes.setter
    def disabled_passes(self, names: list[str]) -> None:
        known = engine_pass_names()
        for name in names:
            if name not in known:
                raise InvalidArgument(f"there is no pass '{name}'; passes: {', '.join(known)}")
        self._disabled_passes = list(names)

    @property
    def optimized_model_filepath(self) -> str:
        """Opening the session writes the optimised model there."""
        path: str = os.fspath(self.__dict__.get("optimized_model", ""))
        return path

    @optimized_model_filepath.setter
    def optimized_model_filepath(self, path: str | os.PathLike[str]) -> None:
        object.__setattr__(self, "optimized_model", os.fspath(path))

    def add_session_config_entry(self, key: str, value: str) -> None:
        self._config[key] = value

    def get_session_config_entry(self, key: str) -> str:
        if key not in self._config:
            raise InvalidArgument(f"SessionOptions does not have configuration with key: {key}")
        return self._config[key]

    def add_free_dimension_override_by_name(self, name: str, value: int) -> None:
        """Fixes a symbolic dimension of the inputs, for example ("batch", 1)."""
        self._dimensions.append((name, int(value)))

    def add_free_dimension_override_by_denotation(self, denotation: str, value: int) -> None:
        """Fixes extents of inputs that the model marks as such, for example ("DATA_BATCH", 1)."""
        self._denotations[denotation] = int(value)

    def add_initializer(self, name: str, value: OrtValue) -> None:
        """A value of the same type and shape in place of the model's own, in models that have an initializer of that name."""
        self._initializers[name] = value

    def add_external_initializers(self, names: Sequence[str], values: Sequence[OrtValue]) -> None:
        """Values of initializers whose data the model expects in another file."""
        if len(names) != len(values):
            raise InvalidArgument(f"{len(names)} names, but {len(values)} values")
        self._external.update(zip(names, values))

    def add_external_initializers_from_files_in_memory(self, names: Sequence[str], contents: Sequence[Any], sizes: Sequence[int]) -> None:
        """What files with initializers hold, by the names that the model has for them. The contents are copied."""
        if not len(names) == len(contents) == len(sizes):
            raise InvalidArgument(f"{len(names)} names, {len(contents)} contents and {len(sizes)} sizes: their numbers must be equal")
        for name, content, size in zip(names, contents, sizes):
            held = bytes(content)
            if not 0 <= size <= len(held):
                raise InvalidArgument(f"file '{name}': {size} bytes are wanted of a content of {len(held)}")
            self._files[name] = held[:size]

    def add_provider(self, name: str, options: Mapping[str, Any] | None = None) -> None:
        """One more provider, for sessions that are given none of their own."""
        self._providers.append((name, {str(k): str(v) for k, v in (options or {}).items()}))

    def add_provider_for_devices(self, devices: Sequence[OrtEpDevice], options: Mapping[str, Any] | None = None) -> None:
        from . import _devices

        self._providers += _devices.providers_of(devices, options or {})

    def has_providers(self) -> bool:
        return bool(self._providers) or self._policy is not None

    def set_provider_selection_policy(self, policy: OrtExecutionProviderDevicePolicy) -> None:
        """Which kind of device is preferred, for sessions that are given no providers."""
        self._policy = policy

    def set_provider_selection_policy_delegate(self, choose: Callable[..., Sequence[OrtEpDevice]]) -> None:
        """choose(devices, metadata of the model, metadata of the run time, most devices) gives the devices to use."""
        self._policy = choose

    def set_load_cancellation_flag(self, cancel: bool) -> None:
        """True: opening a session with these options fails, now or as soon as the model is loaded."""
        self._load_cancelled = bool(cancel)

    def set_ep_context_data_read_func(self, read: Callable[..., None], max_data_size: int = 0) -> None:
        """For compiled parts of a model that ONNX Runtime's plugins keep; no provider here asks for them."""

    def clear_ep_context_data_read_func(self) -> None:
        """See set_ep_context_data_read_func."""

    def _wanted_providers(self) -> list[Any] | None:
        """Of the providers and policies above; None: automatic selection."""
        if self._policy is None or self._providers:
            return self._providers or None
        from . import _devices

        if callable(self._policy):
            chosen = self._policy(_devices.get_ep_devices(), {}, {}, 8)
            return [d.ep_name for d in chosen] or None
        kinds = _devices.OrtExecutionProviderDevicePolicy
        intents = {kinds.PREFER_CPU: "cpu", kinds.PREFER_GPU: "gpu", kinds.PREFER_NPU: "npu", kinds.MIN_OVERALL_POWER: "npu", kinds.MAX_EFFICIENCY: "npu"}
        intent = intents.get(kinds(self._policy))
        return None if intent is None else [intent]

    def _with_those_of(self, model: Any) -> SessionOptions:
        """These options, with those over them that the model carries in its metadata ("ort_config")."""
        import copy
        import json

        declared = declared_by(model if isinstance(model, bytes) else os.fspath(model))
        text = None if declared is None else declared["custom"].get("ort_config")
        if text is None:
            return self
        try:
            wanted = json.loads(text).get("session_options", {}).items()
        except (ValueError, AttributeError):
            raise InvalidArgument(f"the model's metadata 'ort_config' is not a JSON object: {text[:80]!r}") from None
        options = copy.copy(self)
        for name, value in wanted:
            setattr(options, name, bool(value) if name == "enable_profiling" else value)
        return options

    def _extras(self) -> dict[str, Any] | None:
        """What sessions are opened with beside the engine's options; None: nothing."""

        def arrays(values: Mapping[str, Any]) -> dict[str, Any]:
            if not values:
                return {}
            from ._values import OrtValue

            return {n: OrtValue(v)._tensor() for n, v in values.items()}

        extras: dict[str, Any] = {
            "initializers": arrays(self._initializers),
            "external": arrays(self._external),
            "files": self._files,
            "denotations": self._denotations,
        }
        extras = {name: values for name, values in extras.items() if values}
        data_file = self._config.get("session.optimized_model_external_initializers_file_name")
        if data_file and self.optimized_model_filepath:
            if os.path.dirname(data_file):
                raise InvalidArgument(f"the file for initializers lies beside the model: '{data_file}' must be a name without a folder")
            least = self._config.get("session.optimized_model_external_initializers_min_size_in_bytes", "1024")
            extras |= {"data_file": data_file, "least": int(least)}
        return extras or None

    def register_custom_ops_library(self, path: str | os.PathLike[str]) -> None:
        """A shared library with operators, see docs/custom-operators.md."""
        self._custom_ops.append(os.fspath(path))

    def _is_strict(self) -> bool:
        return bool(self.strict) or self._config.get("session.disable_cpu_ep_fallback") == "1"

    def _to_engine(self) -> dict[str, Any]:
        """By the engine's names; providers apart. The engine checks them."""
        level = int(self.__dict__.get("graph_optimization_level", 99))
        own = {name: getattr(self, name) for name in DEFAULTS}
        if path := self.optimized_model_filepath:
            as_ort = self._config.get("session.save_model_format", "").upper() == "ORT"
            own |= {
                "optimized_model": path,
                "optimized_model_basic": own.get("optimized_model_basic", False) or level == 1,
                "optimized_model_ort": own.get("optimized_model_ort", False) or as_ort,
            }
        return {
            **own,
            "strict": self._is_strict(),
            "optimize": level != 0,
            "disabled_passes": self._disabled_passes,
            "threads": max(int(self.intra_op_num_threads), 0),  # as in ONNX Runtime, less than 0 is 0
            "dimensions": self._dimensions,
            "profile": self.enable_profiling,
            "custom_ops": self._custom_ops,
        }


class RunOptions(_Options):
    """How one run goes. `terminate = True`, from any thread, ends the runs that use these options. `timeout`: seconds, or None."""

    log_severity_level: int
    log_verbosity_level: int
    logid: str
    only_execute_path_to_fetches: bool
    training_mode: bool
    timeout: float | None

    _defaults = {
        "log_severity_level": -1,
        "log_verbosity_level": 0,
        "logid": "",
        "only_execute_path_to_fetches": False,
        "training_mode": False,
        "timeout": None,
    }

    def __init__(self) -> None:
        super().__init__()
        self._cancel = cancel_token()
        self._config: dict[str, str] = {}
        self._adapters: list[LoraAdapter] = []

    def add_active_adapter(self, adapter: LoraAdapter) -> None:
        """Its parameters go to the inputs of those names."""
        self._adapters.append(adapter)

    @property
    def terminate(self) -> bool:
        return self._cancel.cancelled()

    @terminate.setter
    def terminate(self, value: bool) -> None:
        if value:
            self._cancel.cancel()
        elif self._cancel.cancelled():
            self._cancel = cancel_token()

    def add_run_config_entry(self, key: str, value: str) -> None:
        self._config[key] = value

    def get_run_config_entry(self, key: str) -> str:
        if key not in self._config:
            raise InvalidArgument(f"RunOptions does not have configuration with key: {key}")
        return self._config[key]
