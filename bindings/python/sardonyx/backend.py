"""ONNX's Backend interface (onnx.backend.base), for ONNX's own test runner and whoever programs against it:

    import onnx.backend.test, sardonyx.backend
    globals().update(onnx.backend.test.BackendTest(sardonyx.backend, __name__).test_cases)
"""

from __future__ import annotations

import os
from typing import Any, Mapping, Sequence

import numpy as np
import onnx
from onnx import helper
from onnx.backend.base import Backend, BackendRep, namedtupledict

from . import _types
from ._options import RunOptions, SessionOptions
from ._providers import get_device
from ._session import InferenceSession


class SardonyxBackendRep(BackendRep):
    """A model that is ready to run."""

    def __init__(self, session: InferenceSession) -> None:
        self.session = session

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """inputs: one value per input of the model in order (trailing ones with defaults may be left out), a dict by name, or the single
        input itself. Keywords: attributes of RunOptions. Returns the outputs, in order and by name."""
        declared = [i.name for i in self.session.get_inputs()] + [i.name for i in self.session.get_overridable_initializers()]
        if isinstance(inputs, Mapping):
            feed = {declared[0]: inputs} if self._is_the_map(inputs, declared) else dict(inputs)
        elif isinstance(inputs, (list, tuple)):
            if len(inputs) > len(declared):
                raise ValueError(f"the model has {len(declared)} inputs, received {len(inputs)}")
            feed = dict(zip(declared, inputs))
        elif len(declared) == 1:
            feed = {declared[0]: inputs}
        else:
            raise ValueError(f"the model has {len(declared)} inputs, received one value that is not a list")
        options = RunOptions()
        for name, value in kwargs.items():
            if hasattr(options, name):
                setattr(options, name, value)
        names = [o.name for o in self.session.get_outputs()]
        return namedtupledict("Outputs", names)(*self.session.run(None, feed, options))

    def _is_the_map(self, inputs: Mapping[Any, Any], declared: list[str]) -> bool:
        """Whether a dict is the value of the model's only input, and not its inputs by name."""
        return len(declared) == 1 and declared[0] not in inputs and self.session.get_inputs()[0].type.startswith("map(")


class SardonyxBackend(Backend):
    """The engine behind ONNX's interface."""

    @classmethod
    def is_compatible(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> bool:
        """Whether the model can be loaded."""
        try:
            cls.prepare(model, device, **kwargs)
        except RuntimeError:
            return False
        return True

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """"CPU", or "CUDA" where a provider for such a GPU works. A number after a colon is accepted."""
        kind = device.split(":", 1)[0].upper()
        return kind == "CPU" or (kind in ("CUDA", "GPU") and get_device() == "GPU")

    @classmethod
    def prepare(cls, model: Any, device: str = "CPU", **kwargs: Any) -> SardonyxBackendRep:
        """model: onnx.ModelProto, bytes, a path, a session or what prepare returned. Keywords: attributes of SessionOptions;
        others are ignored, as the test runner passes tolerances this way."""
        if isinstance(model, SardonyxBackendRep):
            return model
        if isinstance(model, InferenceSession):
            return SardonyxBackendRep(model)
        if not cls.supports_device(device):
            raise RuntimeError(f"device '{device}' is not available")
        options = SessionOptions()
        for name, value in kwargs.items():
            if hasattr(options, name):
                setattr(options, name, value)
        if isinstance(model, onnx.ModelProto):
            super().prepare(model, device)  # the checker
        elif not isinstance(model, (str, bytes, os.PathLike)):
            raise TypeError(f"prepare takes an onnx.ModelProto, bytes or a path, received {type(model).__name__}")
        return SardonyxBackendRep(InferenceSession(model, options))

    @classmethod
    def run_model(cls, model: Any, inputs: Any, device: str = "CPU", **kwargs: Any) -> tuple[Any, ...]:
        return cls.prepare(model, device, **kwargs).run(inputs, **kwargs)

    @classmethod
    def run_node(
        cls,
        node: onnx.NodeProto,
        inputs: Sequence[Any] | Mapping[str, Any],
        device: str = "CPU",
        outputs_info: Sequence[tuple[np.dtype, tuple[int, ...]]] | None = None,
        **kwargs: Any,
    ) -> tuple[Any, ...]:
        """Runs one node. inputs: arrays in the order of the node's inputs that have a name, or by name.
        Keyword opset_version: of the node's domain; default: the newest that the onnx package knows."""
        names = [n for n in dict.fromkeys(node.input) if n]
        values = dict(inputs) if isinstance(inputs, Mapping) else dict(zip(names, inputs))
        feeds = {n: np.asarray(v) for n, v in values.items()}
        graph_inputs = [helper.make_tensor_value_info(n, _types.onnx_number(feeds[n]), feeds[n].shape) for n in names]
        graph_outputs = [onnx.ValueInfoProto(name=n) for n in node.output if n]
        opset = kwargs.pop("opset_version", None)
        opsets = [helper.make_opsetid(node.domain, opset)] if opset else _newest_opsets(node.domain)
        graph = helper.make_graph([node], "node", graph_inputs, graph_outputs)
        model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
        return cls.prepare(model.SerializeToString(), device, **kwargs).run(feeds)


def _newest_opsets(domain: str) -> list[onnx.OperatorSetIdProto]:
    domains = dict.fromkeys(["", domain if domain != "ai.onnx" else ""])
    newest = {d: max((s.since_version for s in onnx.defs.get_all_schemas_with_history() if s.domain == d), default=1) for d in domains}
    return [helper.make_opsetid(d, v) for d, v in newest.items()]


is_compatible = SardonyxBackend.is_compatible
supports_device = SardonyxBackend.supports_device
prepare = SardonyxBackend.prepare
run_model = SardonyxBackend.run_model
run_node = SardonyxBackend.run_node
