"""Operators of ONNX Runtime's training graphs, with the answers of onnxruntime-training 1.19.2, which records this file alone:

    PYTHON tests/train/ort_training.py tests/ops/record.py training    with the Python that has the package
"""

import numpy as np
from onnx import TensorProto, helper

f32, f64, i32, i64 = np.float32, np.float64, np.int32, np.int64
TOL = (1e-4, 1e-5)


def activations(r):
    x, g = r.normal(2, 5), r.normal(2, 5)
    for op in ("ReluGrad", "GeluGrad", "FastGeluGrad", "QuickGeluGrad", "SigmoidGrad", "TanhGrad", "LeakyReluGrad"):
        r.case(op, [g, x], tolerance=TOL)
    r.case("QuickGeluGrad", [g, x], name="alpha", alpha=0.5, tolerance=TOL)
    r.case("LeakyReluGrad", [g, x], name="alpha", alpha=0.25, tolerance=TOL)
    large = np.array([-100, -20, -6, -0.0, 6, 20, 100], f32)
    for op in ("GeluGrad", "FastGeluGrad", "QuickGeluGrad"):
        r.case(op, [np.ones(7, f32), large], name="far from 0", tolerance=TOL)
    for op in ("BiasGeluGrad_dX", "BiasFastGeluGrad_dX"):
        r.case(op, [r.normal(2, 3, 4), r.normal(2, 3, 4), r.normal(4)], tolerance=TOL)
    r.fails("ReluGrad", "input g: float32[2] = 1 2\ninput x: float32[3] = 1 2 3\ny = com.microsoft.ReluGrad(g, x)\noutput y", "inputs 0 and 1")


def masked(r):
    g, mask = r.normal(2, 6), r.ints(0, 2, 2, 6).astype(bool)
    r.case("DropoutGrad", [g, mask], tolerance=TOL)
    r.case("DropoutGrad", [g, mask, np.array(0.2, f32), np.array(True)], name="ratio", tolerance=TOL)
    r.case("DropoutGrad", [g.astype(f64), mask, np.array(0.2, f32)], name="float64", tolerance=TOL)
    r.case("DropoutGrad", [g, np.ones((2, 6), bool), np.array(0.0, f32)], name="nothing dropped")
    x = np.array([-9, -0.5, -0.25, 0, 0.24, 0.26, 1, 7, 300], f32)
    scale, zero = np.array(0.25, f32), np.array(2, f32)
    r.case("FakeQuant", [x, scale, zero], outputs=2, tolerance=TOL)
    r.case("FakeQuant", [x, scale, zero], outputs=2, name="bounds", quant_min=-4, quant_max=9, tolerance=TOL)
    r.case("FakeQuantGrad", [r.normal(6), np.array([1, 0, 1, 1, 0, 1], bool)], tolerance=TOL)


def softmax(r):
    def probabilities(x, axis):
        e = np.exp(x - x.max(axis, keepdims=True))
        return (e / e.sum(axis, keepdims=True)).astype(f32)

    for axis in (0, 1, -1):
        x, g = r.normal(2, 3, 4), r.normal(2, 3, 4)
        p = probabilities(x, axis)
        r.case("SoftmaxGrad_13", [g, p], name=f"axis {axis}", axis=axis, tolerance=TOL)
        r.case("LogSoftmaxGrad_13", [g, np.log(p)], name=f"axis {axis}", axis=axis, tolerance=TOL)
        r.case("SoftmaxGrad", [g, p], name=f"axis {axis}", axis=axis, tolerance=TOL)
        r.case("LogSoftmaxGrad", [g, np.log(p)], name=f"axis {axis}", axis=axis, tolerance=TOL)
    r.case("SoftmaxGrad_13", [r.normal(3, 4), r.normal(3, 4)], name="default axis", tolerance=TOL)
    r.case("SoftmaxGrad", [r.normal(3, 4, 2), r.normal(3, 4, 2)], name="default axis", tolerance=TOL)


def log_softmax(x, axis):
    e = x - x.max(axis, keepdims=True)
    return (e - np.log(np.exp(e).sum(axis, keepdims=True))).astype(f32)


