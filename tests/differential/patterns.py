"""Several operators as exporters write them: what graph passes and fused kernels look for."""

import numpy as np
from draw import Skip, T
from ops_nn import spatial, window
from recipes import recipe


def number(d, v, shape=()):
    return d.given(np.full(shape, v, np.float32), constant=True)


def activation(d, x):
    kind = d.choice(["Relu", "Sigmoid", "Tanh", "LeakyRelu", "Clip", "HardSigmoid", "HardSwish", "silu", "none", "Elu", "hswish"])
    if kind == "none":
        return x
    if kind == "Clip":
        if d.since("Clip") < 11:
            return d.node("Clip", [x], min=0.0, max=6.0, exact=False)
        return d.node("Clip", [x, number(d, 0), number(d, 6)], exact=False)
    if kind == "silu":
        return d.node("Mul", [x, d.node("Sigmoid", [x], exact=False)], exact=False)
    if kind == "hswish":
        return d.node("Mul", [x, d.node("HardSigmoid", [x], alpha=1 / 6, beta=0.5, exact=False)], exact=False)
    if kind == "HardSwish" and d.opset < 14:
        kind = "Relu"
    return d.node(kind, [x], exact=False)


@recipe(weight=6)
def conv_block(d):
    w = window(d, 2, d.choice([[1, 1], [3, 3], [3, 3], [5, 5], [2, 3]]))
    group = d.choice([1, 1, 1, 2, 4])
    c, m = d.int(1, 5) * group, d.int(1, 6) * group
    if d.chance(0.25):
        group = m = c
    x = d.pick(T.FLOAT, shape=(d.int(1, 2), c, *spatial(d, w, 2)), tame=True)
    inputs = [x, d.new(T.FLOAT, (m, c // group, *w["kernel_shape"]), constant=True)]
    if d.chance(0.5):
        inputs.append(d.new(T.FLOAT, (m,), constant=True))
    y = d.node("Conv", inputs, group=group, exact=False, tame=False, **w)
    if d.chance(0.5) and y.shape:
        stats = [d.new(T.FLOAT, (m,), k, True) for k in ("normal", "normal", "normal", "positive")]
        y = d.node("BatchNormalization", [y, *stats], exact=False)
    elif d.chance(0.4):
        y = d.node(d.choice(["Mul", "Add"]), [y, d.new(T.FLOAT, (m, 1, 1), constant=True)], exact=False)
    before = d.chance(0.3)
    if before:
        y = activation(d, y)
    if d.chance(0.5) and y.shape:
        other = d.pick(T.FLOAT, shape=y.shape)
        y = d.node("Add", [y, other] if d.chance(0.5) else [other, y], exact=False)
    if not before:
        activation(d, y)


@recipe(weight=4)
def matmul_block(d):
    m, k, n = d.dim(empty=0), d.dim(empty=0), d.dim(empty=0)
    outer = d.shape(d.int(0, 2), 6, empty=0)
    x = d.pick(T.FLOAT, shape=(*outer, m, k), tame=True)
    if d.chance(0.3):
        w = d.node("Transpose", [d.new(T.FLOAT, (n, k), constant=d.chance(0.8))], perm=[1, 0])
    else:
        w = d.new(T.FLOAT, (k, n), constant=d.chance(0.8))
    y = d.node("MatMul", [x, w], exact=False, tame=False)
    if d.chance(0.7):
        b = d.new(T.FLOAT, d.choice([(n,), (1, n), ()]), constant=True)
        y = d.node("Add", [y, b] if d.chance(0.7) else [b, y], exact=False)
    if d.chance(0.3) and y.shape:
        y = d.node("Add", [y, d.pick(T.FLOAT, shape=y.shape)], exact=False)
    if d.chance(0.3):  # GELU written out
        e = d.node("Erf", [d.node("Div", [y, number(d, 2**0.5)], exact=False)], exact=False) if d.opset >= 9 else y
        y = d.node("Mul", [d.node("Mul", [y, d.node("Add", [e, number(d, 1)], exact=False)], exact=False), number(d, 0.5)], exact=False)
    else:
        activation(d, y)


@recipe(weight=2)
def layer_norm_written_out(d):
    if d.opset >= 18:
        axes, attributes = [d.ints([-1], True)], {}
    else:
        axes, attributes = [], {"axes": [-1]}
    if d.opset < 11:
        attributes = {"axes": [2]}
    n = d.int(2, 17)
    x = d.pick(T.FLOAT, shape=(d.int(1, 3), d.int(1, 4), n), tame=True)
    mean = d.node("ReduceMean", [x, *axes], exact=False, **attributes)
    off = d.node("Sub", [x, mean], exact=False)
    square = d.node("Pow", [off, number(d, 2)], exact=False) if d.chance(0.6) else d.node("Mul", [off, off], exact=False)
    root = d.node("Sqrt", [d.node("Add", [d.node("ReduceMean", [square, *axes], exact=False, **attributes), number(d, 1e-5)], exact=False)], exact=False)
    y = d.node("Div", [off, root], exact=False)
    y = d.node("Mul", [y, d.new(T.FLOAT, (n,), constant=True)], exact=False)
    d.node("Add", [y, d.new(T.FLOAT, (n,), constant=True)], exact=False)


@recipe(weight=2)
def attention_written_out(d):
    batch, heads, length, width = d.int(1, 2), d.int(1, 4), d.int(1, 9), d.choice([2, 4, 8])
    whole = heads * width
    x = d.pick(T.FLOAT, shape=(batch, length, whole), tame=True)
    one = d.new(T.FLOAT, (1, length, whole), constant=d.chance(0.5))  # queries for all samples
    of_one = d.chance(0.3)
    parts = []
    for i in range(3):
        p = d.node("MatMul", [one if i == 0 and of_one else x, d.new(T.FLOAT, (whole, whole), "unit", True)], exact=False)
        if d.chance(0.7):
            p = d.node("Add", [p, d.new(T.FLOAT, (whole,), constant=True)], exact=False)
        rows = 1 if i == 0 and of_one else batch
        p = d.node("Reshape", [p, d.ints([0, 0, heads, width] if d.chance(0.5) else [rows, -1, heads, width], True)], exact=False)
        parts.append(d.node("Transpose", [p], perm=[0, 2, 3, 1] if i == 1 else [0, 2, 1, 3], exact=False))
    scores = d.node("MatMul", [parts[0], parts[1]], exact=False)
    scores = d.node(d.choice(["Mul", "Div"]), [scores, number(d, width**0.5)], exact=False)
    lowest = d.choice([np.finfo(np.float32).min, -np.inf])
    for _ in range(d.choice([0, 1, 1, 2])):
        hidden = d.rng.random(d.choice([(batch, 1, 1, length), (1, 1, length, length), (length,)])) < 0.3
        if d.opset >= 9 and d.chance(0.5):
            scores = d.node("Where", [d.given(hidden), number(d, lowest), scores] if d.chance(0.5) else [d.given(~hidden), scores, number(d, lowest)], exact=False)
        else:
            scores = d.node("Add", [scores, d.given(np.where(hidden, d.choice([lowest, -10000]), 0).astype(np.float32))], exact=False)
    p = d.node("Softmax", [scores], axis=-1 if d.opset >= 11 else 3, exact=False)
    y = d.node("MatMul", [p, parts[2]], exact=False)
    y = d.node("Transpose", [y], perm=[0, 2, 1, 3], exact=False)
    d.node("Reshape", [y, d.ints([0, 0, whole], True)], exact=False)


@recipe(weight=2)
def shape_arithmetic(d):
    """Shape → Gather → Concat → Reshape, as exporters write x.view(x.size(0), -1)."""
    x = d.pick(T.FLOAT, where=lambda s: len(s) > 1 and 0 not in s)
    shape = d.node("Shape", [x], exact=True, tame=False)
    first = d.node("Gather", [shape, d.ints(0, True)], axis=0, exact=True, tame=False)
    if d.opset >= 13:
        first = d.node("Unsqueeze", [first, d.ints([0], True)], exact=True, tame=False)
    else:
        first = d.node("Unsqueeze", [first], axes=[0], exact=True, tame=False)
    if d.chance(0.3):
        first = d.node("Cast", [d.node("Cast", [first], to=T.FLOAT, tame=False)], to=T.INT64, tame=False)
    target = d.node("Concat", [first, d.ints([-1], True)], axis=0, exact=True, tame=False)
    y = d.node("Reshape", [x, target], types=[(T.FLOAT, (x.shape[0], int(np.prod(x.shape[1:]))))])
    if d.chance(0.5):
        d.node("Reshape", [y, d.node("Shape", [x], tame=False)], types=[(T.FLOAT, x.shape)])


@recipe(weight=2)
def transpose_sandwich(d):
    """Layout changes around operators that do not care, or that have an axis."""
    x = d.pick(T.FLOAT, rank=4, where=lambda s: 0 not in s, tame=True)
    perm = [int(i) for i in d.rng.permutation(4)]
    y = d.node("Transpose", [x], perm=perm)
    for _ in range(d.int(1, 3)):
        kind = d.choice(["Relu", "Add", "Concat", "ReduceSum", "Softmax", "Pad", "Mul", "Split"])
        if kind == "Add" or kind == "Mul":
            y = d.node(kind, [y, d.new(T.FLOAT, tuple(e if d.chance(0.5) else 1 for e in y.shape[d.int(0, 3):]), constant=d.chance(0.6))], exact=False)
        elif kind == "Concat":
            y = d.node("Concat", [y, y], axis=d.int(0, 3))
        elif kind == "Softmax" and d.opset >= 13:
            y = d.node("Softmax", [y], axis=d.axis(4), exact=False)
        elif kind == "Pad" and d.opset >= 11:
            y = d.node("Pad", [y, d.ints([d.int(0, 1) for _ in range(8)], True)])
        else:
            y = d.node("Relu", [y])
        if y.shape is None or np.prod(y.shape) > 20000:
            raise Skip
    back = [int(i) for i in np.argsort(perm)] if d.chance(0.7) else [int(i) for i in d.rng.permutation(4)]
    y = d.node("Transpose", [y], perm=back)
    if d.chance(0.3):
        d.node("Transpose", [y], perm=[int(i) for i in d.rng.permutation(4)])


@recipe(weight=2)
def no_ops(d):
    """What simplification takes away: chains of Identity, Cast to the same type, Reshape twice, neutral numbers."""
    x = d.pick(d.choice([T.FLOAT, T.FLOAT, T.INT64]), tame=True)
    kind = np.float32 if x.dtype == T.FLOAT else np.int64
    for _ in range(d.int(1, 4)):
        how = d.choice(["Identity", "Cast", "add0", "mul1", "div1", "sub0", "slice", "concat1", "negneg"])
        if how == "Identity":
            x = d.node("Identity", [x])
        elif how == "Cast":
            x = d.node("Cast", [x], to=x.dtype)
        elif how in ("add0", "sub0", "mul1", "div1"):
            neutral = kind(how in ("mul1", "div1"))
            op = {"add0": "Add", "sub0": "Sub", "mul1": "Mul", "div1": "Div"}[how]
            x = d.node(op, [x, d.given(np.full(d.choice([(), (1,), (1,) * (len(x.shape) + 1)]), neutral), constant=True)])
        elif how == "slice" and len(x.shape) and d.opset >= 10:
            x = d.node("Slice", [x, d.ints([0], True), d.ints([2**31 - 1], True)])
        elif how == "concat1" and len(x.shape):
            x = d.node("Concat", [x], axis=0)
        elif how == "negneg":
            x = d.node("Neg", [d.node("Neg", [x])])
    if x.shape is None:
        raise Skip
