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

from networks import Model  # noqa: E402

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from scratch import scratch  # noqa: E402

SDX = sys.argv[1]
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + "the a cat dog sits runs on under mat tree fast slow big small".split() + ["##s", "##er", ".", "yes", "no"]
TEXTS = ["the cat sits on the mat.", "a dog", "big dogs runs faster under a small tree.", "slow"]
IDS = [[2, 5, 7, 9, 11, 5, 13, 21, 3], [2, 6, 8, 3], [2, 17, 8, 19, 10, 15, 20, 12, 6, 18, 14, 21, 3], [2, 16, 3]]
WIDTH, HEADS, FF, LAYERS, CONTEXT = 64, 4, 96, 3, 32
TYPES = {"f32": 0, "f16": 1}


KINDS = ("bert", "nomic-bert", "modern-bert", "jina-bert-v2", "jina-bert-v2 for code")
WINDOW, INTERVAL = 6, 2  # of ModernBERT: tokens seen, and which layers see all


class Encoder:
    def __init__(self, kind: str, seed: int, heads=HEADS):
        self.kind, self.heads, rng = kind, heads, np.random.default_rng(seed)
        self.nomic, self.modern, self.jina, self.code = (kind.startswith(k) for k in ("nomic", "modern", "jina", KINDS[4]))
        self.epsilon = 1e-5 if self.modern else 1e-12
        self.w = {}

        def matrix(name, *shape):
            self.w[name + ".weight"] = (rng.standard_normal(shape) * 1.2 / math.sqrt(shape[-1])).astype(np.float16).astype(np.float32)

        def vector(name, size, about):
            self.w[name] = (about + rng.standard_normal(size) * 0.3).astype(np.float32)

        def norm(name):
            vector(name + ".weight", WIDTH, 1.0)
            if not self.modern:
                vector(name + ".bias", WIDTH, 0.0)

        matrix("token_embd", len(WORDS), WIDTH)
        if not self.modern:
            matrix("token_types", 2, WIDTH)
        if kind == "bert":
            matrix("position_embd", CONTEXT, WIDTH)
        norm("token_embd_norm")
        for i in range(LAYERS):
            at = f"blk.{i}."
            joined = {"ffn_up_gate" if self.code else "ffn_up": (2 * FF, WIDTH)}
            sizes = {"ffn_up": (FF, WIDTH)} if kind in KINDS[:2] else joined
            sizes |= {"ffn_down": (WIDTH, FF), "attn_output": (WIDTH, WIDTH)}
            sizes |= {"attn_qkv": (3 * WIDTH, WIDTH)} if self.nomic or self.modern else {f"attn_{p}": (WIDTH, WIDTH) for p in "qkv"}
            sizes |= {"ffn_gate": (FF, WIDTH)} if self.nomic else {}
            for name, shape in sizes.items():
                matrix(at + name, *shape)
                if kind == "bert" or (self.jina and name not in joined):
                    vector(at + name + ".bias", shape[0], 0.0)
            for name in self.norms():
                if name != "attn_norm" or i > 0:
                    norm(at + name)
        if self.modern:
            norm("output_norm")

    def norms(self):
        if self.modern:
            return ["attn_norm", "ffn_norm"]
        return ["attn_output_norm", "layer_output_norm"] + (["attn_norm_2", "attn_q_norm", "attn_k_norm"] if self.code else [])

    def norm(self, x, name):
        if name + ".weight" not in self.w:
            return x
        x = x - x.mean(axis=-1, keepdims=True)
        x = x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + self.epsilon)
        return x * self.w[name + ".weight"] + self.w.get(name + ".bias", 0.0)

    def linear(self, x, name):
        y = x @ self.w[name + ".weight"].T.astype(np.float64)
        return y + self.w[name + ".bias"] if name + ".bias" in self.w else y

    def rotate(self, x, base):
        half = x.shape[-1] // 2
        angle = np.arange(len(x))[:, None, None] * (base ** (-np.arange(half) / half))
        a, b = x[..., :half], x[..., half:]
        return np.concatenate([a * np.cos(angle) - b * np.sin(angle), b * np.cos(angle) + a * np.sin(angle)], axis=-1)

    def slopes(self):
        """As the paper's authors have them: those of the next smaller power of two, and every other one of twice as many."""
        powers = lambda n: [2.0 ** (-8.0 * (i + 1) / n) for i in range(n)]
        least = 2 ** int(math.log2(self.heads))
        return np.array(powers(least) + powers(2 * least)[::2][: self.heads - least])

    def attention(self, x, layer, at):
        if self.nomic or self.modern:
            q, k, v = np.split(self.linear(x, at + "attn_qkv"), 3, axis=-1)
        else:
            q, k, v = (self.linear(x, at + f"attn_{p}") for p in "qkv")
        if self.code:
            q, k = self.norm(q, at + "attn_q_norm"), self.norm(k, at + "attn_k_norm")
        q, k, v = (t.reshape(len(x), self.heads, -1) for t in (q, k, v))
        local = self.modern and layer % INTERVAL != 0
        if self.nomic or self.modern:
            base = 1000.0 if self.nomic else 10000.0 if local else 160000.0
            q, k = self.rotate(q, base), self.rotate(k, base)
        scores = np.einsum("ihd,jhd->hij", q, k) / math.sqrt(WIDTH / self.heads)
        apart = np.abs(np.arange(len(x))[:, None] - np.arange(len(x))[None, :])
        if self.jina:
            scores = scores - self.slopes()[:, None, None] * apart
        if local:
            scores = np.where(apart <= WINDOW // 2, scores, -np.inf)
        p = np.exp(scores - scores.max(axis=-1, keepdims=True))
        p /= p.sum(axis=-1, keepdims=True)
        return self.linear(np.einsum("hij,jhd->ihd", p, v).reshape(len(x), -1), at + "attn_output")

    def feed_forward(self, x, at):
        gelu = lambda v: 0.5 * v * (1 + np.vectorize(math.erf)(v / math.sqrt(2)))
        up = self.linear(x, at + ("ffn_up_gate" if self.code else "ffn_up"))
        if self.nomic:
            gate = self.linear(x, at + "ffn_gate")
            return self.linear(gate / (1 + np.exp(-gate)) * up, at + "ffn_down")
        if self.kind != "bert":
            first, second = np.split(up, 2, axis=-1)
            return self.linear(first * gelu(second) if self.code else gelu(first) * second, at + "ffn_down")
        return self.linear(gelu(up), at + "ffn_down")

    def add_head(self, classes: int):
        """As the file's converter has them: a matrix behind the first token's vector, and the classes' matrix."""
        rng = np.random.default_rng(classes)
        for name, rows in (("cls", WIDTH), ("cls.output", classes)):
            self.w[name + ".weight"] = (rng.standard_normal((rows, WIDTH)) * 3 / math.sqrt(WIDTH)).astype(np.float16).astype(np.float32)
            self.w[name + ".bias"] = (rng.standard_normal(rows) * 0.3).astype(np.float32)
        if self.modern:
            self.w["cls.norm.weight"] = (1 + rng.standard_normal(WIDTH) * 0.3).astype(np.float32)

    def scores(self, ids, types):
        x = self.tokens(ids, types)
        y = self.linear(x.mean(axis=0) if self.modern else x[0], "cls")
        y = self.norm(0.5 * y * (1 + np.vectorize(math.erf)(y / math.sqrt(2))), "cls.norm") if self.modern else np.tanh(y)
        return self.linear(y, "cls.output")

    def tokens(self, ids, types=0):
        x = self.w["token_embd.weight"][ids].astype(np.float64)
        if not self.modern:
            x = x + self.w["token_types.weight"][types]
        if self.kind == "bert":
            x = x + self.w["position_embd.weight"][: len(ids)]
        x = self.norm(x, "token_embd_norm")
        for i in range(LAYERS):
            at = f"blk.{i}."
            if self.modern:
                x = x + self.attention(self.norm(x, at + "attn_norm"), i, at)
                x = x + self.feed_forward(self.norm(x, at + "ffn_norm"), at)
                continue
            y = self.norm(x + self.attention(x, i, at), at + "attn_output_norm")
            y = self.norm(x + y, at + "attn_norm_2") if self.code else y
            x = self.norm(y + self.feed_forward(y, at), at + "layer_output_norm")
        return self.norm(x, "output_norm")


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


# As converters write them: words begin with a mark, and what continues them has none.
VOCABULARY = {"tokenizer.ggml.model": "bert",
              "tokenizer.ggml.tokens": [w if w[0] == "[" else w[2:] if w.startswith("##") else "\u2581" + w for w in WORDS],
              "tokenizer.ggml.token_type": [3 if w[0] == "[" else 1 for w in WORDS], "tokenizer.ggml.unknown_token_id": 1,
              "tokenizer.ggml.cls_token_id": 2, "tokenizer.ggml.seperator_token_id": 3, "tokenizer.ggml.padding_token_id": 0}


def write_gguf(path: pathlib.Path, model: Encoder, pooling: int, change=None):
    a = model.kind
    keys = {"general.architecture": a, f"{a}.context_length": CONTEXT, f"{a}.embedding_length": WIDTH, f"{a}.block_count": LAYERS,
            f"{a}.feed_forward_length": FF, f"{a}.attention.head_count": model.heads, f"{a}.attention.layer_norm_epsilon": model.epsilon,
            f"{a}.attention.causal": False, f"{a}.pooling_type": pooling} | VOCABULARY
    if model.nomic:
        keys[f"{a}.rope.freq_base"] = 1000.0
    if model.modern:
        keys |= {f"{a}.rope.freq_base": 160000.0, f"{a}.rope.freq_base_swa": 10000.0, f"{a}.rope.scaling.type": "none",
                 f"{a}.attention.sliding_window": WINDOW, f"{a}.attention.sliding_window_pattern": INTERVAL}
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
MODERN = {"attn_qkv": "attn.Wqkv", "attn_output": "attn.Wo", "attn_norm": "attn_norm", "ffn_norm": "mlp_norm", "ffn_up": "mlp.Wi",
          "ffn_down": "mlp.Wo"}
JINA = NAMES | {"ffn_up": "mlp.gated_layers", "ffn_down": "mlp.wo", "layer_output_norm": "mlp.layernorm"}
CODE = NAMES | {"ffn_up_gate": "mlp.up_gated_layer", "ffn_down": "mlp.down_layer", "layer_output_norm": "layer_norm_2",
                "attn_norm_2": "layer_norm_1", "attn_q_norm": "attention.self.layer_norm_q", "attn_k_norm": "attention.self.layer_norm_k"}
NOMIC = {"attn_qkv": "attn.Wqkv", "attn_output": "attn.out_proj", "attn_output_norm": "norm1", "ffn_up": "mlp.fc11", "ffn_gate": "mlp.fc12",
         "ffn_down": "mlp.fc2", "layer_output_norm": "norm2"}
WHOLE = {"token_embd": "embeddings.word_embeddings", "token_types": "embeddings.token_type_embeddings",
         "position_embd": "embeddings.position_embeddings", "token_embd_norm": "embeddings.LayerNorm"}
WHOLE_MODERN = {"token_embd": "embeddings.tok_embeddings", "token_embd_norm": "embeddings.norm", "output_norm": "final_norm"}
LAYER_NAMES = dict(zip(KINDS, (("bert.", "encoder.layer", NAMES), ("", "encoder.layers", NOMIC), ("model.", "layers", MODERN),
                               ("", "encoder.layer", JINA), ("", "encoder.layer", CODE))))


def write_folder(folder: pathlib.Path, model: Encoder, change=None):
    """With NomicBERT's older keys, and names that begin with "bert." for BERT."""
    tensors = {}
    prefix, layers, names = LAYER_NAMES[model.kind]
    for name, values in model.w.items():
        part, end = name.rsplit(".", 1)
        if part.startswith("blk."):
            _, layer, part = part.split(".")
            own = f"{layers}.{layer}.{names[part]}"
        else:
            own = "emb_ln" if model.nomic and part == "token_embd_norm" else (WHOLE_MODERN if model.modern else WHOLE)[part]
        tensors[prefix + own + "." + end] = values
    if model.kind == "bert":
        tensors["bert.pooler.dense.weight"] = np.zeros((WIDTH, WIDTH), np.float32)
    bert = {"model_type": "bert", "hidden_size": WIDTH, "num_hidden_layers": LAYERS, "num_attention_heads": model.heads,
            "intermediate_size": FF, "max_position_embeddings": CONTEXT, "hidden_act": "gelu"}
    config = {"model_type": "nomic_bert", "n_embd": WIDTH, "n_layer": LAYERS, "n_head": HEADS, "n_inner": FF, "n_positions": CONTEXT,
              "layer_norm_epsilon": 1e-12, "activation_function": "swiglu", "rotary_emb_base": 1000, "rotary_emb_fraction": 1.0,
              "causal": False} if model.nomic else bert
    if model.modern:
        del config["hidden_act"]
        config |= {"model_type": "modernbert", "local_attention": WINDOW, "global_attn_every_n_layers": INTERVAL}
    if model.jina:
        config |= {"position_embedding_type": "alibi", "feed_forward_type": "geglu"}
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
    flags = [f for f in flags if f != "--normalize"] + ([] if "--normalize" in flags else ["--no-normalize"])
    command = [SDX, "embed", str(model), *flags]
    done = subprocess.run(command, input="\n".join(TEXTS) + "\n", capture_output=True, text=True, timeout=300)
    return np.array([json.loads(line)["embedding"] for line in done.stdout.splitlines()]) if done.returncode == 0 else done.stderr


def compare(name: str, made, expected):
    assert not isinstance(made, str), f"{name}: {made}"
    worst, spread = np.abs(made - expected).max(), np.std(expected)
    assert worst < 2e-5 * max(1.0, np.abs(expected).max()) and spread > 0.1, f"{name}: off by {worst}, spread {spread}"
    print(f"{name}: off by {worst:.1e}, spread {spread:.2f}", flush=True)


def check_numpy(root: pathlib.Path):
    for seed, name in enumerate(KINDS):
        model = Encoder(name, 5 + seed, 4 if seed < 4 else 2)
        tokens = [model.tokens(ids) for ids in IDS]
        mean, first = np.stack([t.mean(axis=0) for t in tokens]), np.stack([t[0] for t in tokens])
        write_folder(root / "folder", model)
        compare(f"{name} in a folder", embed(root / "folder"), mean)
        if model.code:
            continue  # files of it do not say which half is the gate
        for pooling, expected in ((1, mean), (2, first), (3, np.stack([t[-1] for t in tokens]))):
            write_gguf(root / "m.gguf", model, pooling)
            compare(f"{name}.gguf, pooling {pooling}", embed(root / "m.gguf"), expected)
        compare(f"{name}.gguf, --pooling cls", embed(root / "m.gguf", "--pooling", "cls"), first)
        compare(f"{name}.gguf, texts apart", embed(root / "m.gguf", "--pooling", "cls", "--batch", "1"), first)
    check_other_forms(root)


def check_other_forms(root: pathlib.Path):
    """What files of one network may say in other ways, and 6 heads, whose slopes are not those of a power of two."""
    global WIDTH

    def halves(keys, tensors):
        for i in range(LAYERS):
            both = tensors.pop(f"blk.{i}.ffn_up.weight")
            tensors[f"blk.{i}.ffn_gate.weight"], tensors[f"blk.{i}.ffn_up.weight"] = both[:FF], both[FF:]

    model = Encoder("jina-bert-v2", 20)
    mean = np.stack([model.tokens(ids).mean(axis=0) for ids in IDS])
    write_gguf(root / "m.gguf", model, 1, halves)
    compare("jina-bert-v2.gguf, two halves", embed(root / "m.gguf"), mean)
    model = Encoder("modern-bert", 21)
    mean = np.stack([model.tokens(ids).mean(axis=0) for ids in IDS])
    kinds = ["full_attention", "sliding_attention", "full_attention"]
    write_folder(root / "folder", model, lambda c, t: c.update({"layer_types": kinds, "global_attn_every_n_layers": 1}))
    compare("modern-bert, layers by name", embed(root / "folder"), mean)
    model = Encoder("nomic-bert", 23)
    mean = np.stack([model.tokens(ids).mean(axis=0) for ids in IDS])
    write_gguf(root / "m.gguf", model, 1, lambda k, t: k.update({"nomic-bert.context_length": 1 << 26}))
    compare("nomic-bert.gguf, an enormous context", embed(root / "m.gguf"), mean)
    WIDTH = 96
    model = Encoder("jina-bert-v2", 22, 6)
    mean = np.stack([model.tokens(ids).mean(axis=0) for ids in IDS])
    write_gguf(root / "m.gguf", model, 1)
    compare("jina-bert-v2.gguf, 6 heads", embed(root / "m.gguf"), mean)
    WIDTH = 64


def check_language_models(root: pathlib.Path):
    """Qwen3-Embedding and EmbeddingGemma: the last token's vector, and the mean of vectors that see to both sides, times matrices."""
    def write(model, pooling):
        model.file.set("pooling_type", pooling)
        for name, value in VOCABULARY.items():
            model.file.keys.append(key(name, value))
        model.file.write(root / "m.gguf")

    model = Model("qwen3", norms=True, size=32, rotary=32, eps=1e-6, seed=40)
    write(model, 3)
    last = np.stack([model.hidden(ids)[-1] for ids in IDS])
    compare("qwen3.gguf, last token", embed(root / "m.gguf"), last)
    short = last[:, :16] / np.linalg.norm(last[:, :16], axis=1, keepdims=True)
    compare("qwen3.gguf, 16 dimensions", embed(root / "m.gguf", "--normalize", "--dimensions", "16"), short)
    compare("qwen3.gguf, 16 dimensions as they are", embed(root / "m.gguf", "--dimensions", "16"), last[:, :16])
    message = embed(root / "m.gguf", "--dimensions", "65")
    assert isinstance(message, str) and "65 dimensions" in message, message
    model = Model("gemma3", named="gemma-embedding", bidirectional=True, layers=7, window=6, norms=True, size=32, rotary=32, base=1e6,
                  eps=1e-6, seed=41)
    rng = np.random.default_rng(42)
    matrices = [(rng.standard_normal(shape) / 8).astype(np.float32) for shape in ((96, 64), (64, 96))]
    for number, matrix in enumerate(matrices):
        model.file.add(f"dense_{number + 2}.weight", matrix.shape, matrix.tobytes(), 0)
    write(model, 1)
    mean = np.stack([model.hidden(ids).mean(axis=0) for ids in IDS])
    compare("gemma-embedding.gguf", embed(root / "m.gguf"), mean @ matrices[0].T @ matrices[1].T)


def check_refusals(root: pathlib.Path):
    model = Encoder("bert", 9)

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
    gguf("is a reranker", lambda k, t: k.update({"bert.pooling_type": 4}))
    gguf("bert.pooling_type", lambda k, t: k.update({"bert.pooling_type": 5}))
    gguf("attention.causal", lambda k, t: k.update({"bert.attention.causal": True}))
    gguf("attention.head_count", lambda k, t: k.update({"bert.attention.head_count": 0}))
    folder("model_type", lambda c, t: c.update({"model_type": "t5"}))
    folder("hidden_size", lambda c, t: c.pop("hidden_size"))
    folder("hidden_act", lambda c, t: c.update({"hidden_act": "relu"}))
    folder("position_embedding_type", lambda c, t: c.update({"position_embedding_type": "relative_key"}))
    folder("is_decoder", lambda c, t: c.update({"is_decoder": True}))
    folder("is a reranker", lambda c, t: t.update({"classifier.weight": np.zeros((2, 2), np.float32)}))
    folder("positions have vectors", lambda c, t: c.update({"max_position_embeddings": 99}))
    print("what cannot be read is refused by name")


def write_modules(folder: pathlib.Path, pooling: str, dense):
    """As sentence-transformers writes them."""
    modules = [{"idx": 0, "path": "", "type": "sentence_transformers.models.Transformer"},
               {"idx": 1, "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}]
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({f"pooling_mode_{pooling}": True}))
    for number, matrix in enumerate(dense):
        path = folder / f"{number + 2}_Dense"
        path.mkdir()
        header = json.dumps({"linear.weight": {"dtype": "F32", "shape": matrix.shape, "data_offsets": [0, matrix.nbytes]}}).encode()
        (path / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + matrix.tobytes())
        (path / "config.json").write_text(json.dumps({"bias": False, "activation_function": "torch.nn.modules.linear.Identity"}))
        modules.append({"idx": number + 2, "path": path.name, "type": "sentence_transformers.models.Dense"})
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "config_sentence_transformers.json").write_text(json.dumps({"prompts": {"query": "fast "}}))


def check_transformers(root: pathlib.Path):
    try:
        import torch
        import transformers as t
    except ImportError:
        return
    sizes = dict(vocab_size=len(WORDS), hidden_size=WIDTH, intermediate_size=FF, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
                 max_position_embeddings=CONTEXT)
    few = dict(num_key_value_heads=2, head_dim=32, attn_implementation="eager")
    qwen = t.Qwen3Config(**sizes, **few)
    gemma = t.Gemma3TextConfig(**sizes | {"num_hidden_layers": 7}, **few, use_bidirectional_attention=True, sliding_window=6,
                               query_pre_attn_scalar=24)
    modern = t.ModernBertConfig(**sizes, local_attention=WINDOW, pad_token_id=0, attn_implementation="eager")
    dense = [np.random.default_rng(7).standard_normal(shape).astype(np.float32) / 8 for shape in ((96, WIDTH), (48, 96))]
    for seed, (config, kind) in enumerate(((t.BertConfig(**sizes), t.BertModel), (t.RobertaConfig(**sizes), t.RobertaModel),
                                           (t.XLMRobertaConfig(**sizes, pad_token_id=0), t.XLMRobertaModel),
                                           (t.CamembertConfig(**sizes), t.CamembertModel), (t.NomicBertConfig(**sizes), t.NomicBertModel),
                                           (modern, t.ModernBertModel), (qwen, t.Qwen3Model), (gemma, t.Gemma3TextModel))):
        torch.manual_seed(seed)
        model = kind(config).float().eval()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter) * 0.15)
            folder = root / kind.__name__
            model.save_pretrained(folder)
            tokens = [model(torch.tensor([ids])).last_hidden_state[0].numpy() for ids in IDS]
            prompted = [model(torch.tensor([ids[:1] + [15] + ids[1:]])).last_hidden_state[0].numpy() for ids in IDS]
        write_vocabulary(folder)
        mean, last = np.stack([t.mean(axis=0) for t in tokens]), np.stack([t[-1] for t in tokens])
        compare(kind.__name__, embed(folder), last if config is qwen else mean)
        if config is qwen:
            write_modules(folder, "lasttoken", [])
            compare("Qwen3Model, modules", embed(folder), last)
            compare("Qwen3Model, prompt", embed(folder, "--prompt", "query"), np.stack([t[-1] for t in prompted]))
        if config is gemma:
            write_modules(folder, "mean_tokens", dense)
            compare("Gemma3TextModel, modules", embed(folder), mean @ dense[0].T @ dense[1].T)


def main():
    with scratch() as root:
        check_numpy(root)
        check_language_models(root)
        check_refusals(root)
        check_transformers(root)


if __name__ == "__main__":
    main()
