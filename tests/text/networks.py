"""Language models of every architecture in numpy, with random weights, and their GGUF files.

The networks follow the models' papers and Hugging Face's implementations; GGUF's own conventions (llama's permuted queries and keys, Gemma's
norms with 1 added) are applied when the file is written.
"""

import math
import pathlib
import struct

import numpy as np

TYPES = {"f32": 0, "f16": 1, "q4_0": 2, "q8_0": 8, "bf16": 30, "mxfp4": 39}
FLOAT4 = np.array([0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12], np.float32)


def text(value: str) -> bytes:
    raw = value.encode()
    return struct.pack("<Q", len(raw)) + raw


def key(name: str, value) -> bytes:
    if isinstance(value, list):
        return text(name) + struct.pack(f"<IIQ{len(value)}I", 9, 4, len(value), *value)
    if isinstance(value, bool):
        return text(name) + struct.pack("<IB", 7, value)
    if isinstance(value, int):
        return text(name) + struct.pack("<II", 4, value)
    if isinstance(value, float):
        return text(name) + struct.pack("<If", 6, value)
    return text(name) + struct.pack("<I", 8) + text(value)


def quantised(w: np.ndarray, kind: str) -> tuple[bytes, np.ndarray]:
    """Bytes, and what they stand for."""
    w = np.ascontiguousarray(w, np.float32)
    if kind == "f32":
        return w.tobytes(), w
    if kind == "f16":
        half = w.astype(np.float16)
        return half.tobytes(), half.astype(np.float32)
    if kind == "bf16":
        bits = (w.view(np.uint32) >> 16).astype(np.uint16)
        return bits.tobytes(), (bits.astype(np.uint32) << 16).view(np.float32).reshape(w.shape)
    blocks = w.reshape(-1, 32)
    top = np.abs(blocks).max(axis=1, keepdims=True)
    if kind == "mxfp4":
        e = (np.floor(np.log2(np.maximum(top, 1e-30))) - 2 + 127).astype(np.uint8)
        unit = np.exp2(e.astype(np.float32) - 128)
        codes = np.abs(blocks[:, :, None] / unit[:, :, None] - FLOAT4).argmin(axis=-1).astype(np.uint8)
        return np.concatenate([e, codes[:, :16] | codes[:, 16:] << 4], axis=1).tobytes(), (FLOAT4[codes] * unit).reshape(w.shape)
    scale = (top / (127 if kind == "q8_0" else 7)).astype(np.float16).astype(np.float32)
    scale[scale == 0] = 1
    codes = np.clip(np.rint(blocks / scale), -127 if kind == "q8_0" else -8, 127 if kind == "q8_0" else 7)
    values = (codes * scale).reshape(w.shape).astype(np.float32)
    out = b""
    for c, s in zip(codes.astype(np.int32), scale):
        out += np.float16(s[0]).tobytes()
        if kind == "q8_0":
            out += c.astype(np.int8).tobytes()
        else:
            c = (c + 8).astype(np.uint8)
            out += (c[:16] | c[16:] << 4).tobytes()
    return out, values


class Writer:
    def __init__(self, architecture: str):
        self.keys = [key("general.architecture", architecture)]
        self.architecture = architecture
        self.tensors = []

    def set(self, name: str, value):
        self.keys.append(key(f"{self.architecture}.{name}", value))

    def add(self, name: str, shape, raw: bytes, kind: int):
        self.tensors.append((name, shape, raw, kind))

    def write(self, path: pathlib.Path):
        head = b"GGUF" + struct.pack("<IQQ", 3, len(self.tensors), len(self.keys)) + b"".join(self.keys)
        data = b""
        for name, shape, raw, kind in self.tensors:
            data += b"\0" * (-len(data) % 32)
            head += text(name) + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *reversed(shape))
            head += struct.pack("<IQ", kind, len(data))
            data += raw
        path.write_bytes(head + b"\0" * (-len(head) % 32) + data)


