"""Providers as programs name them, and what this machine has."""

from __future__ import annotations

import sys
import warnings
from typing import Any, Mapping, NamedTuple, Sequence

from ._errors import InvalidArgument
from ._options import SessionOptions
from ._sardonyx import ignored_cpu_options, ort_name
from ._sardonyx import providers as engine_providers

Providers = Sequence["str | tuple[str, Mapping[str, Any]]"]


class Wanted(NamedTuple):
    names: list[str]
    options: dict[str, dict[str, str]]  # by the same names
    unknown: list[str]  # names left out


def normalize(providers: Providers | None, provider_options: Sequence[Mapping[str, Any]] | None, strict: bool) -> Wanted:
    """What the caller asks for, checked. As ONNX Runtime does, it leaves out execution providers that nobody here has heard of, names
    given twice, and options of the CPU provider, each with a UserWarning. Strict: unknown providers are an error."""
    wanted = Wanted([], {}, [])
    if providers is None:
        if provider_options:
            raise InvalidArgument("provider_options need providers, one each")
        return wanted
    seen: set[tuple[str, bool]] = set()
    for name, own in _pairs(providers, provider_options):
        if not strict and _unheard_of(name):
            _warn(
                f"Specified provider '{name}' is not in available provider names: Sardonyx has none of that name and goes on without it; "
                "sardonyx.get_available_providers() lists what works here"
            )
            wanted.unknown.append(name)
            continue
        try:
            identity = _identity(name)
        except InvalidArgument as e:
            raise InvalidArgument(f"Unknown Provider Type: {name}; {e}") from None
        if identity in seen:
            _warn(f"Duplicate provider '{name}' encountered, ignoring.")
            continue
        seen.add(identity)
        options = {str(k): str(v) for k, v in own.items()}
        wanted.names.append(name)
        if is_own_cpu(name):
            # There ONNX Runtime takes any option and heeds none. Those that it has a use for elsewhere go on to the engine, whose report
            # notes them; the rest are misspelt or for another provider.
            known = ignored_cpu_options()
            for key in [k for k in options if k not in known]:
                _warn(f"Provider '{name}' has no option '{key}': it is ignored")
                del options[key]
        wanted.options[name] = options
    if wanted.unknown and not wanted.names:
        wanted.names.append("cpu")
    return wanted


def engine_options(options: SessionOptions, wanted: Wanted) -> dict[str, Any]:
    """What the compiled half opens a session with."""
    engine = options._to_engine()
    engine["providers"] = wanted.names
    engine["provider_options"] = [(name, list(own.items())) for name, own in wanted.options.items() if own]
    return engine


def options_of(providers: Providers | None, sess_options: SessionOptions | None) -> dict[str, Any]:
    """The same from the arguments of a class that opens sessions of its own."""
    options = sess_options if sess_options is not None else SessionOptions()
    return engine_options(options, normalize(providers, None, options._is_strict()))


def _identity(name: str) -> tuple[str, bool]:
    """What two spellings of one provider have in common."""
    return ort_name(name), name.lower().startswith("ort:")


def is_own_cpu(name: str) -> bool:
    """Whether this is our CPU provider, and not ONNX Runtime's by way of its library."""
    return _identity(name) == ("CPUExecutionProvider", False)


def _pairs(providers: Providers, provider_options: Sequence[Mapping[str, Any]] | None) -> list[tuple[str, Mapping[str, Any]]]:
    if isinstance(providers, str):
        providers = [providers]
    if provider_options is not None and len(provider_options) != len(providers):
        raise InvalidArgument(f"provider_options must be as many as providers ({len(providers)}), received {len(provider_options)}")
    pairs: list[tuple[str, Mapping[str, Any]]] = []
    own: Mapping[str, Any]
    for i, item in enumerate(providers):
        if isinstance(item, str):
            name, own = item, {}
        elif isinstance(item, (tuple, list)) and len(item) == 2 and isinstance(item[0], str) and isinstance(item[1], Mapping):
            name, own = item
        else:
            raise InvalidArgument(f"a provider is its name, or a pair of name and options, received {item!r}")
        if provider_options is not None:
            if own:
                raise InvalidArgument(f"the options of '{name}' are given twice: with it, and in provider_options")
            own = provider_options[i]
        pairs.append((name, own))
    return pairs


def warn_of_unavailable(wanted: Wanted, fallbacks: Sequence[str]) -> None:
    """In ONNX Runtime's words, for providers that this machine lacks. `fallbacks`: those of a session's report."""
    asked = [name for name in wanted.names if not is_own_cpu(name)]
    if not asked or not fallbacks:
        return
    available = {p["name"]: p["ort_name"] for p in engine_providers() if p["available"]}
    for name in asked:
        if name.lower() in available or ort_name(name) in available.values() or not name.endswith("ExecutionProvider"):
            continue
        known = ", ".join(available.values())
        _warn(f"Specified provider '{name}' is not in available provider names. Available providers: '{known}'. {fallbacks[0]}")


def _unheard_of(name: str) -> bool:
    """Of another runtime's providers there may always be one more. Short names are ours: an unknown one is misspelt."""
    if not name.endswith("ExecutionProvider"):
        return False
    try:
        ort_name(name)
    except InvalidArgument:
        return True
    return False


def _warn(message: str) -> None:
    level = 2  # up to the line outside this package that makes the session
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__package__") == __package__:
        frame = frame.f_back
        level += 1
    warnings.warn(message, UserWarning, stacklevel=level)


def get_available_providers() -> list[str]:
    """ONNX Runtime's names of the providers that work on this machine, in the order of automatic selection."""
    return [p["ort_name"] for p in engine_providers() if p["available"]]


def get_all_providers() -> list[str]:
    """The same of all that there are, the CPU's last."""
    names = [p["ort_name"] for p in engine_providers()]
    return sorted(names, key=lambda name: name == "CPUExecutionProvider")


def get_device() -> str:
    """"CPU", or "GPU" where a provider for one works."""
    available = get_available_providers()
    gpus = {"CUDAExecutionProvider", "TensorrtExecutionProvider", "ROCMExecutionProvider", "MIGraphXExecutionProvider", "DmlExecutionProvider"}
    return "GPU" if gpus.intersection(available) else "CPU"
