"""MoE and QMoE."""

import numpy as np

f32, u8 = np.float32, np.uint8
TOL = (1e-3, 1e-4)


def moe(r):
    def case(name, shape=(5, 8), inter=6, experts=4, wide=1, bias=True, **attrs):
        tokens, hidden = int(np.prod(shape[:-1])), shape[-1]
        n = inter * wide
        r.case("MoE", [r.normal(*shape), r.normal(tokens, experts), r.normal(experts, n, hidden) / 2, r.normal(experts, n) if bias else None,
                       r.normal(experts, hidden, inter) / 2, r.normal(experts, hidden) if bias else None], name=name, tolerance=TOL, **attrs)

    for act in ("relu", "gelu", "silu", "identity"):
        case(act, activation_type=act, k=2)
    case("one expert, no biases", bias=False)
    case("normalised", k=3, normalize_routing_weights=1)
    case("3 axes", shape=(2, 3, 8), k=2)
    case("swiglu, interleaved", wide=2, activation_type="swiglu", swiglu_fusion=1, k=2)
    case("swiglu, interleaved, parameters", wide=2, activation_type="swiglu", swiglu_fusion=1, k=2, activation_alpha=1.702, activation_beta=1.0,
         swiglu_limit=0.75)
    case("no tokens", shape=(0, 8), k=2)


def by_formula(r):
    """Forms that ONNX Runtime's CPU kernel lacks: a third product, and halves side by side."""
    x, s = r.normal(5, 8), r.normal(5, 4) + np.arange(4, dtype=f32) / 256  # no ties
    p = np.exp(s) / np.exp(s).sum(-1, keepdims=True)
    w1, w2, w3 = r.normal(4, 6, 8) / 2, r.normal(4, 8, 6) / 2, r.normal(4, 6, 8) / 2
    b1, b2, b3 = r.normal(4, 6), r.normal(4, 8), r.normal(4, 6)

    def silu(v):
        return v / (1 + np.exp(-v))

    def mix(hidden, k):
        y = np.zeros((5, 8))
        for t in range(5):
            for e in np.argsort(-p[t])[:k]:
                y[t] += p[t, e] * (w2[e] @ hidden(t, e) + b2[e])
        return [y.astype(f32)]

    def gate(t, e):
        return silu(w1[e] @ x[t] + b1[e]) * (w3[e] @ x[t] + b3[e])

    inputs = [x, s, w1, b1, w2, b2, w3, b3]
    r.case("MoE", inputs, name="three products, by formula", k=2, activation_type="silu", tolerance=TOL, expect=mix(gate, 2))
    r.case("MoE", inputs, name="swiglu of two products, by formula", k=1, activation_type="swiglu", tolerance=TOL, expect=mix(gate, 1))
    r.case("MoE", [x, s, np.concatenate([w1, w3], 1), np.concatenate([b1, b3], 1), w2, b2], name="swiglu side by side, by formula", k=2,
           activation_type="swiglu", swiglu_fusion=2, tolerance=TOL, expect=mix(gate, 2))


def quantised(r):
    def case(name, bits=4, block=0, zeros=False, wide=2, hidden=32, inter=32, experts=3, mixing=False, tolerance=(2e-2, 2e-2), **attrs):
        # ONNX Runtime rounds the inputs of experts with blocks of 8 bits to 8 bits as well.
        tolerance = (2e-2, 1e-1) if bits == 8 and block else tolerance
        def scales(rows, columns):
            s = np.abs(r.normal(experts, rows, columns // block) if block else r.normal(experts, rows)) / 16 + f32(0.01)
            return s / 16 if bits == 8 else s

        def points(rows, columns):
            if not zeros:
                return None
            return r.ints(0, 256, experts, rows, -(-columns // block * bits // 8), dtype=u8) if block else r.ints(0, 256, experts, rows * bits // 8, dtype=u8)

        n = inter * wide
        router = r.normal(4, experts)
        r.case("QMoE", [r.normal(4, hidden) / 4, router, r.ints(0, 256, experts, n, hidden * bits // 8, dtype=u8), scales(n, hidden), r.normal(experts, n),
                        r.ints(0, 256, experts, hidden, inter * bits // 8, dtype=u8), scales(hidden, inter), r.normal(experts, hidden), None, None, None,
                        points(n, hidden), points(hidden, inter), None, np.abs(r.normal(4, experts)) if mixing else None],
               name=name, expert_weight_bits=bits, block_size=block or None, constants=(2, 3, 4, 5, 6, 7, 11, 12), tolerance=tolerance, k=2, **attrs)

    swiglu = dict(activation_type="swiglu", swiglu_fusion=1, activation_alpha=1.702, activation_beta=1.0, swiglu_limit=7.0)
    for bits in (4, 8):
        case(f"{bits} bits", bits=bits, **swiglu)
        case(f"{bits} bits, zero points", bits=bits, zeros=True, **swiglu)
        case(f"{bits} bits, blocks", bits=bits, block=16, **swiglu)
        case(f"{bits} bits, blocks, zero points", bits=bits, block=16, zeros=True, normalize_routing_weights=1, **swiglu)
    case("silu", wide=1, activation_type="silu")
    case("2 bits, blocks", bits=2, block=16, **swiglu)
    case("weights of their own, not normalised", mixing=True, **swiglu)
    case("weights of their own", mixing=True, normalize_routing_weights=1, **swiglu)


CASES = [moe, by_formula, quantised]
