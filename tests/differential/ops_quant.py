"""Quantised operators, of ai.onnx and com.microsoft."""

import numpy as np
from draw import Skip, T
from onnx import helper
from recipes import recipe

BYTES = [T.UINT8, T.INT8]


def scale(d, shape=()):
    return d.given((d.rng.integers(1, 9, shape) / 64).astype(np.float32), constant=d.chance(0.7))


def zero(d, dtype, shape=(), none=0.0):
    return d.given(np.asarray(d.rng.integers(-9 if dtype == T.INT8 else 0, 10, shape)).astype(helper.tensor_dtype_to_np_dtype(dtype)), dtype, constant=d.chance(0.7))


def quantised(d, dtype, shape, constant=None):
    return d.new(dtype, shape, "full", constant)


def weights(d, dtype, shape, constant=None):
    """Of seven bits: with more, ONNX Runtime's 8-bit products saturate at 16 bits on machines without VNNI."""
    low, high = (-63, 64) if dtype == T.INT8 else (0, 128)
    return d.given(d.rng.integers(low, high, shape).astype(helper.tensor_dtype_to_np_dtype(dtype)), dtype, constant)


@recipe(weight=2)
def QuantizeLinear(d):
    d.need("QuantizeLinear", 10)
    version = d.since("QuantizeLinear")
    x = d.pick(T.FLOAT, where=lambda s: len(s) > 0)
    dtype = d.choice(BYTES + ([T.UINT16, T.INT16, T.INT4, T.UINT4] if version >= 21 else []) + ([T.FLOAT8E4M3FN, T.FLOAT8E5M2] if version >= 19 else []))
    axis, shape = None, ()
    if version >= 13 and d.chance(0.4):
        axis = d.axis(len(x.shape))
        shape = (x.shape[axis],)
    point = None
    if d.chance(0.8) or dtype != T.UINT8:
        point = d.given(np.zeros(shape), dtype) if dtype in (T.FLOAT8E4M3FN, T.FLOAT8E5M2) else zero(d, dtype, shape)
    y = d.node("QuantizeLinear", [x, scale(d, shape), point], axis=axis, exact=False)
    if d.chance(0.5) or dtype not in BYTES:
        d.node("DequantizeLinear", [y, scale(d, shape), point], axis=axis, exact=False)


@recipe(weight=2)
def DequantizeLinear(d):
    d.need("DequantizeLinear", 10)
    version = d.since("DequantizeLinear")
    dtype = d.choice(BYTES + [T.INT32] + ([T.UINT16, T.INT16, T.INT4, T.UINT4] if version >= 21 else []))
    shape = d.shape(d.int(1, 4), empty=0)
    axis, s, block = None, (), None
    if version >= 13 and d.chance(0.5):
        axis = d.axis(len(shape))
        s = (shape[axis],)
        if version >= 21 and d.chance(0.4):
            block = d.choice([2, 3])
            s = list(shape)
            s[axis] = d.int(1, 3)
            shape = list(shape)
            shape[axis] = s[axis] * block
            shape, s = tuple(shape), tuple(s)
    point = zero(d, dtype, s) if d.chance(0.7) and dtype != T.INT32 else None
    d.node("DequantizeLinear", [d.new(dtype, shape, "full" if dtype != T.INT32 else "normal"), scale(d, s), point], axis=axis, block_size=block, exact=False)


@recipe()
def DynamicQuantizeLinear(d):
    d.need("DynamicQuantizeLinear", 11)
    x = d.pick(T.FLOAT, where=lambda s: 0 not in s)
    d.node("DynamicQuantizeLinear", [x], 3, exact=False)


@recipe(weight=1.5)
def MatMulInteger(d):
    d.need("MatMulInteger", 10)
    a, b = d.choice(BYTES), d.choice(BYTES)
    m, k, n = d.dim(empty=0), d.dim(empty=0), d.dim(empty=0)
    outer = d.shape(d.int(0, 1), 4, empty=0)
    points = [zero(d, a) if d.chance(0.7) else None, zero(d, b, d.choice([(), (n,)])) if d.chance(0.5) else None]
    d.node("MatMulInteger", [quantised(d, a, (*outer, m, k)), weights(d, b, (k, n), d.chance(0.6)), *points])


