"""Attention, rotary embeddings and normalisations of com.microsoft."""

import numpy as np

f16, f32, i32, i64 = np.float16, np.float32, np.int32, np.int64
TOL = (1e-4, 1e-5)


def attend(q, k, v, bias=0.0, scale=None, causal=False):
    """softmax(scale q k' + bias) v of [batch, heads, length, size] arrays: what all of these operators come to."""
    s = np.einsum("bhid,bhjd->bhij", q, k) * (scale or 1 / np.sqrt(q.shape[-1])) + bias
    if causal:
        i, j = np.indices(s.shape[-2:])
        s = np.where(j <= i + s.shape[-1] - s.shape[-2], s, -np.inf)
    p = np.exp(s - s.max(-1, keepdims=True))
    return np.einsum("bhij,bhjd->bhid", p / p.sum(-1, keepdims=True), v)


def heads_of(x, heads):
    return x.reshape(*x.shape[:2], heads, -1).transpose(0, 2, 1, 3)


def joined(y):
    return y.transpose(0, 2, 1, 3).reshape(y.shape[0], y.shape[2], -1).astype(f32)


def attention(r):
    def case(name, batch=2, length=3, features=8, widths=(8, 8, 8), mask=None, past=None, bias=None, extra=(), outputs=1, add=True, **attrs):
        r.case("Attention", [r.normal(batch, length, features), r.normal(features, sum(widths)) / 2, r.normal(sum(widths)) if add else None, mask,
                             past, bias, *extra], outputs=outputs, name=name, tolerance=TOL, num_heads=2, **attrs)

    case("plain")
    case("widths", widths=(8, 8, 4), qkv_hidden_sizes=[8, 8, 4])
    case("wide input", features=6)
    case("causal", unidirectional=1)
    case("one token", batch=1, length=1)
    case("empty batch", batch=0)
    case("ends", mask=np.array([2, 3], i32))
    case("ends, causal", mask=np.array([2, 1], i32), unidirectional=1)
    case("ends and starts", mask=np.array([3, 2, 1, 0], i32))
    case("keys", mask=np.array([[1, 0, 1], [1, 1, 0]], i32))
    case("keys, filter", mask=np.array([[1, 0, 1], [0, 0, 0]], i32), mask_filter_value=-3.0)
    case("keys per query", mask=r.ints(0, 2, 2, 3, 3, dtype=i32))
    case("no mask of [2,1]", mask=np.ones((2, 1), i32))
    case("past", past=r.normal(2, 2, 2, 2, 4), outputs=2)
    case("past, causal, keys", past=r.normal(2, 2, 2, 2, 4), outputs=2, unidirectional=1, mask=np.array([[1, 0, 1, 1, 0], [0, 1, 1, 1, 1]], i32))
    case("empty past, causal", past=r.normal(2, 2, 2, 0, 4), outputs=2, unidirectional=1)
    case("present", outputs=2)
    case("bias", bias=r.normal(2, 2, 3, 3))
    case("shared bias, keys", bias=r.normal(1, 1, 3, 3), mask=np.array([[1, 0, 1], [1, 1, 0]], i32))
    # ONNX Runtime's CPU kernel crashes or refuses: by formula.
    x, w, b, past = r.normal(2, 3, 8), r.normal(8, 24) / 2, r.normal(24), r.normal(2, 2, 2, 2, 4)
    q, k, v = (heads_of(t, 2) for t in np.split(x @ w, 3, axis=-1))
    r.case("Attention", [x, w], name="without bias, scale, by formula", expect=[joined(attend(q, k, v, scale=0.3))], num_heads=2, scale=0.3, tolerance=TOL)
    q, k, v = (heads_of(t, 2) for t in np.split(x @ w + b, 3, axis=-1))
    k, v = np.concatenate([past[0], k], 2), np.concatenate([past[1], v], 2)
    present = np.stack([k, v]).astype(f32)
    add, big = r.normal(1, 2, 3, 5), r.ints(0, 2, 2, 1, 7, 7, dtype=i32)
    r.case("Attention", [x, w, b, None, past, add], name="bias, past, by formula", outputs=2, num_heads=2, unidirectional=1, tolerance=TOL,
           expect=[joined(attend(q, k, v, add, causal=True)), present])
    r.case("Attention", [x, w, b, big, past], name="big mask, by formula", outputs=2, num_heads=2, tolerance=TOL,
           expect=[joined(attend(q, k, v, np.where(big[:, :, 2:5, :5] > 0, 0, -10000.0))), present])


