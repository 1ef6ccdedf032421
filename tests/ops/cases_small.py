"""Small operators of com.microsoft: gates and norms, moved elements, transforms."""

import numpy as np

f16, f32, i32, i64 = np.float16, np.float32, np.int32, np.int64
TOL = (1e-4, 1e-5)


def gates(r):
    for kind, tol in ((f32, TOL), (f16, (2e-3, 2e-3))):
        n = np.dtype(kind).name
        r.case("GatedAdd", [r.normal(2, 3, 4, dtype=kind), r.normal(2, 3, 4, dtype=kind), r.normal(2, 3, 1, dtype=kind)], name=n, tolerance=tol)
        r.case("ScaledSiLU", [r.normal(2, 5, dtype=kind)], name=n, tolerance=tol)
        r.case("ScaledSiLU", [r.normal(2, 5, dtype=kind)], name=f"{n}, alpha", alpha=1.75, tolerance=tol)
        r.case("ScaledSiLU", [r.normal(2, 5, dtype=kind), np.array(0.5, kind)], name=f"{n}, scale", alpha=1.75, tolerance=tol)
        for act in ("silu", "sigmoid"):
            r.case("GatedRMSNorm", [r.normal(2, 3, 8, dtype=kind), r.normal(4, dtype=kind), r.normal(2, 3, 8, dtype=kind)], name=f"{n}, {act}", activation=act,
                   tolerance=tol)
    r.case("GatedRMSNorm", [r.normal(3, 8), r.normal(8), r.normal(3, 8)], name="defaults", tolerance=TOL)
    r.case("BranchwiseRMSNorm", [r.normal(2, 3, 4)], name="grouped", tolerance=TOL)
    r.case("BranchwiseRMSNorm", [r.normal(2, 3, 4), r.normal(3, 4)], name="scale per branch", epsilon=0.1, tolerance=TOL)
    r.case("BranchwiseRMSNorm", [r.normal(2, 12), r.normal(4)], name="flat, shared scale", num_branches=3, tolerance=TOL)
    r.case("BranchwiseRMSNorm", [r.normal(2, 12), r.normal(12)], name="flat", num_branches=3, tolerance=TOL)
    r.case("LinearAttentionGate", [r.normal(2, 3, 4), r.normal(4), -np.abs(r.normal(4)), r.normal(2, 3, 4)], outputs=2, tolerance=TOL)
    r.case("LinearAttentionGate", [r.normal(2, 3, 4), r.normal(4), -np.abs(r.normal(4))], name="decay alone", tolerance=TOL)
    for name, gate in (("branches", (2, 3)), ("branches, 1", (2, 3, 1)), ("features", (2, 3, 4))):
        r.case("HyperConnectionPreMix", [r.normal(2, 3, 4), r.normal(*gate)], name=name, reduction_scale=0.5, tolerance=TOL)
        r.case("HyperConnectionPostMix", [r.normal(2, 3, 4), r.normal(2, 4), r.normal(*gate)], name=name, tolerance=TOL)
    r.case("HyperConnectionPreMix", [r.normal(2, 12), r.normal(2, 12)], name="flat", num_branches=3, tolerance=TOL)
    r.case("HyperConnectionPostMix", [r.normal(2, 12), r.normal(2, 4), r.normal(2, 3), r.normal(2, 3, 3)], name="flat, mixed", num_branches=3, tolerance=TOL)


def moved(r):
    r.case("SampleOp", [r.normal(2, 3)])
    for axis in (0, 2, -1):
        r.case("ExpandDims", [r.normal(2, 3), np.array(axis, i32)], name=f"axis {axis}")
    r.case("ExpandDims", [np.array(["a", "b"], object), np.array(0, i32)], name="strings")
    r.case("UnfoldTensor", [r.normal(2, 7)], name="last axis", size=3)
    r.case("UnfoldTensor", [r.normal(7, 2)], name="first axis, steps", size=3, dim=0, step=2)
    r.case("UnfoldTensor", [r.ints(0, 99, 2, 4, 3)], name="middle axis", size=2, dim=1)
    r.fails("UnfoldTensor", "input x: float32[2] = 1 2\ny = com.microsoft.UnfoldTensor(x) {size=3}\noutput y", "do not fit")
    r.fails("UnfoldTensor", "input x: float32[2] = 1 2\ny = com.microsoft.UnfoldTensor(x) {size=1, step=0}\noutput y", "must be positive")
    w = r.normal(5, 3)
    r.case("TorchEmbedding", [w, np.array([[0, 4], [2, 2]])], name="by formula", expect=[w[[[0, 4], [2, 2]]]])
    source = np.array([1, 2, 3, 4, 2, 3, 5, 6])
    for name, cur, start, pred in (("no prediction", [1, 5], 0, None), ("no match", [1, 9], 0, None), ("two matches", [7, 2], 0, None),
                                   ("longer n-gram", [4, 2, 3], 0, None), ("prediction", [1], 4, [2, 3, 9, 1, 1]), ("prediction at once", [1], 7, [5, 5]),
                                   ("whole prediction", [1], 5, [3, 5, 6, 7]), ("last token", [6], 0, None)):
        r.case("BifurcationDetector", [source, np.array(cur), np.array(start), None if pred is None else np.array(pred)], outputs=2, name=name)
    r.case("BifurcationDetector", [source, np.array([2, 3]), np.array(0)], outputs=2, name="sizes", min_ngram_size=2, max_ngram_size=2)


