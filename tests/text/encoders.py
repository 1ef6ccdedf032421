#!/usr/bin/env python3
"""Tiny random encoders as GGUF files and as folders of transformers, against the networks in numpy, and against transformers itself.

usage: encoders.py SDX

Exit code 77: numpy is missing. Where torch and transformers are installed, folders that transformers writes are compared too.
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

SDX = sys.argv[1]
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + "the a cat dog sits runs on under mat tree fast slow big small".split() + ["##s", "##er", "."]
TEXTS = ["the cat sits on the mat.", "a dog", "big dogs runs faster under a small tree.", "slow"]
IDS = [[2, 5, 7, 9, 11, 5, 13, 21, 3], [2, 6, 8, 3], [2, 17, 8, 19, 10, 15, 20, 12, 6, 18, 14, 21, 3], [2, 16, 3]]
WIDTH, HEADS, FF, LAYERS, CONTEXT = 64, 4, 96, 3, 32
TYPES = {"f32": 0, "f16": 1}


class Encoder:
    def __init__(self, nomic: bool, seed: int):
        self.nomic, rng = nomic, np.random.default_rng(seed)
        self.w = {}

        def matrix(name, *shape):
            self.w[name + ".weight"] = (rng.standard_normal(shape) * 1.2 / math.sqrt(shape[-1])).astype(np.float16).astype(np.float32)

        def vector(name, size, about):
            self.w[name] = (about + rng.standard_normal(size) * 0.3).astype(np.float32)

        def norm(name):
            vector(name + ".weight", WIDTH, 1.0)
            vector(name + ".bias", WIDTH, 0.0)

        matrix("token_embd", len(WORDS), WIDTH)
        matrix("token_types", 2, WIDTH)
        if not nomic:
            matrix("position_embd", CONTEXT, WIDTH)
        norm("token_embd_norm")
        for i in range(LAYERS):
            at = f"blk.{i}."
            sizes = {"ffn_up": (FF, WIDTH), "ffn_down": (WIDTH, FF), "attn_output": (WIDTH, WIDTH)}
            sizes |= {"attn_qkv": (3 * WIDTH, WIDTH), "ffn_gate": (FF, WIDTH)} if nomic else {f"attn_{p}": (WIDTH, WIDTH) for p in "qkv"}
            for name, shape in sizes.items():
                matrix(at + name, *shape)
                if not nomic:
                    vector(at + name + ".bias", shape[0], 0.0)
            norm(at + "attn_output_norm")
            norm(at + "layer_output_norm")

    def norm(self, x, name):
        x = x - x.mean(axis=-1, keepdims=True)
        x = x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + 1e-12)
        return x * self.w[name + ".weight"] + self.w[name + ".bias"]

    def linear(self, x, name):
        y = x @ self.w[name + ".weight"].T.astype(np.float64)
        return y + self.w[name + ".bias"] if name + ".bias" in self.w else y

    def rotate(self, x):
        half = x.shape[-1] // 2
        angle = np.arange(len(x))[:, None, None] * (1000.0 ** (-np.arange(half) / half))
        a, b = x[..., :half], x[..., half:]
        return np.concatenate([a * np.cos(angle) - b * np.sin(angle), b * np.cos(angle) + a * np.sin(angle)], axis=-1)

    def attention(self, x, at):
        if self.nomic:
            q, k, v = np.split(self.linear(x, at + "attn_qkv"), 3, axis=-1)
        else:
            q, k, v = (self.linear(x, at + f"attn_{p}") for p in "qkv")
        q, k, v = (t.reshape(len(x), HEADS, -1) for t in (q, k, v))
        if self.nomic:
            q, k = self.rotate(q), self.rotate(k)
        scores = np.einsum("ihd,jhd->hij", q, k) / math.sqrt(WIDTH / HEADS)
        p = np.exp(scores - scores.max(axis=-1, keepdims=True))
        p /= p.sum(axis=-1, keepdims=True)
        return self.linear(np.einsum("hij,jhd->ihd", p, v).reshape(len(x), -1), at + "attn_output")

    def feed_forward(self, x, at):
        up = self.linear(x, at + "ffn_up")
        if self.nomic:
            gate = self.linear(x, at + "ffn_gate")
            return self.linear(gate / (1 + np.exp(-gate)) * up, at + "ffn_down")
        return self.linear(0.5 * up * (1 + np.vectorize(math.erf)(up / math.sqrt(2))), at + "ffn_down")

    def tokens(self, ids):
        x = self.w["token_embd.weight"][ids].astype(np.float64) + self.w["token_types.weight"][0]
        if not self.nomic:
            x = x + self.w["position_embd.weight"][: len(ids)]
        x = self.norm(x, "token_embd_norm")
        for i in range(LAYERS):
            at = f"blk.{i}."
            x = self.norm(x + self.attention(x, at), at + "attn_output_norm")
            x = self.norm(x + self.feed_forward(x, at), at + "layer_output_norm")
        return x


def text(value: str) -> bytes:
    raw = value.encode()
    return struct.pack("<Q", len(raw)) + raw


def key(name: str, value) -> bytes:
    if isinstance(value, list):
        kind, write = (8, text) if isinstance(value[0], str) else (5, lambda v: struct.pack("<i", v))
        return text(name) + struct.pack("<IIQ", 9, kind, len(value)) + b"".join(write(v) for v in value)
    if isinstance(value, bool):
        return text(name) + struct.pack("<IB", 7, value)
    if isinstance(value, int):
        return text(name) + struct.pack("<II", 4, value)
    if isinstance(value, float):
        return text(name) + struct.pack("<If", 6, value)
    return text(name) + struct.pack("<I", 8) + text(value)


def write_gguf(path: pathlib.Path, model: Encoder, pooling: int, change=None):
    a = "nomic-bert" if model.nomic else "bert"
    keys = {"general.architecture": a, f"{a}.context_length": CONTEXT, f"{a}.embedding_length": WIDTH, f"{a}.block_count": LAYERS,
            f"{a}.feed_forward_length": FF, f"{a}.attention.head_count": HEADS, f"{a}.attention.layer_norm_epsilon": 1e-12,
            f"{a}.attention.causal": False, f"{a}.pooling_type": pooling, "tokenizer.ggml.model": "bert",
            # As converters write them: words begin with a mark, and what continues them has none.
            "tokenizer.ggml.tokens": [w if w[0] == "[" else w[2:] if w.startswith("##") else "\u2581" + w for w in WORDS],
            "tokenizer.ggml.token_type": [3 if w[0] == "[" else 1 for w in WORDS], "tokenizer.ggml.unknown_token_id": 1,
            "tokenizer.ggml.cls_token_id": 2, "tokenizer.ggml.seperator_token_id": 3, "tokenizer.ggml.padding_token_id": 0}
    if model.nomic:
        keys[f"{a}.rope.freq_base"] = 1000.0
    tensors = dict(model.w)
    if change:
        change(keys, tensors)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys)) + b"".join(key(n, v) for n, v in keys.items())
    data = b""
    for name, values in tensors.items():
        data += b"\0" * (-len(data) % 32)
        kind = "f16" if len(values.shape) > 1 and "position" not in name else "f32"
        head += text(name) + struct.pack("<I", len(values.shape)) + struct.pack(f"<{len(values.shape)}Q", *reversed(values.shape))
        head += struct.pack("<IQ", TYPES[kind], len(data))
        data += values.astype(np.float16 if kind == "f16" else np.float32).tobytes()
    path.write_bytes(head + b"\0" * (-len(head) % 32) + data)


def write_vocabulary(folder: pathlib.Path):
    (folder / "vocab.txt").write_text("\n".join(WORDS) + "\n")
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "BertTokenizer", "do_lower_case": True}))


NAMES = {"attn_q": "attention.self.query", "attn_k": "attention.self.key", "attn_v": "attention.self.value",
         "attn_output": "attention.output.dense", "attn_output_norm": "attention.output.LayerNorm", "ffn_up": "intermediate.dense",
         "ffn_down": "output.dense", "layer_output_norm": "output.LayerNorm"}
NOMIC = {"attn_qkv": "attn.Wqkv", "attn_output": "attn.out_proj", "attn_output_norm": "norm1", "ffn_up": "mlp.fc11", "ffn_gate": "mlp.fc12",
         "ffn_down": "mlp.fc2", "layer_output_norm": "norm2"}
WHOLE = {"token_embd": "embeddings.word_embeddings", "token_types": "embeddings.token_type_embeddings",
         "position_embd": "embeddings.position_embeddings", "token_embd_norm": "embeddings.LayerNorm"}


def write_folder(folder: pathlib.Path, model: Encoder, change=None):
    """With NomicBERT's older keys, and names that begin with "bert." for the other."""
    tensors = {}
    for name, values in model.w.items():
        part, end = name.rsplit(".", 1)
        if part.startswith("blk."):
            _, layer, part = part.split(".")
            own = f"encoder.layers.{layer}.{NOMIC[part]}" if model.nomic else f"encoder.layer.{layer}.{NAMES[part]}"
        else:
            own = "emb_ln" if model.nomic and part == "token_embd_norm" else WHOLE[part]
        tensors[("" if model.nomic else "bert.") + own + "." + end] = values
    if not model.nomic:
        tensors["bert.pooler.dense.weight"] = np.zeros((WIDTH, WIDTH), np.float32)
    config = {"model_type": "nomic_bert", "n_embd": WIDTH, "n_layer": LAYERS, "n_head": HEADS, "n_inner": FF, "n_positions": CONTEXT,
              "layer_norm_epsilon": 1e-12, "activation_function": "swiglu", "rotary_emb_base": 1000, "rotary_emb_fraction": 1.0,
              "causal": False} if model.nomic else {
                  "model_type": "bert", "hidden_size": WIDTH, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "intermediate_size": FF,
                  "max_position_embeddings": CONTEXT, "hidden_act": "gelu"}
    if change:
        change(config, tensors)
    header, data = {}, b""
    for name, values in tensors.items():
        header[name] = {"dtype": "F32", "shape": list(values.shape), "data_offsets": [len(data), len(data) + values.nbytes]}
        data += np.ascontiguousarray(values, np.float32).tobytes()
    raw = json.dumps(header).encode()
    folder.mkdir(exist_ok=True)
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(raw)) + raw + data)
    (folder / "config.json").write_text(json.dumps(config))
    write_vocabulary(folder)


