"""Quantised operators of com.microsoft."""

import numpy as np

f32, u8, i8, i32 = np.float32, np.uint8, np.int8, np.int32


def scale(x):
    return np.array(x, f32)


def q(r, kind, *shape):
    # 7 bits where signed: ONNX Runtime saturates sums of two products of uint8 and int8 at 16 bits on machines without VNNI.
    low, high = (0, 256) if kind == u8 else (-64, 64)
    return r.ints(low, high, *shape, dtype=kind)


def elementwise(r):
    for kind, z in ((u8, (100, 130, 90)), (i8, (3, -20, 7))):
        n = np.dtype(kind).name
        zero = [np.array(v, kind) for v in z]
        for op in ("QLinearAdd", "QLinearMul"):
            r.case(op, [q(r, kind, 2, 3, 5), scale(0.02), zero[0], q(r, kind, 3, 1), scale(0.031), zero[1], scale(0.04), zero[2]], name=n)
            r.case(op, [q(r, kind, 7), scale(0.02), zero[0], q(r, kind), scale(0.5), zero[1], scale(0.25)], name=f"{n} default, scalar")
            r.case(op, [q(r, kind, 0, 3), scale(0.02), zero[0], q(r, kind, 3), scale(0.5), zero[1], scale(0.25)], name=f"{n} empty")
        for op, attrs in (("QLinearSigmoid", {}), ("QLinearLeakyRelu", {"alpha": 0.125}), ("QLinearLeakyRelu", {})):
            r.case(op, [q(r, kind, 3, 9), scale(0.05), zero[0], scale(0.004), zero[1]], name=f"{n} {attrs}", **attrs)
        r.case("QLinearConcat", [scale(0.02), zero[0], q(r, kind, 2, 3), scale(0.03), zero[1], q(r, kind, 2, 2), scale(0.02), zero[0]],
               name=n, axis=1)
        r.case("QLinearConcat", [scale(0.02), zero[0], q(r, kind, 2, 3), scale(0.03), zero[1], q(r, kind, 1, 3), scale(0.01), zero[2]],
               name=f"{n} axis -2", axis=-2)
        r.case("QLinearWhere", [np.array([[True], [False]]), q(r, kind, 2, 4), scale(0.02), zero[0], q(r, kind, 4), scale(0.03),
                                zero[1], scale(0.05), zero[2]], name=n, constants=(2, 3, 5, 6, 7, 8))


def softmax(r):
    import onnx
    from onnx import helper
    for kind in (u8, i8):
        for version, axis in ((12, 1), (13, -1), (13, 1)):
            x = q(r, kind, 2, 3, 4)
            zero = 0 if kind == u8 else -128
            t = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
            node = helper.make_node("QLinearSoftmax", ["x", "s", "z", "t", "o"], ["y"], domain="com.microsoft", axis=axis, opset=version)
            weights = [helper.make_tensor("s", 1, [], [0.05]), helper.make_tensor("z", t, [], [5]),
                       helper.make_tensor("t", 1, [], [1 / 256]), helper.make_tensor("o", t, [], [zero])]
            out = onnx.ValueInfoProto()
            out.name = "y"
            graph = helper.make_graph([node], "case", [helper.make_tensor_value_info("x", t, x.shape)], [out], weights)
            r.model(f"QLinearSoftmax {np.dtype(kind).name} {version} axis {axis}", graph, {"x": x}, {"": 21, "com.microsoft": 1})


def pools(r):
    for kind in (u8, i8):
        n = np.dtype(kind).name
        z = np.array(7, kind)
        x = q(r, kind, 1, 3, 6, 5)
        r.case("QLinearAveragePool", [x, scale(0.02), z, scale(0.0307), z], name=n, kernel_shape=[3, 2], pads=[1, 0, 1, 1], strides=[2, 1])
        r.case("QLinearAveragePool", [x, scale(0.02), z, scale(0.0307), z], name=f"{n} counting pads", kernel_shape=[3, 2],
               pads=[1, 1, 1, 1], count_include_pad=1)
        r.case("QLinearAveragePool", [q(r, kind, 1, 6, 5, 3), scale(0.02), z, scale(0.0307), z], name=f"{n} channels last", kernel_shape=[2, 2],
               channels_last=1)
        r.case("QLinearAveragePool", [x, scale(0.02), z, scale(0.0307)], name=f"{n} ceil", kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1)
        r.case("QLinearGlobalAveragePool", [x, scale(0.02), z, scale(0.01), z], name=n)
        r.case("QLinearGlobalAveragePool", [x, scale(0.02), z, scale(0.01), z], name=f"{n} channels last", channels_last=1)
    r.case("QLinearConv", [q(r, u8, 1, 2, 5, 5), scale(0.02), np.array(120, u8), q(r, i8, 3, 2, 3, 3), scale([0.01, 0.02, 0.03]),
                           np.zeros(3, i8), scale(0.1), np.array(128, u8), r.ints(-500, 500, 3, dtype=i32)], name="per channel", pads=[1, 1, 1, 1],
           constants=(3, 4, 5, 8))
    r.case("QLinearConv", [q(r, u8, 1, 5, 5, 2), scale(0.02), np.array(120, u8), q(r, i8, 4, 2, 2, 2), scale(0.01),
                           np.array(0, i8), scale(0.1), np.array(128, u8)], name="channels last", channels_last=1, strides=[2, 1],
           constants=(3, 4, 5))


