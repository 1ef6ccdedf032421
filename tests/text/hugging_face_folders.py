#!/usr/bin/env python3
"""Tiny random models as folders of Hugging Face's (config.json, .safetensors), against the architectures in numpy.

usage: hugging_face_folders.py LANGUAGE_PROBE [SMOLLM2.gguf]

The networks are those of architectures.py. With a .gguf file its weights are written as floats, and both must answer alike (needs the
package gguf). Exit code 77: numpy is missing.
"""

import json
import math
import pathlib
import shutil
import struct
import subprocess
import sys

import architectures
from architectures import MODELS, PROBE, Model, np, probe

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from scratch import scratch  # noqa: E402

PARTS = {"attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
         "attn_qkv": "self_attn.qkv_proj", "attn_output": "self_attn.o_proj", "attn_q_norm": "self_attn.q_norm",
         "attn_k_norm": "self_attn.k_norm", "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
         "ffn_norm": "post_attention_layernorm"}
GEMMA = {"ffn_norm": "pre_feedforward_layernorm", "post_attention_norm": "post_attention_layernorm",
         "post_ffw_norm": "post_feedforward_layernorm"}
WHOLE = {"token_embd.weight": "model.embed_tokens.weight", "output_norm.weight": "model.norm.weight", "output_norm.bias": "model.norm.bias",
         "output.weight": "lm_head.weight"}
JOINED = {"ffn_up": "mlp.gate_up_proj"}
OWN = {"gemma2": GEMMA, "gemma3": GEMMA, "olmo2": GEMMA, "exaone4": GEMMA, "phi3": JOINED,
       "glm4": JOINED | {"post_attention_norm": "post_self_attn_layernorm", "post_ffw_norm": "post_mlp_layernorm"},
       "seed_oss": {"post_attention_norm": "post_attention_layernorm"}, "starcoder2": {"ffn_up": "mlp.c_fc", "ffn_down": "mlp.c_proj"},
       "hunyuan-dense": {"attn_q_norm": "self_attn.query_layernorm", "attn_k_norm": "self_attn.key_layernorm"}}
TYPES = {"gemma3": "gemma3_text", "command-r": "cohere", "hunyuan-dense": "hunyuan_v1_dense", "mistral3": "ministral3"}
EPSILON = {"command-r": "layer_norm_eps", "cohere2": "layer_norm_eps", "starcoder2": "norm_epsilon", "nemotron": "norm_eps"}
ACTIVATION = {"gelu": "gelu_pytorch_tanh", "silu": "silu", "relu2": "relu2"}


def hf_name(architecture: str, name: str) -> str:
    if name in WHOLE:
        return WHOLE[name]
    _, layer, part, kind = name.split(".")
    return f"model.layers.{layer}.{(PARTS | OWN.get(architecture, {}))[part]}.{kind}"


def bits(values: np.ndarray, dtype: str) -> bytes:
    values = np.ascontiguousarray(values, np.float32)
    if dtype == "BF16":
        return (values.view(np.uint32) >> 16).astype(np.uint16).tobytes()
    return values.astype(np.float16 if dtype == "F16" else np.float32).tobytes()