def embed(model: pathlib.Path, *flags):
    command = [SDX, "embed", str(model), "--no-normalize", *flags]
    done = subprocess.run(command, input="\n".join(TEXTS) + "\n", capture_output=True, text=True, timeout=300)
    return np.array([json.loads(line)["embedding"] for line in done.stdout.splitlines()]) if done.returncode == 0 else done.stderr


def compare(name: str, made, expected):
    assert not isinstance(made, str), f"{name}: {made}"
    worst, spread = np.abs(made - expected).max(), np.std(expected)
    assert worst < 2e-5 and spread > 0.1, f"{name}: off by {worst}, spread {spread}"
    print(f"{name}: off by {worst:.1e}, spread {spread:.2f}", flush=True)


def check_numpy(root: pathlib.Path):
    for nomic in (False, True):
        model = Encoder(nomic, 5 + nomic)
        tokens = [model.tokens(ids) for ids in IDS]
        mean, first = np.stack([t.mean(axis=0) for t in tokens]), np.stack([t[0] for t in tokens])
        name = "nomic-bert" if nomic else "bert"
        for pooling, expected in ((1, mean), (2, first), (3, np.stack([t[-1] for t in tokens]))):
            write_gguf(root / "m.gguf", model, pooling)
            compare(f"{name}.gguf, pooling {pooling}", embed(root / "m.gguf"), expected)
        compare(f"{name}.gguf, --pooling cls", embed(root / "m.gguf", "--pooling", "cls"), first)
        write_folder(root / "folder", model)
        compare(f"{name} in a folder", embed(root / "folder"), mean)