def losses(r):
    one, weight = np.array(0.5, f32), np.abs(r.normal(4)) + f32(0.25)
    for kind in (i32, i64):
        name = np.dtype(kind).name
        for shape in ((5, 4), (2, 4, 3)):
            labels = r.ints(0, 4, shape[0], *shape[2:], dtype=kind)
            scores = r.normal(*shape)
            log_prob = log_softmax(scores, 1)
            for reduction in ("mean", "sum", "none"):
                dy = r.normal(*labels.shape) if reduction == "none" else one
                what = f"{name} {len(shape)}-D {reduction}"
                r.case("SoftmaxCrossEntropyLossGrad", [dy, log_prob, labels], name=what, reduction=reduction, tolerance=TOL)
                r.case("SoftmaxCrossEntropyLossGrad", [dy, log_prob, labels, weight], name=f"{what} weights", reduction=reduction, ignore_index=2,
                       tolerance=TOL)
                r.case("SoftmaxCrossEntropyLossInternal", [scores, labels, weight, np.array(1)], outputs=2, name=what, reduction=reduction, tolerance=TOL)
                r.case("SoftmaxCrossEntropyLossInternalGrad", [dy, log_prob, labels, weight, np.array(1), r.normal(*shape)], name=what, reduction=reduction,
                       tolerance=TOL)
    labels = np.array([1, 1])
    r.case("SoftmaxCrossEntropyLossInternal", [r.normal(2, 4), labels, None, np.array(1)], outputs=2, name="all ignored", tolerance=TOL)
    r.case("SoftmaxCrossEntropyLossGrad", [one, log_softmax(r.normal(2, 4), 1), labels], name="all ignored", ignore_index=1, tolerance=TOL)
    r.fails("SoftmaxCrossEntropyLossGrad", "input g: float32[] = 1\ninput p: float32[1,2] = 0 0\ninput l: int64[1] = 2\n"
            "y = com.microsoft.SoftmaxCrossEntropyLossGrad(g, p, l)\noutput y", "label 2 is out of range")
    for reduction in ("mean", "sum"):
        scores, targets = r.normal(2, 3, 4), np.abs(r.normal(2, 3, 4))
        log_prob = log_softmax(scores, 2)
        r.case("SoftmaxCrossEntropy", [scores, targets], outputs=2, name=reduction, reduction=reduction, tolerance=TOL)
        r.case("SoftmaxCrossEntropyGrad", [one, log_prob, targets], name=reduction, reduction=reduction, tolerance=TOL)
        labels, weights = r.ints(0, 4, 2, 3), np.abs(r.normal(2, 3))
        for more, what in (([], ""), ([weights], " weights")):
            r.case("SparseSoftmaxCrossEntropy", [scores, labels, *more], outputs=2, name=reduction + what, domain="", opset=9, reduction=reduction, tolerance=TOL)
            r.case("SparseSoftmaxCrossEntropyGrad", [one, log_prob, labels, *more], name=reduction + what, domain="", opset=9, reduction=reduction, tolerance=TOL)


def norms(r):
    for shape, axis in (((3, 6), -1), ((2, 3, 4), 1), ((2, 3, 4), 2)):
        x, g = r.normal(*shape), r.normal(*shape)
        inner = shape[axis % len(shape):]
        axes = tuple(range(axis % len(shape), len(shape)))
        scale, bias = r.normal(*inner), r.normal(*inner)
        mean = x.mean(axes, keepdims=True)
        inverse = (1 / np.sqrt(x.var(axes, keepdims=True) + 1e-5)).astype(f32)
        y = ((x - mean) * inverse * scale + bias).astype(f32)
        what = f"{len(shape)}-D axis {axis}"
        r.case("LayerNormalizationGrad", [g, x, scale, mean, inverse], outputs=3, name=what, axis=axis, tolerance=TOL)
        r.case("SimplifiedLayerNormalizationGrad", [g, x, scale, inverse], outputs=2, name=what, axis=axis, tolerance=TOL)
        scale = np.where(np.abs(scale) < 0.1, f32(0.5), scale)
        y = ((x - mean) * inverse * scale + bias).astype(f32)
        r.case("InvertibleLayerNormalizationGrad", [g, y, scale, bias, inverse], outputs=3, name=what, axis=axis, out_types={0: TensorProto.FLOAT}, tolerance=TOL)
    for shape in ((4, 3, 2, 5), (5, 3), (2, 3, 4)):
        x, g = r.normal(*shape), r.normal(*shape)
        channels = (r.normal(3), r.normal(3), r.normal(3), np.abs(r.normal(3)))
        what = f"{len(shape)}-D"
        r.case("BatchNormInternal", [x, *channels], outputs=5, name=what, momentum=0.75, tolerance=TOL)
        axes = tuple(i for i in range(len(shape)) if i != 1)
        inverse = (1 / np.sqrt(x.var(axes) + 1e-5)).astype(f32)
        r.case("BatchNormalizationGrad", [g, x, channels[0], x.mean(axes), inverse], outputs=3, name=what, epsilon=1e-5, tolerance=TOL)


