#!/usr/bin/env python3
"""Tiny random models of every architecture, written as GGUF files, against the architecture in numpy.

usage: architectures.py LANGUAGE_PROBE architectures|formats|folders

The networks are those of networks.py and recurrent_networks.py. "formats" compares the values of all block formats with the package gguf, through networks that are
one table. "folders" converts models into folders of onnxruntime-genai, and compares these. Exit code 77: numpy, or gguf, is missing.
"""

import json
import math
import pathlib
import subprocess
import sys

try:
    import numpy as np
except ImportError:
    sys.exit(77)

import recurrent_networks  # noqa: E402
from networks import MODELS, Model, key  # noqa: E402

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from scratch import scratch  # noqa: E402

PROBE = sys.argv[1]


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
        f.keys[0] = key("general.architecture", "rwkv7")

    def other_type(f):
        name, shape, raw, _ = f.tensors[0]
        f.tensors[0] = (name, shape, raw, 16)

    cases = {
        "blk.1.ffn_up.weight": without("blk.1.ffn_up.weight"),
        "token_embd.weight": without("token_embd.weight"),
        "'rwkv7'": architecture,
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
    for name in ("llama, types mixed", "llama, experts apart", "qwen2", "qwen2moe", "qwen3", "gemma2", "gemma3", "gpt-oss", "granite", "smollm3", "olmo2, windows, yarn",
                 "command-r, norms", "cohere2", "starcoder2", "glm4", "hunyuan-dense", "mistral3", "granitemoe", "phi3", "phi3, short factors"):
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
        for name, make in recurrent_networks.MODELS.items():
            check_model(name, make(), folder)
        check_refusals(folder)


if __name__ == "__main__":
    main()
