"""Errors of Sardonyx and of ONNX Runtime: `accuracy.py [--models A,B]`. Float models against the same model in float64 (run by Sardonyx's
kernels for double, which are the operators' definitions), integer models against their nodes one by one."""

import argparse
import os
import tempfile

import numpy as np
import onnx
import onnxruntime
import sardonyx
from onnx import TensorProto, numpy_helper

import models
from measure import random_inputs

# Inputs that stay float32 whatever the data's type is.
ALWAYS_FLOAT = {"Resize": slice(1, None), "Upsample": slice(1, None)}


def widen(tensor):
    if tensor.data_type == TensorProto.FLOAT:
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float64), tensor.name))


def in_float64(path, target):
    model = onnx.load(path)
    graph = model.graph
    kept = {name for node in graph.node if node.op_type in ALWAYS_FLOAT for name in node.input[ALWAYS_FLOAT[node.op_type]]}
    for tensor in graph.initializer:
        if tensor.name not in kept:
            widen(tensor)
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.TENSOR:
                widen(attribute.t)
            if node.op_type == "Cast" and attribute.name == "to" and attribute.i == TensorProto.FLOAT:
                attribute.i = TensorProto.DOUBLE
    for value in [*graph.input, *graph.output, *graph.value_info]:
        if value.type.tensor_type.elem_type == TensorProto.FLOAT:
            value.type.tensor_type.elem_type = TensorProto.DOUBLE
    onnx.save(model, target)


def peer_session(path, optimize=True):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    if not optimize:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def own_session(path):
    return sardonyx.InferenceSession(path, providers=["cpu"])


def errors(expected, actual):
    """(root mean square, largest) over the expected results' largest magnitude; the worst output counts."""
    rms = largest = 0.0
    for e, a in zip(expected, actual):
        if e.dtype.kind != "f" or not e.size:
            continue
        scale = np.abs(e).max() or 1.0
        rms = max(rms, float(np.sqrt(np.mean((a - e) ** 2)) / scale))
        largest = max(largest, float(np.abs(a - e).max() / scale))
    return rms, largest


def float_row(name, path, seeds):
    with tempfile.TemporaryDirectory() as folder:
        wide = os.path.join(folder, "float64.onnx")
        in_float64(path, wide)
        exact = own_session(wide)
    own, peer, found = own_session(path), peer_session(path), []
    for seed in range(seeds):
        feed = random_inputs(path, seed)
        expected = exact.run(None, {k: v.astype(np.float64) if v.dtype == np.float32 else v for k, v in feed.items()})
        found.append(errors(expected, own.run(None, feed)) + errors(expected, peer.run(None, feed)))
    rms, largest, peer_rms, peer_largest = np.median(np.array(found), axis=0)
    return f"| {name} | {rms:.1e} | {peer_rms:.1e} | {rms / peer_rms:.2f} | {largest:.1e} | {peer_largest:.1e} | {largest / peer_largest:.2f} |"


def integer_row(name, path, seeds):
    """Against the nodes one by one (in float32, rounded where the model says so), which is what the model means."""
    own, peer, meant = own_session(path), peer_session(path), peer_session(path, optimize=False)
    found, same = [], np.zeros(2, int)
    for seed in range(seeds):
        feed = random_inputs(path, seed)
        expected = meant.run(None, feed)
        results = own.run(None, feed), peer.run(None, feed)
        found.append([errors(expected, r)[0] for r in results])
        # Of several largest ones, which byte results have, any will do.
        same += [int(expected[0].flat[np.argmax(r[0])] == expected[0].max()) for r in results]
    rms, peer_rms = np.median(np.array(found), axis=0)
    return f"| {name} | {rms:.1e} | {peer_rms:.1e} | {rms / peer_rms:.2f} | {same[0]} | {same[1]} | {seeds} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", default=",".join(models.SUITE), help="of the suite, or paths of ONNX files")
    parser.add_argument("--inputs", type=int, default=3, help="random inputs for each float model; the medians count")
    parser.add_argument("--folder", default="build/bench-models", help="where the models are made")
    args = parser.parse_args()
    print("Errors against float64 over the results' largest magnitude; ×: in multiples of ONNX Runtime's.\n")
    print("| model | rms | onnxruntime | × | largest | onnxruntime | × |\n|---|--:|--:|--:|--:|--:|--:|", flush=True)
    integer = []
    for name in args.models.split(","):
        path = name if os.path.exists(name) else models.make(args.folder, name)
        if name in models.INTEGER:
            integer.append(integer_row(name, path, 20))
        else:
            print(float_row(os.path.basename(name), path, args.inputs), flush=True)
    if integer:
        print("\nInteger models against their nodes one by one; top-1: for how many inputs the largest result is the same.\n")
        print("| model | rms | onnxruntime | × | top-1 | onnxruntime | inputs |\n|---|--:|--:|--:|--:|--:|--:|\n" + "\n".join(integer))


if __name__ == "__main__":
    main()