# What the architectures do not share with most others. Layered norms subtract the mean.
LAYERED = dict(layered=True)
POST = dict(pre=False, post=True)
TRAITS = {
    "llama": dict(permute=True),
    "gemma": dict(activation="gelu", embedding_scale=8.0),
    "gemma2": dict(activation="gelu", embedding_scale=8.0, post=True, pattern=2),
    "gemma3": dict(activation="gelu", embedding_scale=8.0, post=True, pattern=6),
    "granite": dict(permute=True),
    "granitemoe": dict(permute=True),
    "smollm3": dict(permute=True, unrotated=4),
    "ernie4_5": dict(neighbours=True),
    "seed_oss": dict(second="post_attention_norm.weight"),
    "olmo2": dict(**POST, whole_norms=True, pattern=4),
    "exaone4": dict(**POST, norms=True, pattern=4),
    "command-r": dict(**LAYERED, parallel=True, neighbours=True),
    "cohere2": dict(**LAYERED, parallel=True, neighbours=True, pattern=4),
    "starcoder2": dict(**LAYERED, norm_bias=True, gated=False, activation="gelu"),
    "nemotron": dict(**LAYERED, norm_bias=True, gated=False, activation="relu2"),
    "glm4": dict(neighbours=True, post=True, joined=True),
    "hunyuan-dense": dict(norms=True, norm_late=True),
    "mistral3": dict(permute=True),
    "arcee": dict(permute=True, gated=False, activation="relu2"),
    "gpt-oss": dict(second="post_attention_norm.weight", pattern=2),
    "phi3": dict(joined=True),
    "glm4moe": dict(second="post_attention_norm.weight", sigmoid=True, chooses=True, dense=1, spare=1),
    "deepseek2": dict(neighbours=True, dense=1, latent=32, plain=32, value=24, rotary=8),
}


