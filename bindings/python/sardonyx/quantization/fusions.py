"""Several nodes of an ONNXModel become one that other engines know. The engine itself fuses more than this when it opens a model."""

from __future__ import annotations

from typing import Any

import numpy as np

from .onnx_model import ONNXModel, replace_all, subgraphs
from .quant_utils import ms_domain

_TOLERANCE = 1e-4  # exporters write 1.4142 as well as sqrt(2)


class GraphView:
    """Who gives and who reads the values of a graph, and its constants, as it is when this is made."""

    def __init__(self, model: ONNXModel):
        import onnx

        self.model = model
        self.makers = model.output_name_to_node()
        self.readers = model.input_name_to_nodes()
        self.outputs = {output.name for output in model.graph().output}
        self._to_array = onnx.numpy_helper.to_array
        self._attribute = onnx.helper.get_attribute_value
        self._tensors = {tensor.name: tensor for tensor in model.initializer()}
        for node in model.nodes():
            if node.op_type == "Constant":
                self._tensors.update({node.output[0]: a.t for a in node.attribute if a.name == "value"})

    def constant(self, name: str) -> Any:
        """As an array; None: it is none."""
        tensor = self._tensors.get(name)
        return None if tensor is None else self._to_array(tensor)

    def is_number(self, name: str, value: float) -> bool:
        array = self.constant(name)
        return array is not None and array.size == 1 and abs(float(array.reshape(())) - value) <= _TOLERANCE * max(abs(value), 1e-9)

    def attribute(self, node: Any, name: str, default: Any) -> Any:
        return next((self._attribute(a) for a in node.attribute if a.name == name), default)

    def maker(self, name: str, op: str) -> Any:
        """The node that gives a value, if it has this operator."""
        node = self.makers.get(name)
        return node if node is not None and node.op_type == op and node.domain in ("", "ai.onnx") else None

    def reader(self, name: str, *ops: str) -> Any:
        """The only node that reads a value, if it has one of these operators."""
        readers = self.readers.get(name, [])
        fits = len(readers) == 1 and name not in self.outputs and readers[0].op_type in ops
        return readers[0] if fits else None

    def other(self, node: Any, name: str) -> str | None:
        """The second operand of a node with two."""
        if len(node.input) != 2 or name not in node.input:
            return None
        return str(node.input[1] if node.input[0] == name else node.input[0])

    def axes(self, node: Any) -> tuple[int, ...] | None:
        """Of a reduction that keeps the dimensions."""
        if not self.attribute(node, "keepdims", 1):
            return None
        axes = self.attribute(node, "axes", None)
        if axes is None and len(node.input) > 1:
            axes = self.constant(node.input[1])
        return None if axes is None else tuple(int(a) for a in axes)

    def shape(self, name: str) -> list[int | None] | None:
        kind = self.model.get_tensor_type(name)
        if kind is None or not kind.HasField("shape"):
            return None
        return [d.dim_value if d.HasField("dim_value") else None for d in kind.shape.dim]

    def is_last(self, axes: tuple[int, ...], name: str) -> bool:
        """Whether the axes are the value's last one."""
        shape = self.shape(name)
        return axes == (-1,) or (shape is not None and axes == (len(shape) - 1,))