def write_safetensors(path: pathlib.Path, tensors: dict, odd=False):
    """tensors: name -> (shape, dtype, bytes). `odd`: data begin where nothing is aligned."""
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, (shape, dtype, raw) in tensors.items():
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8 + (1 if odd else 0))
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def exactly(model: Model, dtype: str):
    """Weights that `dtype` holds exactly, in the model too."""
    for name, values in model.w.items():
        if len(values.shape) > 1 or dtype != "F32":
            if dtype == "BF16":
                model.w[name] = (values.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
            elif dtype == "F16":
                model.w[name] = values.astype(np.float16).astype(np.float32)


def own_keys(model: Model) -> dict:
    """What only some architectures have."""
    o, a = model.o, model.a
    if a == "granite":
        return {"embedding_multiplier": o["embedding_scale"], "residual_multiplier": o["residual_scale"], "logits_scaling": 1 / o["logit_scale"],
                "attention_multiplier": o["scale"]}
    if a in ("command-r", "cohere2"):
        return {"logit_scale": o["logit_scale"], "use_qk_norm": o["whole_norms"]}
    if a in ("nemotron", "glm4"):
        return {"partial_rotary_factor": o["rotary"] / o["size"]}
    return {"sliding_window": None, "layer_types": ["full_attention"] * o["layers"]} if a == "exaone4" and not o["window"] else {}


def config_of(model: Model) -> dict:
    o, a = model.o, model.a
    keys = o.get("keys", {})
    kind = "olmo3" if a == "olmo2" and o["window"] else TYPES.get(a, a)
    c = {"architectures": ["AnyForCausalLM"], "model_type": kind, "hidden_size": o["width"], "num_hidden_layers": o["layers"],
         "intermediate_size": o["ff"], "num_attention_heads": o["heads"], "num_key_value_heads": o["kv"], "head_dim": o["size"],
         EPSILON.get(a, "rms_norm_eps"): o["eps"], "rope_theta": o["base"], "max_position_embeddings": o.get("context", 256),
         "vocab_size": o["vocabulary"], "tie_word_embeddings": o["tied"], "torch_dtype": "float32", "eos_token_id": [2, 3],
         "bos_token_id": 1, "some_key_of_another_program": {"x": 1}}
    c["hidden_activation" if a in ("gemma2", "gemma3") else "hidden_act"] = ACTIVATION[o["activation"]]
    c |= own_keys(model)
    if a == "llama" and o["window"]:
        c["model_type"] = "mistral"
    if a == "qwen2":
        c["rope_parameters"] = {"rope_type": "default", "rope_theta": c.pop("rope_theta")}
    if o["window"]:
        c["sliding_window"] = o["window"]
    if a.startswith("gemma"):
        c["query_pre_attn_scalar"] = round(1 / o["scale"] ** 2) if "scale" in o else o["size"]
    if a == "gemma2":
        c |= {"attn_logit_softcapping": o.get("attention_cap"), "final_logit_softcapping": o.get("logit_cap")}
    original = keys.get("rope.scaling.original_context_length")
    if o["scaling"]:
        c["rope_scaling"] = {"rope_type": o["scaling"], "factor": keys["rope.scaling.factor"]}
        if original:
            c["rope_scaling"]["original_max_position_embeddings"] = original
        if "rope_size" in o:
            c["rope_scaling"]["attention_factor"] = o["rope_size"]
        if o["growth"]:
            c["rope_scaling"]["llama_4_scaling_beta"] = o["growth"]
        if a == "qwen2":
            c["rope_scaling"] |= c.pop("rope_parameters") | {"rope_type": o["scaling"]}
    if o.get("longrope"):
        c["original_max_position_embeddings"] = original
        c["partial_rotary_factor"] = o["rotary"] / o["size"]
        c["rope_scaling"] = {"type": "longrope", "short_factor": model.w["rope_factors_short.weight"].tolist(),
                             "long_factor": model.w["rope_factors_long.weight"].tolist(), "attention_factor": keys["rope.scaling.attn_factor"]}
    return c


def tensors_of(model: Model, dtype="F32") -> dict:
    out = {}
    for name, values in model.w.items():
        if name.startswith("rope_"):
            continue
        if model.a.startswith(("gemma", "nemotron")) and name.endswith("norm.weight"):
            values = values - np.float32(1)
        out[hf_name(model.a, name)] = (values.shape, dtype, bits(values, dtype))
    return out


def write_folder(folder: pathlib.Path, config: dict, tensors: dict, parts=1, odd=False):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    if parts == 1:
        return write_safetensors(folder / "model.safetensors", tensors, odd)
    names = list(tensors)
    index = {}
    for i in range(parts):
        file = f"model-{i + 1:05}-of-{parts:05}.safetensors"
        some = names[i::parts]
        write_safetensors(folder / file, {n: tensors[n] for n in some}, odd)
        index |= dict.fromkeys(some, file)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {"total_size": 1}, "weight_map": index}))


