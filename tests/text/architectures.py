#!/usr/bin/env python3
"""Tiny random models of every architecture, written as GGUF files, against the architecture in numpy.

usage: architectures.py LANGUAGE_PROBE architectures|formats|folders

The networks below follow the models' papers and Hugging Face's implementations; GGUF's own conventions (llama's permuted queries and
keys, Gemma's norms with 1 added) are applied when the file is written. "formats" compares the
values of all block formats with the package gguf, through networks that are one table. "folders" converts models into folders of
onnxruntime-genai, and compares these. Exit code 77: numpy, or gguf, is missing.
"""

import json
import math
import pathlib
import struct
import subprocess
import sys

try:
    import numpy as np
except ImportError:
    sys.exit(77)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from scratch import scratch  # noqa: E402

PROBE = sys.argv[1]
TYPES = {"f32": 0, "f16": 1, "q4_0": 2, "q8_0": 8, "bf16": 30, "mxfp4": 39}
FLOAT4 = np.array([0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12], np.float32)


def text(value: str) -> bytes:
    raw = value.encode()
    return struct.pack("<Q", len(raw)) + raw


def key(name: str, value) -> bytes:
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


class Model:
    """Hyperparameters, weights in the layout of Hugging Face, and the file."""

    def __init__(self, architecture: str, kinds=("f32",), seed=0, **extra):
        self.rng = np.random.default_rng(seed)
        self.a = architecture
        self.kinds = kinds
        self.o = dict(layers=3, width=64, heads=4, kv=2, size=16, ff=96, vocabulary=96, base=10000.0, eps=1e-5, tied=True, rotary=16,
                      window=0, norms=False, bias=False, scaling=None, freqs=False, experts=0, used=2, shared=0, share=True, apart=False,
                      sinks=False)
        self.o.update(extra)
        self.w = {}
        self.file = Writer(architecture)
        self.count = 0
        self.hyperparameters()
        self.weights()

    def hyperparameters(self):
        o, f = self.o, self.file
        f.set("context_length", o.get("context", 256))
        f.set("embedding_length", o["width"])
        f.set("block_count", o["layers"])
        f.set("feed_forward_length", o["ff"])
        f.set("attention.head_count", o["heads"])
        f.set("attention.head_count_kv", o["kv"])
        f.set("attention.layer_norm_rms_epsilon", o["eps"])
        if o["size"] != o["width"] // o["heads"]:
            f.set("attention.key_length", o["size"])
            f.set("attention.value_length", o["size"])
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

    def weights(self):
        o = self.o
        self.tensor("token_embd.weight", o["vocabulary"], o["width"], spread=2.0)
        self.tensor("output_norm.weight", o["width"], about=1.0)
        if not o["tied"]:
            self.tensor("output.weight", o["vocabulary"], o["width"])
        for i in range(o["layers"]):
            self.layer_weights(f"blk.{i}.")
        if o["freqs"]:
            self.tensor("rope_freqs.weight", o["rotary"] // 2, spread=0.5, about=3.0)
        if self.a == "phi3" and o.get("longrope"):
            self.tensor("rope_factors_short.weight", o["rotary"] // 2, spread=0.1, about=1.2)
            self.tensor("rope_factors_long.weight", o["rotary"] // 2, spread=0.5, about=4.0)

    def layer_weights(self, at: str):
        o, llama = self.o, self.a == "llama"
        q, kv = o["heads"] * o["size"], o["kv"] * o["size"]
        self.tensor(at + "attn_norm.weight", o["width"], about=1.0)
        if self.a == "phi3":
            self.tensor(at + "attn_qkv.weight", q + 2 * kv, o["width"])
        else:
            self.tensor(at + "attn_q.weight", q, o["width"], permute=o["heads"] if llama else 0)
            self.tensor(at + "attn_k.weight", kv, o["width"], permute=o["kv"] if llama else 0)
            self.tensor(at + "attn_v.weight", kv, o["width"])
        if o["bias"]:
            for name, size in (("q", q), ("k", kv), ("v", kv)):
                self.tensor(at + f"attn_{name}.bias", size)
        if o["norms"]:
            self.tensor(at + "attn_q_norm.weight", o["size"], about=1.0)
            self.tensor(at + "attn_k_norm.weight", o["size"], about=1.0)
        self.tensor(at + "attn_output.weight", o["width"], q)
        self.tensor(at + self.second_norm(), o["width"], about=1.0)
        if o["sinks"]:
            self.tensor(at + "attn_sinks.weight", o["heads"], spread=1.0)
            self.tensor(at + "attn_output.bias", o["width"])
        if o["experts"]:
            self.expert_weights(at)
        elif self.a == "phi3":
            self.tensor(at + "ffn_up.weight", 2 * o["ff"], o["width"])
        else:
            self.tensor(at + "ffn_gate.weight", o["ff"], o["width"])
            self.tensor(at + "ffn_up.weight", o["ff"], o["width"])
        if not o["experts"]:
            self.tensor(at + "ffn_down.weight", o["width"], o["ff"])
        if self.a.startswith("gemma"):
            self.tensor(at + "post_attention_norm.weight", o["width"], about=1.0)
            self.tensor(at + "post_ffw_norm.weight", o["width"], about=1.0)

    def second_norm(self):
        return "post_attention_norm.weight" if self.a == "gpt-oss" else "ffn_norm.weight"

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
        if o["shared"]:
            self.tensor(at + "ffn_gate_inp_shexp.weight", o["width"])

    # The network, in float64.

    def norm(self, x, name):
        return x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + self.o["eps"]) * self.w[name].astype(np.float64)

    def frequencies(self, layer):
        o = self.o
        half = o["rotary"] // 2
        base = o["base"]
        local = self.a == "gemma3" and layer % 6 < 5
        if local:
            base = 10000.0
        f = base ** (-2.0 * np.arange(half) / o["rotary"])
        if o["freqs"]:
            f = f / self.w["rope_freqs.weight"]
        if o.get("longrope"):
            long = o.get("used_context", 0) > o["keys"]["rope.scaling.original_context_length"]
            f = f / self.w[f"rope_factors_{'long' if long else 'short'}.weight"]
        if o["scaling"] == "linear" and not local:
            f = f / o["keys"]["rope.scaling.factor"]
        if o["scaling"] == "yarn":
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
        cos, sin = np.cos(angle) * size, np.sin(angle) * size
        a, b = x[..., :half], x[..., half : 2 * half]
        return np.concatenate([a * cos - b * sin, b * cos + a * sin, x[..., 2 * half :]], axis=-1)

    def attention(self, x, layer, at):
        o, w = self.o, self.w
        n, q_rows, kv_rows = len(x), o["heads"] * o["size"], o["kv"] * o["size"]
        if self.a == "phi3":
            q, k, v = np.split(x @ w[at + "attn_qkv.weight"].T.astype(np.float64), [q_rows, q_rows + kv_rows], axis=-1)
        else:
            q, k, v = (x @ w[at + f"attn_{c}.weight"].T.astype(np.float64) for c in "qkv")
        if o["bias"]:
            q, k, v = (t + w[at + f"attn_{c}.bias"] for t, c in ((q, "q"), (k, "k"), (v, "v")))
        q, k, v = q.reshape(n, -1, o["size"]), k.reshape(n, -1, o["size"]), v.reshape(n, -1, o["size"])
        if o["norms"]:
            q, k = self.norm(q, at + "attn_q_norm.weight"), self.norm(k, at + "attn_k_norm.weight")
        q, k = self.rotate(q, layer), self.rotate(k, layer)
        group = o["heads"] // o["kv"]
        k, v = np.repeat(k, group, axis=1), np.repeat(v, group, axis=1)
        scores = np.einsum("ihd,jhd->hij", q, k) * o.get("scale", 1 / math.sqrt(o["size"]))
        if o.get("attention_cap"):
            scores = o["attention_cap"] * np.tanh(scores / o["attention_cap"])
        i, j = np.arange(n)[:, None], np.arange(n)[None, :]
        seen = j <= i
        everything = {"gemma2": layer % 2 == 1, "gpt-oss": layer % 2 == 1, "gemma3": layer % 6 == 5}.get(self.a, False)
        if o["window"] and not everything:
            seen &= j > i - o["window"]
        scores = np.where(seen, scores, -np.inf)
        most = scores.max(axis=-1, keepdims=True)
        p = np.exp(scores - most)
        sinks = np.exp(w[at + "attn_sinks.weight"][:, None, None] - most) if o["sinks"] else 0.0
        p /= p.sum(axis=-1, keepdims=True) + sinks
        y = np.einsum("hij,jhd->ihd", p, v).reshape(n, -1) @ w[at + "attn_output.weight"].T.astype(np.float64)
        return y + (w[at + "attn_output.bias"] if o["sinks"] else 0.0)

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
            p = np.exp(row - row.max())
            chosen = np.argsort(-row, kind="stable")[: o["used"]]
            p /= p[chosen].sum() if o["share"] else p.sum()
            for e in chosen:
                part = lambda name, v: (v @ w[at + f"ffn_{name}_exps.weight"][e].T.astype(np.float64)
                                        + (w[at + f"ffn_{name}_exps.bias"][e] if oss else 0.0))
                y[t] += p[e] * part("down", self.gated(part("gate", x[t]), part("up", x[t])))
        if o["shared"]:
            part = lambda name, v: v @ w[at + f"ffn_{name}_shexp.weight"].T.astype(np.float64)
            share = 1 / (1 + np.exp(-(x @ w[at + "ffn_gate_inp_shexp.weight"].astype(np.float64))))
            y += share[:, None] * part("down", self.gated(part("gate", x), part("up", x)))
        return y

    def feed_forward(self, x, at):
        w = self.w
        if self.a == "phi3":
            gate, up = np.split(x @ w[at + "ffn_up.weight"].T.astype(np.float64), 2, axis=-1)
        else:
            gate, up = x @ w[at + "ffn_gate.weight"].T.astype(np.float64), x @ w[at + "ffn_up.weight"].T.astype(np.float64)
        if self.a.startswith("gemma"):
            gate = 0.5 * gate * (1 + np.tanh(math.sqrt(2 / math.pi) * (gate + 0.044715 * gate**3)))
        else:
            gate = gate / (1 + np.exp(-gate))
        return (gate * up) @ w[at + "ffn_down.weight"].T.astype(np.float64)

    def logits(self, ids):
        o, w, gemma = self.o, self.w, self.a.startswith("gemma")
        x = w["token_embd.weight"][ids].astype(np.float64)
        if gemma:
            x *= math.sqrt(o["width"])
        for i in range(o["layers"]):
            at = f"blk.{i}."
            y = self.attention(self.norm(x, at + "attn_norm.weight"), i, at)
            x = x + (self.norm(y, at + "post_attention_norm.weight") if gemma else y)
            y = (self.mixture if o["experts"] else self.feed_forward)(self.norm(x, at + self.second_norm()), at)
            x = x + (self.norm(y, at + "post_ffw_norm.weight") if gemma else y)
        x = self.norm(x, "output_norm.weight")
        y = x @ w["token_embd.weight" if o["tied"] else "output.weight"].T.astype(np.float64)
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
    "phi3": Model("phi3", window=7, tied=False, seed=11),
    "phi3, short factors": Model("phi3", longrope=True, tied=False, rotary=12, seed=12,
                                 keys={"rope.scaling.original_context_length": 64, "rope.scaling.attn_factor": 1.19}),
    "phi3, long factors": Model("phi3", longrope=True, tied=False, rotary=12, seed=12, used_context=256,
                                keys={"rope.scaling.original_context_length": 64, "rope.scaling.attn_factor": 1.19}),
}


def probe(path: pathlib.Path, steps: int, ids, context=0, loras=()):
    adapters = [word for lora, scale in loras for word in ("-l", str(lora), str(scale))]
    command = [PROBE] + (["-c", str(context)] if context else []) + adapters + [str(path), str(steps)] + [str(i) for i in ids]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return json.loads(done.stdout)


def check_model(name: str, model: Model, folder: pathlib.Path):
    path = folder / "model.gguf"
    model.file.write(path)
    ids = list(np.random.default_rng(5).integers(0, model.o["vocabulary"], 21))
    made = probe(path, 6, ids, model.o.get("used_context", 0))
    expected = model.logits(ids)
    worst = np.abs(np.array(made["logits"]) - expected).max()
    spread = expected.std()
    # float32 against float64: some hundred roundings of numbers of this size.
    assert worst < 2e-5 * max(1.0, np.abs(expected).max()), f"{name}: logits are off by {worst}, spread {spread}"
    for step, chosen in enumerate(made["greedy"]):
        last = model.logits(ids)[-1]
        assert last[chosen] > last.max() - 1e-4 * max(1.0, spread), f"{name}: step {step} chose {chosen}, {last.argmax()} is likelier"
        ids.append(chosen)
    print(f"{name}: off by {worst:.1e}, logits spread by {spread:.2f}")


def check_refusals(folder: pathlib.Path):
    def error(change) -> str:
        model = Model("llama")
        change(model.file)
        model.file.write(folder / "bad.gguf")
        done = subprocess.run([PROBE, str(folder / "bad.gguf"), "1", "1"], capture_output=True, text=True, timeout=300)
        assert done.returncode == 1, done
        return done.stderr

    def without(name):
        def change(f):
            f.tensors = [t for t in f.tensors if t[0] != name]
        return change

    def architecture(f):
        f.keys[0] = key("general.architecture", "mamba")

    def other_type(f):
        name, shape, raw, _ = f.tensors[0]
        f.tensors[0] = (name, shape, raw, 16)

    cases = {
        "blk.1.ffn_up.weight": without("blk.1.ffn_up.weight"),
        "token_embd.weight": without("token_embd.weight"),
        "'mamba'": architecture,
        "IQ2_XXS": other_type,
        "blk.0.extra.weight": lambda f: f.add("blk.0.extra.weight", (4,), b"\0" * 16, 0),
        "expert_used_count": lambda f: f.set("expert_count", 8),
        "from 1 to 8": lambda f: f.set("expert_count", 8) or f.set("expert_used_count", 9),
        "llama.attention.head_count_kv": lambda f: f.keys.append(key("x", 1)) or f.keys.__setitem__(
            slice(None), [k for k in f.keys if b"head_count_kv" not in k] + [key("llama.attention.head_count_kv", 0)]),
        "'dynamic'": lambda f: f.set("rope.scaling.type", "dynamic"),
        "keys and values": lambda f: f.set("attention.value_length", 8),
    }
    for part, change in cases.items():
        message = error(change)
        assert part in message, f"'{part}' is not in: {message}"


def check_formats(folder: pathlib.Path):
    try:
        import gguf
    except ImportError:
        sys.exit(77)
    rng = np.random.default_rng(3)
    for name in "F16 BF16 Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q2_K Q3_K Q4_K Q5_K Q6_K IQ4_NL IQ4_XS TQ1_0 TQ2_0 MXFP4 NVFP4".split():
        kind = gguf.GGMLQuantizationType[name]
        block, size = gguf.GGML_QUANT_SIZES[kind]
        # No layers' sums: the norm divides by the same root mean square everywhere, and the head is the identity.
        model = Model("llama", layers=1, width=256, vocabulary=256, ff=32, heads=4, kv=4, size=64, rotary=64, tied=False)
        model.file.tensors = [t for t in model.file.tensors if t[0] not in ("token_embd.weight", "output.weight", "output_norm.weight")]
        zero = lambda t: (t[0], t[1], b"\0" * len(t[2]), t[3])
        model.file.tensors = [zero(t) for t in model.file.tensors]
        raw = rng.integers(0, 256, (256, 256 // block * size), dtype=np.uint8)
        # Scales are halves: of moderate size, and some subnormal.
        for row in raw:
            for b in range(256 // block):
                for at in {"F16": (0,), "BF16": (), "Q4_1": (0, 2), "Q5_1": (0, 2), "Q2_K": (80, 82), "Q3_K": (108,), "Q4_K": (0, 2),
                           "Q5_K": (0, 2), "Q6_K": (208,), "TQ1_0": (52,), "TQ2_0": (64,), "MXFP4": (), "NVFP4": ()}.get(name, (0,)):
                    row[b * size + at : b * size + at + 2] = np.frombuffer(np.float16(rng.choice([1e-6, 0.01, -0.5])).tobytes(), np.uint8)
        if name == "MXFP4":  # scales of moderate size
            raw[:, ::size] = rng.integers(110, 130, raw[:, ::size].shape)
        if name == "BF16":
            raw = (rng.standard_normal((256, 256)).astype(np.float32).view(np.uint32) >> 16).astype(np.uint16).view(np.uint8).reshape(256, 512)
        values = gguf.quants.dequantize(raw, kind).reshape(256, 256).astype(np.float64)
        model.file.add("token_embd.weight", (256, 256), raw.tobytes(), int(kind))
        model.file.add("output_norm.weight", (256,), np.ones(256, np.float32).tobytes(), 0)
        model.file.add("output.weight", (256, 256), np.eye(256, dtype=np.float32).tobytes(), 0)
        model.file.write(folder / "format.gguf")
        ids = list(range(0, 256, 5))
        made = np.array(probe(folder / "format.gguf", 0, ids)["logits"])
        x = values[ids]
        expected = x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + 1e-5)
        worst = np.abs(made - expected).max()
        assert worst < 1e-5, f"{name}: off by {worst}"
        # And as the matrix of a product.
        model.file.tensors = [t for t in model.file.tensors if t[0] not in ("token_embd.weight", "output.weight")]
        model.file.add("token_embd.weight", (256, 256), np.eye(256, dtype=np.float32).tobytes(), 0)
        model.file.add("output.weight", (256, 256), raw.tobytes(), int(kind))
        model.file.write(folder / "format.gguf")
        made = np.array(probe(folder / "format.gguf", 0, ids)["logits"]) * math.sqrt(1 / 256 + 1e-5)
        worst = np.abs(made - values[:, ids].T).max()
        assert worst < 1e-5 * max(1.0, np.abs(values).max()), f"{name} as a matrix: off by {worst}"
        print(f"{name}: as the package has it")


def check_folders(folder: pathlib.Path):
    """Converted models answer as the file does; those that are rounded anew, nearly so."""
    for name in ("llama, types mixed", "llama, experts apart", "qwen2", "qwen2moe", "qwen3", "gemma2", "gemma3", "gpt-oss", "phi3", "phi3, short factors"):
        model = MODELS[name]
        model.file.write(folder / "model.gguf")
        ids = list(np.random.default_rng(5).integers(0, model.o["vocabulary"], 21))
        expected = model.logits(ids)
        for dtype, most in ((None, 2e-5), ("float32", 2e-5), ("float16", 3e-2), ("int8", 0.1), ("int4", 2.0)):
            command = [PROBE, "--convert", str(folder / "model.gguf"), str(folder / "out")] + ([dtype] if dtype else [])
            done = subprocess.run(command, capture_output=True, text=True, timeout=300)
            assert done.returncode == 0, done.stderr
            made = np.array(probe(folder / "out", 0, ids)["logits"])
            worst = np.abs(made - expected).max()
            assert worst < most * max(1.0, np.abs(expected).max()), f"{name} as {dtype}: off by {worst}"
        print(f"{name}: the folder answers as the file")
    config = json.loads((folder / "out" / "genai_config.json").read_text())
    check_config(folder / "out", config)


def check_config(folder: pathlib.Path, config):
    """Keys that are unknown or not supported are named; those that change nothing are let through."""

    def error(change) -> str:
        changed = json.loads(json.dumps(config))
        change(changed)
        (folder / "genai_config.json").write_text(json.dumps(changed))
        done = subprocess.run([PROBE, str(folder), "1", "1"], capture_output=True, text=True, timeout=300)
        return done.stderr if done.returncode else ""

    def at(path, value):
        def change(c):
            *parents, last = path.split(".")
            for p in parents:
                c = c.setdefault(p, {})
            c[last] = value
        return change

    refused = {
        "model.decoder.no_such_key": 1, "model.vision": {"filename": "x"}, "model.type": "whisper", "search.num_beams": 4, "extra": 1,
        "model.decoder.pipeline": [{"a": {}}], "model.decoder.inputs.past_names": "past_%d", "search.top_kk": 3,
        "model.decoder.sliding_window": {"window_size": 4}, "model.context_length": 0, "model.decoder.num_hidden_layers": 77,
        "model.decoder.filename": "other.onnx", "model.decoder.inputs.input_ids": "tokens", "model.decoder.session_options.nothing": 1,
        "search.max_length": 1 << 30, "model.eos_token_id": "x", "search.no_repeat_ngram_size": 2,
    }
    for path, value in refused.items():
        message = error(at(path, value))
        name = {"model.decoder.sliding_window": "slide_key_value_cache", "model.decoder.filename": "other.onnx",
                "model.decoder.inputs.input_ids": "tokens"}.get(path, path.rsplit(".", 1)[-1])
        assert name in message, f"{path}: '{name}' is not in: {message or 'no error'}"
    harmless = {
        "engine.dynamic_batching.block_size": 16, "search.early_stopping": False, "speculative.max_draft_tokens": 2,
        "model.decoder.session_options.intra_op_num_threads": 1, "model.eos_token_id": [1, 2], "search.chunk_size": 128,
        "model.decoder.sliding_window": {"window_size": 4, "slide_key_value_cache": False, "slide_inputs": False},
    }
    for path, value in harmless.items():
        message = error(at(path, value))
        assert not message, f"{path}: {message}"
    print("keys of genai_config.json: read or refused")


def main():
    with scratch() as folder:
        if sys.argv[2] == "formats":
            return check_formats(folder)
        if sys.argv[2] == "folders":
            return check_folders(folder)
        for name, model in MODELS.items():
            check_model(name, model, folder)
        check_refusals(folder)


if __name__ == "__main__":
    main()
