"""Sessions and values, under the module that ONNX Runtime's package keeps them in."""

from __future__ import annotations

import sys
import warnings
from typing import Any, Mapping, Sequence

import numpy as np

import sardonyx
from sardonyx import NodeArg, _dropin_gpu

from .. import _names
from . import _pybind_state as C  # noqa: F401, N812

_find = _names.resolver(_names.PUBLIC, globals())


def __getattr__(name: str) -> Any:
    return _find(name)


class InferenceSession(sardonyx.InferenceSession):
    """sardonyx.InferenceSession, with ONNX Runtime's answers where the two differ: a value of unknown rank has the shape [], inputs must have
    the sizes that the model declares, and a model that was given as bytes is kept for set_providers."""

    def __init__(self, path_or_bytes: Any, sess_options: Any = None, providers: Any = None, provider_options: Any = None, **kwargs: Any) -> None:
        _check_threads(sess_options)
        self._model_bytes = path_or_bytes if isinstance(path_or_bytes, bytes) else None
        providers, provider_options = _dropin_gpu.served(providers, provider_options)
        super().__init__(path_or_bytes, sess_options, providers, provider_options, **kwargs)
        for node in (*self._inputs, *self._outputs, *self._overridable):
            if node.shape is None:
                node.shape = []
        nodes = (n for n in (*self._inputs, *self._overridable) if n.type.startswith("tensor("))
        self._extents = {n.name: n.shape for n in nodes if any(isinstance(extent, int) for extent in n.shape or [])}

    def set_providers(self, providers: Any = None, provider_options: Any = None) -> None:
        super().set_providers(*_dropin_gpu.served(providers, provider_options))

    def _model_again(self) -> Any:
        return self._path if self._path is not None else self._model_bytes

    def run(self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any], run_options: Any = None) -> list[Any]:
        if self._extents:
            _check_extents(self._extents, input_feed)
        return super().run(output_names, input_feed, run_options)

    def _run_into(self, output_names: Any, input_feed: Mapping[str, Any], run_options: Any, bound: Any) -> list[Any]:
        if self._extents:
            _check_extents(self._extents, input_feed)
        return super()._run_into(output_names, input_feed, run_options, bound)

    @property
    def _inputs_meta(self) -> list[NodeArg]:
        return self._inputs

    @property
    def _outputs_meta(self) -> list[NodeArg]:
        return self._outputs


Session = sardonyx.InferenceSession


def _check_threads(options: Any) -> None:
    process = sys.modules.get("sardonyx._process")
    if process is not None and process.global_pool and (options is None or options.use_per_session_threads):
        raise C.Fail("use_per_session_threads must be false when using a global thread pool")


def _check_extents(declared: Mapping[str, Sequence[Any]], feed: Mapping[str, Any]) -> None:
    """In ONNX Runtime's words, which programs look for."""
    for name, extents in declared.items():
        value = feed.get(name)
        if value is None:
            continue
        shape = getattr(value, "shape", None)
        if type(shape) is not tuple:
            shape = tuple(shape()) if callable(shape) else np.shape(value)
        if len(shape) != len(extents):
            raise C.InvalidArgument(
                f"Invalid rank for input: {name} Got: {len(shape)} Expected: {len(extents)} Please fix either the inputs/outputs or the model."
            )
        wrong = [
            f" index: {i} Got: {got} Expected: {wanted}\n" for i, (got, wanted) in enumerate(zip(shape, extents)) if isinstance(wanted, int) and got != wanted
        ]
        if wrong:
            raise C.InvalidArgument(
                f"Got invalid dimensions for input: {name} for the following indices\n{''.join(wrong)} Please fix either the inputs/outputs or the model."
            )


def get_ort_device_type(device_type: str) -> int:
    """The number of a kind of device: "cpu", "cuda"."""
    from sardonyx._devices import OrtDevice

    return OrtDevice.make(device_type, 0).device_type()


def check_and_normalize_provider_args(
    providers: Sequence[Any] | None, provider_options: Sequence[Mapping[Any, Any]] | None, available_provider_names: Sequence[str]
) -> tuple[list[str], list[dict[str, str]]]:
    """Names and options, one each, from the forms in which sessions take them."""
    if providers is None:
        return [], []
    if not isinstance(providers, Sequence):
        raise ValueError("`providers` must be a sequence")
    if provider_options is not None:
        if not isinstance(provider_options, Sequence):
            raise ValueError("`provider_options` must be a sequence")
        if len(provider_options) != len(providers):
            raise ValueError(f"`providers` has {len(providers)} items, `provider_options` {len(provider_options)}: their numbers must be equal")
        if not all(isinstance(o, Mapping) for o in provider_options):
            raise ValueError("`provider_options` must hold dicts")
    found: dict[str, dict[str, str]] = {}
    for i, item in enumerate(providers):
        name, options = (item, {}) if isinstance(item, str) else item if _is_pair(item) else (None, {})
        if name is None:
            raise ValueError(f"a provider is its name, or a pair of name and options, received {item!r}")
        if provider_options is not None:
            if options:
                raise ValueError(f"the options of '{name}' are given twice: with it, and in `provider_options`")
            options = provider_options[i]
        if name not in available_provider_names:
            known = ", ".join(available_provider_names)
            warnings.warn(f"Specified provider '{name}' is not in available provider names. Available providers: '{known}'", stacklevel=2)
        if name in found:
            warnings.warn(f"Duplicate provider '{name}' encountered, ignoring.", stacklevel=2)
        else:
            found[name] = {str(k): str(v) for k, v in options.items()}
    return list(found), list(found.values())


def _is_pair(item: Any) -> bool:
    return isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str) and isinstance(item[1], Mapping)