def check(name: str, model: Model, folder: pathlib.Path):
    ids = list(np.random.default_rng(5).integers(0, model.o["vocabulary"], 21))
    expected = model.logits(ids)
    made = probe(folder, 5, ids, model.o.get("used_context", 0))
    worst = np.abs(np.array(made["logits"]) - expected).max()
    assert worst < 3e-5 * max(1.0, np.abs(expected).max()), f"{name}: logits are off by {worst}"
    assert made["greedy"][0] == expected[-1].argmax()
    print(f"{name}: off by {worst:.1e}, logits spread by {expected.std():.2f}")


def fresh(name: str) -> Model:
    """The same model again, to be changed."""
    old = MODELS[name]
    new = Model.__new__(Model)
    new.__dict__.update(old.__dict__)
    new.w, new.o = dict(old.w), dict(old.o)
    return new


def without_experts() -> dict:
    """Folders with experts are written by transformers itself, in compare_transformers.py."""
    return {name: model for name, model in MODELS.items() if not model.o["experts"]}


def check_architectures(root: pathlib.Path):
    folder = root / "model"
    for i, (name, model) in enumerate(without_experts().items()):
        if "frequencies" in name or "partly" in name:
            continue
        write_folder(folder, config_of(model), tensors_of(model), parts=1 + i % 3, odd=i % 2 == 1)
        check(name, model, folder)
    for dtype in ("BF16", "F16"):
        model = fresh("llama")
        exactly(model, dtype)
        write_folder(folder, config_of(model), tensors_of(model, dtype), odd=dtype == "F16")
        check(f"llama in {dtype}", model, folder)