def multi_head(r):
    def case(name, q=(2, 3, 8), k=(2, 4, 8), v=(2, 4, 8), bias=None, mask=None, add=None, past=None, outputs=1, extra=(), heads=2, **attrs):
        x = [r.normal(*s) if s else None for s in (q, k, v)]
        pasts = [r.normal(*s) for s in past] if past else [None, None]
        r.case("MultiHeadAttention", [*x, bias, mask, add, *pasts, *extra], outputs=outputs, name=name, tolerance=TOL, num_heads=heads, **attrs)

    case("cross")
    case("cross, bias", bias=r.normal(24))
    case("values of another width", v=(2, 4, 12), bias=r.normal(28))
    case("scale", scale=0.2)
    case("self, causal", k=(2, 3, 8), v=(2, 3, 8), unidirectional=1)
    case("lengths", mask=np.array([2, 4], i32))
    case("keys", mask=np.array([[1, 0, 1, 1], [1, 1, 0, 0]], i32))
    case("keys, filter", mask=np.array([[1, 0, 1, 1], [0, 0, 0, 0]], i32), mask_filter_value=-2.0)
    case("keys per query", mask=r.ints(0, 2, 2, 3, 4, dtype=i32))
    case("attention bias", add=r.normal(2, 2, 3, 4))
    case("attention bias for all", add=r.normal(1, 1, 3, 4))
    case("whole caches", k=(2, 2, 5, 4), v=(2, 2, 5, 4))
    case("whole caches, bias", k=(2, 2, 5, 4), v=(2, 2, 5, 4), bias=r.normal(24))
    case("past", past=[(2, 2, 2, 4), (2, 2, 2, 4)], outputs=3)
    case("past, causal, bias", k=(2, 3, 8), v=(2, 3, 8), past=[(2, 2, 2, 4), (2, 2, 2, 4)], outputs=3, unidirectional=1, bias=r.normal(24))
    case("past, keys", k=(2, 1, 8), v=(2, 1, 8), q=(2, 1, 8), past=[(2, 2, 2, 4), (2, 2, 2, 4)], outputs=3, mask=np.array([[1, 0, 1], [1, 1, 1]], i32))
    case("empty past", past=[(2, 2, 0, 4), (2, 2, 0, 4)], outputs=3)
    case("present", outputs=3)
    case("scores", outputs=[1, 0, 0, 1], out_types={3: 1})
    case("scores, causal", k=(2, 3, 8), v=(2, 3, 8), outputs=[1, 0, 0, 1], unidirectional=1, out_types={3: 1})
    case("empty", q=(2, 0, 8))
    # No CPU kernel takes packed inputs: by formula.
    x, b = r.normal(2, 3, 2, 3, 4), r.normal(24)
    op = "MultiHeadAttention"
    q, k, v = (x[:, :, :, i].transpose(0, 2, 1, 3) for i in range(3))
    r.case(op, [x], name="packed, by formula", num_heads=2, tolerance=TOL, expect=[joined(attend(q, k, v))])
    q, k, v = (t + b[8 * i:8 * i + 8].reshape(2, 1, 4) for i, t in enumerate((q, k, v)))
    r.case(op, [x, None, None, b], name="packed, bias, by formula", num_heads=2, tolerance=TOL, expect=[joined(attend(q, k, v))])
    x, y = r.normal(2, 3, 8), r.normal(2, 4, 2, 2, 4)
    q, k, v = heads_of(x, 2), y[:, :, :, 0].transpose(0, 2, 1, 3), y[:, :, :, 1].transpose(0, 2, 1, 3)
    r.case(op, [x, y], name="packed keys and values, by formula", num_heads=2, tolerance=TOL, expect=[joined(attend(q, k, v))])
    case("five heads of one", q=(1, 2, 5), k=(1, 3, 5), v=(1, 3, 5), heads=5)


