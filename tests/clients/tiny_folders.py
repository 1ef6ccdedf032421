"""Folders of tiny models with weights that are the same every time, as published packages look for them: language models of transformers'
layout with a tokenizer of whole words."""

import json
from pathlib import Path

import numpy as np

WORDS = """the a quick brown fox jumps over lazy dog and then runs away from my small green house near sea where it sleeps all day long while
old man reads paper about weather in town he likes tea with milk she bread butter they go home at night under moon""".split()
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "<s>", "</s>"]
CHAT = "{% for m in messages %}{{ m['role'] }} {{ m['content'] }} {% endfor %}{% if add_generation_prompt %}then {% endif %}"


def random(seed, *shape, by=None):
    scale = (shape[-1] ** -0.5 if by is None else by) if shape else 1
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype(np.float32)


def vocabulary():
    letters = [chr(c) for c in range(ord("a"), ord("z") + 1)]
    return [*SPECIAL, *dict.fromkeys([*WORDS, "system", "user", "assistant", *letters, *(f"##{c}" for c in letters)])]


def write_tokenizer(folder, wraps):
    """tokenizer.json and its companions; wraps: texts begin with [CLS] and end with [SEP], as BERT's."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

    words = vocabulary()
    made = Tokenizer(models.WordPiece({w: i for i, w in enumerate(words)}, unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer()
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.decoder = decoders.WordPiece()
    if wraps:
        ends = [("[CLS]", words.index("[CLS]")), ("[SEP]", words.index("[SEP]"))]
        made.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1", ends)
    made.add_special_tokens(SPECIAL)
    made.save(str(folder / "tokenizer.json"))
    special = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]", "mask_token": "[MASK]"}
    if not wraps:
        special |= {"bos_token": "<s>", "eos_token": "</s>"}
    (folder / "special_tokens_map.json").write_text(json.dumps(special))
    told = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 128, "clean_up_tokenization_spaces": False, **special}
    if not wraps:
        told["chat_template"] = CHAT
    (folder / "tokenizer_config.json").write_text(json.dumps(told))
    (folder / "vocab.txt").write_text("\n".join(words) + "\n")


CAUSAL = {
    "llama": {"architectures": ["LlamaForCausalLM"], "tie_word_embeddings": True},
    "qwen2": {"architectures": ["Qwen2ForCausalLM"], "tie_word_embeddings": False},
    "qwen3": {"architectures": ["Qwen3ForCausalLM"], "tie_word_embeddings": True},
}


def write_causal(folder: Path, kind):
    """A language model of two layers whose queries share keys, in safetensors."""
    from safetensors.numpy import save_file

    folder.mkdir(parents=True)
    write_tokenizer(folder, wraps=False)
    width, inner, heads, groups, vocab = 128, 256, 4, 2, len(vocabulary())
    head = width // heads
    config = {"model_type": kind, "hidden_size": width, "intermediate_size": inner, "num_hidden_layers": 2, "num_attention_heads": heads,
              "num_key_value_heads": groups, "vocab_size": vocab, "max_position_embeddings": 256, "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "head_dim": head,
              "hidden_act": "silu", "bos_token_id": 5, "eos_token_id": 6, "torch_dtype": "float32", **CAUSAL[kind]}  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config))
    weights = {"model.embed_tokens.weight": random(1, vocab, width, by=0.3), "model.norm.weight": 1 + random(2, width, by=0.1)}
    if not config["tie_word_embeddings"]:
        weights["lm_head.weight"] = random(3, vocab, width)
    for i in range(config["num_hidden_layers"]):
        at, seed = f"model.layers.{i}.", 100 * (i + 1)
        shapes = {"self_attn.q_proj": (heads * head, width), "self_attn.k_proj": (groups * head, width), "self_attn.v_proj": (groups * head, width),
                  "self_attn.o_proj": (width, heads * head), "mlp.gate_proj": (inner, width), "mlp.up_proj": (inner, width),
                  "mlp.down_proj": (width, inner)}  # fmt: skip
        for k, (name, shape) in enumerate(shapes.items()):
            weights[f"{at}{name}.weight"] = random(seed + k, *shape)
            if kind == "qwen2" and name[10:] in ("q_proj", "k_proj", "v_proj"):
                weights[f"{at}{name}.bias"] = random(seed + 20 + k, shape[0], by=0.1)
        for k, name in enumerate(("input_layernorm", "post_attention_layernorm")):
            weights[f"{at}{name}.weight"] = 1 + random(seed + 40 + k, width, by=0.1)
        if kind == "qwen3":
            for k, name in enumerate(("self_attn.q_norm", "self_attn.k_norm")):
                weights[f"{at}{name}.weight"] = 1 + random(seed + 60 + k, head, by=0.1)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