class Fusion:
    """Finds a pattern by one of its operators and writes it as one node."""

    search_op_type = ""
    fused_op_type = ""
    domain = ""

    def __init__(self, model: ONNXModel):
        self.model = model

    def match(self, view: GraphView, node: Any) -> tuple[Any, list[str], dict[str, Any]] | None:
        """(the pattern's last node, inputs and attributes of the fused one), or None."""
        raise NotImplementedError(f"{type(self).__name__} matches nothing")

    def apply(self) -> bool:
        """Whether the model was changed."""
        import onnx

        view = GraphView(self.model)
        names = {node.name for node in self.model.nodes()}
        fused: dict[str, Any] = {}  # by the first output of the node that it stands for
        for node in self.model.nodes():
            found = self.match(view, node) if node.op_type == self.search_op_type else None
            if found is None:
                continue
            last, inputs, attributes = found
            name = next(n for i in range(len(names) + 1) if (n := f"{self.fused_op_type}_{i}") not in names)
            names.add(name)
            made = onnx.helper.make_node(self.fused_op_type, inputs, [last.output[0]], name=name, domain=self.domain or None, **attributes)
            fused[last.output[0]] = made
        if not fused:
            return False
        nodes = [fused.get(node.output[0], node) if node.output else node for node in self.model.nodes()]
        self._replace(_alive(nodes, view.outputs))
        if self.domain and all(opset.domain != self.domain for opset in self.model.opset_import()):
            self.model.set_opset_import(self.domain, 1)
        return True

    def _replace(self, nodes: list[Any]) -> None:
        graph = self.model.graph()
        replace_all(graph.node, nodes)
        read = names_read(graph.node) | {output.name for output in graph.output}
        constants = [tensor for tensor in graph.initializer if tensor.name not in read]
        self.model.remove_initializers(constants)


def names_read(nodes: Any) -> set[str]:
    """Names that nodes read, those of the graphs inside them too."""
    names: set[str] = set()
    for node in nodes:
        names.update(node.input)
        for graph in subgraphs(node):
            names |= names_read(graph.node) | {output.name for output in graph.output}
    return names


def _alive(nodes: list[Any], outputs: set[str]) -> list[Any]:
    """The nodes without those whose results nobody reads."""
    while True:
        read = names_read(nodes) | outputs
        kept = [node for node in nodes if any(name in read for name in node.output)]
        if len(kept) == len(nodes):
            return kept
        nodes = kept


class FusionGelu(Fusion):
    """x * 0.5 * (1 + Erf(x / sqrt(2))), the factors in any order."""

    search_op_type = "Erf"
    fused_op_type = "Gelu"
    domain = ms_domain

    def match(self, view: GraphView, node: Any) -> tuple[Any, list[str], dict[str, Any]] | None:
        x = self._scaled(view, node.input[0])
        add = view.reader(node.output[0], "Add")
        one = None if add is None else view.other(add, node.output[0])
        if x is None or one is None or not view.is_number(one, 1):
            return None
        last, left = add, {"x", "half"}
        while left:
            mul = view.reader(last.output[0], "Mul")
            factor = None if mul is None else view.other(mul, last.output[0])
            if factor is None:
                return None
            if factor == x:
                done = {"x"}
            elif view.is_number(factor, 0.5):
                done = {"half"}
            else:
                inner = view.maker(factor, "Mul")
                half = None if inner is None else view.other(inner, x)
                done = {"x", "half"} if half is not None and view.is_number(half, 0.5) else set()
            if not done or not done <= left:
                return None
            last, left = mul, left - done
        return last, [x], {}

    def _scaled(self, view: GraphView, name: str) -> str | None:
        """x, of x / sqrt(2)."""
        div = view.maker(name, "Div")
        if div is not None:
            return str(div.input[0]) if view.is_number(div.input[1], 2**0.5) else None
        mul = view.maker(name, "Mul")
        for a, b in [] if mul is None else [(0, 1), (1, 0)]:
            if view.is_number(mul.input[a], 0.5**0.5):
                return str(mul.input[b])
        return None