def decoder_masked(r):
    def case(name, q=(2, 1, 8), k=(2, 1, 8), v=(2, 1, 8), mask=None, add=None, past=None, length=None, beams=None, bias=None, outputs=1, **attrs):
        x = [r.normal(*s) if s else None for s in (q, k, v)]
        pasts = [r.normal(*s) for s in past] if past else [None, None]
        length = None if length is None else np.array([length], i32)
        beams = beams or [None, None]
        r.case("DecoderMaskedMultiHeadAttention", [*x, mask, add, *pasts, length, *beams, bias], outputs=outputs, name=name, tolerance=TOL, num_heads=2,
               **attrs)

    cache = [(2, 2, 6, 4)] * 2
    case("shared cache", past=cache, length=3, outputs=3, past_present_share_buffer=1)
    case("shared cache, attention bias", past=cache, length=3, add=r.normal(1, 2, 1, 4), outputs=3, past_present_share_buffer=1)
    case("cross", k=(2, 2, 5, 4), v=(2, 2, 5, 4))
    case("cross, mask", k=(2, 2, 5, 4), v=(2, 2, 5, 4), mask=r.ints(0, 2, 2, 5, dtype=i32))
    beams = np.zeros((1, 2, 6), i32)
    beams[0, 0] = [1, 0, 1, 0, 0, 0]
    beams[0, 1] = [0, 1, 0, 1, 0, 0]
    case("beams", past=cache, length=3, outputs=3, past_present_share_buffer=1, beams=[np.array([2], i32), beams])
    case("scores", past=cache, length=3, outputs=4, past_present_share_buffer=1, output_qk=1, out_types={3: 1})


