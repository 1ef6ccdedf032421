#!/usr/bin/env python3
"""Tiny random models of every architecture, as transformers writes them, against what transformers computes.

usage: compare_transformers.py LANGUAGE_PROBE [NAME]...

Exit code 77: transformers or torch is missing.
"""

import json
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
SIZES = dict(vocab_size=160, hidden_size=64, intermediate_size=96, num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=2,
             max_position_embeddings=256, bos_token_id=1, eos_token_id=2, pad_token_id=0, attn_implementation="eager")
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64,
          "rope_theta": 500000.0}
QWEN_EXPERTS = dict(num_experts=6, num_experts_per_tok=3, moe_intermediate_size=32)
SHARED = dict(n_routed_experts=8, num_experts_per_tok=3, moe_intermediate_size=32, n_shared_experts=2, first_k_dense_replace=1)
DEEP = SIZES | SHARED | dict(num_key_value_heads=4, kv_lora_rank=32, qk_nope_head_dim=24, qk_rope_head_dim=8, v_head_dim=20)
DELTA = SIZES | dict(head_dim=32, linear_num_key_heads=2, linear_num_value_heads=6, linear_key_head_dim=16, linear_value_head_dim=24)
SCAN = dict(mamba_n_heads=8, mamba_d_head=16, mamba_d_state=24, mamba_n_groups=2)
MIXERS = dict(mamba_num_heads=8, mamba_head_dim=16, ssm_state_size=24, n_groups=2)
KINDS = ["linear_attention", "full_attention", "linear_attention", "linear_attention"]
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64, "rope_theta": 10000.0}


def longrope(half: int, **more) -> dict:
    return {"rope_type": "longrope", "short_factor": [1.0 + 0.05 * i for i in range(half)],
            "long_factor": [1.0 + 0.7 * i for i in range(half)], "rope_theta": 10000.0} | more


