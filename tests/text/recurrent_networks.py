"""Language models whose texts have states, in numpy, token by token, with random weights; and their GGUF files."""

import math

import numpy as np

from networks import Model


def silu(x):
    return x / (1 + np.exp(-x))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


class Recurrent(Model):
    """Some layers have attention, the others something else."""

    def attends(self, layer: int) -> bool:
        return (layer + 1) % self.o["interval"] == 0

    def layer_weights(self, at: str):
        o = self.o
        self.norm_weights(at + "attn_norm")
        if self.attends(int(at.split(".")[1])):
            self.attention_weights(at)
        else:
            self.mixer_weights(at)
        self.norm_weights(at + o["second"].removesuffix(".weight"))
        if o["experts"]:
            self.expert_weights(at)
        else:
            self.feed_forward_weights(at)

    def attention_weights(self, at: str):
        o = self.o
        q, kv = o["heads"] * o["size"], o["kv"] * o["size"]
        self.tensor(at + "attn_q.weight", q * (2 if o.get("gated_attention") else 1), o["width"])
        self.tensor(at + "attn_k.weight", kv, o["width"])
        self.tensor(at + "attn_v.weight", kv, o["width"])
        if o["norms"]:
            for name in "qk":
                self.tensor(at + f"attn_{name}_norm.weight", o["size"], about=1.0)
        self.tensor(at + "attn_output.weight", o["width"], q)

    def linear(self, x, name: str):
        return x @ self.w[name + ".weight"].T.astype(np.float64)

    def attention(self, x, layer, at):
        o = self.o
        if not self.attends(layer):
            return self.mixer(x, at)
        n = len(x)
        q, k, v = (self.linear(x, at + "attn_" + c).reshape(n, o["heads"] if c == "q" else o["kv"], -1) for c in "qkv")
        gate = None
        if o.get("gated_attention"):
            q, gate = np.split(q, 2, axis=-1)
        if o["norms"]:
            q, k = self.norm(q, at + "attn_q_norm.weight"), self.norm(k, at + "attn_k_norm.weight")
        if self.rotated(layer):
            q, k = self.rotate(q, layer), self.rotate(k, layer)
        k, v = (np.repeat(t, o["heads"] // o["kv"], axis=1) for t in (k, v))
        scores = np.where(np.tri(n, dtype=bool), np.einsum("ihd,jhd->hij", q, k) * o.get("scale", 1 / math.sqrt(o["size"])), -np.inf)
        p = np.exp(scores - scores.max(axis=-1, keepdims=True))
        y = np.einsum("hij,jhd->ihd", p / p.sum(axis=-1, keepdims=True), v)
        if gate is not None:
            y = y * sigmoid(gate)
        return self.linear(y.reshape(n, -1), at + "attn_output")

    def convolved(self, x, name: str):
        """Each channel over the last tokens."""
        w = self.w[name + ".weight"].astype(np.float64)
        taps = w.shape[1]
        padded = np.concatenate([np.zeros((taps - 1, x.shape[1])), x])
        return sum(padded[i : i + len(x)] * w[:, i] for i in range(taps)) + self.w.get(name + ".bias", 0.0)


class GatedDelta(Recurrent):
    """Qwen3-Next, Qwen3.5."""

    def hyperparameters(self):
        super().hyperparameters()
        o, f = self.o, self.file
        for name, value in (("conv_kernel", 4), ("state_size", o["delta_key"]), ("group_count", o["delta_keys"]), ("time_step_rank", o["delta_heads"]),
                            ("inner_size", o["delta_heads"] * o["delta_value"])):
            f.set("ssm." + name, value)
        f.set("full_attention_interval", o["interval"])

    def mixer_weights(self, at: str):
        o = self.o
        keys, values, heads = o["delta_keys"] * o["delta_key"], o["delta_heads"] * o["delta_value"], o["delta_heads"]
        self.tensor(at + "attn_qkv.weight", 2 * keys + values, o["width"])
        self.tensor(at + "attn_gate.weight", values, o["width"])
        if self.a == "qwen3next":
            self.tensor(at + "ssm_ba.weight", 2 * heads, o["width"])
        else:
            self.tensor(at + "ssm_beta.weight", heads, o["width"])
            self.tensor(at + "ssm_alpha.weight", heads, o["width"])
        self.tensor(at + "ssm_a", heads, spread=0.1, about=-0.4)
        self.tensor(at + "ssm_dt.bias", heads)
        self.tensor(at + "ssm_conv1d.weight", 2 * keys + values, 4, kinds=("f32",), spread=0.7)
        self.tensor(at + "ssm_norm.weight", o["delta_value"], about=1.0)
        self.tensor(at + "ssm_out.weight", o["width"], values)

    def mixer(self, x, at):
        o, w, n = self.o, self.w, len(x)
        groups, heads, keys = o["delta_keys"], o["delta_heads"], o["delta_keys"] * o["delta_key"]
        if self.a == "qwen3next":  # betas and alphas of one key head, then of the next; neighbours share keys
            b, a = (t.reshape(n, -1) for t in np.split(self.linear(x, at + "ssm_ba").reshape(n, groups, -1), 2, axis=-1))
            key_of = np.arange(heads) // (heads // groups)
        else:
            b, a = self.linear(x, at + "ssm_beta"), self.linear(x, at + "ssm_alpha")
            key_of = np.arange(heads) % groups
        mixed = silu(self.convolved(self.linear(x, at + "attn_qkv"), at + "ssm_conv1d"))
        q, k, v = np.split(mixed, [keys, 2 * keys], axis=-1)
        unit = lambda t: t / np.sqrt((t * t).sum(axis=-1, keepdims=True) + 1e-6)
        q, k = (unit(t.reshape(n, groups, -1))[:, key_of] for t in (q, k))
        v = v.reshape(n, heads, -1)
        decay, rate = np.exp(w[at + "ssm_a"] * np.log1p(np.exp(a + w[at + "ssm_dt.bias"]))), sigmoid(b)
        state, y = np.zeros((heads, q.shape[-1], v.shape[-1])), np.zeros(v.shape)
        for t in range(n):
            state *= decay[t][:, None, None]
            change = rate[t][:, None] * (v[t] - np.einsum("hkv,hk->hv", state, k[t]))
            state += np.einsum("hk,hv->hkv", k[t], change)
            y[t] = np.einsum("hkv,hk->hv", state, q[t]) / math.sqrt(q.shape[-1])
        y = self.norm(y, at + "ssm_norm.weight").reshape(n, -1) * silu(self.linear(x, at + "attn_gate"))
        return self.linear(y, at + "ssm_out")


class ShortConvolutions(Recurrent):
    """LFM2."""

    def hyperparameters(self):
        super().hyperparameters()
        self.file.set("shortconv.l_cache", 3)

    def weights(self):
        super().weights()
        tensors, self.file.tensors = self.file.tensors, []
        for name, *rest in tensors:  # the last norm is named after the embedding
            self.file.add(name.replace("output_norm", "token_embd_norm"), *rest)

    def mixer_weights(self, at: str):
        width = self.o["width"]
        self.tensor(at + "shortconv.in_proj.weight", 3 * width, width)
        self.tensor(at + "shortconv.conv.weight", width, 3, kinds=("f32",), spread=0.7)
        self.tensor(at + "shortconv.out_proj.weight", width, width)

    def mixer(self, x, at):
        first, last, values = np.split(self.linear(x, at + "shortconv.in_proj"), 3, axis=-1)
        return self.linear(last * self.convolved(first * values, at + "shortconv.conv"), at + "shortconv.out_proj")


class Mamba2(Recurrent):
    """Granite 4; Falcon-H1, beside attention; Mamba 2 and Nemotron-H, in layers of one part each."""

    def kind(self, layer: int) -> str:
        return self.o["pattern_of"][layer % len(self.o["pattern_of"])]  # m: scan, a: attention, b: both, f: feed-forward part

    def rotated(self, layer):
        return self.o.get("rotates", True)

    def hyperparameters(self):
        super().hyperparameters()
        o, f = self.o, self.file
        if self.a == "mamba2":
            f.keys = [k for k in f.keys if b"head_count" not in k and b"feed_forward" not in k and b"rope" not in k]
            f.set("attention.head_count", 0)
            f.set("feed_forward_length", 0)
        if self.a in ("granitehybrid", "nemotron_h"):
            f.keys = [k for k in f.keys if b"head_count_kv" not in k]
            f.set("attention.head_count_kv", [o["kv"] if self.kind(i) in "ab" else 0 for i in range(o["layers"])])
        if self.a == "nemotron_h":
            f.keys = [k for k in f.keys if b"feed_forward" not in k]
            f.set("feed_forward_length", [o["ff"] if self.kind(i) == "f" else 0 for i in range(o["layers"])])
        for name, value in (("conv_kernel", 4), ("state_size", o["state"]), ("group_count", o["scan_groups"]), ("time_step_rank", o["scan_heads"]),
                            ("inner_size", o["scan_heads"] * o["scan_size"])):
            f.set("ssm." + name, value)

    def layer_weights(self, at: str):
        kind = self.kind(int(at.split(".")[1]))
        self.norm_weights(at + "attn_norm")
        if kind in "ab":
            self.attention_weights(at)
        if kind in "mb":
            self.mixer_weights(at)
        if self.o.get("single"):
            return self.feed_forward_weights(at) if kind == "f" else None
        self.norm_weights(at + "ffn_norm")
        return self.expert_weights(at) if self.o["experts"] else self.feed_forward_weights(at)

    def mixer_weights(self, at: str):
        o = self.o
        inner, keys, heads = o["scan_heads"] * o["scan_size"], o["scan_groups"] * o["state"], o["scan_heads"]
        self.tensor(at + "ssm_in.weight", 2 * inner + 2 * keys + heads, o["width"])
        self.tensor(at + "ssm_conv1d.weight", inner + 2 * keys, 4, kinds=("f32",), spread=0.7)
        self.tensor(at + "ssm_conv1d.bias", inner + 2 * keys)
        self.tensor(at + "ssm_dt.bias", heads)
        for name, about in (("ssm_a", -0.5), ("ssm_d", 0.6)):
            self.tensor(at + name, heads, 1, kinds=("f32",), spread=0.05, about=about)
        if o.get("scan_norm", True):
            self.tensor(at + "ssm_norm.weight", o["scan_groups"], inner // o["scan_groups"], kinds=("f32",), about=1.0)
        self.tensor(at + "ssm_out.weight", o["width"], inner)

    def attention(self, x, layer, at):
        kind, y = self.kind(layer), 0.0
        if kind in "ab":
            y = y + super().attention(x, layer, at)
        return y + self.mixer(x, at) if kind in "mb" else y

    def attends(self, layer: int) -> bool:
        return True  # where it is asked

    def mixer(self, x, at):
        o, w, n = self.o, self.w, len(x)
        heads, groups, state = o["scan_heads"], o["scan_groups"], o["state"]
        inner = heads * o["scan_size"]
        gate, mixed, time = np.split(self.linear(x, at + "ssm_in"), [inner, 2 * inner + 2 * groups * state], axis=-1)
        v, k, q = np.split(silu(self.convolved(mixed, at + "ssm_conv1d")), [inner, inner + groups * state], axis=-1)
        k, q = (np.repeat(t.reshape(n, groups, state), heads // groups, axis=1) for t in (k, q))
        v = v.reshape(n, heads, -1)
        step = np.log1p(np.exp(time + w[at + "ssm_dt.bias"]))
        if self.a == "nemotron_h":
            step = np.maximum(step, 0.001)
        decay = np.exp(step * w[at + "ssm_a"][:, 0])
        s, y = np.zeros((heads, state, v.shape[-1])), np.zeros(v.shape)
        for t in range(n):
            s = s * decay[t][:, None, None] + np.einsum("hk,hv->hkv", k[t] * step[t][:, None], v[t])
            y[t] = np.einsum("hkv,hk->hv", s, q[t]) + w[at + "ssm_d"] * v[t]
        y = y.reshape(n, -1) * silu(gate)
        if o.get("scan_norm", True):
            y = y.reshape(n, groups, -1)
            y = y / np.sqrt((y * y).mean(axis=-1, keepdims=True) + o["eps"]) * w[at + "ssm_norm.weight"]
        return self.linear(y.reshape(n, -1), at + "ssm_out")

    def hidden(self, ids):
        if not self.o.get("single"):
            return super().hidden(ids)
        x = self.w["token_embd.weight"][ids].astype(np.float64)
        for i in range(self.o["layers"]):
            at = f"blk.{i}."
            normed = self.norm(x, at + "attn_norm.weight")
            x = x + (self.feed_forward(normed, at) if self.kind(i) == "f" else self.attention(normed, i, at))
        return self.norm(x, "output_norm.weight")


DELTA = dict(second="post_attention_norm.weight", gated_attention=True, norms=True, size=32, rotary=8, base=1e7, eps=1e-6, tied=False, interval=4,
             layers=5, delta_keys=2, delta_heads=6, delta_key=16, delta_value=24)
SCAN = dict(scan_heads=8, scan_size=16, scan_groups=2, state=24, layers=4)
GRANITE = SCAN | dict(pattern_of="mam", embedding_scale=12.0, residual_scale=0.22, logit_scale=1 / 6.0, scale=0.25, permute=True, rotates=False, tied=True,
                      keys={"embedding_scale": 12.0, "residual_scale": 0.22, "logit_scale": 6.0, "attention.scale": 0.25, "rope.scaling.finetuned": False})
MODELS = {
    "qwen3next": lambda: GatedDelta("qwen3next", **DELTA | dict(delta_value=32), experts=8, used=3, shared=64, kinds=("f32", "q8_0"), seed=70),
    "qwen35": lambda: GatedDelta("qwen35", **DELTA, kinds=("f32", "f16"), seed=71),
    "qwen35, one key each": lambda: GatedDelta("qwen35", **DELTA | dict(delta_keys=6, interval=2), seed=72),
    "qwen35moe": lambda: GatedDelta("qwen35moe", **DELTA, experts=6, used=2, shared=96, seed=73),
    "lfm2": lambda: ShortConvolutions("lfm2", norms=True, interval=3, layers=6, base=1e6, tied=True, kinds=("f32", "q8_0"), seed=74),
    "granitehybrid": lambda: Mamba2("granitehybrid", **GRANITE, kinds=("f32", "f16"), seed=75),
    "granitehybrid, experts": lambda: Mamba2("granitehybrid", **GRANITE, experts=5, used=2, shared=48, seed=76),
    "mamba2": lambda: Mamba2("mamba2", **SCAN, pattern_of="m", single=True, tied=False, seed=77),
    "falcon-h1": lambda: Mamba2("falcon-h1", **SCAN, pattern_of="b", scan_norm=False, base=1e11, tied=False, seed=78),
    "nemotron_h": lambda: Mamba2("nemotron_h", **SCAN | dict(layers=6), pattern_of="mfaf", single=True, gated=False, activation="relu2", rotates=False,
                                 tied=False, seed=79),
}
