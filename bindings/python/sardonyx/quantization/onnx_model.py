"""A ModelProto with the look-ups that scripts use."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any


def subgraphs(node: Any) -> list[Any]:
    """The branches and bodies of a NodeProto."""
    return [graph for attribute in node.attribute for graph in [*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs]]


def replace_all(field: Any, messages: Any) -> None:
    """Gives a repeated field these messages, which may be its own."""
    copies = [type(message).FromString(message.SerializeToString()) for message in messages]
    del field[:]
    field.extend(copies)


class ONNXModel:
    """Needs the package `onnx`."""

    def __init__(self, model: Any):
        self.model = model

    def nodes(self) -> Any:
        return self.model.graph.node

    def initializer(self) -> Any:
        return self.model.graph.initializer

    def initializer_extend(self, inits: Any) -> None:
        self.model.graph.initializer.extend(inits)

    def graph(self) -> Any:
        return self.model.graph

    def ir_version(self) -> int:
        return int(self.model.ir_version)

    def opset_import(self) -> Any:
        return self.model.opset_import

    def set_opset_import(self, domain: str, version: int) -> None:
        for opset in self.model.opset_import:
            if opset.domain == domain:
                opset.version = version
                return
        self.model.opset_import.add(domain=domain, version=version)

    def add_node(self, node: Any) -> None:
        self.model.graph.node.append(node)

    def add_nodes(self, nodes_to_add: Any) -> None:
        self.model.graph.node.extend(nodes_to_add)

    def remove_node(self, node: Any) -> None:
        if node in self.model.graph.node:
            self.model.graph.node.remove(node)

    def remove_nodes(self, nodes_to_remove: Any) -> None:
        for node in nodes_to_remove:
            self.remove_node(node)

    def add_initializer(self, tensor: Any) -> None:
        if self.get_initializer(tensor.name) is None:
            self.model.graph.initializer.append(tensor)

    def get_initializer(self, name: str) -> Any:
        return next((t for t in self.model.graph.initializer if t.name == name), None)

    def get_initializer_name_set(self) -> set[str]:
        return {t.name for t in self.model.graph.initializer}

    def remove_initializer(self, tensor: Any) -> None:
        if tensor in self.model.graph.initializer:
            self.model.graph.initializer.remove(tensor)
            kept = [i for i in self.model.graph.input if i.name != tensor.name]
            del self.model.graph.input[:]
            self.model.graph.input.extend(kept)

    def remove_initializers(self, init_to_remove: Any) -> None:
        for tensor in init_to_remove:
            self.remove_initializer(tensor)

    def find_graph_input(self, input_name: str) -> Any:
        return next((i for i in self.model.graph.input if i.name == input_name), None)

    def find_graph_output(self, output_name: str) -> Any:
        return next((o for o in self.model.graph.output if o.name == output_name), None)

    def get_tensor_type(self, tensor_name: str) -> Any:
        graph = self.model.graph
        for values in (graph.value_info, graph.input, graph.output):
            for value in values:
                if value.name == tensor_name:
                    return value.type.tensor_type
        return None

    def get_non_initializer_inputs(self) -> set[str]:
        return {i.name for i in self.model.graph.input} - self.get_initializer_name_set()

    def input_name_to_nodes(self) -> dict[str, list[Any]]:
        readers: dict[str, list[Any]] = {}
        for node in self.model.graph.node:
            for name in node.input:
                if name:
                    readers.setdefault(name, []).append(node)
        return readers

    def output_name_to_node(self) -> dict[str, Any]:
        return {name: node for node in self.model.graph.node for name in node.output if name}

    def get_children(self, node: Any, input_name_to_nodes: dict[str, list[Any]] | None = None) -> list[Any]:
        readers = self.input_name_to_nodes() if input_name_to_nodes is None else input_name_to_nodes
        return [reader for name in node.output for reader in readers.get(name, [])]

    def get_parents(self, node: Any, output_name_to_node: dict[str, Any] | None = None) -> list[Any]:
        givers = self.output_name_to_node() if output_name_to_node is None else output_name_to_node
        return [givers[name] for name in node.input if name in givers]

    def get_parent(self, node: Any, idx: int, output_name_to_node: dict[str, Any] | None = None) -> Any:
        givers = self.output_name_to_node() if output_name_to_node is None else output_name_to_node
        return givers.get(node.input[idx]) if idx < len(node.input) else None

    def is_graph_output(self, output_name: str) -> bool:
        return self.find_graph_output(output_name) is not None

    def is_graph_input(self, tensor_name: str) -> bool:
        return self.find_graph_input(tensor_name) is not None

    def topological_sort(self) -> None:
        """Puts every node behind those whose results it reads; otherwise earlier nodes, and earlier readers of one result, come first."""
        graph = self.model.graph
        makers = {name: i for i, node in enumerate(graph.node) for name in node.output if name}
        readers: dict[int, list[int]] = {}
        waits = [0] * len(graph.node)
        for i, node in enumerate(graph.node):
            for maker in {makers[name] for name in node.input if name in makers}:
                readers.setdefault(maker, []).append(i)
                waits[i] += 1
        ready = [i for i, count in enumerate(waits) if count == 0]
        for i in ready:  # grows
            for reader in readers.get(i, []):
                waits[reader] -= 1
                if waits[reader] == 0:
                    ready.append(reader)
        if len(ready) != len(graph.node):
            raise ValueError("the graph's nodes read each other's results in a circle")
        nodes = [graph.node[i] for i in ready]
        graph.ClearField("node")
        graph.node.extend(nodes)

    def save_model_to_file(self, output_path: str | os.PathLike[str], use_external_data_format: bool = False) -> None:
        """Weights go into a file beside the model where asked: OUTPUT.data."""
        import onnx

        path = os.fspath(output_path)
        if use_external_data_format:
            Path(path + ".data").unlink(missing_ok=True)  # onnx appends to what is there
        onnx.save_model(
            self.model,
            path,
            save_as_external_data=use_external_data_format,
            all_tensors_to_one_file=True,
            location=Path(path).name + ".data" if use_external_data_format else None,
        )