def check_refusals(root: pathlib.Path):
    model = Encoder(False, 9)

    def gguf(part, change):
        write_gguf(root / "bad.gguf", model, 1, change)
        message = embed(root / "bad.gguf")
        assert isinstance(message, str) and part in message, f"'{part}' is not in: {message}"

    def folder(part, change):
        write_folder(root / "bad", model, change)
        message = embed(root / "bad")
        assert isinstance(message, str) and part in message, f"'{part}' is not in: {message}"

    gguf("no encoder", lambda k, t: k.update({"general.architecture": "t5encoder"}))
    gguf("bert.block_count", lambda k, t: k.pop("bert.block_count"))
    gguf("lacks the tensor 'blk.1.ffn_up.weight'", lambda k, t: t.pop("blk.1.ffn_up.weight"))
    gguf("'cls.weight' is not known", lambda k, t: t.update({"cls.weight": np.zeros((2, 2), np.float32)}))
    gguf("rerankers", lambda k, t: k.update({"bert.pooling_type": 4}))
    gguf("attention.causal", lambda k, t: k.update({"bert.attention.causal": True}))
    gguf("attention.head_count", lambda k, t: k.update({"bert.attention.head_count": 0}))
    folder("model_type", lambda c, t: c.update({"model_type": "t5"}))
    folder("hidden_size", lambda c, t: c.pop("hidden_size"))
    folder("hidden_act", lambda c, t: c.update({"hidden_act": "relu"}))
    folder("position_embedding_type", lambda c, t: c.update({"position_embedding_type": "relative_key"}))
    folder("is_decoder", lambda c, t: c.update({"is_decoder": True}))
    folder("classifier.weight", lambda c, t: t.update({"classifier.weight": np.zeros((2, 2), np.float32)}))
    folder("positions have vectors", lambda c, t: c.update({"max_position_embeddings": 99}))
    print("what cannot be read is refused by name")


def check_transformers(root: pathlib.Path):
    try:
        import torch
        import transformers as t
    except ImportError:
        return
    sizes = dict(vocab_size=len(WORDS), hidden_size=WIDTH, intermediate_size=FF, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
                 max_position_embeddings=CONTEXT)
    for seed, (config, kind) in enumerate(((t.BertConfig(**sizes), t.BertModel), (t.RobertaConfig(**sizes), t.RobertaModel),
                                           (t.XLMRobertaConfig(**sizes, pad_token_id=0), t.XLMRobertaModel),
                                           (t.CamembertConfig(**sizes), t.CamembertModel), (t.NomicBertConfig(**sizes), t.NomicBertModel))):
        torch.manual_seed(seed)
        model = kind(config).float().eval()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter) * 0.15)
            folder = root / kind.__name__
            model.save_pretrained(folder)
            expected = np.stack([model(torch.tensor([ids])).last_hidden_state[0].numpy().mean(axis=0) for ids in IDS])
        write_vocabulary(folder)
        compare(kind.__name__, embed(folder), expected)


def main():
    with scratch() as root:
        check_numpy(root)
        check_refusals(root)
        check_transformers(root)


if __name__ == "__main__":
    main()
