"""Operators of com.microsoft: those that exports of transformers and quantised networks carry."""

import numpy as np
from draw import T
from onnx import helper
from ops_quant import BYTES, quantised, scale, weights, zero
from recipes import recipe

MS = {"domain": "com.microsoft", "exact": False}


def f(d, *shape, kind="normal", constant=None):
    return d.new(T.FLOAT, shape, kind, constant)


@recipe("ms.Gelu", "ms.FastGelu", "ms.QuickGelu", "ms.BiasGelu")
def gelus(d, name):
    op = name[3:]
    n = d.int(1, 33)
    x = d.pick(T.FLOAT, shape=(*d.shape(d.int(0, 2), 40), n), tame=True)
    bias = [f(d, n)] if op == "BiasGelu" or (op == "FastGelu" and d.chance(0.5)) else []
    d.node(op, [x, *bias], alpha=d.choice([None, 1.0, 1.3]) if op == "QuickGelu" else None, **MS)


@recipe("ms.SkipLayerNormalization", "ms.SkipSimplifiedLayerNormalization")
def skip_norm(d, name):
    op = name[3:]
    b, s, h = d.int(1, 3), d.int(1, 6), d.int(2, 40)
    x = d.pick(T.FLOAT, shape=(b, s, h), tame=True)
    inputs = [x, f(d, b, s, h), f(d, h)]
    if op == "SkipLayerNormalization":
        inputs.append(f(d, h) if d.chance(0.7) else None)
    inputs.append(f(d, h) if d.chance(0.5) else None)
    d.node(op, inputs, [1, 0, 0, 1] if d.chance(0.5) else [1], epsilon=d.choice([None, 1e-3]), **MS)


@recipe("ms.SimplifiedLayerNormalization")
def simplified_norm(d, name):
    n = d.int(2, 40)
    x = d.pick(T.FLOAT, shape=(*d.shape(d.int(1, 2), 40, empty=0), n), tame=True)
    made = helper.make_node("SimplifiedLayerNormalization", [x.name, f(d, n).name], [d.fresh("t")], axis=-1, epsilon=d.choice([1e-5, 1e-3]))
    d.nodes.append(made)
    d.results.append(made.output[0])


@recipe("ms.EmbedLayerNormalization")
def embed_norm(d, name):
    b, s, h, v = d.int(1, 3), d.int(1, 6), d.int(2, 20), 11
    ids = d.ints(d.rng.integers(0, v, (b, s)), False, T.INT32)
    segments = d.chance(0.6)
    inputs = [ids, d.ints(d.rng.integers(0, 2, (b, s)), False, T.INT32) if segments else None, f(d, v, h), f(d, s + 2, h), f(d, 2, h) if segments else None,
              f(d, h), f(d, h)]
    d.node("EmbedLayerNormalization", inputs, [1, 1], **MS)


@recipe("ms.FusedMatMul", weight=1.5)
def fused_matmul(d, name):
    m, k, n = d.dim(empty=0), d.dim(empty=0), d.dim(empty=0)
    outer = d.shape(d.int(0, 2), 6, empty=0)
    a_t, b_t = d.int(0, 1), d.int(0, 1)
    a = d.pick(T.FLOAT, shape=(*outer, k, m) if a_t else (*outer, m, k), tame=True)
    d.node("FusedMatMul", [a, f(d, *outer, *((n, k) if b_t else (k, n)))], transA=a_t or None, transB=b_t or None, alpha=d.choice([None, 0.5, 2.0]), **MS)


@recipe("ms.FusedGemm", "ms.FusedConv")
def fused_activation(d, name):
    op = name[3:]
    act = d.choice(["Relu", "Tanh", "Sigmoid", "LeakyRelu"])
    alpha = {"activation_alpha": 0.2} if act == "LeakyRelu" and op == "FusedGemm" else {}
    if op == "FusedGemm":
        m, k, n = d.dim(empty=0), d.dim(empty=0), d.dim(empty=0)
        d.node(op, [f(d, m, k), f(d, k, n), f(d, n)], activation=act, **alpha, **MS)
    else:
        c, m, k = d.int(1, 5), d.int(1, 5), d.choice([1, 3])
        params = {"activation_params": [0.2]} if act == "LeakyRelu" else {}
        d.node(op, [f(d, 1, c, d.int(3, 9), d.int(3, 9)), f(d, m, c, k, k, constant=True), f(d, m)], activation=act, kernel_shape=[k, k], **params, **MS)