class Model:
    """Hyperparameters, weights in the layout of Hugging Face, and the file."""

    def __init__(self, architecture: str, kinds=("f32",), seed=0, **extra):
        self.rng = np.random.default_rng(seed)
        self.a = architecture
        self.kinds = kinds
        self.o = dict(layers=3, width=64, heads=4, kv=2, size=16, ff=96, vocabulary=96, base=10000.0, eps=1e-5, tied=True, rotary=16,
                      window=0, norms=False, bias=False, scaling=None, freqs=False, experts=0, used=2, shared=0, share=True, apart=False,
                      sinks=False, permute=False, neighbours=False, layered=False, norm_bias=False, pre=True, post=False, parallel=False,
                      gated=True, activation="silu", joined=False, whole_norms=False, norm_late=False, unrotated=0, pattern=0,
                      latent=0, query_latent=0, parted=True, sigmoid=False, chooses=False, groups=1, groups_used=1, dense=0, spare=0, expert_scale=1.0,
                      embedding_scale=1.0, residual_scale=1.0, logit_scale=1.0, growth=0.0, second="ffn_norm.weight")
        self.o.update(TRAITS.get(architecture, {}) | extra)
        self.w = {}
        self.file = Writer(self.o.get("named", architecture))
        self.count = 0
        self.hyperparameters()
        self.weights()

    def hyperparameters(self):
        o, f = self.o, self.file
        f.set("context_length", o.get("context", 256))
        f.set("embedding_length", o["width"])
        f.set("block_count", o["layers"] + o["spare"])
        f.set("feed_forward_length", o["ff"])
        f.set("attention.head_count", o["heads"])
        f.set("attention.head_count_kv", o["kv"])
        f.set("attention.layer_norm_epsilon" if o["layered"] else "attention.layer_norm_rms_epsilon", o["eps"])
        if o["size"] != o["width"] // o["heads"]:
            f.set("attention.key_length", o["size"])
            f.set("attention.value_length", o["size"])
        if o["latent"]:
            sizes = {"key": (o["latent"] + o["rotary"], o["plain"] + o["rotary"]), "value": (o["latent"], o["value"])}
            for name, (shared, own) in sizes.items():  # older files have those of single heads alone
                f.set(f"attention.{name}_length", shared if o["parted"] else own)
                if o["parted"]:
                    f.set(f"attention.{name}_length_mla", own)
            f.set("attention.kv_lora_rank", o["latent"])
            if o["query_latent"]:
                f.set("attention.q_lora_rank", o["query_latent"])
        f.set("rope.dimension_count", o["rotary"])
        f.set("rope.freq_base", o["base"])
        if o["window"]:
            f.set("attention.sliding_window", o["window"])
        if o["experts"]:
            f.set("expert_count", o["experts"])
            f.set("expert_used_count", o["used"])
            if self.a != "llama":
                f.set("expert_feed_forward_length", o["ff"])
            if o["shared"]:
                f.set("expert_shared_feed_forward_length", o["shared"])
            if o["sigmoid"] or o["groups"] > 1:
                f.set("expert_gating_func", 2 if o["sigmoid"] else 1)
                f.set("expert_weights_norm", o["share"])
                f.set("expert_weights_scale", o["expert_scale"])
                f.set("expert_group_count", o["groups"])
                f.set("expert_group_used_count", o["groups_used"])
            if o["spare"]:
                f.set("nextn_predict_layers", o["spare"])
        for name, value in o.get("keys", {}).items():
            f.set(name, value)

    def tensor(self, name: str, *shape, spread=0.3, about=0.0, kinds=None, permute=0):
        w = (self.rng.standard_normal(shape) * spread + about).astype(np.float32)
        if len(shape) > 1:
            w *= np.float32(2.0 / math.sqrt(shape[1]))
        kinds = kinds or (self.kinds if len(shape) > 1 else ("f32",))
        kind = kinds[self.count % len(kinds)]
        self.count += 1
        stored = w
        if permute:  # halves of a head become neighbours
            stored = w.reshape(permute, 2, shape[0] // permute // 2, *shape[1:]).swapaxes(1, 2).reshape(w.shape)
        raw, values = quantised(stored, kind)
        if permute:
            values = values.reshape(permute, shape[0] // permute // 2, 2, *shape[1:]).swapaxes(1, 2).reshape(w.shape)
        self.file.add(name, shape, raw, TYPES[kind])
        self.w[name] = values

    def norm_weights(self, name: str):
        self.tensor(name + ".weight", self.o["width"], about=1.0)
        if self.o["norm_bias"]:
            self.tensor(name + ".bias", self.o["width"])

    def weights(self):
        o = self.o
        self.tensor("token_embd.weight", o["vocabulary"], o["width"], spread=2.0)
        self.norm_weights("output_norm")
        if not o["tied"]:
            self.tensor("output.weight", o["vocabulary"], o["width"])
        for i in range(o["layers"]):
            self.layer_weights(f"blk.{i}.")
        for i in range(o["layers"], o["layers"] + o["spare"]):
            self.tensor(f"blk.{i}.attn_norm.weight", o["width"])
            self.tensor(f"blk.{i}.nextn.eh_proj.weight", o["width"], 2 * o["width"])
        if o["freqs"]:
            self.tensor("rope_freqs.weight", o["rotary"] // 2, spread=0.5, about=3.0)
        if self.a == "phi3" and o.get("longrope"):
            self.tensor("rope_factors_short.weight", o["rotary"] // 2, spread=0.1, about=1.2)
            self.tensor("rope_factors_long.weight", o["rotary"] // 2, spread=0.5, about=4.0)

    def layer_weights(self, at: str):
        o, llama = self.o, self.o["permute"]
        q, kv = o["heads"] * o["size"], o["kv"] * o["size"]
        if o["pre"]:
            self.norm_weights(at + "attn_norm")
        if o["latent"]:
            q = self.latent_weights(at)
        elif self.a == "phi3":
            self.tensor(at + "attn_qkv.weight", q + 2 * kv, o["width"])
        else:
            self.tensor(at + "attn_q.weight", q, o["width"], permute=o["heads"] if llama else 0)
            self.tensor(at + "attn_k.weight", kv, o["width"], permute=o["kv"] if llama else 0)
            self.tensor(at + "attn_v.weight", kv, o["width"])
        if o["bias"]:
            for name, size in (("q", q), ("k", kv), ("v", kv)):
                self.tensor(at + f"attn_{name}.bias", size)
        if o["norms"] or o["whole_norms"]:
            for name, heads in (("q", o["heads"]), ("k", o["kv"])):
                shape = ((heads, o["size"]) if o["layered"] else (heads * o["size"],)) if o["whole_norms"] else (o["size"],)
                self.tensor(at + f"attn_{name}_norm.weight", *shape, about=1.0, kinds=("f32",))
        self.tensor(at + "attn_output.weight", o["width"], q)
        if o["pre"] and not o["parallel"]:
            self.norm_weights(at + o["second"].removesuffix(".weight"))
        if o["sinks"]:
            self.tensor(at + "attn_sinks.weight", o["heads"], spread=1.0)
        if o["sinks"] or o.get("ff_bias"):
            self.tensor(at + "attn_output.bias", o["width"])
        if o["experts"] and int(at.split(".")[1]) >= o["dense"]:
            self.expert_weights(at)
        else:
            self.feed_forward_weights(at)
        if o["post"]:
            self.tensor(at + "post_attention_norm.weight", o["width"], about=1.0)
            self.tensor(at + "post_ffw_norm.weight", o["width"], about=1.0)

    def latent_weights(self, at: str):
        o = self.o
        query, source = o["heads"] * (o["plain"] + o["rotary"]), o["query_latent"] or o["width"]
        if o["query_latent"]:
            self.tensor(at + "attn_q_a.weight", o["query_latent"], o["width"])
            self.tensor(at + "attn_q_a_norm.weight", o["query_latent"], about=1.0)
        self.tensor(at + ("attn_q_b.weight" if o["query_latent"] else "attn_q.weight"), query, source)
        self.tensor(at + "attn_kv_a_mqa.weight", o["latent"] + o["rotary"], o["width"])
        self.tensor(at + "attn_kv_a_norm.weight", o["latent"], about=1.0)
        if o["parted"]:
            self.tensor(at + "attn_k_b.weight", o["heads"], o["latent"], o["plain"])
            self.tensor(at + "attn_v_b.weight", o["heads"], o["value"], o["latent"])
        else:
            self.tensor(at + "attn_kv_b.weight", o["heads"] * (o["plain"] + o["value"]), o["latent"])
            both = self.w[at + "attn_kv_b.weight"].reshape(o["heads"], -1, o["latent"])
            self.w[at + "attn_k_b.weight"] = both[:, : o["plain"]].swapaxes(1, 2)
            self.w[at + "attn_v_b.weight"] = both[:, o["plain"] :]
        return o["heads"] * o["value"]

    def feed_forward_weights(self, at: str):
        o = self.o
        if o["gated"] and not o["joined"]:
            self.tensor(at + "ffn_gate.weight", o["ff"], o["width"])
        self.tensor(at + "ffn_up.weight", (2 if o["joined"] else 1) * o["ff"], o["width"])
        self.tensor(at + "ffn_down.weight", o["width"], o["ff"])
        if o.get("ff_bias"):
            self.tensor(at + "ffn_up.bias", o["ff"])
            self.tensor(at + "ffn_down.bias", o["width"])

    def expert_weights(self, at: str):
        o = self.o
        sizes = {"gate": (o["ff"], o["width"]), "up": (o["ff"], o["width"]), "down": (o["width"], o["ff"])}
        self.tensor(at + "ffn_gate_inp.weight", o["experts"], o["width"], kinds=("f32",))
        kinds = [self.kinds[i % len(self.kinds)] for i in range(3)]
        for (part, size), kind in zip(sizes.items(), kinds):
            if o["apart"]:
                for e in range(o["experts"]):
                    self.tensor(at + f"ffn_{part}.{e}.weight", *size, kinds=(kind,))
                self.w[at + f"ffn_{part}_exps.weight"] = np.stack([self.w[at + f"ffn_{part}.{e}.weight"] for e in range(o["experts"])])
            else:
                self.tensor(at + f"ffn_{part}_exps.weight", o["experts"], *size, kinds=(kind,))
            if self.a == "gpt-oss":
                self.tensor(at + f"ffn_{part}_exps.bias", o["experts"], size[0], kinds=("f32",))
            if o["shared"]:
                self.tensor(at + f"ffn_{part}_shexp.weight", *(o["shared"] if n == o["ff"] else n for n in size))
        if self.a == "gpt-oss":
            self.tensor(at + "ffn_gate_inp.bias", o["experts"])
        if o["chooses"]:
            self.tensor(at + "exp_probs_b.bias", o["experts"], spread=0.2)
        if o["shared"] and self.a in ("qwen2moe", "qwen3next", "qwen35moe"):
            self.tensor(at + "ffn_gate_inp_shexp.weight", o["width"])

    # The network, in float64.

    def norm(self, x, name):
        if self.o["layered"]:
            x = x - x.mean(axis=-1, keepdims=True)
        y = x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + self.o["eps"]) * self.w[name].astype(np.float64)
        return y + self.w[name.replace(".weight", ".bias")] if self.o["norm_bias"] else y

    def windowed(self, layer):
        """Whether a layer sees only a window."""
        pattern = self.o["pattern"]
        return self.o["window"] > 0 and (pattern == 0 or (layer + 1) % pattern != 0)

    def rotated(self, layer):
        if self.a == "cohere2" or (self.a == "exaone4" and self.o["window"]):
            return self.windowed(layer)
        return not self.o["unrotated"] or (layer + 1) % self.o["unrotated"] != 0

    def frequencies(self, layer):
        o = self.o
        half = o["rotary"] // 2
        base = o["base"]
        local = self.a in ("gemma3", "olmo2") and self.windowed(layer)
        if local and self.a == "gemma3":
            base = 10000.0
        f = base ** (-2.0 * np.arange(half) / o["rotary"])
        if o["freqs"]:
            f = f / self.w["rope_freqs.weight"]
        if o.get("longrope"):
            long = o.get("used_context", 0) > o["keys"]["rope.scaling.original_context_length"]
            f = f / self.w[f"rope_factors_{'long' if long else 'short'}.weight"]
        if o["scaling"] == "linear" and not local:
            f = f / o["keys"]["rope.scaling.factor"]
        if o["scaling"] == "yarn" and not local:
            n, original, factor = o["rotary"], o["keys"]["rope.scaling.original_context_length"], o["keys"]["rope.scaling.factor"]
            at = lambda turns: n * math.log(original / (turns * 2 * math.pi)) / (2 * math.log(base))
            low, high = (at(32), at(1)) if self.a == "gpt-oss" else (math.floor(at(32)), math.ceil(at(1)))
            low, high = max(0, low), min(n - 1, high)
            keep = 1 - np.clip((np.arange(half) - low) / max(0.001, high - low), 0, 1)
            f = f * keep + f / factor * (1 - keep)
        return f

    def rotate(self, x, layer):
        """x: [tokens, heads, size]; halves of the first `rotary` elements, as Hugging Face has them."""
        o = self.o
        half = o["rotary"] // 2
        angle = np.arange(len(x))[:, None, None] * self.frequencies(layer)[None, None, :]
        size = o["keys"].get("rope.scaling.attn_factor", 1.0) if "keys" in o else 1.0
        if o["scaling"] == "yarn":
            size *= 1 + 0.1 * math.log(o["keys"]["rope.scaling.factor"])
        if "rope_size" in o:  # as the file has it as a whole
            size = 1.0 if self.a == "olmo2" and self.windowed(layer) else o["rope_size"]
        cos, sin = np.cos(angle) * size, np.sin(angle) * size
        if o["neighbours"]:
            a, b = x[..., : 2 * half : 2], x[..., 1 : 2 * half : 2]
            turned = np.stack([a * cos - b * sin, b * cos + a * sin], axis=-1).reshape(*x.shape[:-1], 2 * half)
            return np.concatenate([turned, x[..., 2 * half :]], axis=-1)
        a, b = x[..., :half], x[..., half : 2 * half]
        return np.concatenate([a * cos - b * sin, b * cos + a * sin, x[..., 2 * half :]], axis=-1)

    def latent_attention(self, x, layer, at):
        """With keys and values of each head, as the paper defines it."""
        o, w, n = self.o, self.w, len(x)
        linear = lambda v, name: v @ w[at + name + ".weight"].T.astype(np.float64)
        q = self.norm(linear(x, "attn_q_a"), at + "attn_q_a_norm.weight") if o["query_latent"] else x
        q = linear(q, "attn_q_b" if o["query_latent"] else "attn_q").reshape(n, o["heads"], -1)
        latent, shared = np.split(linear(x, "attn_kv_a_mqa"), [o["latent"]], axis=-1)
        latent = self.norm(latent, at + "attn_kv_a_norm.weight")
        plain, turned = q[..., : o["plain"]], self.rotate(q[..., o["plain"] :], layer)
        k = np.einsum("jl,hlp->jhp", latent, w[at + "attn_k_b.weight"].astype(np.float64))
        v = np.einsum("jl,hvl->jhv", latent, w[at + "attn_v_b.weight"].astype(np.float64))
        key = self.rotate(shared[:, None, :], layer)[:, 0]
        scores = np.einsum("ihp,jhp->hij", plain, k) + np.einsum("ihr,jr->hij", turned, key)
        scores *= o.get("scale", 1 / math.sqrt(o["plain"] + o["rotary"]))
        scores = np.where(np.tri(n, dtype=bool), scores, -np.inf)
        p = np.exp(scores - scores.max(axis=-1, keepdims=True))
        p /= p.sum(axis=-1, keepdims=True)
        return linear(np.einsum("hij,jhv->ihv", p, v).reshape(n, -1), "attn_output")

    def attention(self, x, layer, at):
        o, w = self.o, self.w
        if o["latent"]:
            return self.latent_attention(x, layer, at)
        n, q_rows, kv_rows = len(x), o["heads"] * o["size"], o["kv"] * o["size"]
        if self.a == "phi3":
            q, k, v = np.split(x @ w[at + "attn_qkv.weight"].T.astype(np.float64), [q_rows, q_rows + kv_rows], axis=-1)
        else:
            q, k, v = (x @ w[at + f"attn_{c}.weight"].T.astype(np.float64) for c in "qkv")
        if o["bias"]:
            q, k, v = (t + w[at + f"attn_{c}.bias"] for t, c in ((q, "q"), (k, "k"), (v, "v")))
        if o["whole_norms"] and not o["layered"]:
            q, k = self.norm(q, at + "attn_q_norm.weight"), self.norm(k, at + "attn_k_norm.weight")
        q, k, v = q.reshape(n, -1, o["size"]), k.reshape(n, -1, o["size"]), v.reshape(n, -1, o["size"])
        if o["norm_late"]:
            q, k = self.rotate(q, layer), self.rotate(k, layer)
        if o["norms"] or (o["whole_norms"] and o["layered"]):
            q, k = self.norm(q, at + "attn_q_norm.weight"), self.norm(k, at + "attn_k_norm.weight")
        if self.rotated(layer) and not o["norm_late"]:
            q, k = self.rotate(q, layer), self.rotate(k, layer)
        if o["growth"]:
            held = np.arange(n) // o["keys"]["rope.scaling.original_context_length"]
            q = q * (1 + o["growth"] * np.log1p(held))[:, None, None]
        group = o["heads"] // o["kv"]
        k, v = np.repeat(k, group, axis=1), np.repeat(v, group, axis=1)
        scores = np.einsum("ihd,jhd->hij", q, k) * o.get("scale", 1 / math.sqrt(o["size"]))
        if o.get("attention_cap"):
            scores = o["attention_cap"] * np.tanh(scores / o["attention_cap"])
        i, j = np.arange(n)[:, None], np.arange(n)[None, :]
        if o.get("bidirectional"):
            seen = np.abs(i - j) <= (o["window"] // 2 if self.windowed(layer) else n)
        else:
            seen = (j <= i) & (j > i - (o["window"] if self.windowed(layer) else n))
        scores = np.where(seen, scores, -np.inf)
        most = scores.max(axis=-1, keepdims=True)
        p = np.exp(scores - most)
        sinks = np.exp(w[at + "attn_sinks.weight"][:, None, None] - most) if o["sinks"] else 0.0
        p /= p.sum(axis=-1, keepdims=True) + sinks
        y = np.einsum("hij,jhd->ihd", p, v).reshape(n, -1) @ w[at + "attn_output.weight"].T.astype(np.float64)
        return y + w.get(at + "attn_output.bias", 0.0)

    def gated(self, gate, up):
        if self.a == "gpt-oss":
            gate, up = np.minimum(gate, 7.0), np.clip(up, -7.0, 7.0)
            return gate / (1 + np.exp(-1.702 * gate)) * (up + 1)
        return gate / (1 + np.exp(-gate)) * up

    def mixture(self, x, at):
        o, w, oss = self.o, self.w, self.a == "gpt-oss"
        scores = x @ w[at + "ffn_gate_inp.weight"].T.astype(np.float64) + (w[at + "ffn_gate_inp.bias"] if oss else 0.0)
        y = np.zeros_like(x)
        for t, row in enumerate(scores):
            p = 1 / (1 + np.exp(-row)) if o["sigmoid"] else np.exp(row - row.max()) / np.exp(row - row.max()).sum()
            wanted = p + w.get(at + "exp_probs_b.bias", 0.0)
            groups = np.sort(wanted.reshape(o["groups"], -1), axis=1)
            value = groups[:, -2:].sum(axis=1) if o["sigmoid"] else groups[:, -1]
            wanted.reshape(o["groups"], -1)[np.argsort(-value, kind="stable")[o["groups_used"]:]] = -np.inf
            chosen = np.argsort(-wanted, kind="stable")[: o["used"]]
            p *= o["expert_scale"] / (p[chosen].sum() if o["share"] else 1.0)
            for e in chosen:
                part = lambda name, v: (v @ w[at + f"ffn_{name}_exps.weight"][e].T.astype(np.float64)
                                        + (w[at + f"ffn_{name}_exps.bias"][e] if oss else 0.0))
                y[t] += p[e] * part("down", self.gated(part("gate", x[t]), part("up", x[t])))
        if o["shared"]:
            part = lambda name, v: v @ w[at + f"ffn_{name}_shexp.weight"].T.astype(np.float64)
            gate = w.get(at + "ffn_gate_inp_shexp.weight")
            share = np.ones(len(x)) if gate is None else 1 / (1 + np.exp(-(x @ gate.astype(np.float64))))
            y += share[:, None] * part("down", self.gated(part("gate", x), part("up", x)))
        return y

    def feed_forward(self, x, at):
        o, w = self.o, self.w
        up = x @ w[at + "ffn_up.weight"].T.astype(np.float64)
        if not o["gated"]:
            y = self.activated(up + w[at + "ffn_up.bias"] if o.get("ff_bias") else up) @ w[at + "ffn_down.weight"].T.astype(np.float64)
            return y + w[at + "ffn_down.bias"] if o.get("ff_bias") else y
        if o["joined"]:
            gate, up = np.split(up, 2, axis=-1)
        else:
            gate = x @ w[at + "ffn_gate.weight"].T.astype(np.float64)
        return (self.activated(gate) * up) @ w[at + "ffn_down.weight"].T.astype(np.float64)

    def activated(self, x):
        if self.o["activation"] == "gelu":
            return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
        return np.maximum(x, 0) ** 2 if self.o["activation"] == "relu2" else x / (1 + np.exp(-x))

    def hidden(self, ids):
        o, w = self.o, self.w
        x = w["token_embd.weight"][ids].astype(np.float64) * o["embedding_scale"]
        for i in range(o["layers"]):
            at = f"blk.{i}."
            before = lambda name: self.norm(x, at + name) if o["pre"] else x
            after = lambda y, name: (self.norm(y, at + name) if o["post"] else y) * o["residual_scale"]
            normed = before("attn_norm.weight")
            added = after(self.attention(normed, i, at), "post_attention_norm.weight")
            if not o["parallel"]:
                x = x + added
                normed = before(o["second"])
            routed = o["experts"] and i >= o["dense"]
            y = after((self.mixture if routed else self.feed_forward)(normed, at), "post_ffw_norm.weight")
            x = x + y + (added if o["parallel"] else 0.0)
        return self.norm(x, "output_norm.weight")

    def logits(self, ids):
        o, w = self.o, self.w
        x = self.hidden(ids)
        y = x @ w["token_embd.weight" if o["tied"] else "output.weight"].T.astype(np.float64) * o["logit_scale"]
        if o.get("logit_cap"):
            y = o["logit_cap"] * np.tanh(y / o["logit_cap"])
        return y


MODELS = {
    "llama": Model("llama"),
    "llama, own head, frequencies": Model("llama", tied=False, freqs=True, seed=1),
    "llama, types mixed": Model("llama", kinds=("f16", "q8_0", "bf16", "q4_0", "f32"), seed=2),
    "qwen2, partly rotated": Model("qwen2", bias=True, rotary=8, size=32, seed=3),
    "llama, linear": Model("llama", scaling="linear", keys={"rope.scaling.type": "linear", "rope.scaling.factor": 4.0}, seed=4),
    "llama, sliding": Model("llama", window=5, seed=5),
    "qwen2": Model("qwen2", bias=True, base=1e6, seed=6),
    "qwen2, yarn": Model("qwen2", bias=True, scaling="yarn", seed=7, context=4096,
                         keys={"rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "rope.scaling.original_context_length": 64}),
    "qwen3": Model("qwen3", norms=True, size=32, rotary=32, eps=1e-6, seed=8),
    "gemma2": Model("gemma2", window=6, attention_cap=50.0, logit_cap=30.0, size=32, rotary=32, eps=1e-6, seed=9,
                    keys={"attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0}),
    "gemma3": Model("gemma3", layers=7, window=6, norms=True, base=1e6, scaling="linear", eps=1e-6, seed=10,
                    keys={"rope.scaling.type": "linear", "rope.scaling.factor": 8.0}),
    "llama, experts": Model("llama", experts=4, kinds=("q8_0",), tied=False, seed=13),
    "llama, experts apart": Model("llama", experts=3, apart=True, kinds=("f32", "q4_0", "f16"), seed=14),
    "qwen2moe": Model("qwen2moe", experts=6, used=3, share=False, shared=128, bias=True, base=1e6, kinds=("f16",), tied=False, seed=15),
    "qwen3moe": Model("qwen3moe", experts=8, used=3, norms=True, size=32, rotary=32, eps=1e-6, kinds=("bf16", "q8_0"), tied=False, seed=16),
    "gpt-oss": Model("gpt-oss", experts=5, window=6, bias=True, sinks=True, kinds=("mxfp4",), tied=False, scaling="yarn", context=4096, seed=17,
                     keys={"rope.scaling.type": "yarn", "rope.scaling.factor": 32.0, "rope.scaling.original_context_length": 64}),
    "gemma": Model("gemma", size=32, rotary=32, eps=1e-6, seed=18),
    "granite": Model("granite", embedding_scale=12.0, residual_scale=0.22, logit_scale=1 / 8.0, scale=0.0625, base=1e7, seed=19,
                     kinds=("f16", "q8_0"), keys={"embedding_scale": 12.0, "residual_scale": 0.22, "logit_scale": 8.0, "attention.scale": 0.0625}),
    "smollm3": Model("smollm3", layers=5, base=2e6, eps=1e-6, seed=20),
    "ernie4_5": Model("ernie4_5", size=32, rotary=32, base=5e5, seed=21),
    "seed_oss": Model("seed_oss", size=32, rotary=32, bias=True, base=1e7, tied=False, seed=22),
    "olmo2": Model("olmo2", base=5e5, tied=False, eps=1e-6, seed=23),
    "olmo2, windows, yarn": Model("olmo2", layers=5, window=6, base=5e5, tied=False, scaling="yarn", context=4096, rope_size=1.2079, seed=24,
                                  keys={"rope.scaling.type": "yarn", "rope.scaling.factor": 8.0, "rope.scaling.attn_factor": 1.2079,
                                        "rope.scaling.original_context_length": 64}),
    "exaone4": Model("exaone4", base=1e6, seed=25),
    "exaone4, windows": Model("exaone4", layers=5, window=6, base=1e6, tied=False, seed=26),
    "command-r": Model("command-r", logit_scale=0.5, base=8e6, seed=27, keys={"logit_scale": 0.5}),
    "command-r, norms": Model("command-r", logit_scale=0.5, whole_norms=True, base=8e6, seed=28, keys={"logit_scale": 0.5}),
    "cohere2": Model("cohere2", layers=5, window=6, logit_scale=0.25, base=5e4, seed=29, keys={"logit_scale": 0.25}),
    "starcoder2": Model("starcoder2", bias=True, ff_bias=True, base=1e5, seed=30),
    "nemotron": Model("nemotron", rotary=8, tied=False, seed=31),
    "glm4": Model("glm4", size=32, rotary=16, bias=True, tied=False, seed=32),
    "hunyuan-dense": Model("hunyuan-dense", base=1.1e7, seed=33),
    "mistral3": Model("mistral3", scaling="yarn", context=4096, rope_size=1.0, growth=0.1, tied=False, base=1e6, seed=34,
                      keys={"rope.scaling.type": "yarn", "rope.scaling.factor": 16.0, "rope.scaling.original_context_length": 8,
                            "rope.scaling.yarn_log_multiplier": 1.0, "attention.temperature_scale": 0.1}),
    "arcee": Model("arcee", scaling="yarn", context=4096, seed=35, tied=False, keys={
        "rope.scaling.type": "yarn", "rope.scaling.factor": 20.0, "rope.scaling.original_context_length": 64}),
    "granitemoe": Model("granitemoe", experts=5, embedding_scale=12.0, residual_scale=0.22, logit_scale=1 / 6.0, scale=0.0156, seed=36,
                        keys={"embedding_scale": 12.0, "residual_scale": 0.22, "logit_scale": 6.0, "attention.scale": 0.0156}),
    "granitemoe, shared": Model("granitemoe", experts=4, shared=64, embedding_scale=3.0, residual_scale=0.5, logit_scale=0.5, scale=0.1, seed=37,
                                keys={"embedding_scale": 3.0, "residual_scale": 0.5, "logit_scale": 2.0, "attention.scale": 0.1}),
    "glm4moe": Model("glm4moe", experts=8, used=3, shared=64, bias=True, norms=True, size=32, rotary=16, tied=False, kinds=("f16", "q8_0"),
                     expert_scale=1.5, seed=38),
    "glm4moe, groups": Model("glm4moe", experts=12, used=4, shared=96, share=False, groups=4, groups_used=2, tied=False, seed=39),
    "deepseek2, lite": Model("deepseek2", kv=1, experts=6, used=3, shared=64, share=False, tied=False, seed=45),
    "deepseek2": Model("deepseek2", kv=1, query_latent=48, experts=8, used=3, shared=32, sigmoid=True, chooses=True, groups=4, groups_used=2,
                       expert_scale=2.5, scaling="yarn", context=4096, rope_size=1.0, spare=1, tied=False, seed=46,
                       scale=(1 + 0.1 * math.log(40.0)) ** 2 / math.sqrt(40.0), keys={
                           "rope.scaling.type": "yarn", "rope.scaling.factor": 40.0, "rope.scaling.original_context_length": 64,
                           "rope.scaling.yarn_log_multiplier": 0.1}),
    "deepseek2, one matrix": Model("deepseek2", kv=4, parted=False, experts=6, used=2, shared=64, share=False, tied=False,
                                   kinds=("f16", "q8_0", "bf16", "f32"), layers=4, seed=47),
    "phi3": Model("phi3", window=7, tied=False, seed=11),
    "phi3, short factors": Model("phi3", longrope=True, tied=False, rotary=12, seed=12,
                                 keys={"rope.scaling.original_context_length": 64, "rope.scaling.attn_factor": 1.19}),
    "phi3, long factors": Model("phi3", longrope=True, tied=False, rotary=12, seed=12, used_context=256,
                                keys={"rope.scaling.original_context_length": 64, "rope.scaling.attn_factor": 1.19}),
}
