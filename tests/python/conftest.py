import numpy as np
import pytest
from onnx import TensorProto, helper

import sardonyx


def model(nodes, inputs, outputs, initializers=(), opset=21, domains=()):
    """A model's bytes. inputs, outputs: (name, type number, shape) or ValueInfoProto."""
    infos = [[helper.make_tensor_value_info(*v) if isinstance(v, tuple) else v for v in part] for part in (inputs, outputs)]
    graph = helper.make_graph(nodes, "graph", *infos, initializer=list(initializers))
    opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(d, v) for d, v in domains)]
    made = helper.make_model(graph, opset_imports=opsets, ir_version=10, producer_name="tests")
    return made.SerializeToString()


@pytest.fixture
def add():
    """z = x + y, where x is [n, 3]."""
    data = model(
        [helper.make_node("Add", ["x", "y"], ["z"])],
        [("x", TensorProto.FLOAT, ["n", 3]), ("y", TensorProto.FLOAT, [3])],
        [("z", TensorProto.FLOAT, ["n", 3])],
    )
    return sardonyx.InferenceSession(data)


@pytest.fixture
def endless():
    """A loop of 2^40 turns."""
    body = helper.make_graph(
        [helper.make_node("Identity", ["go"], ["more"]), helper.make_node("Add", ["v", "v"], ["w"])],
        "body",
        [helper.make_tensor_value_info("i", TensorProto.INT64, []), helper.make_tensor_value_info("go", TensorProto.BOOL, []),
         helper.make_tensor_value_info("v", TensorProto.FLOAT, [])],
        [helper.make_tensor_value_info("more", TensorProto.BOOL, []), helper.make_tensor_value_info("w", TensorProto.FLOAT, [])],
    )
    turns = helper.make_tensor("turns", TensorProto.INT64, [], [1 << 40])
    data = model([helper.make_node("Loop", ["turns", "", "x"], ["y"], body=body)], [("x", TensorProto.FLOAT, [])],
                 [("y", TensorProto.FLOAT, [])], [turns])
    return sardonyx.InferenceSession(data)


ONES = np.ones((2, 3), np.float32)