def by_formula(r):
    """These have no CPU kernel."""
    x, b = r.normal(2, 3, 4), r.normal(1, 1, 4)
    e = np.exp(x + b)
    r.case("BiasSoftmax", [x, b], name="by formula", axis=2, is_inner_broadcast=1, expect=[(e / e.sum(2, keepdims=True)).astype(f32)], tolerance=TOL)
    b = r.normal(2, 1, 4)
    e = np.exp(x + b)
    r.case("BiasSoftmax", [x, b], name="axes together, by formula", axis=1, is_inner_broadcast=0, expect=[(e / e.sum((1, 2), keepdims=True)).astype(f32)],
           tolerance=TOL)
    a, b = r.normal(2, 3, 2), r.normal(3, 2)
    p, q = a[..., 0] + 1j * a[..., 1], b[..., 0] + 1j * b[..., 1]
    for op, y in (("ComplexMul", p * q), ("ComplexMulConj", p * q.conj())):
        r.case(op, [a, b], name="by formula", expect=[np.stack([y.real, y.imag], -1).astype(f32)], tolerance=TOL)
    for name, values, attrs, fine in (("finite", [1, 2], {}, True), ("nan", [1, np.nan], {}, False), ("inf", [np.inf, 1], {}, False),
                                      ("nan, inf only", [1, np.nan], {"isinf_only": 1}, True), ("inf, nan only", [np.inf, 1], {"isnan_only": 1}, True),
                                      ("-inf, inf only", [1, -np.inf], {"isinf_only": 1}, False)):
        r.case("IsAllFinite", [r.normal(3), np.array(values, f32)], name=f"{name}, by formula", expect=[np.array(fine)], **attrs)
    for n in (8, 7, 1):
        x = r.normal(2, n)
        y = np.fft.rfft(x)
        r.case("Rfft", [x], name=f"{n}, by formula", onesided=1, normalized=0, signal_ndim=1, expect=[np.stack([y.real, y.imag], -1).astype(f32)], tolerance=TOL)
    x = r.normal(2, 5, 2)
    r.case("Irfft", [x], name="by formula", onesided=1, normalized=0, signal_ndim=1, expect=[np.fft.irfft(x[..., 0] + 1j * x[..., 1]).astype(f32)], tolerance=TOL)


def hashes(r):
    for kind in (i32, i64):
        n = np.dtype(kind).name
        big = 2 ** 31 - 2 if kind == i32 else 2 ** 62
        ids, factors = r.ints(0, 50, 2, 6, dtype=kind), (r.ints(big // 4, big // 2, 3, dtype=kind) * 2 + 1).astype(kind)
        vocab, offsets = np.array([11, 13, 17, 19], kind), np.array([0, 11, 24, 41], kind)
        attrs = dict(max_ngram_size=3, n_head_per_ngram=2, pad_id=2, outputs=2)
        ids[0, 2] = ids[1, 4] = 7
        eos, segments = np.array(7, kind), np.array([[0, 0, 1, 1, 1, 2], [0, 0, 0, 0, 0, 0]], i32)
        r.case("NGramHashMapping", [ids, factors, vocab], name=n, **attrs)
        r.case("NGramHashMapping", [ids, factors, vocab, r.ints(0, 50, 2, 2, dtype=kind), offsets], name=f"{n}, past, offsets", **attrs)
        r.case("NGramHashMapping", [ids, factors, vocab, r.ints(0, 50, 2, 2, dtype=kind), offsets, eos], name=f"{n}, eos", **attrs)
        r.case("NGramHashMapping", [ids, factors, vocab, np.array([[1, 7], [7, 3]], kind), offsets, eos], name=f"{n}, reset on eos", reset_on_eos=1, **attrs)
        r.case("NGramHashMapping", [ids, factors, vocab, None, None, eos, segments], name=f"{n}, segments", **attrs)
    r.fails("NGramHashMapping", """
input x: int64[1,2] = 1 2
input m: int64[2] = 3 5
input v: int64[1] = 0
y = com.microsoft.NGramHashMapping(x, m, v) {max_ngram_size=2, n_head_per_ngram=1, pad_id=0}
output y""", "must be positive")
    key = r.normal(1, 3, 2, 8)
    r.case("EngramGate", [key, r.normal(1, 3, 2, 8), r.normal(1, 3, 8), r.normal(2, 8), r.normal(2, 8)], tolerance=TOL)
    r.case("EngramGate", [key, r.normal(1, 3, 2, 8), r.normal(1, 3, 8), r.normal(2, 8), r.normal(2, 8), r.normal(2, 8)], outputs=2, name="normed", tolerance=TOL)


CASES = [gates, moved, by_formula, hashes]
