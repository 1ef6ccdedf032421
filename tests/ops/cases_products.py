"""Fused products, convolutions and pools of com.microsoft."""

import numpy as np

f16, f32 = np.float16, np.float32
TOL = (1e-4, 1e-5)


def conv(r):
    for act, params in (("Relu", None), ("Tanh", None), ("Sigmoid", None), ("LeakyRelu", [0.25]), ("Clip", [-0.5, 0.75]), ("HardSigmoid", [0.3, 0.4])):
        r.case("FusedConv", [r.normal(1, 2, 5, 5), r.normal(3, 2, 3, 3), r.normal(3)], name=act, activation=act, activation_params=params, pads=[1, 0, 1, 2],
               tolerance=TOL)
    r.case("FusedConv", [r.normal(1, 2, 5, 5), r.normal(3, 2, 3, 3), r.normal(3), r.normal(1, 3, 3, 3)], name="sum", activation="Relu", tolerance=TOL)
    r.case("FusedConv", [r.normal(1, 2, 5, 5), r.normal(3, 2, 3, 3), None, r.normal(1, 3, 3, 3)], name="sum without activation", tolerance=TOL)
    r.case("FusedConv", [r.normal(2, 4, 6), r.normal(4, 2, 3)], name="1 axis, groups", activation="Relu", group=2, strides=[2], tolerance=TOL)


def gemm(r):
    for act, attrs in (("Relu", {}), ("Tanh", {}), ("LeakyRelu", {"activation_alpha": 0.125}), ("Sigmoid", {}),
                       ("Elu", {"activation_alpha": 0.5}), ("HardSigmoid", {"activation_alpha": 0.3, "activation_beta": 0.4}), ("Softplus", {}),
                       ("ThresholdedRelu", {"activation_alpha": 0.5}), ("Selu", {"activation_alpha": 1.5, "activation_gamma": 1.1}), ("Softsign", {})):
        r.case("FusedGemm", [r.normal(3, 4), r.normal(4, 5), r.normal(5)], name=act, activation=act, tolerance=TOL, **attrs)
    r.case("FusedGemm", [r.normal(4, 3), r.normal(5, 4), r.normal(3, 1)], name="transposed", activation="Relu", transA=1, transB=1, alpha=0.5, beta=2.0,
           tolerance=TOL)


def matmul(r):
    for op in ("FusedMatMul", "TransposeMatMul"):
        r.case(op, [r.normal(2, 3, 4), r.normal(2, 4, 5)], name="plain", alpha=0.5, tolerance=TOL)
        r.case(op, [r.normal(2, 4, 3), r.normal(5, 4)], name="transposed", transA=1, transB=1, tolerance=TOL)
        r.case(op, [r.normal(4), r.normal(4, 5)], name="vector", tolerance=TOL)
        r.case(op, [r.normal(2, 0, 4), r.normal(2, 4, 5)], name="empty", tolerance=TOL)
        r.case(op, [r.normal(2, 3, 0), r.normal(0, 5)], name="empty sums", tolerance=TOL)
    r.case("FusedMatMul", [r.normal(3, 2, 4), r.normal(2, 4, 5)], name="batch transposed A", transBatchA=1, tolerance=TOL)
    r.case("FusedMatMul", [r.normal(2, 3, 4), r.normal(4, 2, 5)], name="batch transposed B", transBatchB=1, tolerance=TOL)
    r.case("FusedMatMul", [r.normal(4, 2, 3), r.normal(5, 2, 4)], name="both transposed", transBatchA=1, transBatchB=1, transA=1, transB=1, tolerance=TOL)
    a, b = np.array([[0, 2, 0], [0, 0, -1]], f32), np.array([[1, 2], [3, 4]], f32)  # ONNX Runtime takes A as a sparse tensor alone
    r.case("SparseToDenseMatMul", [a, b], name="by formula", alpha=0.5, transA=1, expect=[0.5 * (a.T @ b)], tolerance=TOL)
    a, b = r.normal(2, 3, 4), r.normal(4, 5)
    y = 0.5 * (a @ b)
    r.case("FusedMatMulActivation", [a, b], name="Relu, by formula", alpha=0.5, activation="Relu", expect=[np.maximum(y, 0).astype(f32)], tolerance=TOL)
    r.case("FusedMatMulActivation", [a, b], name="LeakyRelu, by formula", alpha=0.5, activation="LeakyRelu", activation_alpha=0.25,
           expect=[np.where(y > 0, y, 0.25 * y).astype(f32)], tolerance=TOL)


