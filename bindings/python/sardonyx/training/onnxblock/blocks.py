"""Blocks of one or a few nodes. Each takes and returns names of values."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Optional, Union

import numpy as np

from ._base import current, new_name


class Block(ABC):
    """Adds nodes to `self.base`, the model, in build(), which gets names of values and returns those of its outputs."""

    base: Any = None

    def __init__(self, temp_file_name: str = "temp.onnx") -> None:
        self.base = None

    @abstractmethod
    def build(self, *args: Any, **kwargs: Any) -> Any: ...

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.base = current().model
        return self.build(*args, **kwargs)

    def infer_shapes_on_base(self) -> Any:
        import onnx

        return onnx.shape_inference.infer_shapes(current().model)

    def _constant(self, what: str, value: Any) -> str:
        """Of a Constant node: initializers are trained where nobody says which are."""
        import onnx

        name = new_name(what)
        tensor = onnx.numpy_helper.from_array(np.asarray(value), name)
        self.base.graph.node.append(onnx.helper.make_node("Constant", [], [name], new_name("Constant"), value=tensor))
        return name

    def _weights(self, what: str, value: Any) -> str:
        import onnx

        name = new_name(what)
        self.base.graph.initializer.append(onnx.numpy_helper.from_array(np.asarray(value), name))
        return name

    def _node(
        self, op: str, inputs: Sequence[str], outputs: Union[str, Sequence[str]] = "", domain: str = "", **attributes: Any
    ) -> str:
        """Adds the node; returns its first output."""
        import onnx

        names = [outputs] if isinstance(outputs, str) else list(outputs)
        names[0] = names[0] or new_name(f"{op.lower()}_output")
        attributes = {k: v for k, v in attributes.items() if v is not None}
        self.base.graph.node.append(onnx.helper.make_node(op, list(inputs), names, new_name(op), domain=domain, **attributes))
        return names[0]


class _BinaryOp(Block):
    def __init__(self, op_name: str) -> None:
        super().__init__()
        self._op_name = op_name

    def build(self, input_name1: str, input_name2: str) -> str:
        return self._node(self._op_name, [input_name1, input_name2])


class Add(_BinaryOp):
    def __init__(self) -> None:
        super().__init__("Add")


class Sub(_BinaryOp):
    def __init__(self) -> None:
        super().__init__("Sub")


class Mul(_BinaryOp):
    def __init__(self) -> None:
        super().__init__("Mul")


class Div(_BinaryOp):
    def __init__(self) -> None:
        super().__init__("Div")


class Pow(Block):
    def __init__(self, exponent: float) -> None:
        super().__init__()
        self._exponent = exponent

    def build(self, pow_input_name: str) -> str:
        return self._node("Pow", [pow_input_name, self._constant("pow_exponent", np.array([self._exponent], np.float32))])


class _UnaryOp(Block):
    def __init__(self, op_name: str, **attributes: Any) -> None:
        super().__init__()
        self._op_name, self._attributes = op_name, attributes

    def build(self, input_name: str) -> str:
        return self._node(self._op_name, [input_name], **self._attributes)


class ReduceMean(_UnaryOp):
    def __init__(self, keepdims: bool = True) -> None:
        super().__init__("ReduceMean", keepdims=int(keepdims))


class ReduceSum(_UnaryOp):
    def __init__(self, keepdims: bool = True) -> None:
        super().__init__("ReduceSum", keepdims=int(keepdims))


class Sigmoid(_UnaryOp):
    def __init__(self) -> None:
        super().__init__("Sigmoid")


class Log(_UnaryOp):
    def __init__(self) -> None:
        super().__init__("Log")


class Neg(_UnaryOp):
    def __init__(self) -> None:
        super().__init__("Neg")


class Abs(_UnaryOp):
    def __init__(self) -> None:
        super().__init__("Abs")


class Constant(Block):
    """A float32 constant of one element."""

    def __init__(self, value_float: float) -> None:
        super().__init__()
        self._value = value_float

    def build(self) -> str:
        return self._constant("initializer", np.array([self._value], np.float32))


class SequenceConstruct(Block):
    def build(self, *sequence_input_names: str) -> str:
        return self._node("SequenceConstruct", sequence_input_names)


class ReduceAllL2(Block):
    """com.microsoft: the norm of all inputs together."""

    def build(self, *reduce_node_input_names: str) -> str:
        return self._node("ReduceAllL2", reduce_node_input_names, domain="com.microsoft")


class Clip(Block):
    def __init__(self, clip_min: Optional[float] = None, clip_max: Optional[float] = None) -> None:
        super().__init__()
        self._min, self._max = clip_min, clip_max

    def build(self, clip_input_name: str) -> str:
        def bound(what: str, value: Optional[float]) -> str:
            return "" if value is None else self._constant(what, np.array(value, np.float32))

        return self._node("Clip", [clip_input_name, bound("clip_min", self._min), bound("clip_max", self._max)])


class PassThrough(Block):
    """What it gets."""

    def __init__(self, **_: Any) -> None:
        super().__init__()

    def build(self, *input_names: str) -> Any:
        return input_names[0] if len(input_names) == 1 else input_names


class InputLike(Block):
    """A new input of the type and shape of a value."""

    def __init__(self, like: str) -> None:
        super().__init__()
        self._like = like

    def build(self, input_name: Optional[str] = None) -> str:
        made = self.base.graph.input.add()
        made.CopyFrom(value_info(self.base, self._like))
        made.name = input_name or new_name("input")
        found: str = made.name
        return found


class LabelEncoder(Block):
    """ai.onnx.ml LabelEncoder."""

    def __init__(
        self,
        default_float: float = 0.0,
        default_int64: int = -1,
        default_string: str = "_Unused",
        keys_floats: Optional[Sequence[float]] = None,
        keys_int64s: Optional[Sequence[int]] = None,
        keys_strings: Optional[Sequence[str]] = None,
        values_floats: Optional[Sequence[float]] = None,
        values_int64s: Optional[Sequence[int]] = None,
        values_strings: Optional[Sequence[str]] = None,
    ) -> None:
        super().__init__()
        self._attributes: dict[str, Any] = {
            "default_float": default_float,
            "default_int64": default_int64,
            "default_string": default_string,
            "keys_floats": keys_floats,
            "keys_int64s": keys_int64s,
            "keys_strings": keys_strings,
            "values_floats": values_floats,
            "values_int64s": values_int64s,
            "values_strings": values_strings,
        }

    def build(self, label_encoder_input_name: str) -> str:
        import onnx

        if not any(o.domain == "ai.onnx.ml" for o in self.base.opset_import):
            self.base.opset_import.append(onnx.helper.make_opsetid("ai.onnx.ml", 3))
        return self._node("LabelEncoder", [label_encoder_input_name], domain="ai.onnx.ml", **self._attributes)


class Cast(Block):
    def __init__(self, to: int) -> None:
        super().__init__()
        self._to = to

    def build(self, cast_input_name: str) -> str:
        return self._node("Cast", [cast_input_name], to=int(self._to))


class Linear(Block):
    """A new layer: Gemm with random weights."""

    def __init__(self, in_features: int, out_features: int, bias: bool = True, alpha: float = 1.0, beta: float = 1.0) -> None:
        super().__init__()
        self._shape, self._bias = (out_features, in_features), bias
        self._alpha, self._beta = alpha, beta

    def build(self, linear_input_name: str) -> str:
        bound = 1 / math.sqrt(self._shape[1])
        draw = np.random.default_rng().uniform
        inputs = [linear_input_name, self._weights("linear.weight", draw(-bound, bound, self._shape).astype(np.float32))]
        if self._bias:
            inputs.append(self._weights("linear.bias", draw(-bound, bound, self._shape[:1]).astype(np.float32)))
        return self._node("Gemm", inputs, alpha=float(self._alpha), beta=float(self._beta), transB=1)


def exists(model: Any, name: str) -> bool:
    """Whether any node reads or makes the value, or it is an input."""
    graph = model.graph
    return any(name in node.input or name in node.output for node in graph.node) or any(i.name == name for i in graph.input)


def value_info(model: Any, name: str) -> Any:
    """What is known of the value's type; its shape is inferred where the model does not say it."""
    import onnx

    for inferred in (False, True):
        graph = (onnx.shape_inference.infer_shapes(model) if inferred else model).graph
        for info in [*graph.input, *graph.output, *graph.value_info]:
            if info.name == name and info.type.tensor_type.HasField("shape"):
                return info
    raise LookupError(f"Could not find input or output with name {name}")