def windows(r):
    cases = [("2-D", (2, 3, 5, 6), (4, 3, 3, 2), {"pads": [1, 0, 1, 1], "strides": [2, 1]}), ("dilations", (1, 2, 7, 6), (3, 2, 2, 2), {"dilations": [2, 3]}),
             ("groups", (2, 4, 4, 4), (6, 2, 3, 3), {"group": 2, "pads": [1, 1, 1, 1]}), ("1-D", (2, 2, 7), (3, 2, 3), {"strides": [2], "pads": [1, 1]}),
             ("1 x 1", (2, 3, 4, 4), (2, 3, 1, 1), {}), ("3-D", (1, 2, 4, 3, 3), (2, 2, 2, 2, 2), {"pads": [1, 0, 0, 0, 0, 1]})]
    for name, x, w, attributes in cases:
        axes = len(x) - 2
        strides, dilations = attributes.get("strides", [1] * axes), attributes.get("dilations", [1] * axes)
        pads = attributes.get("pads", [0] * 2 * axes)
        out = [(x[i + 2] + pads[i] + pads[i + axes] - dilations[i] * (w[i + 2] - 1) - 1) // strides[i] + 1 for i in range(axes)]
        inputs = [r.normal(x[0], w[0], *out), r.normal(*x), r.normal(*w)]
        r.case("ConvGrad", inputs, outputs=3, name=name, kernel_shape=list(w[2:]), tolerance=TOL, **attributes)
    g = r.normal(2, 3, 3, 3)
    r.case("ConvGrad", [g, r.normal(2, 2, 5, 5), r.normal(3, 2, 3, 3)], outputs=[0, 1, 1], name="not the input's", kernel_shape=[3, 3], tolerance=TOL)
    r.case("ConvGrad", [g, r.normal(2, 2, 5, 5), r.normal(3, 2, 3, 3)], outputs=[1, 0, 0], name="the input's alone", kernel_shape=[3, 3], tolerance=TOL)


def pooling(r):
    """Extents of the results come from annotations in ONNX Runtime."""
    attributes = {"kernel_shape": [2, 2], "strides": [2, 1], "pads": [0, 1, 0, 0]}
    x = r.normal(2, 3, 4, 4)
    pool = helper.make_node("MaxPool", ["x"], ["y", "indices"], **attributes)
    gradient = helper.make_node("MaxPoolGrad", ["g", "indices"], ["dx"], input_shape=[0, 0, 4, 4], **attributes)
    result = helper.make_tensor_value_info("dx", TensorProto.FLOAT, x.shape)
    g = r.normal(2, 3, 2, 4)
    inputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, v.shape) for n, v in (("x", x), ("g", g))]
    r.model("MaxPoolGrad of MaxPool", helper.make_graph([pool, gradient], "case", inputs, [result]), {"x": x, "g": g}, {"": 12}, tolerance=TOL)
    padded = {"kernel_shape": [3, 2], "strides": [2, 2], "pads": [1, 0, 0, 0]}
    for include in (0, 1):
        pool = helper.make_node("AveragePool", ["x"], ["y"], count_include_pad=include, **padded)
        gradient = helper.make_node("AveragePoolGrad", ["g"], ["x_grad"], count_include_pad=include, input_shape=[0, 0, 4, 4], **padded)
        result = helper.make_tensor_value_info("x_grad", TensorProto.FLOAT, x.shape)
        expect = average_gradient(x.shape, g[:, :, :, :2], padded, include)
        inputs[1] = helper.make_tensor_value_info("g", TensorProto.FLOAT, (2, 3, 2, 2))
        graph = helper.make_graph([pool, gradient], "case", inputs, [result])
        # ONNX Runtime 1.19.2's kernel takes extents of kernel and strides in the wrong order: by formula.
        r.model(f"AveragePoolGrad {include}, by formula", graph, {"x": x, "g": np.ascontiguousarray(g[:, :, :, :2])}, {"": 12}, expect=[expect], tolerance=TOL)


