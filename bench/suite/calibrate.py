"""Gives random weights the statistics of trained ones, so that results neither vanish nor saturate and can be compared.

Every node is run once, in order (onnxruntime). What follows a convolution or a Gemm decides: batch normalisation gets the true mean and
variance of its input; without one the weights are scaled so that the result has a standard deviation of 1. (After Mishkin and Matas,
"All you need is a good init", 2016.)
"""

import numpy as np
import onnx
import onnxruntime as ort
from onnx import helper, numpy_helper


def _run(node, values, opsets):
    used = [name for name in node.input if name]
    infos = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(values[n].dtype), values[n].shape) for n in dict.fromkeys(used)]
    outputs = [onnx.ValueInfoProto(name=n) for n in node.output if n]
    model = helper.make_model(helper.make_graph([node], "one", infos, outputs), opset_imports=opsets, ir_version=8)
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    results = session.run(None, {n: values[n] for n in dict.fromkeys(used)})
    return dict(zip([n for n in node.output if n], results))


def calibrate(model, seed=1):
    graph = model.graph
    random = np.random.default_rng(seed)
    weights = {t.name: numpy_helper.to_array(t) for t in graph.initializer}
    values = dict(weights)
    for info in graph.input:
        if info.name not in values:
            values[info.name] = random.standard_normal([d.dim_value for d in info.type.tensor_type.shape.dim], np.float32)
    consumers = {}
    for node in graph.node:
        for name in node.input:
            consumers.setdefault(name, []).append(node)
    for node in graph.node:
        if node.op_type == "BatchNormalization":
            x = values[node.input[0]]
            axes = tuple(i for i in range(x.ndim) if i != 1)
            values[node.input[3]] = weights[node.input[3]] = x.mean(axes).astype(np.float32)
            # A floor: a channel that a ReLU silenced has no variance.
            values[node.input[4]] = weights[node.input[4]] = np.maximum(x.var(axes), 1e-3).astype(np.float32)
        results = _run(node, values, model.opset_import)
        weight = node.input[1] if len(node.input) > 1 else ""
        normalised = any(c.op_type == "BatchNormalization" for c in consumers.get(node.output[0], []))
        # Rank 4 of one channel is YOLO's fixed table of bins.
        if node.op_type in ("Conv", "Gemm") and weight in weights and weights[weight].shape[0] > 1 and not normalised:
            spread = float(results[node.output[0]].std())
            if spread > 0:
                values[weight] = weights[weight] = (weights[weight] / np.float32(spread)).astype(np.float32)
                results = _run(node, values, model.opset_import)
        values.update(results)
    for tensor in graph.initializer:
        tensor.CopyFrom(numpy_helper.from_array(weights[tensor.name], tensor.name))
    return model