@recipe("ms.MatMulNBits", weight=1.5)
def matmul_nbits(d, name):
    n, block = d.int(1, 9), d.choice([16, 32, 64])
    blocks = d.int(1, 3)
    k = block * blocks - (d.choice([0, 0, 4]) if blocks > 1 else 0)
    packed = d.given(d.rng.integers(0, 256, (n, blocks, block // 2)).astype(np.uint8), constant=True)
    scales = d.given((d.rng.integers(1, 9, (n, blocks)) / 64).astype(np.float32), constant=True)
    points = d.given(d.rng.integers(0, 256, (n, (blocks + 1) // 2)).astype(np.uint8), constant=True) if d.chance(0.5) else None
    a = d.pick(T.FLOAT, shape=(*d.shape(d.int(0, 1), 4, empty=0), d.int(1, 6), k), tame=True)
    d.node("MatMulNBits", [a, packed, scales, points], K=k, N=n, bits=4, block_size=block, **MS)


@recipe("ms.MultiHeadAttention", weight=1.5)
def multi_head_attention(d, name):
    b, heads, width, s, t = d.int(1, 2), d.int(1, 3), d.choice([2, 4, 8]), d.int(1, 6), d.int(1, 7)
    h = heads * width
    bias = f(d, 3 * h) if d.chance(0.5) else None
    mask = d.given((d.rng.random((b, t)) < 0.7).astype(np.int32)) if d.chance(0.3) else None
    extra = f(d, *d.choice([(b, heads, s, t), (1, heads, s, t)])) if d.chance(0.3) else None
    d.node("MultiHeadAttention", [d.pick(T.FLOAT, shape=(b, s, h), tame=True), f(d, b, t, h), f(d, b, t, h), bias, mask, extra], num_heads=heads,
           scale=d.choice([None, 0.4]), unidirectional=d.choice([None, 0, 1]) if s == t and mask is None else None, **MS)


@recipe("ms.Attention", weight=1.5)
def attention(d, name):
    b, heads, width, s = d.int(1, 2), d.int(1, 3), d.choice([2, 4, 8]), d.int(1, 6)
    h, n = heads * width, d.int(2, 9)
    mask = None
    if d.chance(0.5):
        mask = d.choice([lambda: d.ints(d.rng.integers(1, s + 1, b), False, T.INT32),
                         lambda: d.given((d.rng.random((b, s)) < 0.8).astype(np.int32), constant=False)])()
    d.node("Attention", [d.pick(T.FLOAT, shape=(b, s, n), tame=True), f(d, n, 3 * h, kind="unit"), f(d, 3 * h), mask], num_heads=heads,
           unidirectional=d.choice([None, 0, 1]), **MS)


@recipe("ms.GroupQueryAttention", weight=1.5)
def group_query(d, name):
    b, kv, width = d.int(1, 2), d.int(1, 2), d.choice([8, 16])
    heads = kv * d.int(1, 3)
    past = d.choice([0, 3])
    s = d.int(1, 5) if past == 0 else 1
    whole = past + s
    inputs = [d.pick(T.FLOAT, shape=(b, s, heads * width), tame=True), f(d, b, s, kv * width), f(d, b, s, kv * width), f(d, b, kv, past, width), f(d, b, kv, past, width),
              d.ints(np.full(b, whole - 1), False, T.INT32), d.ints(whole, True, T.INT32)]
    rotary = d.choice([None, 1])
    if rotary:
        inputs += [f(d, 16, width // 2, kind="unit", constant=True), f(d, 16, width // 2, kind="unit", constant=True)]
    d.node("GroupQueryAttention", inputs, [1, 1, 1], num_heads=heads, kv_num_heads=kv, do_rotary=rotary, scale=d.choice([None, 0.2]),
           local_window_size=d.choice([None, None, 2]), softcap=d.choice([None, None, 5.0]), **MS)


@recipe("ms.RotaryEmbedding")
def rotary(d, name):
    b, heads, s, width = d.int(1, 2), d.int(1, 3), d.int(1, 5), d.choice([2, 4, 8])
    places = d.ints(d.rng.integers(0, 7, (b, s)), False) if d.chance(0.6) else d.ints([d.int(0, 2)], False)
    table = [f(d, 9, width // 2, kind="unit"), f(d, 9, width // 2, kind="unit")]
    x = f(d, b, heads, s, width) if d.chance(0.4) else f(d, b, s, heads * width)
    d.node("RotaryEmbedding", [x, places, *table], interleaved=d.choice([None, 0, 1]), **MS)


@recipe("ms.DynamicQuantizeMatMul", "ms.MatMulIntegerToFloat", weight=1.5)
def integer_products(d, name):
    op = name[3:]
    m, k, n = d.dim(empty=0), d.dim(empty=0), d.dim(empty=0)
    b = d.choice(BYTES)
    columns = d.choice([(), (n,)])
    bias = f(d, n) if d.chance(0.5) else None
    if op == "DynamicQuantizeMatMul":
        d.node(op, [f(d, m, k), weights(d, b, (k, n), d.chance(0.7)), scale(d, columns or (1,)), zero(d, b, columns or (1,)) if d.chance(0.6) else None, bias], **MS)
    else:
        a = d.choice(BYTES)
        d.node(op, [quantised(d, a, (m, k)), weights(d, b, (k, n), d.chance(0.7)), scale(d), scale(d, columns), zero(d, a) if d.chance(0.7) else None,
                    zero(d, b, columns) if d.chance(0.5) else None, bias], **MS)


@recipe("ms.QGemm")
def qgemm(d, name):
    m, k, n = d.dim(empty=0), d.dim(empty=0), d.dim(empty=0)
    a_t, b_t = d.int(0, 1), d.int(0, 1)
    a, b = d.choice(BYTES), d.choice(BYTES)
    columns = d.choice([(), (n,)])
    bias = d.given(d.rng.integers(-200, 200, d.choice([(n,), (1, n), (m, n)])).astype(np.int32)) if d.chance(0.6) else None
    tail = [scale(d), zero(d, a)] if d.chance(0.6) else []
    d.node("QGemm", [quantised(d, a, (k, m) if a_t else (m, k)), scale(d), zero(d, a), weights(d, b, (n, k) if b_t else (k, n)), scale(d, columns), zero(d, b, columns),
                     bias, *tail], transA=a_t or None, transB=b_t or None, alpha=d.choice([None, 0.5]), **MS)


@recipe("ms.QLinearConcat", "ms.QLinearWhere", "ms.QLinearSoftmax", "ms.QLinearAveragePool", "ms.QLinearGlobalAveragePool")
def qlinear(d, name):
    op = name[3:]
    t = d.choice(BYTES)
    if op == "QLinearConcat":
        shape, axis, parts = d.shape(d.int(1, 3), empty=0), 0, []
        for _ in range(d.int(1, 3)):
            parts += [quantised(d, t, shape), scale(d), zero(d, t)]
        d.node(op, [scale(d), zero(d, t), *parts], axis=axis, **MS)
    elif op == "QLinearWhere":
        a, b, c = d.broadcast_shapes(3)
        d.node(op, [d.new(T.BOOL, a), quantised(d, t, b), scale(d), zero(d, t), quantised(d, t, c), scale(d), zero(d, t), scale(d), zero(d, t)], **MS)
    elif op == "QLinearSoftmax":
        shape = d.shape(d.int(1, 3), empty=0)
        point = d.given(np.asarray(0 if t == T.UINT8 else -128).astype(helper.tensor_dtype_to_np_dtype(t)), t, constant=True)
        d.node(op, [quantised(d, t, shape), d.given(np.float32(1 / 16), constant=True), zero(d, t), d.given(np.float32(1 / 256), constant=True), point],
               axis=d.axis(len(shape)), opset=13, **MS)
    else:
        x = quantised(d, t, (d.int(1, 2), d.int(1, 4), d.int(2, 7), d.int(2, 7)))
        window = {"kernel_shape": [2, 2], "strides": d.choice([None, [2, 2]])} if op == "QLinearAveragePool" else {}
        d.node(op, [x, scale(d), zero(d, t), scale(d), zero(d, t)], **window, **MS)


@recipe("ms.Inverse", "ms.Trilu", "ms.CDist", "ms.NhwcMaxPool")
def others(d, name):
    op = name[3:]
    if op == "Inverse":
        n = d.int(1, 5)
        base = np.eye(n, dtype=np.float32) * 4 + d.numbers(T.FLOAT, (*d.shape(d.int(0, 1), 4, empty=0), n, n), "unit")
        d.node(op, [d.given(base.astype(np.float32))], **MS)
    elif op == "Trilu":
        d.node(op, [d.pick(T.FLOAT, where=lambda s: len(s) > 1), d.ints(d.int(-3, 3)) if d.chance(0.5) else None], upper=d.choice([None, 0, 1]), **MS)
    elif op == "CDist":
        n = d.int(1, 6)
        d.node(op, [f(d, d.int(1, 6), n), f(d, d.int(1, 6), n)], metric=d.choice(["euclidean", "sqeuclidean"]), **MS)
    else:
        d.node(op, [quantised(d, d.choice(BYTES), (1, d.int(3, 7), d.int(3, 7), d.int(1, 5)))], kernel_shape=[2, 3], pads=d.choice([None, [0, 1, 1, 0]]), **MS)