def average_gradient(shape, g, attributes, include):
    (kh, kw), (sh, sw), (top, left, _, _) = attributes["kernel_shape"], attributes["strides"], attributes["pads"]
    out = np.zeros(shape, f32)
    for i in range(g.shape[2]):
        for j in range(g.shape[3]):
            rows = slice(max(i * sh - top, 0), min(i * sh - top + kh, shape[2]))
            columns = slice(max(j * sw - left, 0), min(j * sw - left + kw, shape[3]))
            count = kh * kw if include else (rows.stop - rows.start) * (columns.stop - columns.start)
            out[:, :, rows, columns] += g[:, :, i:i + 1, j:j + 1] / count
    return out


def taken(r):
    for kind in (i32, i64):
        name = np.dtype(kind).name
        shape = np.array([4, 3, 2])
        for axis in (0, 1, -1):
            indices = r.ints(-shape[axis], shape[axis], 2, 2, dtype=kind)
            at = axis % 3
            g = r.normal(*shape[:at], 2, 2, *shape[at + 1:])
            r.case("GatherGrad", [shape, indices, g], name=f"{name} axis {axis}", axis=axis, tolerance=TOL)
        for axis in (0, 2):
            indices = r.ints(0, 2, 3, 3, 2, dtype=kind)
            r.case("GatherElementsGrad", [r.normal(3, 3, 2), shape, indices], name=f"{name} axis {axis}", axis=axis, tolerance=TOL)
    r.case("GatherGrad", [np.array([5]), r.ints(0, 5, 7), r.normal(7).astype(f64)], name="float64", tolerance=TOL)
    indices = np.array([[0, 1], [2, 2], [0, 1]])
    r.case("GatherNDGrad", [np.array([3, 3]), indices, r.normal(3)], tolerance=TOL)
    r.case("GatherNDGrad", [np.array([3, 3, 2]), indices, r.normal(3, 2)], name="rows", tolerance=TOL)
    r.case("GatherNDGrad", [np.array([3, 3, 2]), indices[:, :1], r.normal(3, 2)], name="batch", batch_dims=1, tolerance=TOL)
    r.fails("GatherGrad", "constant s: int64[2] 2 2\ninput i: int64[1] = 5\ninput g: float32[1,2] = 1 2\ny = com.microsoft.GatherGrad(s, i, g)\noutput y", "5")
    r.case("SliceGrad", [r.normal(2, 2), np.array([4, 5]), np.array([0, 1]), np.array([4, 5]), np.array([0, 1]), np.array([2, 3])], name="steps")
    r.case("SliceGrad", [r.normal(2, 5), np.array([4, 5]), np.array([-3], i32), np.array([-1], i32)], name="first axes")
    g, expect = r.normal(4, 2), np.zeros((4, 5), f32)
    expect[:, 4:0:-2] = g
    r.case("SliceGrad", [g, np.array([4, 5]), np.array([4]), np.array([0]), np.array([1]), np.array([-2])], name="backwards, by formula", expect=[expect])


def graphs(r):
    r.case("ConcatTraining", [r.normal(2, 1), r.normal(2, 3), r.normal(2, 2)], outputs=2, axis=-1)
    r.case("ConcatTraining", [r.ints(0, 9, 1, 2), r.ints(0, 9, 2, 2)], name="without lengths", axis=0)
    r.case("SplitTraining", [r.normal(2, 6), np.array([1, 2, 3])], outputs=3, axis=1)
    r.case("ReduceSumTraining", [r.normal(2, 3, 4), np.array([0, 2])], tolerance=TOL)
    r.case("ReduceSumTraining", [r.normal(2, 3), np.array([1])], name="dropped axes", keepdims=0, tolerance=TOL)
    r.case("ReduceSumTraining", [r.normal(2, 3), np.array([], i64)], name="no axes", noop_with_empty_axes=1, tolerance=TOL)
    for a, b in (([2, 3, 4], [3, 1]), ([1, 4], [5, 3, 1]), ([2, 3], [2, 3]), ([], [2]), ([1, 1], [3, 1])):
        r.case("BroadcastGradientArgs", [np.array(a, i64), np.array(b, i64)], outputs=2, name=f"{a} {b}")
    for scale in (np.array(4, f32), np.array([4.0]), np.array(3), np.array(3, i32)):
        r.case("Scale", [r.normal(2, 3), scale], name=f"{scale.dtype} {scale.ndim}", tolerance=TOL)
        r.case("Scale", [r.normal(2, 3), scale], name=f"{scale.dtype} {scale.ndim} down", scale_down=1, tolerance=TOL)
    r.case("ReduceAllL2", [r.normal(2, 3), r.normal(4)], out_types={0: TensorProto.FLOAT}, tolerance=TOL)
    r.case("Group", [r.normal(2), r.ints(0, 3, 2)])
    x = r.normal(3)
    r.case("ZeroGradient", [x, np.array(True)])
    r.case("PassThrough", [x, np.array([1, 2])], outputs=2, name="by formula", expect=[x, np.array([1, 2])])
    r.fails("YieldOp", "opset com.microsoft 1\ninput x: float32[2] = 1 2\ny = com.microsoft.YieldOp(x) {full_shape_outputs=[0]}\noutput y", "YieldOp waits")
    r.fails("Scale", "input x: float32[2] = 1 2\ninput s: float32[] = 0\ny = com.microsoft.Scale(x, s)\noutput y", "must not be 0")