@recipe(weight=1.5)
def QLinearMatMul(d):
    d.need("QLinearMatMul", 10)
    a, b = d.choice(BYTES), d.choice(BYTES)
    y = a
    m, k, n = d.dim(empty=0), d.dim(empty=0), d.dim(empty=0)
    columns = d.choice([(), (), (n,)])
    d.node("QLinearMatMul", [quantised(d, a, (m, k)), scale(d), zero(d, a), weights(d, b, (k, n), d.chance(0.6)), scale(d, columns), zero(d, b, columns),
                             scale(d), zero(d, y)], exact=False)


@recipe("ConvInteger", "QLinearConv", weight=1.5)
def conv(d, op):
    d.need(op, 10)
    x, w = d.choice(BYTES), d.choice(BYTES)
    if x == T.INT8 and w == T.UINT8:
        w = T.INT8
    group, c, m = d.choice([1, 1, 2]), d.int(1, 4), d.int(1, 5)
    k = [d.int(1, 3), d.int(1, 3)]
    h = [e + d.int(0, 6) for e in k]
    attributes = {"group": group, "strides": d.choice([None, [1, 2], [2, 2]]), "pads": d.choice([None, [0, 0, 0, 0], [e - 1 for e in k * 2]])}
    xq = quantised(d, x, (d.int(1, 2), c * group, *h))
    wq = weights(d, w, (m * group, c, *k), d.chance(0.8))
    if op == "ConvInteger":
        d.node(op, [xq, wq, zero(d, x) if d.chance(0.7) else None, zero(d, w) if d.chance(0.3) else None], **attributes)
        return
    per = d.choice([(), (m * group,)])
    bias = d.given(d.rng.integers(-300, 300, m * group).astype(np.int32)) if d.chance(0.5) else None
    wz = d.given(np.zeros(per, helper.tensor_dtype_to_np_dtype(w)), w, constant=True) if per else zero(d, w)
    d.node(op, [xq, scale(d), zero(d, x), wq, scale(d, per), wz, scale(d), zero(d, x), bias], exact=False, **attributes)


@recipe("QLinearAdd", "QLinearMul")
def qlinear_binary(d, op):
    dtype = d.choice(BYTES)
    a, b = d.broadcast_shapes(2)
    d.node(op, [quantised(d, dtype, a), scale(d), zero(d, dtype), quantised(d, dtype, b), scale(d), zero(d, dtype), scale(d), zero(d, dtype)],
           domain="com.microsoft", exact=False)


@recipe("QLinearSigmoid", "QLinearLeakyRelu")
def qlinear_unary(d, op):
    dtype = d.choice(BYTES)
    d.node(op, [quantised(d, dtype, d.shape()), scale(d), zero(d, dtype), d.given(np.float32(1 / 256), constant=True), zero(d, dtype)],
           domain="com.microsoft", exact=False)


@recipe(weight=2)
def qdq_pattern(d):
    """What a quantising exporter writes: an operator between DequantizeLinear and QuantizeLinear."""
    if d.opset < 13:
        raise Skip
    dtype = d.choice(BYTES)

    def dq(value, s=(), axis=None):
        return d.node("DequantizeLinear", [value, d.given((d.rng.integers(1, 9, s) / 64).astype(np.float32), constant=True),
                                           d.given(np.zeros(s, helper.tensor_dtype_to_np_dtype(value.dtype)), value.dtype, constant=True) if s else zero(d, value.dtype)],
                      axis=axis, exact=False, keep=False)

    c, m, h = d.int(1, 5), d.int(1, 6), d.int(3, 8)
    x = dq(quantised(d, dtype, (1, c, h, h)))
    kind = d.choice(["conv", "matmul", "pool", "add", "sigmoid"])
    if kind == "conv":
        k = d.choice([1, 3])
        w = dq(weights(d, T.INT8, (m, c, k, k), True), *d.choice([((), None), ((m,), 0)]))
        bias = [d.new(T.FLOAT, (m,), constant=True)] if d.chance(0.6) else []
        y = d.node("Conv", [x, w, *bias], pads=[k // 2] * 4, exact=False)
    elif kind == "matmul":
        y = d.node("MatMul", [x, dq(weights(d, T.INT8, (h, m), True))], exact=False)
    elif kind == "pool":
        y = d.node(d.choice(["MaxPool", "AveragePool"]), [x], kernel_shape=[2, 2], exact=False)
    elif kind == "add":
        y = d.node("Add", [x, dq(quantised(d, dtype, (1, c, h, h)))], exact=False)
    else:
        y = d.node("Sigmoid", [x], exact=False)
    if d.chance(0.5):
        y = d.node("Relu", [y], exact=False)
    d.node("QuantizeLinear", [y, scale(d), zero(d, dtype)], exact=False)
