"""mlx_client.py mlx_lm: mlx-lm, unchanged, on tiny language models: generation, caches, quantisation, adapters. Prints what comes out as JSON. Which
`mlx.core` it uses is decided by who starts it: Python, or `python -m sardonyx.as_mlx`."""

import contextlib
import io
import json
import logging
import os
import sys
from pathlib import Path
from types import SimpleNamespace

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from scratch import scratch  # noqa: E402

os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="error", TOKENIZERS_PARALLELISM="false")
import mlx.core as mx  # noqa: E402
import numpy as np  # noqa: E402
from tiny_folders import WORDS, write_causal  # noqa: E402

PROMPTS = ["the quick brown fox", "my small green house near the sea", "he likes"]


def spoken(model, tokenizer, prompt, **settings):
    """Text, tokens, and the chances that the model gave them."""
    from mlx_lm import stream_generate

    parts = list(stream_generate(model, tokenizer, prompt, max_tokens=16, **settings))
    return "".join(p.text for p in parts), [p.token for p in parts], [float(p.logprobs[p.token]) for p in parts]


def generation(folder):
    from mlx_lm import batch_generate, generate, load
    from mlx_lm.models import cache
    from mlx_lm.sample_utils import make_logits_processors, make_sampler

    texts, scores = [], []
    for kind in ("llama", "qwen2", "qwen3"):
        write_causal(folder / kind, kind)
        model, tokenizer = load(str(folder / kind))
        chat = tokenizer.apply_chat_template([{"role": "user", "content": PROMPTS[0]}], add_generation_prompt=True)
        narrow = {"kv_bits": 4 if kind == "qwen3" else 8, "kv_group_size": 32, "quantized_kv_start": 0}
        ways = [{}, {"max_kv_size": 8}, narrow, {"prefill_step_size": 2},
                {"logits_processors": make_logits_processors({7: 2.0}, 1.3, 10)}, {"sampler": make_sampler(temp=0.8, top_p=0.9, top_k=20)},
                {"sampler": make_sampler(temp=1.0, min_p=0.05)}]  # fmt: skip
        for settings in ways:
            mx.random.seed(7)
            text, tokens, chances = spoken(model, tokenizer, chat, **settings)
            texts.append([kind, sorted(settings), text, tokens])
            scores.append(chances)
        texts.append(generate(model, tokenizer, PROMPTS[1], max_tokens=8))
        batch = batch_generate(model, tokenizer, [tokenizer.encode(p) for p in PROMPTS], max_tokens=8)
        texts.append(batch.texts)
        kept = cache.make_prompt_cache(model)
        spoken(model, tokenizer, PROMPTS[2], prompt_cache=kept)
        cache.save_prompt_cache(str(folder / "kept.safetensors"), kept, {"model": kind})
        loaded, said = cache.load_prompt_cache(str(folder / "kept.safetensors"), return_metadata=True)
        text, tokens, chances = spoken(model, tokenizer, PROMPTS[0], prompt_cache=loaded)
        texts.append([said, text, tokens])
        scores.append(chances)
    draft, _ = load(str(folder / "llama"))
    text, tokens, chances = spoken(model, tokenizer, PROMPTS[0], draft_model=draft, num_draft_tokens=2)
    return texts + [[text, tokens]], scores + [chances]


def quantised(folder):
    """mlx_lm.convert, to weights of 4 and 8 bits and back to plain ones."""
    from mlx_lm import convert, load

    texts, scores = [], []
    for name, settings in {"4": {"q_bits": 4, "q_group_size": 32}, "8": {"q_bits": 8, "q_group_size": 64}, "mxfp4": {"q_mode": "mxfp4"}}.items():
        path = folder / f"llama-{name}"
        convert(str(folder / "llama"), str(path), quantize=True, **settings)
        model, tokenizer = load(str(path))
        text, tokens, chances = spoken(model, tokenizer, PROMPTS[1])
        texts.append([name, text, tokens, sorted(p.name for p in path.iterdir())])
        scores.append(chances)
    convert(str(folder / "llama-8"), str(folder / "llama-plain"), dequantize=True)
    text, tokens, chances = spoken(*load(str(folder / "llama-plain")), PROMPTS[1])
    return texts + [[text, tokens]], scores + [chances]


def adapters(folder):
    """mlx_lm.lora trains adapters, which are loaded again, fused with the model, and used."""
    from mlx_lm import fuse, load, lora

    dice = np.random.default_rng(3)
    lines = [json.dumps({"text": " ".join(dice.choice(WORDS, 12))}) for _ in range(16)]
    data = folder / "data"
    data.mkdir()
    for name in ("train", "valid", "test"):
        (data / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    texts, scores = [], []
    for kind, model, optimizer in (("lora", "llama", "adam"), ("dora", "qwen2", "adamw"), ("full", "qwen3", "sgd"), ("lora", "llama-4", "adam")):
        path = folder / f"adapters-{kind}-{model}"
        losses = []
        report = SimpleNamespace(on_train_loss_report=lambda i: losses.append(i["train_loss"]), on_val_loss_report=lambda i: losses.append(i["val_loss"]))
        settings = {"model": str(folder / model), "data": str(data), "train": True, "fine_tune_type": kind, "optimizer": optimizer, "iters": 6,
                    "batch_size": 4, "steps_per_report": 2, "steps_per_eval": 3, "num_layers": 2, "adapter_path": str(path), "learning_rate": 1e-3,
                    "grad_checkpoint": kind == "lora", "lora_parameters": {"rank": 4, "dropout": 0.0, "scale": 8.0}}  # fmt: skip
        mx.random.seed(1)
        np.random.seed(1)
        asked = SimpleNamespace(**{**lora.CONFIG_DEFAULTS, **settings})
        base, tokenizer = load(str(folder / model))
        lora.train_model(asked, base, *lora.load_dataset(asked, tokenizer)[:2], report)
        tuned, tokenizer = load(str(folder / model), adapter_path=str(path))
        text, tokens, chances = spoken(tuned, tokenizer, PROMPTS[0])
        texts.append([kind, text, tokens, sorted(p.name for p in path.iterdir())])
        scores += [losses, chances]
        if kind != "full":
            sys.argv = ["fuse", "--model", str(folder / model), "--adapter-path", str(path), "--save-path", str(folder / "fused"), "--dequantize"]
            fuse.main()
            text, tokens, chances = spoken(*load(str(folder / "fused")), PROMPTS[0])
            texts.append([text, tokens])
            scores.append(chances)
    return texts, scores


def main():
    logging.disable(logging.WARNING)
    texts, scores = [], []
    with scratch() as folder, contextlib.redirect_stdout(io.StringIO()):
        for part in (generation, quantised, adapters):
            said, chances = part(folder)
            texts += said
            scores += chances
    print(json.dumps({"engine": "sardonyx" if "sardonyx.array" in sys.modules else "mlx", "texts": texts, "scores": scores}))


if __name__ == "__main__":
    main()
