"""Activations of several types: completes TensorQuantOverrides so that every operator has one type for what it reads and gives."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .quant_utils import QuantType
from .tensor_quant_overrides import QuantTypeInfo, TensorQuantOverridesHelper

_FLOATS = (1, 10)  # onnx.TensorProto.FLOAT, FLOAT16


@dataclass
class _Wanted:
    """Types that nodes want of one tensor."""

    given: QuantTypeInfo | None = None  # by the node that gives it
    read: QuantTypeInfo | None = None  # by some that read it
    readers: set[str] = field(default_factory=set)


class MixedPrecisionTensorQuantOverridesFixer:
    """Where an override gives a tensor another type than the default, the operators beside the tensor shall compute in it: their other
    operands and results get it too, and whoever else reads these gets them converted.

    op1 -> a -> op2 -> b, with 16 bits for b and 8 by default: op2 must read 16 bits, so a becomes {"quant_type": QUInt8, "convert":
    {"quant_type": QUInt16, "recv_nodes": {"op2"}}}."""

    def __init__(
        self,
        overrides: TensorQuantOverridesHelper,
        producers: dict[str, Any],
        consumers: dict[str, list[Any]],
        value_infos: dict[str, Any],
        initializers: dict[str, Any],
    ):
        self.overrides = overrides
        self.producers = producers
        self.consumers = consumers
        self.value_infos = value_infos
        self.initializers = initializers

    @staticmethod
    def create_from_model(
        overrides: TensorQuantOverridesHelper, model: Any, default_activation_qtype: QuantType
    ) -> MixedPrecisionTensorQuantOverridesFixer:
        """Of an onnx.ModelProto. Raises ValueError for overrides that do not fit it."""
        import onnx

        graph = onnx.shape_inference.infer_shapes(model).graph
        consumers: dict[str, list[Any]] = {}
        for node in graph.node:
            for name in filter(None, node.input):
                consumers.setdefault(name, []).append(node)
        fixer = MixedPrecisionTensorQuantOverridesFixer(
            overrides,
            {name: node for node in graph.node for name in node.output},
            consumers,
            {value.name: value for values in (graph.value_info, graph.output, graph.input) for value in values},
            {tensor.name: tensor for tensor in graph.initializer},
        )
        fixer._check(default_activation_qtype)
        return fixer

    def apply(self, default_activation_qtype: QuantType, default_activation_symmetric: bool) -> None:
        """Changes the overrides. Raises ValueError where two of them want different types of one tensor."""
        wanted = self._wants(QuantTypeInfo(default_activation_qtype, default_activation_symmetric))
        for tensor, want in wanted.items():
            self._settle(tensor, want, default_activation_qtype)
        self._check(default_activation_qtype)

    def _check(self, default: QuantType) -> None:
        valid, why = self.overrides.is_valid(self.initializers, self.value_infos.keys(), default)
        if not valid:
            raise ValueError(why)

    def _is_activation(self, tensor: str) -> bool:
        info = self.value_infos.get(tensor)
        return tensor not in self.initializers and info is not None and info.type.tensor_type.elem_type in _FLOATS

    def _wants(self, default: QuantTypeInfo) -> dict[str, _Wanted]:
        wanted: dict[str, _Wanted] = {}
        for tensor, entries in self.overrides.items():
            if len(entries) != 1 or "convert" in entries[0] or not self._is_activation(tensor):
                continue
            info = QuantTypeInfo.load_from_dict(entries[0], default.quant_type)
            if info == default:
                continue
            beside = [self.producers[tensor]] if tensor in self.producers else []
            for node in beside + self.consumers.get(tensor, []):
                self._want(wanted, node, info)
        return wanted

    def _want(self, wanted: dict[str, _Wanted], node: Any, info: QuantTypeInfo) -> None:
        for name in filter(self._is_activation, node.output):
            want = wanted.setdefault(name, _Wanted())
            if want.given is not None and want.given != info:
                raise ValueError(f"overrides want '{name}' as {want.given.quant_type} and as {info.quant_type}")
            want.given = info
        for name in filter(self._is_activation, node.input):
            want = wanted.setdefault(name, _Wanted())
            if want.read is not None and want.read != info:
                raise ValueError(f"overrides want readers of '{name}' to have {want.read.quant_type} and {info.quant_type}")
            if not node.name:
                raise ValueError(f"a {node.op_type} that reads '{name}' has no name, by which it could receive another type")
            want.read = info
            want.readers.add(node.name)

    def _settle(self, tensor: str, want: _Wanted, default: QuantType) -> None:
        everyone = {node.name for node in self.consumers.get(tensor, [])}
        given = want.given or self.overrides.get_node_output_qtype_info(tensor, default)
        if want.read is None:
            self._convert(tensor, given, QuantTypeInfo(default), everyone)
        elif given != want.read:
            self._convert(tensor, given, want.read, want.readers)
        elif want.given is None:
            second = (self.overrides.get(tensor) or [{}])[0].get("convert")
            if second is not None and ("recv_nodes" not in second or second["recv_nodes"] & want.readers):
                raise ValueError(f"the override of '{tensor}' converts it for readers that need the type before")
        else:
            self._convert(tensor, given, QuantTypeInfo(default), everyone - want.readers)

    def _convert(self, tensor: str, given: QuantTypeInfo, second: QuantTypeInfo, readers: set[str]) -> None:
        """The tensor is `given`, and `readers` get it as `second`."""
        if not self.overrides.get(tensor):
            self.overrides[tensor] = [{}]
            given.save_to_dict(self.overrides[tensor][0])
        entry = self.overrides[tensor][0]
        if QuantTypeInfo.load_from_dict(entry) != given:
            raise ValueError(f"the override of '{tensor}' has another type than the operator that gives it, {given.quant_type}")
        if not readers:
            return
        if "convert" not in entry:
            entry["convert"] = {}
            second.save_to_dict(entry["convert"])
        if QuantTypeInfo.load_from_dict(entry["convert"]) != second:
            raise ValueError(f"'convert' of '{tensor}' is to another type than its readers want, {second.quant_type}")
        entry["convert"].setdefault("recv_nodes", set()).update(readers)


__all__ = ["MixedPrecisionTensorQuantOverridesFixer"]