def check_rope(root: pathlib.Path):
    """llama3's frequencies; angles in newer files of Gemma 3; the window's layers by name."""
    folder = root / "model"
    model = fresh("llama")
    rope = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64}
    half = model.o["rotary"] // 2
    wave = 2 * math.pi * model.o["base"] ** (2.0 * np.arange(half) / model.o["rotary"])
    smooth = np.clip((64 / wave - 1) / 3, 0, 1)
    model.w["rope_freqs.weight"] = 1 / (smooth + (1 - smooth) / 8)
    model.o["freqs"] = True
    write_folder(folder, config_of(model) | {"rope_scaling": rope}, tensors_of(model))
    check("llama3's frequencies", model, folder)

    model = MODELS["gemma3"]
    config = config_of(model)
    for key in ("rope_theta", "rope_scaling"):
        config.pop(key)
    config["rope_parameters"] = {"full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6},
                                 "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0}}
    config["layer_types"] = ["full_attention" if i % 6 == 5 else "sliding_attention" for i in range(7)]
    write_folder(folder, config, tensors_of(model))
    check("gemma3, newer keys", model, folder)

    # With pictures: the language model alone, one level deeper.
    inner = {k: v for k, v in config.items() if k not in ("architectures", "tie_word_embeddings")} | {"model_type": "gemma3_text"}
    outer = {"architectures": ["Gemma3ForConditionalGeneration"], "model_type": "gemma3", "text_config": inner, "eos_token_id": 1}
    tensors = {"language_model." + n: t for n, t in tensors_of(model).items()} | {"vision_tower.x": ((2,), "F32", b"\0" * 8)}
    write_folder(folder, outer, tensors)
    check("gemma3 within pictures", model, folder)

    model = MODELS["mistral3"]
    outer = {"architectures": ["Mistral3ForConditionalGeneration"], "model_type": "mistral3", "text_config": config_of(model),
             "tie_word_embeddings": False}
    write_folder(folder, outer, {"language_model." + n: t for n, t in tensors_of(model).items()} | {"vision_tower.x": ((2,), "F32", b"\0" * 8)})
    check("mistral3 within pictures", model, folder)


def run_probe(folder: pathlib.Path) -> str:
    done = subprocess.run([PROBE, str(folder), "1", "1"], capture_output=True, text=True, timeout=300)
    assert done.returncode in (0, 1), done
    return done.stderr if done.returncode else ""


def check_refusals(root: pathlib.Path):
    folder = root / "model"
    model = MODELS["llama"]
    config, tensors = config_of(model), tensors_of(model)
    qwen, phi, gemma = MODELS["qwen2"], MODELS["phi3"], MODELS["gemma2"]

    def refused(parts, change: dict, tensors=tensors, config=config, remove=()):
        write_folder(folder, {k: v for k, v in (config | change).items() if k not in remove}, tensors)
        message = run_probe(folder)
        for part in [parts] if isinstance(parts, str) else parts:
            assert part in message, f"{change}: '{part}' is not in: {message or 'no error'}"

    refused(["model_type", "mamba"], {"model_type": "mamba"})
    refused("hidden_size", {}, remove=["hidden_size"])
    refused(["hidden_act", "relu"], {"hidden_act": "relu"})
    refused(["rope_type", "dynamic"], {"rope_scaling": {"type": "dynamic", "factor": 2.0}})
    refused("factor", {"rope_scaling": {"type": "linear"}})
    refused("short_factor", {"rope_scaling": {"type": "longrope"}})
    refused("partial_rotary_factor", {"partial_rotary_factor": 0.5})
    refused(["quant_method", "gptq"], {"quantization_config": {"quant_method": "gptq", "bits": 4}})
    refused(["quant_method", "awq"], {"quantization_config": {"quant_method": "awq"}})
    refused(["architectures", "Classification"], {"architectures": ["LlamaForSequenceClassification"]})
    refused("num_key_value_heads", {"num_key_value_heads": 3})
    refused("num_attention_heads", {"num_attention_heads": "4"})
    refused("rms_norm_eps", {"rms_norm_eps": -1})
    refused("attention_bias", {"attention_bias": 1})
    refused("self_attn.q_proj.bias", {"attention_bias": True})
    refused("mlp.gate_proj.bias", {"mlp_bias": True})
    refused("lm_head.weight", {"tie_word_embeddings": False})
    refused("layer_types", {"layer_types": ["full_attention"]}, tensors_of(qwen), config_of(qwen))
    refused(["layer_types", "linear_attention"], {"layer_types": ["linear_attention"] * 3}, tensors_of(qwen), config_of(qwen))
    refused("use_bidirectional_attention", {"use_bidirectional_attention": True}, tensors_of(gemma), config_of(gemma))
    refused("hidden_activation", {"hidden_activation": "gelu"}, tensors_of(gemma), config_of(gemma))
    refused("rope_type", {"rope_scaling": {"type": "mrope"}}, tensors_of(phi), config_of(phi))
    name = "model.layers.1.mlp.up_proj.weight"
    refused(f"lacks the tensor '{name}'", {}, {k: v for k, v in tensors.items() if k != name})
    refused("'model.layers.0.extra.weight' is not known", {}, tensors | {"model.layers.0.extra.weight": ((1,), "F32", b"\0" * 4)})
    refused(f"'{name}'", {}, tensors | {name: ((1,), "F32", b"\0" * 4)})
    refused([name, "int8"], {}, tensors | {name: ((96, 64), "I8", b"\0" * 96 * 64)})
    refused("model.layers.0.self_attn.q_proj.bias", {}, tensors | {"model.layers.0.self_attn.q_proj.bias": ((64,), "F32", b"\0" * 256)})
    # Tensors of older files that say nothing.
    write_folder(folder, config, tensors | {"model.layers.0.self_attn.rotary_emb.inv_freq": ((8,), "F32", b"\0" * 32)})
    assert run_probe(folder) == ""

    write_folder(folder, config, tensors, parts=3)
    index = folder / "model.safetensors.index.json"
    good = json.loads(index.read_text())
    for change, part in (({"../x.safetensors": 1}, "beside the index"), (None, "weight_map"), ({"away.safetensors": 1}, "away.safetensors")):
        bad = {"weight_map": good["weight_map"] | {"model.norm.weight": next(iter(change))}} if change else {}
        index.write_text(json.dumps(bad))
        assert part in run_probe(folder), (change, run_probe(folder))
    moved = good["weight_map"] | {"model.norm.weight": next(f for f in good["weight_map"].values() if f != good["weight_map"]["model.norm.weight"])}
    index.write_text(json.dumps({"weight_map": moved}))
    assert "model.norm.weight" in run_probe(folder)
    write_folder(folder, config, tensors)
    whole = (folder / "model.safetensors").read_bytes()
    for cut in (0, 7, 20, len(whole) // 2, len(whole) - 1):
        (folder / "model.safetensors").write_bytes(whole[:cut])
        assert "model.safetensors" in run_probe(folder)
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(b"x")
    assert "model.safetensors" in run_probe(folder)
    print("what cannot be read is refused by name")


def check_anything(root: pathlib.Path, rounds: int):
    """Whatever stands in the files is read or refused."""
    rng = np.random.default_rng(11)
    odd = [0, 1, -1, 3, 1 << 31, 1 << 62, -(1 << 62), 0.5, 1e300, -1e-300, "", "x", None, True, [], [1], {}, {"a": 1}, [[]], "silu"]
    folder = root / "model"
    models = without_experts()
    for i in range(rounds):
        model = models[list(models)[int(rng.integers(len(models)))]]
        config, tensors = config_of(model), tensors_of(model)
        for _ in range(int(rng.integers(1, 4))):
            at, keys = config, list(config)
            key = keys[int(rng.integers(len(keys)))]
            if isinstance(at[key], dict) and at[key] and rng.random() < 0.7:
                at = at[key]
                key = list(at)[int(rng.integers(len(at)))]
            at[key] = odd[int(rng.integers(len(odd)))]
        write_folder(folder, config, tensors)
        if i % 2:
            raw = bytearray((folder / "model.safetensors").read_bytes())
            for _ in range(int(rng.integers(1, 4))):
                raw[int(rng.integers(3000))] = int(rng.integers(256))
            (folder / "model.safetensors").write_bytes(raw)
        run_probe(folder)
    print(f"{rounds} folders with anything in them")


def check_converted(root: pathlib.Path):
    for name in ("llama", "gemma3", "phi3"):
        model = MODELS[name]
        write_folder(root / "model", config_of(model), tensors_of(model))
        done = subprocess.run([PROBE, "--convert", str(root / "model"), str(root / "out")], capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        check(f"{name}, converted", model, root / "out")
        assert json.loads((root / "out" / "genai_config.json").read_text())["model"]["eos_token_id"] == [2, 3]


def check_gguf(path: pathlib.Path, root: pathlib.Path):
    """A real model's weights, dequantised: the folder answers as the file does."""
    try:
        import gguf
    except ImportError:
        return
    reader = gguf.GGUFReader(path)
    number = lambda key: reader.fields[f"llama.{key}"].contents()
    heads, kv = number("attention.head_count"), number("attention.head_count_kv")
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": number("embedding_length"),
              "num_hidden_layers": number("block_count"), "intermediate_size": number("feed_forward_length"), "num_attention_heads": heads,
              "num_key_value_heads": kv, "rms_norm_eps": number("attention.layer_norm_rms_epsilon"), "rope_theta": number("rope.freq_base"),
              "max_position_embeddings": number("context_length"), "tie_word_embeddings": True, "eos_token_id": 2}
    tensors = {}
    for t in reader.tensors:
        values = gguf.quants.dequantize(t.data, t.tensor_type).reshape([int(n) for n in reversed(t.shape)]).astype(np.float32)
        for part, count in (("attn_q.", heads), ("attn_k.", kv)):
            if part in t.name:
                values = values.reshape(count, values.shape[0] // count // 2, 2, -1).swapaxes(1, 2).reshape(values.shape)
        tensors[hf_name("llama", t.name)] = (values.shape, "F32", bits(values, "F32"))
    write_folder(root / "real", config, tensors, parts=2)
    ids = [1, 4093, 198, 504, 3575, 282, 4649, 314]
    a, b = probe(path, 8, ids), probe(root / "real", 8, ids)
    worst = np.abs(np.array(a["logits"]) - np.array(b["logits"])).max()
    assert worst < 1e-3 and a["greedy"] == b["greedy"], (worst, a["greedy"], b["greedy"])
    print(f"{path.name}: as floats off by {worst:.1e}")


def main():
    with scratch() as root:
        check_architectures(root)
        check_rope(root)
        check_converted(root)
        check_refusals(root)
        check_anything(root, 60)
        if len(sys.argv) > 2 and pathlib.Path(sys.argv[2]).is_file():
            check_gguf(pathlib.Path(sys.argv[2]), root)


if __name__ == "__main__":
    main()
