"""Convolutions, pooling, normalisation, recurrent layers, attention."""

import numpy as np
from draw import PLAIN, Skip, T
from recipes import recipe


def window(d, dims, kernel=None, dilate=True):
    """Attributes of a window over `dims` spatial extents; fits() says whether something comes out."""
    kernel = kernel or [d.int(1, 4) for _ in range(dims)]
    out = {"kernel_shape": kernel, "strides": [d.int(1, 3) for _ in range(dims)] if d.chance(0.6) else None}
    if dilate:
        out["dilations"] = [d.int(1, 2) for _ in range(dims)] if d.chance(0.4) else None
    how = d.rng.random()
    if how < 0.5:
        out["pads"] = [d.int(0, k - 1) for k in kernel * 2]
    elif how < 0.75:
        out["auto_pad"] = d.choice(["SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET"])
    return out


def spatial(d, w, dims, more=7):
    """Extents that are at least as large as the window."""
    reach = [(k - 1) * ((w.get("dilations") or [1] * dims)[i]) + 1 for i, k in enumerate(w["kernel_shape"])]
    return [r + (d.int(0, more if not d.chance(0.1) else 30) if more else 0) for r in reach]


@recipe("Conv", "ConvTranspose", weight=4)
def conv(d, op):
    dtype = d.type_of(op, among=PLAIN, favour=(T.FLOAT,))
    dims = d.choice([1, 2, 2, 2, 3])
    w = window(d, dims)
    group = d.choice([1, 1, 1, 2, 3])
    c, m, n = d.int(1, 5) * group, d.int(1, 6) * group, d.choice([1, 1, 2, 3])
    if d.chance(0.15):
        group, m = c, c * d.int(1, 2)
    extents = spatial(d, w, dims)
    x = d.pick(dtype, shape=(n, c, *extents), tame=True)
    weight_shape = (m, c // group) if op == "Conv" else (c, m // group)
    inputs = [x, d.new(dtype, (*weight_shape, *w["kernel_shape"]), constant=d.chance(0.7))]
    if d.chance(0.5):
        inputs.append(d.new(dtype, (m,), constant=d.chance(0.7)))
    if op == "ConvTranspose" and d.chance(0.3):
        s = w["strides"] or [1] * dims
        w["output_padding"] = [d.int(0, k - 1) for k in s]
    if d.chance(0.3):
        w.pop("kernel_shape")
    d.node(op, inputs, group=group if group != 1 or d.chance(0.3) else None, exact=False, tame=False, **w)


@recipe("MaxPool", "AveragePool", "LpPool", weight=2)
def pool(d, op):
    dtype = d.type_of(op, among=PLAIN)
    version = d.since(op)
    dims = d.choice([1, 2, 2, 3])
    w = window(d, dims, dilate=(op == "MaxPool" and version >= 10) or (op == "AveragePool" and version >= 19) or (op == "LpPool" and version >= 18))
    extents = spatial(d, w, dims)
    if version >= (18 if op == "LpPool" else 10):
        w["ceil_mode"] = d.choice([None, 0, 1])
    if w.get("ceil_mode") and d.chance(0.3):  # a first window that is partial already
        reach = [e - d.int(0, s - 1) for e, s in zip(spatial(d, w, dims, 0), w["strides"] or [1] * dims)]
        extents = [max(1, r) if d.chance(0.5) else e for r, e in zip(reach, extents)]
    x = d.pick(dtype, shape=(d.int(1, 2), d.int(1, 4), *extents))
    if op == "AveragePool":
        w["count_include_pad"] = d.choice([None, 0, 1])
    outputs = 1
    if op == "MaxPool" and version >= 8 and d.chance(0.3):
        outputs = 2
        w["storage_order"] = d.choice([None, 0, 1])
    if op == "LpPool":
        w["p"] = d.choice([None, 1, 2, 3])
    d.node(op, [x], outputs, exact=op == "MaxPool" and x.exact, **w)


@recipe("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def global_pool(d, op):
    x = d.pick(d.type_of(op, among=PLAIN), where=lambda s: len(s) > 2 and 0 not in s)
    d.node(op, [x], p=d.choice([None, 1, 2]) if op == "GlobalLpPool" else None, exact=op == "GlobalMaxPool" and x.exact)


@recipe()
def MaxUnpool(d):
    d.need("MaxUnpool", 9)
    c, h, w = d.int(1, 3), d.int(1, 4) * 2, d.int(1, 4) * 2
    y, where = d.node("MaxPool", [d.new(T.FLOAT, (1, c, h, w))], 2, kernel_shape=[2, 2], strides=[2, 2])
    d.node("MaxUnpool", [y, where, d.ints([1, c, h, w]) if d.chance(0.4) else None], kernel_shape=[2, 2], strides=[2, 2])


@recipe(weight=1.5)
def BatchNormalization(d):
    x = d.pick(d.choice([T.FLOAT, T.FLOAT, T.DOUBLE]), where=lambda s: len(s) > 1 and s[1] > 0, tame=True)
    c = (x.shape[1],)
    constant = d.chance(0.8)
    rest = [d.new(x.dtype, c, k, constant) for k in ("normal", "normal", "normal", "positive")]
    d.node("BatchNormalization", [x, *rest], epsilon=d.choice([None, 1e-3]), exact=False, tame=False)


@recipe("InstanceNormalization", "LRN", "LpNormalization", "MeanVarianceNormalization", "GroupNormalization")
def normalization(d, op):
    if op == "MeanVarianceNormalization":
        d.need(op, 9)
        d.node(op, [d.new(T.FLOAT, d.shape(4, empty=0))], axes=d.choice([None, [0, 2, 3], [1], [2, 3]]), exact=False)
        return
    if op == "LpNormalization":
        x = d.pick(d.choice([T.FLOAT, T.DOUBLE]), where=lambda s: len(s) > 0, tame=True)
        d.node(op, [x], axis=d.axis(len(x.shape)), p=d.choice([None, 1, 2]), exact=False)
        return
    c = d.int(1, 4) * 2
    x = d.pick(T.FLOAT, shape=(d.int(1, 2), c, *[d.int(2, 9) for _ in range(d.int(1, 2) if op != "LRN" else 2)]), tame=True)
    if op == "LRN":
        d.node(op, [x], size=d.choice([1, 3, 5]), alpha=d.choice([None, 0.01]), beta=d.choice([None, 0.5]), bias=d.choice([None, 2.0]), exact=False)
    elif op == "InstanceNormalization":
        d.node(op, [x, d.new(T.FLOAT, (c,)), d.new(T.FLOAT, (c,))], epsilon=d.choice([None, 1e-3]), exact=False)
    else:
        d.need(op, 21)
        d.node(op, [x, d.new(T.FLOAT, (c,)), d.new(T.FLOAT, (c,))], num_groups=d.choice([1, 2, c // 2, c]), exact=False)


@recipe("LayerNormalization", "RMSNormalization", weight=1.5)
def layer_norm(d, op):
    d.need(op, 17)
    dtype = d.choice([T.FLOAT, T.FLOAT, T.DOUBLE, T.FLOAT16])
    x = d.pick(dtype, where=lambda s: len(s) > 0 and 0 not in s, tame=True)
    axis = d.axis(len(x.shape))
    shape = x.shape[axis:]
    inputs = [x, d.new(dtype, shape)]
    if op == "LayerNormalization" and d.chance(0.7):
        inputs.append(d.new(dtype, shape))
    d.node(op, inputs, axis=axis if axis != -1 or d.chance(0.5) else None, epsilon=d.choice([None, 1e-3]), exact=False)


@recipe("LSTM", "GRU", "RNN", weight=1.5)
def recurrent(d, op):
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[op]
    direction = d.choice([None, "forward", "reverse", "bidirectional"])
    n = 2 if direction == "bidirectional" else 1
    steps, batch, width, hidden = d.int(1, 5), d.int(1, 4), d.int(1, 6), d.int(1, 9)
    layout = d.choice([None, 0, 1]) if d.since(op) >= 14 and d.chance(0.3) else None
    constant = d.chance(0.7)
    x = d.pick(T.FLOAT, shape=(batch, steps, width) if layout else (steps, batch, width), tame=True)
    state = (batch, n, hidden) if layout else (n, batch, hidden)
    maybe = lambda p, f: f() if d.chance(p) else None  # noqa: E731
    inputs = [x, d.new(T.FLOAT, (n, gates * hidden, width), "unit", constant), d.new(T.FLOAT, (n, gates * hidden, hidden), "unit", constant),
              maybe(0.6, lambda: d.new(T.FLOAT, (n, 2 * gates * hidden), "unit", constant)),
              maybe(0.4, lambda: d.ints(d.rng.integers(1, steps + 1, batch), dtype=T.INT32)),
              maybe(0.4, lambda: d.new(T.FLOAT, state, "unit"))]
    attributes = {"hidden_size": hidden, "direction": direction, "layout": layout, "clip": d.choice([None, None, 0.7])}
    if op == "LSTM":
        inputs += [maybe(0.4, lambda: d.new(T.FLOAT, state, "unit")), maybe(0.3, lambda: d.new(T.FLOAT, (n, 3 * hidden), "unit", constant))]
    if op == "GRU":
        attributes["linear_before_reset"] = d.choice([None, 0, 1])
    if d.chance(0.3):
        gate, other = ["Sigmoid", "HardSigmoid"], ["Sigmoid", "Tanh", "Relu", "Softsign", "Softplus"]
        attributes["activations"] = [d.choice(kind) for _ in range(n) for kind in {"LSTM": [gate, other, other[:-1]], "GRU": [gate, other], "RNN": [other]}[op]]
        attributes["clip"] = None
    d.node(op, inputs, [1] * (3 if op == "LSTM" else 2), exact=False, **attributes)


@recipe()
def Dropout(d):
    x = d.pick(d.choice([T.FLOAT, T.DOUBLE]))
    outputs = [1, d.int(0, 1)]
    if d.since("Dropout") < 12:
        d.node("Dropout", [x], outputs, ratio=d.choice([None, 0.3]))
    else:
        d.node("Dropout", [x, d.given(np.float32(0.3), constant=True) if d.chance(0.5) else None], outputs)


@recipe()
def GridSample(d):
    d.need("GridSample", 16)
    n, c, h, w = d.int(1, 2), d.int(1, 3), d.int(1, 7), d.int(1, 7)
    grid = (d.rng.random((n, d.int(1, 5), d.int(1, 5), 2)) * 2.6 - 1.3).astype(np.float32)
    modes = ["linear", "nearest", "cubic"] if d.since("GridSample") >= 20 else ["bilinear", "nearest", "bicubic"]
    d.node("GridSample", [d.new(T.FLOAT, (n, c, h, w)), d.given(grid)], mode=d.choice([None, *modes]),
           padding_mode=d.choice([None, "zeros", "border", "reflection"]), align_corners=d.choice([None, 0, 1]), exact=False)


@recipe()
def AffineGrid(d):
    d.need("AffineGrid", 20)
    dims = d.choice([2, 3])
    n = d.int(1, 3)
    d.node("AffineGrid", [d.new(T.FLOAT, (n, dims, dims + 1)), d.ints([n, 2, *[d.int(2, 5) for _ in range(dims)]])],
           align_corners=d.choice([None, 0, 1]), exact=False)


@recipe()
def RoiAlign(d):
    d.need("RoiAlign", 10)
    n, rois = d.int(1, 2), d.int(0, 4)
    corners = np.sort(d.rng.random((rois, 2, 2)) * 9, axis=1).reshape(rois, 4).astype(np.float32)
    transform = d.choice([None, "half_pixel", "output_half_pixel"]) if d.since("RoiAlign") >= 16 else None
    d.node("RoiAlign", [d.new(T.FLOAT, (n, 2, 9, 10)), d.given(corners), d.ints(d.rng.integers(0, n, rois))], mode=d.choice([None, "avg", "max"]),
           output_height=d.choice([None, 2, 3]), output_width=d.choice([None, 2]), sampling_ratio=d.choice([None, 1, 2]),
           spatial_scale=d.choice([None, 0.5]), coordinate_transformation_mode=transform, exact=False)


@recipe()
def MaxRoiPool(d):
    rois = d.int(1, 4)
    boxes = np.concatenate([np.zeros((rois, 1)), np.sort(d.rng.integers(0, 9, (rois, 2, 2)), axis=1).reshape(rois, 4)], 1).astype(np.float32)
    d.node("MaxRoiPool", [d.new(T.FLOAT, (1, 2, 10, 10)), d.given(boxes)], pooled_shape=[d.int(1, 3), d.int(1, 3)])


@recipe()
def NonMaxSuppression(d):
    d.need("NonMaxSuppression", 10)
    n, classes, boxes = d.int(1, 2), d.int(1, 3), d.int(1, 12)
    center = d.choice([None, 0, 1])
    numbers = (d.rng.random((n, boxes, 4)) * 4 + 0.1).astype(np.float32)
    scores = d.rng.permutation(n * classes * boxes).reshape(n, classes, boxes).astype(np.float32) / 97
    inputs = [d.given(numbers), d.given(scores), d.ints([d.int(0, 5)]) if d.chance(0.8) else None,
              d.given(np.float32([d.choice([0.2, 0.5, 0.8])])) if d.chance(0.7) else None, d.given(np.float32([0.1])) if d.chance(0.5) else None]
    d.node("NonMaxSuppression", inputs, center_point_box=center)


@recipe()
def Col2Im(d):
    d.need("Col2Im", 18)
    k, image = [d.int(1, 3), d.int(1, 3)], [d.int(3, 7), d.int(3, 7)]
    strides = [d.int(1, 2), d.int(1, 2)]
    blocks = int(np.prod([(i - a) // s + 1 for i, a, s in zip(image, k, strides)]))
    d.node("Col2Im", [d.new(T.FLOAT, (d.int(1, 2), d.int(1, 3) * k[0] * k[1], blocks)), d.ints(image), d.ints(k)], strides=strides, exact=False)


@recipe(weight=1.5)
def Attention(d):
    d.need("Attention", 23)
    batch, heads, width = d.int(1, 2), d.int(1, 4), d.choice([1, 2, 4, 8, 16])
    groups = heads * d.choice([1, 1, 2])
    q_len, k_len, v_width = d.int(1, 9), d.int(1, 9), d.choice([width, width, 3])
    past = d.choice([0, 0, 3])
    causal = d.choice([None, 0, 1])
    flat = d.chance(0.4)
    shape = (lambda h, n, w: (batch, n, h * w)) if flat else (lambda h, n, w: (batch, h, n, w))
    mask = None
    if d.chance(0.4):
        mask = d.new(T.FLOAT, d.choice([(q_len, k_len + past), (batch, 1, q_len, k_len + past), (1, 1, q_len, k_len + past), (1, groups, 1, k_len + past)][:2]))
    inputs = [d.pick(T.FLOAT, shape=shape(groups, q_len, width), tame=True), d.new(T.FLOAT, shape(heads, k_len, width)), d.new(T.FLOAT, shape(heads, k_len, v_width)), mask]
    outputs = [1]
    if past:
        inputs += [d.new(T.FLOAT, (batch, heads, past, width)), d.new(T.FLOAT, (batch, heads, past, v_width))]
        outputs = [1, 1, 1]
    d.node("Attention", inputs, outputs, is_causal=causal, scale=d.choice([None, 0.3]), softcap=d.choice([None, None, 2.0]),
           q_num_heads=groups if flat else None, kv_num_heads=heads if flat else None, exact=False)


@recipe()
def RotaryEmbedding(d):
    d.need("RotaryEmbedding", 23)
    batch, heads, n, width = d.int(1, 2), d.int(1, 3), d.int(1, 5), d.choice([2, 4, 8])
    flat = d.chance(0.4)
    part = d.choice([None, 0, width // 2]) if width > 2 else None
    half = (part or width) // 2
    table = 7
    cached = d.chance(0.6)
    shape = (table, half) if cached else (batch, n, half)
    inputs = [d.new(T.FLOAT, (batch, n, heads * width) if flat else (batch, heads, n, width)), d.new(T.FLOAT, shape, "unit"), d.new(T.FLOAT, shape, "unit"),
              d.ints(d.rng.integers(0, table, (batch, n))) if cached else None]
    d.node("RotaryEmbedding", inputs, interleaved=d.choice([None, 0, 1]), rotary_embedding_dim=part, num_heads=heads if flat or part else None, exact=False)


@recipe("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")
def losses(d, op):
    d.need(op, 12)
    classes = d.int(1, 5)
    rest = d.shape(d.int(0, 2), 60, empty=0)
    n = d.int(1, 4)
    labels = d.rng.integers(0, classes, (n, *rest))
    ignore = d.choice([None, 0, -1])
    if ignore == -1:
        labels = np.where(d.rng.random(labels.shape) < 0.2, -1, labels)
    inputs = [d.new(T.FLOAT, (n, classes, *rest)), d.ints(labels, dtype=d.choice([T.INT32, T.INT64])),
              d.new(T.FLOAT, (classes,), "positive") if d.chance(0.5) else None]
    d.node(op, inputs, [1, d.int(0, 1)] if op[0] == "S" else 1, reduction=d.choice([None, "none", "sum", "mean"]), ignore_index=ignore, exact=False)


@recipe()
def DFT(d):
    d.need("DFT", 17)
    n, inner = d.int(1, 3), d.choice([1, 2])
    shape = (n, d.choice([1, 2, 3, 5, 8, 12]), inner)
    inverse = d.choice([None, 0, 1]) if inner == 2 else None
    onesided = d.choice([None, 0, 1]) if not inverse and inner == 1 else None
    length = d.ints(d.choice([4, 7])) if d.chance(0.2) else None
    if d.since("DFT") >= 20:
        d.node("DFT", [d.new(T.FLOAT, shape), length, d.ints(1, True)], inverse=inverse, onesided=onesided, exact=False)
    else:
        d.node("DFT", [d.new(T.FLOAT, shape), length], axis=1, inverse=inverse, onesided=onesided, exact=False)


@recipe()
def STFT(d):
    d.need("STFT", 17)
    length, step = d.choice([4, 5, 8]), d.int(1, 4)
    d.node("STFT", [d.new(T.FLOAT, (d.int(1, 2), length + d.int(0, 20), 1)), d.ints(step), d.new(T.FLOAT, (length,), "positive") if d.chance(0.5) else None,
                    d.ints(length)], onesided=d.choice([None, 0, 1]), exact=False)


@recipe("HannWindow", "HammingWindow", "BlackmanWindow")
def windows(d, op):
    d.need(op, 17)
    d.node(op, [d.ints(d.int(1, 20))], periodic=d.choice([None, 0, 1]), output_datatype=d.choice([None, T.DOUBLE]), exact=False)


@recipe()
def MelWeightMatrix(d):
    d.need("MelWeightMatrix", 17)
    f = lambda v: d.given(np.float32(v), constant=True)  # noqa: E731
    d.node("MelWeightMatrix", [d.ints(d.int(1, 8)), d.ints(d.choice([16, 33])), d.ints(8000), f(0.0), f(4000.0)], exact=False)


@recipe()
def DeformConv(d):
    d.need("DeformConv", 19)
    c, m, k = d.int(1, 3), d.int(1, 3), [d.int(1, 3), d.int(1, 3)]
    h, w = k[0] + d.int(0, 3), k[1] + d.int(0, 3)
    oh, ow = h - k[0] + 1, w - k[1] + 1
    if oh < 1:
        raise Skip
    inputs = [d.new(T.FLOAT, (1, c, h, w)), d.new(T.FLOAT, (m, c, *k)), d.new(T.FLOAT, (1, 2 * k[0] * k[1], oh, ow), "unit"),
              d.new(T.FLOAT, (m,)) if d.chance(0.5) else None, d.new(T.FLOAT, (1, k[0] * k[1], oh, ow), "positive") if d.chance(0.5) else None]
    d.node("DeformConv", inputs, exact=False, pads=[0, 0, 0, 0], kernel_shape=k)