def group_query(r):
    def case(name, batch=1, length=3, past=0, capacity=None, seqlens=None, total=None, packed=False, rotary=0, positions=None, bias=None, sink=False,
             outputs=3, heads=4, kv=2, size=8, kind=f32, **attrs):
        total = total or past + length
        size = 16 if rotary else size  # what ONNX Runtime asks for
        seqlens = np.array(seqlens if seqlens is not None else [total - 1] * batch, i32)
        q = r.normal(batch, length, (heads + 2 * kv if packed else heads) * size, dtype=kind)
        k, v = [None, None] if packed else [r.normal(batch, length, kv * size, dtype=kind) for _ in range(2)]
        rows = past if capacity is None else capacity
        pasts = [r.normal(batch, kv, rows, size, dtype=kind) for _ in range(2)] if past or capacity is not None else [None, None]
        angles = np.arange(16)[:, None] / 10 ** (np.arange((rotary or size) // 2) / 3)
        tables = [np.cos(angles).astype(kind), np.sin(angles).astype(kind)] if rotary else [None, None]
        r.case("GroupQueryAttention", [q, k, v, *pasts, seqlens, np.array(total, i32), *tables, positions, bias, r.normal(heads, dtype=kind) if sink else None],
               outputs=outputs, name=name, tolerance=TOL if kind == f32 else (1e-2, 1e-2), num_heads=heads, kv_num_heads=kv,
               do_rotary=1 if rotary else None, **attrs)

    case("prompt")
    case("prompt, two lengths", batch=2, seqlens=[1, 2], outputs=1)
    case("prompt, packed", packed=True)
    case("prompt, rotary", rotary=16)
    case("prompt, packed, rotary", packed=True, rotary=16)
    case("prompt, rotary interleaved", rotary=16, rotary_interleaved=1)
    case("one head each", heads=2, kv=2)
    case("token", length=1, past=4)
    case("token, rotary", length=1, past=4, rotary=16)
    case("tokens of two lengths", batch=2, length=1, past=4, seqlens=[2, 4], rotary=16)
    case("several tokens", length=3, past=4, rotary=16)
    case("several tokens, positions", length=3, past=4, rotary=16, positions=np.array([[5, 6, 9]], i64))
    case("window", length=5, local_window_size=2)
    case("window, token", length=1, past=6, local_window_size=3)
    case("softcap", softcap=2.0)
    case("scale", scale=0.7)
    case("smooth", smooth_softmax=1)
    case("sink", sink=True)
    case("bias", bias=r.normal(1, 1, 3, 3))
    case("bias per head, token", length=1, past=4, bias=r.normal(1, 4, 1, 5))
    case("bidirectional", causal=0)
    case("scores", outputs=4, qk_output=1)
    case("probabilities", outputs=4, qk_output=2)
    case("float16", kind=f16, past=2, length=1, rotary=16)


def rotary(r):
    angles = np.arange(8)[:, None] / 10 ** (np.arange(4) / 3)
    cos, sin = np.cos(angles).astype(f32), np.sin(angles).astype(f32)
    for name, attrs in (("halves", {}), ("interleaved", {"interleaved": 1})):
        r.case("RotaryEmbedding", [r.normal(2, 3, 16), np.array([2], i64), cos, sin], name=f"{name}, offset", tolerance=TOL, **attrs)
        r.case("RotaryEmbedding", [r.normal(2, 3, 16), np.array([[0, 1, 2], [3, 1, 7]], i64), cos, sin], name=f"{name}, positions", tolerance=TOL, **attrs)
        r.case("RotaryEmbedding", [r.normal(2, 2, 3, 8), np.array([[0, 1, 2], [3, 1, 7]], i64), cos, sin], name=f"{name}, 4 axes", tolerance=TOL, **attrs)
        r.case("RotaryEmbedding", [r.normal(2, 3, 24), np.array([1], i64), cos, sin], name=f"{name}, part of a head", tolerance=TOL, num_heads=2,
               rotary_embedding_dim=8, **attrs)
    # The streams agree for text, and then this is RotaryEmbedding.
    angles = np.arange(8)[:, None] / 10 ** (np.arange(6) / 3)
    cos, sin = np.cos(angles).astype(f32), np.sin(angles).astype(f32)
    at = r.ints(0, 8, 3, 2, 3)
    for layout, section in ((0, [2, 2, 2]), (0, [3, 1, 2]), (1, [2, 2, 2]), (1, [4, 1, 1])):
        r.case("MRotaryEmbedding", [r.normal(2, 3, 24), at, cos, sin], name=f"layout {layout}, {section}", mrope_section=section, mrope_layout=layout, num_heads=2,
               tolerance=TOL)
    r.case("MRotaryEmbedding", [r.normal(2, 2, 3, 12), at, cos, sin], name="4 axes, interleaved", mrope_section=[2, 2, 2], interleaved=1, tolerance=TOL)
    r.case("MRotaryEmbedding", [r.normal(2, 3, 32), at, cos, sin], name="part of a head", mrope_section=[1, 3, 2], num_heads=2, rotary_embedding_dim=12,
           tolerance=TOL)


def norms(r):
    for dims in ((2, 3, 8), (3, 8)):
        x, s, g, b, c = r.normal(*dims), r.normal(*dims), r.normal(8), r.normal(8), r.normal(8)
        r.case("SkipLayerNormalization", [x, s, g, b], name=f"{len(dims)} axes", epsilon=1e-5, tolerance=TOL)
        r.case("SkipLayerNormalization", [x, s, g, b, c], outputs=[1, 0, 0, 1], name=f"{len(dims)} axes, bias", epsilon=1e-3, tolerance=TOL)
        r.case("SkipSimplifiedLayerNormalization", [x, s, g], name=f"{len(dims)} axes", epsilon=1e-5, tolerance=TOL)
        r.case("SkipSimplifiedLayerNormalization", [x, s, g, c], outputs=[1, 0, 0, 1], name=f"{len(dims)} axes, bias", tolerance=TOL)
    x = r.normal(2, 3, 8)
    r.case("SkipLayerNormalization", [x, r.normal(1, 3, 8), r.normal(8)], name="shared skip", tolerance=TOL)
    r.case("SkipLayerNormalization", [x, r.normal(3, 8), r.normal(8)], name="shared skip of 2 axes", tolerance=TOL)
    r.case("SkipLayerNormalization", [x.astype(f16), r.normal(2, 3, 8, dtype=f16), r.normal(8, dtype=f16), r.normal(8, dtype=f16)], outputs=[1, 0, 0, 1],
           name="float16", tolerance=(5e-3, 5e-3))
    ids, word, position, segment = r.ints(0, 9, 2, 3, dtype=i32), r.normal(9, 8), r.normal(5, 8), r.normal(2, 8)
    g, b = r.normal(8), r.normal(8)
    mask = np.array([[1, 1, 0], [1, 1, 1]], i32)
    op = "EmbedLayerNormalization"
    r.case(op, [ids, r.ints(0, 2, 2, 3, dtype=i32), word, position, segment, g, b, mask], outputs=2, name="mask", tolerance=TOL, epsilon=1e-5)
    r.case(op, [ids, r.ints(0, 2, 2, 3, dtype=i32), word, position, segment, g, b], outputs=2, name="no mask", tolerance=TOL)
    r.case(op, [ids, None, word, position, None, g, b, mask], outputs=3, name="no segments, sum", tolerance=TOL)
    r.case(op, [ids, None, word, position, None, g, b, None, np.array([[4, 0, 2]], i32)], outputs=3, name="positions", tolerance=TOL, mask_index_type=0)


def recurrences(r):
    r.case("CausalConvWithState", [r.normal(2, 3, 5), r.normal(3, 1, 4), r.normal(3), r.normal(2, 3, 3)], outputs=2, name="silu", activation="silu",
           tolerance=TOL)
    r.case("CausalConvWithState", [r.normal(2, 3, 2), r.normal(3, 1, 4)], outputs=2, name="plain", tolerance=TOL)
    for dilation in (2, 3):
        r.case("CausalConvWithState", [r.normal(2, 3, 5), r.normal(3, 1, 3), None, r.normal(2, 3, 2 * dilation)], outputs=2, name=f"dilation {dilation}",
               dilation=dilation, tolerance=TOL)
    r.case("CausalConvWithState", [r.normal(2, 5, 2, 3), r.normal(6, 1, 3), r.normal(6), r.normal(2, 2, 2, 3)], outputs=2, name="channels last",
           channels_last=1, activation="silu", tolerance=TOL)
    # Windows of states have no CPU kernel: by running position by position.
    for length in (5, 2):
        x, w, past = r.normal(2, 3, length), r.normal(3, 1, 3), r.normal(4, 2, 3, 2)
        line = np.concatenate([past[3], x], 2)
        y = sum(w[:, 0, k, None] * line[:, :, k:k + length] for k in range(3))
        states = [line[:, :, n:n + 2] if n > 0 else np.zeros((2, 3, 2), f32) for n in range(length - 3, length + 1)]
        r.case("CausalConvWithState", [x, w, None, past], outputs=2, name=f"window, {length} positions, by formula", state_window=4, tolerance=TOL,
               expect=[y, np.stack(states)])
    for rule in ("linear", "gated", "delta", "gated_delta"):
        gate = -np.abs(r.normal(2, 3, 4)) if "gated" in rule else None
        beta = np.abs(r.normal(2, 3, 4)) / 4 if "delta" in rule else None
        r.case("LinearAttention", [r.normal(2, 3, 32), r.normal(2, 3, 16), r.normal(2, 3, 20), r.normal(2, 4, 4, 5), gate, beta], outputs=2, name=rule,
               q_num_heads=8, kv_num_heads=4, update_rule=rule, tolerance=TOL)
    q, k, v, gate, past = r.normal(1, 3, 4), r.normal(1, 3, 8), r.normal(1, 3, 6), -np.abs(r.normal(1, 3, 2)), r.normal(4, 1, 2, 4, 3)
    state, states, y = past[3, 0], [np.zeros((2, 4, 3), f32)], []
    for t in range(3):
        state = np.exp(gate[0, t]).reshape(2, 1, 1) * state + k[0, t].reshape(2, 4, 1) * v[0, t].reshape(2, 1, 3)
        states.append(state)
        y.append(0.5 * np.einsum("k,hkv->hv", q[0, t], state).reshape(6))
    r.case("LinearAttention", [q, k, v, past, gate], outputs=2, name="more key heads, window, by formula", q_num_heads=1, kv_num_heads=2,
           update_rule="gated", state_window=4, tolerance=TOL, expect=[np.stack(y)[None].astype(f32), np.stack(states)[:, None].astype(f32)])


def sparse(r):
    dense = np.tril(np.ones((2, 4, 4), bool))
    dense[0, 2, 0] = dense[1, 3, 1] = dense[1, 2, 1] = dense[0, 3, 1] = False
    rows = np.zeros((2, 5), i32)
    rows[:, 1:] = dense.sum(2).cumsum(1)
    columns = np.full((2, rows.max()), -1, i32)
    for n in range(2):
        at = np.nonzero(dense[n])[1]
        columns[n, :len(at)] = at

    def case(name, batch=1, length=40, total=None, lengths=None, packed=False, layouts=2, rotary=False, **attrs):
        total = total or length
        q = r.normal(batch, length, 8 * 16 if packed else 4 * 16)
        k, v = [None, None] if packed else [r.normal(batch, length, 2 * 16) for _ in range(2)]
        past = [r.normal(batch, 2, 64, 16) for _ in range(2)]
        angles = np.arange(64)[:, None] / 10 ** (np.arange(8) / 3)
        tables = [np.cos(angles).astype(f32), np.sin(angles).astype(f32)] if rotary else [None, None]
        r.case("SparseAttention", [q, k, v, *past, rows[:layouts], columns[:layouts], np.array(total, i32), np.array(lengths or [total] * batch, i32), *tables],
               outputs=3, name=name, num_heads=4, kv_num_heads=2, sparse_block_size=16, do_rotary=1 if rotary else None, tolerance=TOL, shared={"y1": "x3", "y2": "x4"}, **attrs)

    case("prompt")
    case("prompt, packed, one layout", packed=True, layouts=1)
    case("token", length=1, total=50, scale=0.4)
    case("tokens of two sequences, rotary", batch=2, length=1, total=50, rotary=True)


def paged(r):
    """By formula: there is no CPU kernel."""
    lengths, past, table = [3, 1], [2, 5], np.array([[4, 1, 0], [2, 0, 5]], i32)
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(i32)

    def attend_all(q, k, v, keys, values, window=None, sink=None, causal=True, slots=None, scale=None):
        keys, values, out = keys.copy(), values.copy(), []
        for b in range(2):
            total = past[b] + lengths[b]
            at = [table[b, i // 4] * 4 + i % 4 for i in range(total)]
            for i in range(lengths[b]):
                slot = at[past[b] + i] if slots is None else slots[starts[b] + i]
                if slot >= 0:
                    keys.reshape(-1, 2, 8)[slot], values.reshape(-1, 2, 8)[slot] = k[starts[b] + i], v[starts[b] + i]
            kk, vv = (t.reshape(-1, 2, 8)[at].repeat(2, 1) for t in (keys, values))
            s = np.einsum("ihd,jhd->hij", q[starts[b]:starts[b + 1]], kk) * (scale or 8 ** -0.5)
            i, j = np.indices(s.shape[1:])
            i = i + past[b]
            hidden = (j > i) & causal
            if window:
                hidden = hidden | (j < i + 1 - window)
            s = np.where(hidden, -np.inf, s)
            p = np.exp(s)
            p = p / (p.sum(-1, keepdims=True) + (0 if sink is None else np.exp(sink)[:, None, None]))
            out.append(np.einsum("hij,jhd->ihd", p, vv).reshape(lengths[b], -1))
        return [np.concatenate(out).astype(f32), keys, values]

    def case(name, sink=None, slots=None, packed=False, rotary=False, norm=False, **attrs):
        q, k, v = r.normal(4, 4, 8), r.normal(4, 2, 8), r.normal(4, 2, 8)
        keys, values = r.normal(6, 4, 2, 8), r.normal(6, 4, 2, 8)
        inputs = [q.reshape(4, -1), k.reshape(4, -1), v.reshape(4, -1)]
        if packed:
            inputs = [np.concatenate(inputs, 1), None, None]
        weights, tables = [None, None], [None, None]
        if norm:
            weights = [r.normal(8), r.normal(8)]
            q, k = (t / np.sqrt((t * t).mean(-1, keepdims=True) + 1e-6) * w for t, w in zip((q, k), weights))
        if rotary:
            angles = np.arange(8)[:, None] / 10 ** (np.arange(4) / 3)
            tables = [np.cos(angles).astype(f32), np.sin(angles).astype(f32)]
            at = np.concatenate([np.arange(n) + p for n, p in zip(lengths, past)])
            cos, sin = (t[at][:, None] for t in tables)
            q, k = (np.concatenate([t[..., :4] * cos - t[..., 4:] * sin, t[..., :4] * sin + t[..., 4:] * cos], -1) for t in (q, k))
        expect = attend_all(q, k, v, keys, values, attrs.get("local_window_size"), sink, attrs.get("is_causal", 1) == 1, slots, attrs.get("scale"))
        r.case("PagedAttention", [*inputs, keys, values, starts, np.array(past, i32), table, *tables, slots, sink, *weights], outputs=3, name=name,
               expect=expect, num_heads=4, kv_num_heads=2, do_rotary=1 if rotary else None, tolerance=TOL, **attrs)

    case("by formula")
    case("packed, by formula", packed=True)
    case("rotary, norms, by formula", rotary=True, norm=True)
    case("window, sink, by formula", local_window_size=2, sink=r.normal(4))
    case("bidirectional, scale, by formula", is_causal=0, scale=0.7)
    case("slots, by formula", slots=np.array([18, -1, 4, 1], i32))


def other_attention(r):
    """By formula: none of these has a CPU kernel."""
    x, w, b, past = r.normal(4, 1, 8), r.normal(8, 24) / 2, r.normal(24), r.normal(2, 4, 2, 6, 4)
    q, k, v = (heads_of(t, 2) for t in np.split(x @ w + b, 3, axis=-1))
    present = past.copy()
    present[0, :, :, 3], present[1, :, :, 3] = k[:, :, 0], v[:, :, 0]
    beams = r.ints(0, 2, 2, 2, 6, dtype=i32)

    def seen(cache, new):
        rows = np.stack([np.stack([cache[n // 2 * 2 + beams[n // 2, n % 2, j], :, j] for j in range(3)], 1) for n in range(4)])
        return np.concatenate([rows, new], 2)

    shared = dict(num_heads=2, past_present_share_buffer=1, outputs=2, tolerance=TOL)
    inputs = [x, w, b, None, past, None, np.array([3], i32)]
    r.case("DecoderMaskedSelfAttention", inputs, name="by formula", **shared,
           expect=[joined(attend(q, np.concatenate([past[0, :, :, :3], k], 2), np.concatenate([past[1, :, :, :3], v], 2))), present])
    r.case("DecoderMaskedSelfAttention", [*inputs, np.array([2], i32), beams], name="beams, by formula", **shared,
           expect=[joined(attend(q, seen(past[0], k), seen(past[1], v))), present])

    x, w, b, gw, gb = r.normal(2, 6, 8), r.normal(8, 24) / 2, r.normal(24), r.normal(8, 24) / 2, r.normal(24)
    mask = np.where(np.array([[0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 1, 1]]) > 0, f32(-10000), f32(0))
    flags = np.array([[1, 0, 0, 0, 0, 1], [0, 0, 0, 0, 0, 0]], i32)
    i, j = np.indices((6, 6))
    see = ((abs(i - j) <= 1) | (flags[:, :, None] > 0) | (flags[:, None, :] > 0)) & (mask[:, None, :] >= 0)
    hide = np.where(see, 0, -np.inf)[:, None]
    with np.errstate(invalid="ignore"):
        near, far = (joined(np.nan_to_num(attend(*(heads_of(t, 2) for t in np.split(x @ m + n, 3, axis=-1)), hide))) for m, n in ((w, b), (gw, gb)))
    r.case("LongformerAttention", [x, w, b, mask, gw, gb, flags], name="by formula", num_heads=2, window=1, tolerance=TOL,
           expect=[np.where(flags[:, :, None] > 0, far, near).astype(f32)])

    def bucket(d, both, count, far):
        ret, n = 0, -d
        if both:
            count //= 2
            ret, n = count * (n < 0), abs(n)
        n = max(n, 0)
        exact = count // 2
        return ret + (n if n < exact else min(exact + int(np.log(n / exact) / np.log(far / exact) * (count - exact)), count - 1))

    for both in (0, 1):
        table = r.normal(2, 8)  # [heads, buckets]: the operator's table is stored column by column
        y = np.array([[[[h[bucket(j - i, both, 8, 20)] for j in range(30)] for i in range(30)] for h in table]])
        r.case("RelativePositionBias", [table.reshape(8, 2), np.array([30]), np.array([30])], name=f"bidirectional {both}, by formula", max_distance=20,
               is_bidirectional=both, expect=[y])
    q, b, pos, w, d, eco = r.normal(2, 3, 8), r.normal(8), r.normal(1, 2, 3, 3), r.normal(4, 6), r.normal(6), r.normal(1, 2, 1, 1)
    g = heads_of(q + b, 2) @ w + d
    u, v = (1 / (1 + np.exp(-t.sum(-1, keepdims=True))) for t in np.split(g, 2, axis=-1))
    r.case("GatedRelativePositionBias", [q, b, pos, w, d, eco], name="by formula", num_heads=2, expect=[((u * (v * eco - 1) + 2) * pos).astype(f32)], tolerance=TOL)

    x, y, qw, kvw, b = r.normal(3, 2, 8), r.normal(4, 2, 8), r.normal(8, 8) / 2, r.normal(8, 16) / 2, r.normal(24)
    caches = [r.normal(2, 2, 4, 4) for _ in range(2)]
    for static in (False, True):
        for past in (False, True):
            padded = static
            q, kv = (x @ qw + b[:8]).transpose(1, 0, 2), ((y if static else x) @ kvw + b[8:]).transpose(1, 0, 2)
            k, v = (heads_of(t, 2) for t in np.split(kv, 2, axis=-1))
            if past:
                k, v = caches if static else (np.concatenate([c, t], 2) for c, t in zip(caches, (k, v)))
            skip = np.zeros((2, k.shape[2]), bool)
            skip[0, 1] = True
            out = attend(heads_of(q, 2), k, v, np.where(skip, -10000, 0)[:, None, None] if padded else 0)
            r.case("DecoderAttention", [x, y, qw, kvw, b, skip if padded else None, *(caches if past else [None, None]), *(np.array(f) for f in (static, past, past, padded))],
                   outputs=3, name=f"static {static}, past {past}, by formula", num_heads=2, tolerance=TOL,
                   expect=[joined(out).transpose(1, 0, 2), k.astype(f32), v.astype(f32)])


def attention_lstm(r):
    def case(name, d=1, wide=None, lengths=None, memory=None, states=False, peepholes=False, bias=True, **attrs):
        h, depth, keys = 4, 5, 3
        joined_width = wide or depth
        aw = r.normal(d, depth + h, wide) / 2 if wide else None
        r.case("AttnLSTM", [r.normal(3, 2, 6), r.normal(d, 4 * h, 6 + joined_width) / 2, r.normal(d, 4 * h, h) / 2, r.normal(d, 8 * h) if bias else None,
                            lengths, *([r.normal(d, 2, h), r.normal(d, 2, h)] if states else [None, None]), r.normal(d, 3 * h) if peepholes else None,
                            r.normal(d, h, keys), r.normal(d, depth, keys), r.normal(d, keys), r.normal(2, 4, depth), memory, aw],
               outputs=3, name=name, hidden_size=h, tolerance=TOL, **attrs)

    every = np.array([3, 3], i32)
    full = np.array([4, 4], i32)
    case("plain", lengths=every, memory=full)
    case("attention layer", wide=7, lengths=every, memory=full)
    case("lengths", wide=7, lengths=np.array([3, 2], i32), memory=np.array([2, 4], i32))
    case("states, peepholes", states=True, peepholes=True, wide=7, lengths=every, memory=full)
    case("reverse", direction="reverse", wide=7, lengths=np.array([3, 2], i32), memory=full)
    case("bidirectional", d=2, direction="bidirectional", wide=7, lengths=every, memory=np.array([3, 4], i32))
    case("without lengths", wide=7)


CASES = [attention, multi_head, decoder_masked, group_query, rotary, norms, recurrences, sparse, paged, other_attention, attention_lstm]
