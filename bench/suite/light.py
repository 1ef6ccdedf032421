"""ONNX's "light" models (they come with the onnx package; their weights are a constant), with random weights."""

import os

import numpy as np
import onnx
from onnx import helper, numpy_helper

from calibrate import calibrate

FILES = {
    "resnet50": "light_resnet50", "vgg19": "light_vgg19", "densenet121": "light_densenet121", "googlenet": "light_inception_v1",
    "inception_v2": "light_inception_v2", "squeezenet": "light_squeezenet", "shufflenet": "light_shufflenet", "alexnet": "light_bvlc_alexnet",
    "zfnet512": "light_zfnet512",
}


def _random_weight(shape, role, random):
    if role == "scale":
        return random.uniform(0.5, 1.5, shape).astype(np.float32)
    if role in ("mean", "var", "bias"):
        return (0.1 * random.standard_normal(shape)).astype(np.float32)
    fan_in = int(np.prod(shape[1:])) or 1
    return (random.standard_normal(shape) * np.sqrt(2.0 / fan_in)).astype(np.float32)


def _roles(nodes):
    roles = {}
    for node in nodes:
        if node.op_type == "BatchNormalization":
            roles.update(zip(node.input[1:5], ("scale", "bias", "mean", "var")))
        elif node.op_type in ("Conv", "Gemm") and len(node.input) > 2:
            roles[node.input[2]] = "bias"
    return roles


def light(name):
    folder = os.path.join(os.path.dirname(onnx.__file__), "backend", "test", "data", "light")
    model = onnx.load(os.path.join(folder, FILES[name] + ".onnx"))
    graph, random = model.graph, np.random.default_rng(sum(name.encode()))
    shapes = {t.name: numpy_helper.to_array(t) for t in graph.initializer}
    roles = _roles(graph.node)
    made, kept, dropped = [], [], set()
    for node in graph.node:
        if node.op_type != "ConstantOfShape":
            kept.append(node)
            continue
        shape = [int(v) for v in shapes[node.input[0]]]
        made.append(numpy_helper.from_array(_random_weight(shape, roles.get(node.output[0], "weight"), random), node.output[0]))
        dropped.add(node.input[0])
    initializers = [t for t in graph.initializer if t.name not in dropped] + made
    inputs = [i for i in graph.input if i.name not in shapes]
    new = helper.make_model(helper.make_graph(kept, name, inputs, list(graph.output), initializers), opset_imports=model.opset_import,
                            ir_version=4, producer_name="sdx-bench")
    return calibrate(new)