def products(r):
    a, b = q(r, u8, 2, 3, 8), q(r, i8, 8, 5)
    r.case("MatMulIntegerToFloat", [a, b, scale(0.02), scale(0.01)], name="plain")
    r.case("MatMulIntegerToFloat", [a, b, scale(0.02), scale([0.01, 0.02, 0.03, 0.04, 0.05]), np.array(120, u8), r.ints(-9, 9, 5, dtype=i8),
                                    r.normal(5)], name="per column, bias")
    r.case("MatMulIntegerToFloat", [q(r, i8, 4, 8), q(r, i8, 8, 3), scale(0.02), scale(0.01), np.array(-3, i8), np.array(4, i8)], name="int8")
    r.case("MatMulInteger16", [r.ints(-999, 999, 2, 3, 4, dtype=np.int16), r.ints(-999, 999, 4, 5, dtype=np.int16)])
    for kind in (u8, i8):
        n = np.dtype(kind).name
        z = np.array(2 if kind == i8 else 130, kind)
        r.case("DynamicQuantizeMatMul", [r.normal(2, 3, 8), q(r, kind, 8, 5), scale(0.01), z, r.normal(5)], name=n, tolerance=(1e-3, 1e-4))
        r.case("DynamicQuantizeMatMul", [r.normal(3, 8), q(r, kind, 8, 3), scale([0.01, 0.02, 0.03])], name=f"{n} per column",
               tolerance=(1e-3, 1e-4))
        r.case("QGemm", [q(r, kind, 4, 6), scale(0.02), z, q(r, i8, 6, 5), scale(0.01), np.array(1, i8)], name=f"{n} to float") if kind == i8 else None
        r.case("QGemm", [q(r, kind, 6, 4), scale(0.02), z, q(r, kind, 5, 6), scale([0.01, 0.02, 0.01, 0.04, 0.02]), np.full(5, z),
                         r.ints(-999, 999, 5, dtype=i32), scale(0.05), z], name=f"{n} transposed, per column", transA=1, transB=1, alpha=0.5,
               constants=(3, 4, 5, 6))
    r.case("QAttention", [q(r, u8, 2, 3, 8), q(r, i8, 8, 24), r.normal(24), scale(0.01), scale(0.01), np.array([3, 2], i32), np.array(120, u8),
                          np.array(0, i8)], name="mask", num_heads=2, tolerance=(1e-3, 1e-4))
    r.case("QAttention", [q(r, u8, 1, 2, 8), q(r, u8, 8, 24), r.normal(24), scale(0.01), scale(0.01), None, np.array(120, u8),
                          np.array(130, u8), r.normal(2, 1, 2, 4, 4)], outputs=2, name="past, causal", num_heads=2, unidirectional=1,
           tolerance=(1e-3, 1e-4))


