"""Constant matrices of MatMul in 4-bit floats, as bitsandbytes has them: MatMulBnb4."""

from __future__ import annotations

import argparse
import os
from typing import Any, Sequence

import numpy as np

from ._models import ModelInput
from ._models import load as load_model
from .blocks import FP4 as _FP4
from .blocks import NF4 as _NF4
from .blocks import quantize_matmul_bnb4
from .onnx_model import ONNXModel, replace_all, subgraphs
from .quant_utils import ms_domain


class MatMulBnb4Quantizer:
    """process() changes `.model`, an ONNXModel, in its branches and loops too. quant_type: FP4 or NF4. Needs the package `onnx`."""

    FP4 = _FP4
    NF4 = _NF4

    def __init__(
        self, model: ModelInput | ONNXModel, quant_type: int, block_size: int, nodes_to_exclude: Sequence[str] | None = None
    ):
        if quant_type not in (self.FP4, self.NF4):
            raise ValueError(f"quant_type is 0 (FP4) or 1 (NF4), received {quant_type}")
        if not isinstance(model, ONNXModel):
            model = ONNXModel(model if hasattr(model, "SerializeToString") else load_model(os.fspath(model)))
        self.model = model
        self.quant_type = quant_type
        self.block_size = block_size
        self.nodes_to_exclude = set(nodes_to_exclude or ())

    def process(self) -> None:
        self._process(self.model.graph(), [])
        self.model.set_opset_import(ms_domain, 1)

    def _process(self, graph: Any, around: list[Any]) -> None:
        graphs = [graph, *around]
        for node in graph.node:
            for inside in subgraphs(node):
                self._process(inside, graphs)
            if node.op_type == "MatMul" and node.domain in ("", "ai.onnx") and node.name not in self.nodes_to_exclude:
                self._quantize(node, graphs)
        _drop_unread(graph)

    def _quantize(self, node: Any, graphs: list[Any]) -> None:
        import onnx

        name = node.input[1]
        found: tuple[Any, Any] | None = next(((g, t) for g in graphs for t in g.initializer if t.name == name), None)
        if found is None:
            return
        home, tensor = found
        if len(tensor.dims) != 2 or tensor.data_type not in (onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16):
            return
        matrix = onnx.numpy_helper.to_array(tensor)
        k, n = matrix.shape
        names = [f"{name}_Bnb4", f"{name}_absmax"]
        if all(t.name != names[0] for t in home.initializer):
            packed = np.zeros((matrix.size + 1) // 2, dtype=np.uint8)
            absmax = np.zeros(-(-matrix.size // self.block_size), dtype=matrix.dtype)
            quantize_matmul_bnb4(packed, matrix.T, absmax, self.block_size, self.quant_type, n, k)
            home.initializer.extend(onnx.numpy_helper.from_array(a, b) for a, b in zip((packed, absmax), names))
        settings = {"K": k, "N": n, "block_size": self.block_size, "quant_type": self.quant_type}
        new = onnx.helper.make_node(
            "MatMulBnb4",
            [node.input[0], *names],
            list(node.output),
            name=f"{node.name}_Bnb4" if node.name else "",
            domain=ms_domain,
            **settings,
        )
        node.CopyFrom(new)


def _drop_unread(graph: Any) -> None:
    """The matrices that nodes had before."""
    from .fusions import names_read

    read = names_read(graph.node) | {output.name for output in graph.output}
    names = {tensor.name for tensor in graph.initializer}
    gone = {name for name in names if f"{name}_Bnb4" in names} - read
    if gone:
        for field in (graph.initializer, graph.input):
            replace_all(field, [each for each in field if each.name not in gone])


def parse_args(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Writes constant matrices of MatMul in 4-bit floats.")
    parser.add_argument("--input_model", required=True)
    parser.add_argument("--output_model", required=True)
    parser.add_argument("--quant_type", default=_NF4, type=int, choices=[_FP4, _NF4], help="0: FP4, 1: NF4")
    parser.add_argument("--block_size", default=64, type=int)
    parser.add_argument("--nodes_to_exclude", nargs="*", default=[])
    return parser.parse_args(arguments)


def main() -> None:
    args = parse_args()
    quantizer = MatMulBnb4Quantizer(args.input_model, args.quant_type, args.block_size, args.nodes_to_exclude)
    quantizer.process()
    quantizer.model.save_model_to_file(args.output_model, True)


__all__ = ["MatMulBnb4Quantizer"]

if __name__ == "__main__":
    main()