def updates(r):
    old, new = r.normal(2, 3), r.normal(2, 3)
    for flag in (None, np.array([True]), np.array([False])):
        what = "no flag" if flag is None else f"flag {flag[0]}"
        inputs = [old, new] if flag is None else [old, new, flag]
        r.case("InPlaceAccumulatorV2", inputs, outputs=2, name=what)
        r.case("InPlaceAccumulator", inputs, name=what)
    r.case("SGDOptimizer", [np.array(0.25, f32), old, new], outputs=2, tolerance=TOL)
    for mode in (0, 1):
        for correct in (0, 1):
            inputs = [np.array(0.125, f32), np.array(3), old, new, r.normal(2, 3), np.abs(r.normal(2, 3))]
            attributes = {"weight_decay_mode": mode, "do_bias_correction": correct, "lambda": 0.25}
            r.case("AdamOptimizer", inputs, outputs=5, name=f"mode {mode} correction {correct}", tolerance=TOL, **attributes)
    for mode in (0, 1):
        for signal in (None, True, False):
            sequence_optimizer(r, "AdamWOptimizer", 4, f"mode {mode} {signal}", signal, {"adam_mode": mode, "weight_decay": 0.25, "epsilon": 1e-3})
    sequence_optimizer(r, "AdamWOptimizer", 4, "no correction", None, {"adam_mode": 1, "correct_bias": 0, "alpha": 0.5, "beta": 0.75})
    for signal in (None, True, False):
        sequence_optimizer(r, "SGDOptimizerV2", 2, f"{signal}", signal, {})
    for norm in (0.5, 100.0):
        sequence_optimizer(r, "InplaceClipGradNorm", 1, f"{norm}", None, {"max_norm": norm})


def sequence_optimizer(r, op, sequences, name, signal, attributes):
    """Sequences of two tensors each; all results but the flag, taken apart."""
    adam, clip = op == "AdamWOptimizer", op == "InplaceClipGradNorm"
    feeds = {} if clip else {"lr": np.array([0.125], f32)}
    if adam:
        feeds["step"] = np.array([3])
    nodes, names = [], []
    for i in range(sequences):
        parts = [f"s{i}a", f"s{i}b"]
        feeds[parts[0]], feeds[parts[1]] = r.normal(2, 3), r.normal(4)
        if adam and i == 3:  # squares
            feeds.update({p: np.abs(feeds[p]) for p in parts})
        nodes.append(helper.make_node("SequenceConstruct", parts, [f"s{i}"]))
        names.append(f"s{i}")
    inputs = [n for n in ("lr", "step") if n in feeds] + names
    if signal is not None:
        feeds["signal"] = np.array([signal])
        inputs.append("signal")
    results = ["r0"] if clip else ["flag"] + [f"r{i}" for i in range(3 if adam else 1)]
    nodes.append(helper.make_node(op, inputs, results, domain="com.microsoft", **attributes))
    outputs = [] if clip else ["flag"]
    weights = []
    for k in range(2):
        weights.append(helper.make_tensor(f"i{k}", TensorProto.INT64, (), [k]))
    for s in results[0 if clip else 1:]:
        for k in range(2):
            nodes.append(helper.make_node("SequenceAt", [s, f"i{k}"], [f"{s}_{k}"]))
            outputs.append(f"{s}_{k}")
    infos = [helper.make_tensor_value_info(n, TensorProto.BOOL if n == "flag" else TensorProto.FLOAT, None) for n in outputs]
    ins = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for n, x in feeds.items()]
    graph = helper.make_graph(nodes, "case", ins, infos, weights)
    r.model(f"{op} {name}", graph, feeds, {"": 17, "com.microsoft": 1}, tolerance=TOL)


CASES = [activations, masked, softmax, losses, norms, windows, pooling, taken, graphs, updates]