def by_bits(r):
    for bits, block in ((4, 16), (4, 32), (8, 32), (2, 16)):
        for k in (32, 40):
            n, blocks, blob = 5, -(-k // block), block * bits // 8
            b = r.ints(0, 256, n, blocks, blob, dtype=u8)
            s = np.abs(r.normal(n, blocks)) / 16 + f32(0.01)
            a = r.normal(2, 3, k)
            tag = f"{bits} bits, blocks of {block}, K {k}"
            tol = (1e-3, 1e-3)
            attrs = dict(K=k, N=n, bits=bits, block_size=block, constants=(1, 2, 3, 4, 5), tolerance=tol)
            r.case("MatMulNBits", [a, b, s.reshape(-1)], name=tag, **attrs)
            zero = r.ints(0, 256, n, -(-blocks * bits // 8), dtype=u8)
            r.case("MatMulNBits", [a, b, s, zero.reshape(-1)], name=f"{tag}, packed zero points", **attrs)
            if bits == 4:
                r.case("MatMulNBits", [a, b, s, np.abs(r.normal(n, blocks)) * 4], name=f"{tag}, float zero points", **attrs)
            r.case("MatMulNBits", [a, b, s, None, None, r.normal(n)], name=f"{tag}, bias", **attrs)
    for bits in (4, 8):
        data = r.ints(0, 256, 6, 32 * bits // 8, dtype=u8)
        s = np.abs(r.normal(6, 2)) / 16
        r.case("GatherBlockQuantized", [data, np.array([[0, 5], [-1, 2]], np.int64), s], name=f"{bits} bits", bits=bits, block_size=16,
               quantize_axis=1, gather_axis=0, constants=(0, 2, 3))
        zero = r.ints(0, 256, 6, 2 * bits // 8, dtype=u8)
        r.case("GatherBlockQuantized", [data, np.array([3, 1], i32), s, zero], name=f"{bits} bits, zero points", bits=bits, block_size=16,
               quantize_axis=1, gather_axis=0, constants=(0, 2, 3))


def lstm(r):
    for d, direction in ((1, "forward"), (2, "bidirectional")):
        r.case("DynamicQuantizeLSTM", [r.normal(4, 2, 3), q(r, i8, d, 3, 16), q(r, i8, d, 4, 16), r.normal(d, 32), None, None, None, None,
                                       scale([0.01] * d), np.zeros(d, i8), scale([0.02] * d), np.zeros(d, i8)], outputs=3, name=direction,
               direction=direction, hidden_size=4, constants=(1, 2, 8, 9, 10, 11), tolerance=(1e-5, 1e-5))


def layers(r):
    h = 8
    w, s = q(r, u8, 10, h), lambda: scale(0.02)
    z = np.array(128, u8)
    ids = r.ints(0, 10, 2, 3, dtype=i32)
    for segments in (True, False):
        r.case("QEmbedLayerNormalization",
               [ids, r.ints(0, 2, 2, 3, dtype=i32) if segments else None, w, q(r, u8, 6, h), q(r, u8, 2, h) if segments else None, q(r, u8, h), q(r, u8, h),
                np.array([[1, 1, 0], [1, 1, 1]], i32), s(), s(), s() if segments else None, s(), s(), z, z, z if segments else None, z, z],
               outputs=2, name=f"segments {segments}", epsilon=1e-5, constants=(2, 3, 4, 5, 6, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17),
               tolerance=(1e-3, 1e-4))


def quantize(r):
    for kind in (np.int16, np.uint16, u8, i8):
        n = np.dtype(kind).name
        x = r.normal(2, 4) * 40
        r.case("QuantizeLinear", [x, scale(0.05), np.array(9, kind)], name=n)
        r.case("DequantizeLinear", [r.ints(0, 100, 2, 4, dtype=kind), scale(0.05), np.array(9, kind)], name=n)
        r.case("QuantizeLinear", [x, scale([0.05, 0.5]), np.array([9, 1], kind)], name=f"{n} by axis", axis=0)


def four_bit_floats(r):
    for kind in (0, 1):
        for n, k, block in ((5, 32, 16), (3, 40, 32), (1, 7, 64)):
            count = n * k
            b, s = r.ints(0, 256, (count + 1) // 2, dtype=u8), np.abs(r.normal(-(-count // block))) + f32(0.1)
            r.case("MatMulBnb4", [r.normal(2, 3, k), b, s], name=f"type {kind}, {n} x {k}, blocks of {block}", N=n, K=k, block_size=block, quant_type=kind,
                   constants=(1, 2), tolerance=(1e-3, 1e-4))
    b, s = r.ints(0, 256, 80, dtype=u8), np.abs(r.normal(10)) + f32(0.1)
    # ONNX Runtime's CPU kernel reads the weights in the wrong order here: by formula.
    fp4 = np.array([0, 1 / 192, 2 / 3, 1, 1 / 3, 1 / 2, 1 / 6, 1 / 4])
    codes = np.concatenate([fp4, -fp4])[np.stack([b >> 4, b & 15], -1).reshape(-1)]
    x, w = r.normal(2, 5), (codes.reshape(10, 16) * s[:, None]).reshape(5, 32)
    r.case("MatMulBnb4", [x, b, s], name="not transposed, by formula", N=5, K=32, block_size=16, quant_type=0, transB=0, constants=(1, 2),
           tolerance=(1e-3, 1e-4), expect=[(x @ w).astype(f32)])


CASES = [elementwise, softmax, pools, products, by_bits, lstm, quantize, layers, four_bit_floats]
