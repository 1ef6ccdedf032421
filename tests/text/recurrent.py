#!/usr/bin/env python3
"""Random language models whose texts have states, of three sizes, as transformers writes them, against what transformers computes: prompts
of 1 to 3,000 tokens in parts, with one and two threads, and greedy answers.

usage: recurrent.py LANGUAGE_PROBE [NAME]...

Exit code 77: transformers or torch is missing.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys

try:
    import numpy as np
    import torch
    import transformers as t
except ImportError:
    sys.exit(77)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from scratch import scratch  # noqa: E402

PROBE = sys.argv[1]
COMMON = dict(vocab_size=160, max_position_embeddings=4096, bos_token_id=1, eos_token_id=2, pad_token_id=0, attn_implementation="eager")
SIZES = {"small": dict(hidden_size=64, intermediate_size=96, num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=2),
         "middle": dict(hidden_size=160, intermediate_size=256, num_hidden_layers=6, num_attention_heads=5, num_key_value_heads=5),
         "large": dict(hidden_size=384, intermediate_size=640, num_hidden_layers=8, num_attention_heads=6, num_key_value_heads=2)}


def delta(size: str, experts: bool) -> dict:
    keys, heads, key, value = {"small": (2, 4, 16, 16), "middle": (3, 9, 40, 24), "large": (4, 4, 128, 128)}[size]
    more = dict(num_experts=8, num_experts_per_tok=3, moe_intermediate_size=48, shared_expert_intermediate_size=64) if experts else {}
    return COMMON | SIZES[size] | dict(head_dim=32, linear_num_key_heads=keys, linear_num_value_heads=heads, linear_key_head_dim=key,
                                       linear_value_head_dim=value) | more


def scan(size: str) -> dict:
    heads, groups, state, width = {"small": (4, 2, 16, 32), "middle": (10, 2, 40, 32), "large": (12, 1, 128, 64)}[size]
    return dict(mamba_n_heads=heads, mamba_n_groups=groups, mamba_d_state=state, mamba_d_head=width)


def kinds(size: str) -> list:
    return ["full_attention" if i % 3 == 1 else "linear_attention" for i in range(SIZES[size]["num_hidden_layers"])]


def without(o: dict, *names) -> dict:
    return {k: v for k, v in o.items() if k not in names}


# name -> configuration by size, model
CASES = {
    "qwen3_next": (lambda s: t.Qwen3NextConfig(**delta(s, True)), t.Qwen3NextForCausalLM),
    "qwen3_5_text": (lambda s: t.Qwen3_5TextConfig(**delta(s, False)), t.Qwen3_5ForCausalLM),
    "lfm2": (lambda s: t.Lfm2Config(**COMMON, **SIZES[s], full_attn_idxs=[2, 3]), t.Lfm2ForCausalLM),
    "granitemoehybrid": (lambda s: t.GraniteMoeHybridConfig(**COMMON, **SIZES[s], **scan(s), num_local_experts=6, num_experts_per_tok=2,
                                                            shared_intermediate_size=64, layer_types=kinds(s), attention_multiplier=0.1,
                                                            residual_multiplier=0.5), t.GraniteMoeHybridForCausalLM),
    "falcon_h1": (lambda s: t.FalconH1Config(**COMMON, **SIZES[s], **scan(s), mamba_d_ssm=scan(s)["mamba_n_heads"] * scan(s)["mamba_d_head"]),
                  t.FalconH1ForCausalLM),
    "mamba2": (lambda s: t.Mamba2Config(**without(COMMON, "max_position_embeddings"), hidden_size=SIZES[s]["hidden_size"],
                                        num_hidden_layers=SIZES[s]["num_hidden_layers"], num_heads=SIZES[s]["hidden_size"] // 16, head_dim=32,
                                        state_size=scan(s)["mamba_d_state"], n_groups=1), t.Mamba2ForCausalLM),
    "nemotron_h": (lambda s: t.NemotronHConfig(**COMMON, **without(SIZES[s], "num_hidden_layers"), head_dim=32, mamba_num_heads=scan(s)["mamba_n_heads"],
                                               mamba_head_dim=scan(s)["mamba_d_head"], ssm_state_size=scan(s)["mamba_d_state"],
                                               n_groups=scan(s)["mamba_n_groups"], layers_block_type=["linear_attention", "mlp", "full_attention", "mlp"] *
                                               (SIZES[s]["num_hidden_layers"] // 2)), t.NemotronHForCausalLM),
    "qwen3_5_moe_text": (lambda s: t.Qwen3_5MoeTextConfig(**without(delta(s, True), "intermediate_size")), t.Qwen3_5MoeForCausalLM),
}


def ours(folder: pathlib.Path, steps: int, ids, threads: int) -> dict:
    done = subprocess.run([PROBE, str(folder), str(steps)] + [str(i) for i in ids], capture_output=True, text=True, timeout=600,
                          env=os.environ | {"SDX_THREADS": str(threads)})
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def log_shares(logits) -> np.ndarray:
    x = np.asarray(logits, np.float64)
    x = x - x.max(axis=-1, keepdims=True)
    return x - np.log(np.exp(x).sum(axis=-1, keepdims=True))


def random_model(kind, config, seed: int):
    torch.manual_seed(seed)
    model = kind(config).float().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * (0.7 / max(parameter.shape[-1], 8) ** 0.5 if parameter.dim() > 1 else 0.1))
    return model


def check(name: str, size: str, config, kind, folder: pathlib.Path, seed: int):
    shutil.rmtree(folder, ignore_errors=True)
    random_model(kind, config, seed).save_pretrained(folder)
    model = kind.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    ids = np.random.default_rng(seed).integers(3, 160, 3000)
    longest = 3000 if size != "large" else 1200
    worst = 0.0
    for length, threads in ((1, 1), (2, 2), (3, 1), (64, 2), (131, 1), (longest, 2)):
        with torch.no_grad():
            expected = log_shares(model(torch.tensor(ids[None, :length])).logits[0].numpy())
        off = np.abs(log_shares(ours(folder, 0, ids[:length], threads)["logits"]) - expected).max()
        assert off < 1e-3, f"{name}, {size}: a prompt of {length} tokens is off by {off}"
        worst = max(worst, off)
    prompt, steps = [int(i) for i in ids[:40]], 48
    made = ours(folder, steps, prompt, 2)["greedy"]
    with torch.no_grad():
        rows = log_shares(model(torch.tensor([prompt + made])).logits[0].numpy())[len(prompt) - 1 : -1]
    for step, (row, chosen) in enumerate(zip(rows, made)):
        assert row[chosen] > row.max() - 1e-4, f"{name}, {size}: step {step} chose {chosen}, {row.argmax()} is likelier"
    print(f"{name}, {size}: off by {worst:.1e} at most, the likeliest {rows.max(axis=-1).mean():.2f} on average, {steps} greedy tokens equal", flush=True)


def main():
    with scratch() as root:
        for i, (name, (config, kind)) in enumerate(CASES.items()):
            if sys.argv[2:] and name not in sys.argv[2:]:
                continue
            for size in SIZES:
                check(name, size, config(size), kind, root / "model", i)


if __name__ == "__main__":
    main()