class FusionLayerNormalization(Fusion):
    """d / Sqrt(ReduceMean(d * d) + epsilon) * scale + bias with d = x - ReduceMean(x), along the last axis. Needs opset 17."""

    search_op_type = "Sqrt"
    fused_op_type = "LayerNormalization"

    def match(self, view: GraphView, node: Any) -> tuple[Any, list[str], dict[str, Any]] | None:
        add = view.maker(node.input[0], "Add")
        div = view.reader(node.output[0], "Div")
        if add is None or div is None or div.input[1] != node.output[0]:
            return None
        variance, epsilon = next(((v, e) for v, e in (add.input, reversed(add.input)) if view.constant(e) is not None), ("", ""))
        number = view.constant(epsilon)
        x = self._centred(view, view.maker(variance, "ReduceMean"), div.input[0])
        mul = view.reader(div.output[0], "Mul")
        scale = None if mul is None else view.other(mul, div.output[0])
        last = None if mul is None else view.reader(mul.output[0], "Add")
        bias = None if last is None else view.other(last, mul.output[0])
        if x is None or scale is None or bias is None or number is None or number.size != 1:
            return None
        for parameter in (scale, bias):
            array = view.constant(parameter)
            if array is None or array.ndim != 1:
                return None
        return last, [x, scale, bias], {"axis": -1, "epsilon": float(number.reshape(()))}

    def _centred(self, view: GraphView, mean: Any, d: str) -> str | None:
        """x, where `mean` is that of the squares of d = x - ReduceMean(x)."""
        sub = view.maker(d, "Sub")
        square = None if mean is None else view.maker(mean.input[0], "Pow") or view.maker(mean.input[0], "Mul")
        if sub is None or square is None or square.input[0] != d:
            return None
        if not (view.is_number(square.input[1], 2) if square.op_type == "Pow" else square.input[1] == d):
            return None
        x = str(sub.input[0])
        first = view.maker(sub.input[1], "ReduceMean")
        if first is None or first.input[0] != x:
            return None
        both = (view.axes(mean), view.axes(first))
        return x if all(axes is not None and view.is_last(axes, x) for axes in both) else None


class FusionLpNormalization(Fusion):
    """x / Expand(Clip(ReduceL2(x), epsilon)), along the last axis."""

    search_op_type = "ReduceL2"
    fused_op_type = "LpNormalization"

    def __init__(self, model: ONNXModel, epsilon: float = 1e-12):
        super().__init__(model)
        self.epsilon = epsilon

    def match(self, view: GraphView, node: Any) -> tuple[Any, list[str], dict[str, Any]] | None:
        x = str(node.input[0])
        axes = view.axes(node)
        clip = view.reader(node.output[0], "Clip")
        expand = None if clip is None else view.reader(clip.output[0], "Expand")
        if axes is None or expand is None:
            return None
        div = view.reader(expand.output[0], "Div")
        if div is None or list(div.input) != [x, expand.output[0]] or not view.is_last(axes, x):
            return None
        bounded = len(clip.input) == 2 and view.is_number(clip.input[1], self.epsilon)
        return (div, [x], {"axis": -1, "p": 2}) if bounded and self._same_shape(view, expand.input[1], x) else None

    def _same_shape(self, view: GraphView, shape: str, x: str) -> bool:
        taken = view.maker(shape, "Shape")
        if taken is not None:
            return bool(taken.input[0] == x)
        array = view.constant(shape)
        return array is not None and view.shape(x) == [int(d) for d in array]


class FusionSpaceToDepth(Fusion):
    """Reshape, Transpose and Reshape that move blocks of a picture into its channels, as YOLO does."""

    search_op_type = "Transpose"
    fused_op_type = "SpaceToDepth"

    def match(self, view: GraphView, node: Any) -> tuple[Any, list[str], dict[str, Any]] | None:
        split = view.maker(node.input[0], "Reshape")
        join = view.reader(node.output[0], "Reshape")
        if split is None or join is None or view.reader(split.output[0], "Transpose") is None:
            return None
        parts, whole = view.constant(split.input[1]), view.constant(join.input[1])
        shape = view.shape(split.input[0])
        if parts is None or whole is None or shape is None or len(shape) != 4 or None in shape:
            return None
        n, c, h, w = (int(d) for d in shape)  # type: ignore[arg-type]
        blocks = {int(p) for p in (parts[3], parts[5])} if len(parts) == 6 else set()
        if len(blocks) != 1 or list(view.attribute(node, "perm", [])) != [0, 3, 5, 1, 2, 4]:
            return None
        block = blocks.pop()
        fits = block > 0 and h % block == 0 and w % block == 0
        if not fits or list(parts) != [n, c, h // block, block, w // block, block]:
            return None
        wanted = np.array([n, c * block * block, h // block, w // block])
        return (join, [str(split.input[0])], {"blocksize": block}) if np.array_equal(whole, wanted) else None


__all__ = ["Fusion", "FusionGelu", "FusionLayerNormalization", "FusionLpNormalization", "FusionSpaceToDepth"]
