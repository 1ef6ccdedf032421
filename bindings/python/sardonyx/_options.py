"""SessionOptions and RunOptions: the attributes of ONNX Runtime's, and a few of this engine's own."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from . import _sardonyx
from ._engine_options import DEFAULTS, EngineOptions
from ._errors import InvalidArgument, NotImplemented

if TYPE_CHECKING:
    from ._enums import ExecutionMode, ExecutionOrder, GraphOptimizationLevel

# Which enumeration's member an option is, as long as nobody has set it: fetched when somebody reads it.
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
    enable_profiling, profile_file_prefix, log_severity_level (of the whole process), free dimension overrides, custom operators, and the
    configuration entries "session.disable_cpu_ep_fallback" and "session.model_external_initializers_file_folder_path".
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

    @property
    def disabled_passes(self) -> list[str]:
        """Names of graph passes to leave out; see pass_names()."""
        return self._disabled_passes

    @disabled_passes.setter
    def disabled_passes(self, names: list[str]) -> None:
        known = _sardonyx.pass_names()
        for name in names:
            if name not in known:
                raise InvalidArgument(f"there is no pass '{name}'; passes: {', '.join(known)}")
        self._disabled_passes = list(names)

    @property
    def optimized_model_filepath(self) -> str:
        return ""

    @optimized_model_filepath.setter
    def optimized_model_filepath(self, path: str) -> None:
        if path:
            raise NotImplemented("optimised models cannot be saved yet; InferenceSession.dump('simplified') shows the graph")

    def add_session_config_entry(self, key: str, value: str) -> None:
        self._config[key] = value

    def get_session_config_entry(self, key: str) -> str:
        if key not in self._config:
            raise InvalidArgument(f"the session options have no configuration entry '{key}'")
        return self._config[key]

    def add_free_dimension_override_by_name(self, name: str, value: int) -> None:
        """Fixes a symbolic dimension of the inputs, for example ("batch", 1)."""
        self._dimensions.append((name, int(value)))

    def add_free_dimension_override_by_denotation(self, denotation: str, value: int) -> None:
        raise NotImplemented("dimensions are overridden by name: add_free_dimension_override_by_name")

    def add_initializer(self, name: str, value: Any) -> None:
        raise NotImplemented("initializers cannot be replaced; pass the value as an input, which overrides the default")

    def register_custom_ops_library(self, path: str | os.PathLike[str]) -> None:
        """A shared library with operators, see docs/custom-operators.md."""
        self._custom_ops.append(os.fspath(path))

    def _is_strict(self) -> bool:
        return bool(self.strict) or self._config.get("session.disable_cpu_ep_fallback") == "1"

    def _to_engine(self) -> dict[str, Any]:
        """By the engine's names; providers apart. The engine checks them."""
        return {
            **{name: getattr(self, name) for name in DEFAULTS},
            "strict": self._is_strict(),
            "optimize": int(self.__dict__.get("graph_optimization_level", 99)) != 0,
            "disabled_passes": self._disabled_passes,
            "threads": self.intra_op_num_threads,
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
        self._cancel = _sardonyx.cancel_token()
        self._config: dict[str, str] = {}

    @property
    def terminate(self) -> bool:
        return self._cancel.cancelled()

    @terminate.setter
    def terminate(self, value: bool) -> None:
        if value:
            self._cancel.cancel()
        elif self._cancel.cancelled():
            self._cancel = _sardonyx.cancel_token()

    def add_run_config_entry(self, key: str, value: str) -> None:
        self._config[key] = value

    def get_run_config_entry(self, key: str) -> str:
        if key not in self._config:
            raise InvalidArgument(f"the run options have no configuration entry '{key}'")
        return self._config[key]