# name -> (configuration, model, what the context must be)
CASES = {
    "llama": (t.LlamaConfig(**SIZES), t.LlamaForCausalLM, 0),
    "llama, tied, own head, biases": (t.LlamaConfig(**SIZES, tie_word_embeddings=True, head_dim=32, attention_bias=True, mlp_bias=True),
                                      t.LlamaForCausalLM, 0),
    "llama, linear": (t.LlamaConfig(**SIZES, rope_parameters={"rope_type": "linear", "factor": 3.0, "rope_theta": 1e4}), t.LlamaForCausalLM, 0),
    "llama, llama3": (t.LlamaConfig(**SIZES, rope_parameters=LLAMA3), t.LlamaForCausalLM, 0),
    "llama, yarn": (t.LlamaConfig(**SIZES, rope_parameters=YARN), t.LlamaForCausalLM, 0),
    "llama, yarn with everything": (t.LlamaConfig(**SIZES, rope_parameters=YARN | {"beta_fast": 16, "beta_slow": 2, "mscale": 0.7,
                                                                                   "mscale_all_dim": 1.1, "truncate": False}),
                                    t.LlamaForCausalLM, 0),
    "llama, yarn, attention factor": (t.LlamaConfig(**SIZES, rope_parameters=YARN | {"attention_factor": 1.3}), t.LlamaForCausalLM, 0),
    "llama, longrope": (t.LlamaConfig(**SIZES, rope_parameters=longrope(8, original_max_position_embeddings=128)), t.LlamaForCausalLM, 0),
    "mistral": (t.MistralConfig(**SIZES, sliding_window=7), t.MistralForCausalLM, 0),
    "mistral, no window": (t.MistralConfig(**SIZES, sliding_window=None, head_dim=32), t.MistralForCausalLM, 0),
    "qwen2": (t.Qwen2Config(**SIZES, tie_word_embeddings=True), t.Qwen2ForCausalLM, 0),
    "qwen2, windows": (t.Qwen2Config(**SIZES, use_sliding_window=True, sliding_window=6, max_window_layers=2), t.Qwen2ForCausalLM, 0),
    "qwen3": (t.Qwen3Config(**SIZES, head_dim=32), t.Qwen3ForCausalLM, 0),
    "qwen3, layers by name, biases": (t.Qwen3Config(**SIZES, head_dim=32, attention_bias=True, use_sliding_window=True, sliding_window=5,
                                                    layer_types=["sliding_attention", "full_attention"] * 2), t.Qwen3ForCausalLM, 0),
    "gemma2": (t.Gemma2Config(**SIZES, head_dim=32, sliding_window=6, query_pre_attn_scalar=24), t.Gemma2ForCausalLM, 0),
    "gemma2, no caps": (t.Gemma2Config(**SIZES, head_dim=16, sliding_window=6, attn_logit_softcapping=None, final_logit_softcapping=None),
                        t.Gemma2ForCausalLM, 0),
    "gemma3": (t.Gemma3TextConfig(**SIZES | {"num_hidden_layers": 7}, head_dim=32, sliding_window=6, query_pre_attn_scalar=24),
               t.Gemma3ForCausalLM, 0),
    "gemma3, scaled": (t.Gemma3TextConfig(**SIZES, head_dim=16, sliding_window=6, final_logit_softcapping=20.0,
                                          rope_parameters={"full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6},
                                                           "sliding_attention": {"rope_type": "default", "rope_theta": 5e3}},
                                          layer_types=["sliding_attention", "full_attention"] * 2), t.Gemma3ForCausalLM, 0),
    "mixtral": (t.MixtralConfig(**SIZES, num_local_experts=4, num_experts_per_tok=2), t.MixtralForCausalLM, 0),
    "mixtral, window": (t.MixtralConfig(**SIZES, num_local_experts=3, num_experts_per_tok=1, sliding_window=7), t.MixtralForCausalLM, 0),
    "qwen2_moe": (t.Qwen2MoeConfig(**SIZES, **QWEN_EXPERTS, shared_expert_intermediate_size=96), t.Qwen2MoeForCausalLM, 0),
    "qwen2_moe, dense layers, windows": (t.Qwen2MoeConfig(**SIZES, **QWEN_EXPERTS, norm_topk_prob=True, mlp_only_layers=[1], decoder_sparse_step=2,
                                                          use_sliding_window=True, sliding_window=6, max_window_layers=3, qkv_bias=False),
                                         t.Qwen2MoeForCausalLM, 0),
    "qwen3_moe": (t.Qwen3MoeConfig(**SIZES, **QWEN_EXPERTS, head_dim=32, norm_topk_prob=True), t.Qwen3MoeForCausalLM, 0),
    "qwen3_moe, windows, biases": (t.Qwen3MoeConfig(**SIZES, **QWEN_EXPERTS, attention_bias=True, use_sliding_window=True, sliding_window=5),
                                   t.Qwen3MoeForCausalLM, 0),
    "gpt_oss": (t.GptOssConfig(**SIZES, num_local_experts=5, num_experts_per_tok=2, head_dim=16, sliding_window=7), t.GptOssForCausalLM, 0),
    "gpt_oss, MXFP4": (t.GptOssConfig(**SIZES, num_local_experts=6, num_experts_per_tok=2, head_dim=16), t.GptOssForCausalLM, 0),
    "gpt_oss, no scaling": (t.GptOssConfig(**SIZES, num_local_experts=4, num_experts_per_tok=3, head_dim=32, sliding_window=5, swiglu_limit=0.5,
                                           rope_parameters={"rope_type": "default", "rope_theta": 1e4}), t.GptOssForCausalLM, 0),
    "gemma": (t.GemmaConfig(**SIZES, head_dim=32), t.GemmaForCausalLM, 0),
    "granite": (t.GraniteConfig(**SIZES, embedding_multiplier=12.0, residual_multiplier=0.22, logits_scaling=8.0, attention_multiplier=0.0625,
                                tie_word_embeddings=True), t.GraniteForCausalLM, 0),
    "granite, biases": (t.GraniteConfig(**SIZES, attention_bias=True, mlp_bias=True), t.GraniteForCausalLM, 0),
    "smollm3": (t.SmolLM3Config(**SIZES), t.SmolLM3ForCausalLM, 0),
    "smollm3, windows": (t.SmolLM3Config(**SIZES, use_sliding_window=True, sliding_window=5, no_rope_layers=[1, 0, 0, 1], attention_bias=True),
                         t.SmolLM3ForCausalLM, 0),
    "ernie4_5": (t.Ernie4_5Config(**SIZES, head_dim=16), t.Ernie4_5ForCausalLM, 0),
    "ernie4_5, biases": (t.Ernie4_5Config(**SIZES, head_dim=32, use_bias=True), t.Ernie4_5ForCausalLM, 0),
    "seed_oss": (t.SeedOssConfig(**SIZES, head_dim=32), t.SeedOssForCausalLM, 0),
    "seed_oss, biases": (t.SeedOssConfig(**SIZES, head_dim=16, attention_bias=False, attention_out_bias=True, mlp_bias=True), t.SeedOssForCausalLM, 0),
    "olmo2": (t.Olmo2Config(**SIZES), t.Olmo2ForCausalLM, 0),
    "olmo2, biases": (t.Olmo2Config(**SIZES, attention_bias=True, rope_parameters={"rope_type": "default", "rope_theta": 5e5}), t.Olmo2ForCausalLM, 0),
    "olmo3": (t.Olmo3Config(**SIZES | {"num_hidden_layers": 5}, sliding_window=6), t.Olmo3ForCausalLM, 0),
    "olmo3, yarn": (t.Olmo3Config(**SIZES, sliding_window=6, rope_parameters={
        "full_attention": YARN | {"rope_theta": 5e5, "attention_factor": 1.2}, "sliding_attention": {"rope_type": "default", "rope_theta": 5e5}}),
        t.Olmo3ForCausalLM, 0),
    "exaone4": (t.Exaone4Config(**SIZES, sliding_window=None, layer_types=["full_attention"] * 4, rope_parameters=LLAMA3), t.Exaone4ForCausalLM, 0),
    "exaone4, windows": (t.Exaone4Config(**SIZES | {"num_hidden_layers": 5}, sliding_window=6), t.Exaone4ForCausalLM, 0),
    "cohere": (t.CohereConfig(**SIZES, logit_scale=0.5), t.CohereForCausalLM, 0),
    "cohere, norms, biases": (t.CohereConfig(**SIZES, use_qk_norm=True, attention_bias=True), t.CohereForCausalLM, 0),
    "cohere2": (t.Cohere2Config(**SIZES | {"num_hidden_layers": 5}, sliding_window=6), t.Cohere2ForCausalLM, 0),
    "cohere2, layers by name": (t.Cohere2Config(**SIZES, sliding_window=5, layer_types=["full_attention", "sliding_attention"] * 2),
                                t.Cohere2ForCausalLM, 0),
    "starcoder2": (t.Starcoder2Config(**SIZES), t.Starcoder2ForCausalLM, 0),
    "starcoder2, no biases, window": (t.Starcoder2Config(**SIZES, use_bias=False, sliding_window=6), t.Starcoder2ForCausalLM, 0),
    "nemotron": (t.NemotronConfig(**SIZES), t.NemotronForCausalLM, 0),
    "nemotron, biases": (t.NemotronConfig(**SIZES, head_dim=32, attention_bias=True, mlp_bias=True), t.NemotronForCausalLM, 0),
    "glm4": (t.Glm4Config(**SIZES, head_dim=32), t.Glm4ForCausalLM, 0),
    "glm4, no biases": (t.Glm4Config(**SIZES, head_dim=16, attention_bias=False), t.Glm4ForCausalLM, 0),
    "hunyuan_v1_dense": (t.HunYuanDenseV1Config(**SIZES, head_dim=32), t.HunYuanDenseV1ForCausalLM, 0),
    "hunyuan_v1_dense, alpha": (t.HunYuanDenseV1Config(**SIZES, head_dim=16, rope_parameters={
        "rope_type": "dynamic", "alpha": 50.0, "factor": 1.0, "rope_theta": 10000.0}), t.HunYuanDenseV1ForCausalLM, 0),
    "ministral3": (t.Ministral3Config(**SIZES, head_dim=32, rope_parameters=YARN | {
        "original_max_position_embeddings": 8, "mscale": 1.0, "mscale_all_dim": 1.0, "llama_4_scaling_beta": 0.3}), t.Ministral3ForCausalLM, 0),
    "ministral3, as it is": (t.Ministral3Config(**SIZES, head_dim=16), t.Ministral3ForCausalLM, 0),
    "arcee": (t.ArceeConfig(**SIZES, attention_bias=True, mlp_bias=True), t.ArceeForCausalLM, 0),
    "granitemoe": (t.GraniteMoeConfig(**SIZES, num_local_experts=5, num_experts_per_tok=2, embedding_multiplier=6.0, residual_multiplier=0.3,
                                      logits_scaling=4.0, attention_multiplier=0.1), t.GraniteMoeForCausalLM, 0),
    "granitemoeshared": (t.GraniteMoeSharedConfig(**SIZES, num_local_experts=4, num_experts_per_tok=2, shared_intermediate_size=48,
                                                  attention_multiplier=0.2), t.GraniteMoeSharedForCausalLM, 0),
    "glm4_moe": (t.Glm4MoeConfig(**SIZES, **SHARED, head_dim=32, use_qk_norm=True, attention_bias=True), t.Glm4MoeForCausalLM, 0),
    "glm4_moe, groups": (t.Glm4MoeConfig(**SIZES, **SHARED, n_group=4, topk_group=2, norm_topk_prob=False, routed_scaling_factor=1.5),
                         t.Glm4MoeForCausalLM, 0),
    "deepseek_v2": (t.DeepseekV2Config(**DEEP, q_lora_rank=None), t.DeepseekV2ForCausalLM, 0),
    "deepseek_v2, groups": (t.DeepseekV2Config(**DEEP, q_lora_rank=40, topk_method="group_limited_greedy", n_group=4, topk_group=2,
                                               routed_scaling_factor=4.0), t.DeepseekV2ForCausalLM, 0),
    "deepseek_v3": (t.DeepseekV3Config(**DEEP, q_lora_rank=40, n_group=4, topk_group=2), t.DeepseekV3ForCausalLM, 0),
    "deepseek_v3, yarn": (t.DeepseekV3Config(**DEEP, q_lora_rank=None, n_group=1, topk_group=1, norm_topk_prob=False,
                                             rope_interleave=False, rope_parameters=YARN | {"mscale": 1.0, "mscale_all_dim": 1.0}),
                          t.DeepseekV3ForCausalLM, 0),
    "qwen3_next": (t.Qwen3NextConfig(**DELTA, **QWEN_EXPERTS, shared_expert_intermediate_size=40), t.Qwen3NextForCausalLM, 0),
    "qwen3_next, dense layers": (t.Qwen3NextConfig(**DELTA, **QWEN_EXPERTS, shared_expert_intermediate_size=32, mlp_only_layers=[1], norm_topk_prob=False,
                                                   full_attention_interval=2), t.Qwen3NextForCausalLM, 0),
    "qwen3_5_text": (t.Qwen3_5TextConfig(**DELTA), t.Qwen3_5ForCausalLM, 0),
    "qwen3_5_text, layers by name": (t.Qwen3_5TextConfig(**DELTA | {"linear_num_key_heads": 6}, tie_word_embeddings=True, rope_parameters={
        "rope_type": "default", "rope_theta": 1e6, "partial_rotary_factor": 0.5},
        layer_types=["full_attention", "linear_attention", "linear_attention", "full_attention"]), t.Qwen3_5ForCausalLM, 0),
    "qwen3_5_moe_text": (t.Qwen3_5MoeTextConfig(**{k: v for k, v in DELTA.items() if k != "intermediate_size"}, **QWEN_EXPERTS,
                                                shared_expert_intermediate_size=40), t.Qwen3_5MoeForCausalLM, 0),
    "lfm2": (t.Lfm2Config(**SIZES, full_attn_idxs=[1, 3], block_multiple_of=16), t.Lfm2ForCausalLM, 0),
    "lfm2, width as it is": (t.Lfm2Config(**SIZES, conv_L_cache=5, block_auto_adjust_ff_dim=False, tie_word_embeddings=False,
                                          layer_types=["conv", "conv", "full_attention", "conv"]), t.Lfm2ForCausalLM, 0),
    "granitemoehybrid": (t.GraniteMoeHybridConfig(**SIZES, **SCAN, num_local_experts=5, num_experts_per_tok=2, shared_intermediate_size=48, layer_types=KINDS,
                                                  embedding_multiplier=6.0, residual_multiplier=0.3, logits_scaling=4.0, attention_multiplier=0.1),
                         t.GraniteMoeHybridForCausalLM, 0),
    "granitemoehybrid, no experts, rotated": (t.GraniteMoeHybridConfig(**SIZES, **SCAN | dict(mamba_n_groups=1), num_local_experts=0, layer_types=KINDS,
                                                                       shared_intermediate_size=80, position_embedding_type="rope",
                                                                       tie_word_embeddings=True), t.GraniteMoeHybridForCausalLM, 0),
    "falcon_h1": (t.FalconH1Config(**SIZES, **SCAN, mamba_d_ssm=128, embedding_multiplier=3.0, lm_head_multiplier=0.5, key_multiplier=0.7,
                                   attention_in_multiplier=1.2, attention_out_multiplier=0.8, ssm_in_multiplier=0.9, ssm_out_multiplier=1.1,
                                   ssm_multipliers=[0.7, 1.1, 0.9, 1.2, 0.8], mlp_multipliers=[0.6, 1.3]), t.FalconH1ForCausalLM, 0),
    "falcon_h1, norms": (t.FalconH1Config(**SIZES, **SCAN, mamba_d_ssm=128, mamba_rms_norm=True, mamba_norm_before_gate=False), t.FalconH1ForCausalLM, 0),
    "falcon_h1, norms first": (t.FalconH1Config(**SIZES, **SCAN, mamba_d_ssm=128, mamba_rms_norm=True), t.FalconH1ForCausalLM, 0),
    "mamba2": (t.Mamba2Config(vocab_size=160, hidden_size=64, num_hidden_layers=4, num_heads=8, head_dim=16, state_size=24, n_groups=2), t.Mamba2ForCausalLM, 0),
    "mamba2, limited steps": (t.Mamba2Config(vocab_size=160, hidden_size=64, num_hidden_layers=3, num_heads=4, head_dim=32, state_size=16, n_groups=1,
                                             time_step_limit=(0.2, 0.9), use_conv_bias=False, tie_word_embeddings=True), t.Mamba2ForCausalLM, 0),
    "nemotron_h": (t.NemotronHConfig(**{k: v for k, v in SIZES.items() if k != "num_hidden_layers"}, **MIXERS, head_dim=32, layers_block_type=[
        "linear_attention", "mlp", "full_attention", "mlp", "linear_attention"]), t.NemotronHForCausalLM, 0),
    "phi3": (t.Phi3Config(**SIZES, sliding_window=9), t.Phi3ForCausalLM, 0),
    "phi3, partly rotated": (t.Phi3Config(**SIZES, rope_parameters={"rope_type": "default", "partial_rotary_factor": 0.75}),
                             t.Phi3ForCausalLM, 0),
    "phi3, longrope": (t.Phi3Config(**SIZES, original_max_position_embeddings=64, rope_parameters=longrope(8)), t.Phi3ForCausalLM, 64),
    "phi3, longrope, beyond": (t.Phi3Config(**SIZES, original_max_position_embeddings=16, rope_parameters=longrope(8)), t.Phi3ForCausalLM, 256),
}