def pools(r):
    for kind in (np.uint8, np.int8):
        x = r.ints(-90 if kind == np.int8 else 0, 100, 2, 5, 6, 3, dtype=kind)
        n = np.dtype(kind).name
        r.case("NhwcMaxPool", [x], name=n, kernel_shape=[2, 3])
        r.case("NhwcMaxPool", [x], name=f"{n}, pads, strides", kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2])
        r.case("NhwcMaxPool", [x], name=f"{n}, dilations, ceil", kernel_shape=[2, 2], dilations=[2, 1], strides=[2, 2], ceil_mode=1)
        r.case("NhwcMaxPool", [x], name=f"{n}, same", kernel_shape=[2, 2], auto_pad="SAME_UPPER")


def group_norm(r):
    def norm(x, groups, g, b):
        n, h, w, c = x.shape
        t = x.astype(np.float64).reshape(n, h, w, groups, c // groups)
        t = (t - t.mean((1, 2, 4), keepdims=True)) / np.sqrt(t.var((1, 2, 4), keepdims=True) + 1e-5)
        return t.reshape(x.shape) * g + b

    x, g, b = r.normal(2, 3, 2, 8), r.normal(8), r.normal(8)
    y = norm(x, 4, g, b)
    silu = y / (1 + np.exp(-y))
    attrs = dict(groups=4, epsilon=1e-5, tolerance=TOL)
    r.case("GroupNorm", [x, g, b], name="by formula", expect=[y.astype(f32)], activation=0, **attrs)
    r.case("GroupNorm", [x, g, b], name="SiLU, by formula", expect=[silu.astype(f32)], activation=1, **attrs)
    r.case("GroupNorm", [x.transpose(0, 3, 1, 2).copy(), g, b], name="channels first, by formula", activation=0, channels_last=0,
           expect=[y.transpose(0, 3, 1, 2).astype(f32)], **attrs)
    skip, bias = r.normal(2, 3, 2, 8), r.normal(8)
    s = x + skip + bias
    r.case("SkipGroupNorm", [x, g, b, skip, bias], name="by formula", outputs=2, activation=0, expect=[norm(s, 4, g, b).astype(f32), s], **attrs)
    s = x + skip[:, :1, :1]
    r.case("SkipGroupNorm", [x, g, b, skip[:, :1, :1].copy()], name="shared skip, by formula", outputs=2, activation=0,
           expect=[norm(s, 4, g, b).astype(f32), s], **attrs)


def unary(r):
    x, b = r.normal(2, 6), r.normal(6)
    r.case("Gelu", [x])
    r.case("BiasGelu", [x, b])
    r.case("FastGelu", [x])
    r.case("FastGelu", [x, b], name="bias")
    r.case("QuickGelu", [x])
    r.case("QuickGelu", [x], name="alpha", alpha=0.5)
    r.case("Inverse", [r.normal(2, 3, 3) + 3 * np.eye(3, dtype=f32)], tolerance=TOL)
    r.case("Trilu", [r.normal(2, 3, 4)], name="upper")
    r.case("Trilu", [r.normal(2, 3, 4), np.array(-1)], name="lower", upper=0)
    r.case("Unique", [np.array([2, 1, 1, 3, 4, 3], f32)], outputs=3)
    r.case("Range", [np.array(1, f32), np.array(9, f32), np.array(2.5, f32)])
    r.case("Range", [np.array(3, np.int64), np.array(-2, np.int64)], name="without step")
    r.case("GatherND", [r.normal(2, 3, 4), np.array([[[0, 1]], [[1, 2]]])])
    for mode in ("constant", "reflect", "edge"):
        r.case("Pad", [r.normal(3, 4), np.array([1, 0, 2, 1]), np.array(0.5, f32)], name=mode, mode=mode)
    r.case("GridSample", [r.normal(1, 2, 4, 4), np.clip(r.normal(1, 3, 3, 2), -1.25, 1.25)], tolerance=TOL)


def variants(r):
    x, w, b = r.normal(1, 3, 5, 4), r.normal(3, 2, 3, 3), r.normal(2)
    r.case("ConvTransposeWithDynamicPads", [x, w, np.array([1, 0, 1, 1]), b], name="pads", strides=[2, 1], tolerance=TOL)
    r.case("ConvTransposeWithDynamicPads", [x, w, np.array([1, 1, 1, 1])], name="constant pads", constants=(2,), output_padding=[1, 0], strides=[2, 2],
           tolerance=TOL)
    r.case("ConvTransposeWithDynamicPads", [r.normal(1, 4, 5), r.normal(4, 1, 3), np.array([1, 0])], name="1 axis, groups", group=2, tolerance=TOL)
    x, w, b, z = r.normal(2, 4, 5, 3), r.normal(6, 3, 2, 3), r.normal(6), r.normal(2, 4, 5, 6)
    padded = np.pad(x, ((0, 0), (0, 1), (1, 1), (0, 0)))
    y = sum(padded[:, i:i + 4, j:j + 5] @ w[:, :, i, j].T for i in range(2) for j in range(3)) + b
    r.case("NhwcFusedConv", [x, w, b], name="by formula", pads=[0, 1, 1, 1], expect=[y.astype(f32)], tolerance=TOL)
    r.case("NhwcFusedConv", [x, w, b, z], name="sum, Relu, by formula", pads=[0, 1, 1, 1], activation="Relu", expect=[np.maximum(y + z, 0).astype(f32)], tolerance=TOL)
    mask = np.ones((1, 1, 5, 6), np.int32)
    mask[0, 0, 2, 3:] = mask[0, 0, 4] = mask[0, 0, 0, 0] = 0
    r.case("MaxpoolWithMask", [r.normal(2, 3, 5, 6), mask], name="2 axes", kernel_shape=[2, 3], pads=[0, 1, 1, 1], strides=[1, 2])
    mask = np.array([[[1, 1, 1, 0, 0, 0, 0]]], np.int32)
    r.case("MaxpoolWithMask", [r.normal(2, 2, 7), mask], name="1 axis", kernel_shape=[3], strides=[2])
    r.case("MaxpoolWithMask", [r.normal(1, 2, 3, 3, 4), np.ones((1, 1, 3, 3, 4), np.int32)], name="3 axes", kernel_shape=[2, 2, 2])


def fused_blocks(r):
    """By formula: MatMulNBitsMlp and MatMulNBitsQkv have no CPU kernel."""
    def weights(n):
        b, s = r.ints(0, 256, n, 2, 8, dtype=np.uint8), np.abs(r.normal(n, 2)) / 16 + f32(0.01)
        codes = np.stack([b & 15, b >> 4], -1).reshape(n, 2, 16) - 8.0
        return [b, s, r.normal(n)], (codes * s[:, :, None]).reshape(n, 32).T

    a, skip, scale = r.normal(2, 3, 32), r.normal(2, 3, 32), r.normal(32)
    parts = [weights(n) for n in (5, 5, 6, 4, 4)]
    attrs = dict(K=32, block_size=16, bits=4, tolerance=(1e-3, 1e-4))

    def product(x, i):
        return x @ parts[i][1] + parts[i][0][2]

    def mlp(x):
        g = product(x, 0)
        return (g / (1 + np.exp(-g)) * product(x, 1)).astype(f32)

    def norm(x):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * scale

    inputs = [*parts[0][0], *parts[1][0]]
    r.case("MatMulNBitsMlp", [a, None, None, *inputs], name="by formula", N=5, activation="silu", expect=[mlp(a)], **attrs)
    r.case("MatMulNBitsMlp", [a, skip, scale, *inputs], name="normalised sum, by formula", outputs=2, N=5, activation="silu", expect=[mlp(norm(a + skip)), a + skip],
           **attrs)
    inputs = [*parts[2][0], *parts[3][0], *parts[4][0]]
    r.case("MatMulNBitsQkv", [a, None, scale, *inputs], name="by formula", outputs=3, Nq=6, Nkv=4, expect=[product(norm(a), i).astype(f32) for i in (2, 3, 4)], **attrs)


CASES = [conv, gemm, matmul, pools, group_norm, unary, variants, fused_blocks]