def old_keys(path: pathlib.Path):
    """As older versions wrote the file."""
    c = json.loads(path.read_text())
    rope = c.pop("rope_parameters", None)
    # Without any, gpt_oss has its default scaling, which older keys cannot turn off.
    if not rope or "full_attention" in rope or (c["model_type"] == "gpt_oss" and rope["rope_type"] == "default"):
        return False
    c["rope_theta"] = rope.pop("rope_theta")
    if "partial_rotary_factor" in rope:
        c["partial_rotary_factor"] = rope.pop("partial_rotary_factor")
    kind = rope.pop("rope_type", "default")
    c["rope_scaling"] = None if kind == "default" else {"type": kind, **rope}
    c["torch_dtype"] = c.pop("dtype", "float32")
    path.write_text(json.dumps(c))
    return True


FLOAT4 = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])


def as_mxfp4(model, folder: pathlib.Path):
    """Rounds the experts to MXFP4, in the model and in its folder, where codes and scales become tensors of their own."""
    from safetensors.torch import load_file, save_file
    tensors = load_file(folder / "model.safetensors")
    for name, parameter in model.named_parameters():
        if not name.endswith(("experts.gate_up_proj", "experts.down_proj")):
            continue
        blocks = parameter.data.transpose(1, 2).unflatten(2, (-1, 32))  # rows of 32 neighbours
        exponent = torch.floor(torch.log2(blocks.abs().amax(dim=-1, keepdim=True))) - 2
        codes = (blocks / torch.exp2(exponent)).unsqueeze(-1).sub(FLOAT4).abs().argmin(dim=-1).to(torch.uint8)
        parameter.data.copy_((FLOAT4[codes.long()] * torch.exp2(exponent)).flatten(2).transpose(1, 2))
        del tensors[name]
        tensors[name + "_blocks"] = (codes[..., 0::2] | codes[..., 1::2] << 4).contiguous()
        tensors[name + "_scales"] = (exponent + 127).to(torch.uint8).squeeze(-1).contiguous()
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    config = json.loads((folder / "config.json").read_text())
    config["quantization_config"] = {"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]}
    (folder / "config.json").write_text(json.dumps(config))


def ours(folder: pathlib.Path, ids, context: int) -> np.ndarray:
    command = [PROBE] + (["-c", str(context)] if context else []) + [str(folder), "0"] + [str(i) for i in ids]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return np.array(json.loads(done.stdout)["logits"])


def main():
    only = sys.argv[2:]  # beginnings of names
    with scratch() as root:
        for i, (name, (config, kind, context)) in enumerate(CASES.items()):
            if only and not name.startswith(tuple(only)):
                continue
            folder = root / "model"
            shutil.rmtree(folder, ignore_errors=True)
            torch.manual_seed(i)
            model = kind(config).float().eval()
            with torch.no_grad():
                for parameter in model.parameters():
                    parameter.add_(torch.randn_like(parameter) * 0.15)
                for buffer_name, buffer in model.named_buffers():
                    if buffer_name.endswith("e_score_correction_bias"):
                        buffer.add_(torch.randn_like(buffer) * 0.3)
            half = i % 2 == 0
            (model.bfloat16() if half else model).save_pretrained(folder, max_shard_size="40KB" if i % 3 == 0 and "MXFP4" not in name else "5GB")
            model = kind.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
            if name.endswith("MXFP4"):
                as_mxfp4(model, folder)
            ids = np.random.default_rng(i).integers(3, 160, 33)
            with torch.no_grad():
                expected = model(torch.tensor(ids[None])).logits[0].numpy().astype(np.float64)
            for how in ("as written", "with older keys"):
                if how != "as written" and not old_keys(folder / "config.json"):
                    continue
                worst = np.abs(ours(folder, ids, context) - expected).max()
                print(f"{name}, {how}: off by {worst:.1e}, logits spread by {expected.std():.2f}", flush=True)
                assert worst < 1e-4 * max(1.0, np.abs(expected).max()), name


if __name__ == "__main__":
    main()
