#!/usr/bin/env python3
"""LoRA adapters beside the same network with dense weights W + scale * alpha / rank * B * A: adapters.py LANGUAGE_PROBE

Folders as PEFT writes them and GGUF files, several at once, on weights of several types, in GGUF files, in folders of Hugging Face's and
in networks that come as ONNX. With the package onnx and SDX_TEST_MODELS also on the networks there. Exit code 77: numpy is missing.
"""

import json
import os
import pathlib
import struct
import subprocess
import sys

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent.parent / part) for part in ("text", "support")]
import architectures  # noqa: E402, leaves with 77 where numpy is missing
import hugging_face_folders  # noqa: E402
import numpy as np  # noqa: E402
from architectures import Model, key, probe  # noqa: E402
from networks import Writer  # noqa: E402
from scratch import scratch  # noqa: E402

MODULES = {"attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
           "attn_qkv": "self_attn.qkv_proj", "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}


def safetensors(path, tensors):

    header, data = {}, b""
    for i, (name, w) in enumerate(tensors.items()):
        raw = w.tobytes()
        header[name] = {"dtype": "F16" if w.dtype == np.float16 else "F32", "shape": list(w.shape),
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    head = json.dumps(header).encode()
    head += b" " * (-len(head) % 8)
    path.write_bytes(struct.pack("<Q", len(head)) + head + data)


class Adapter:
    """Random parts for the weights of a model whose names end with one of `of`."""

    def __init__(self, model, of, rank, alpha, seed):
        rng = np.random.default_rng(seed)
        self.rank, self.alpha, self.parts, self.phi = rank, alpha, {}, model.a == "phi3"
        for name, w in model.w.items():
            if any(name.endswith(f"{end}.weight") for end in of) and w.ndim == 2:
                a = rng.standard_normal((rank, w.shape[1])).astype(np.float16).astype(np.float32) * np.float32(0.25)
                b = rng.standard_normal((w.shape[0], rank)).astype(np.float32) * np.float32(0.1)
                self.parts[name] = (a, b)

    def merged(self, weights, scale):
        return {name: w + scale * self.parts[name][1].astype(np.float64) @ self.parts[name][0] if name in self.parts else w
                for name, w in weights.items()}

    def peft(self, folder, **config):
        folder.mkdir()
        tensors = {}
        for name, (a, b) in self.parts.items():
            layer = name.split(".")[1]
            part = name.split(".")[2] if name.startswith("blk.") else ""
            inner = "mlp.gate_up_proj" if self.phi and part == "ffn_up" else MODULES.get(part)
            module = "lm_head" if name.startswith(("output.", "token_embd")) else f"model.layers.{layer}.{inner}"
            tensors[f"base_model.model.{module}.lora_A.weight"] = a.astype(np.float16)
            tensors[f"base_model.model.{module}.lora_B.weight"] = b
        safetensors(folder / "adapter_model.safetensors", tensors)
        settings = {"peft_type": "LORA", "r": self.rank, "lora_alpha": self.alpha, "bias": "none", "use_dora": False}
        (folder / "adapter_config.json").write_text(json.dumps({**settings, **config}))
        return folder

    def gguf(self, path, model, architecture=None):
        file = Writer(architecture or model.a)
        file.keys += [key("general.type", "adapter"), key("adapter.type", "lora"), key("adapter.lora.alpha", float(self.alpha))]
        heads = {"attn_q": model.o["heads"], "attn_k": model.o["kv"]}
        for name, (a, b) in self.parts.items():
            part = name.split(".")[2] if name.startswith("blk.") else "" if name.startswith("blk.") else ""
            if model.a == "llama" and part in heads:  # as the model's own rows
                b = b.reshape(heads[part], 2, -1, self.rank).swapaxes(1, 2).reshape(b.shape)
            file.add(name + ".lora_a", a.shape, np.ascontiguousarray(a).tobytes(), 0)
            file.add(name + ".lora_b", b.shape, np.ascontiguousarray(b).tobytes(), 0)
        file.write(path)
        return path


def check(what, model, path, loras, weights):
    ids = list(np.random.default_rng(5).integers(0, model.o["vocabulary"], 17))
    kept, model.w = model.w, weights
    expected = model.logits(ids)
    model.w = kept
    made = np.array(probe(path, 3, ids, 0, loras)["logits"])
    worst = np.abs(made - expected).max()
    assert worst < 4e-5 * max(1.0, np.abs(expected).max()), f"{what}: logits are off by {worst}"
    moved = np.abs(expected - model.logits(ids)).max()
    print(f"{what}: off by {worst:.1e}, the adapter moves logits by {moved:.2f}")
    assert moved > 0.05, f"{what}: the adapter does nothing"


def refused(path, adapter, *words):
    done = subprocess.run([architectures.PROBE, "-l", str(adapter), "1", str(path), "1", "3"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and all(w in done.stderr for w in words), f"expected {words}: {done.stderr}"


def refusals(folder, model, path):
    good = Adapter(model, ["attn_q"], 2, 4, 9)
    for i, (config, word) in enumerate([({"use_dora": True}, "use_dora"), ({"bias": "all"}, "bias"), ({"peft_type": "IA3"}, "IA3"),
                                        ({"modules_to_save": ["lm_head"]}, "modules_to_save"), ({"lora_alpha": "x"}, "type"),
                                        ({"alpha_pattern": {"q_.*": 3}}, "alpha_pattern")]):
        refused(path, good.peft(folder / f"bad{i}", **config), word)
    other = Model("llama", width=32, size=8, rotary=8, seed=3)
    refused(path, Adapter(other, ["attn_v"], 2, 4, 9).peft(folder / "width"), "does not fit", "blk.0.attn_v.weight")
    deeper = Model("llama", layers=4, seed=3)
    refused(path, Adapter(deeper, ["attn_v"], 2, 4, 9).peft(folder / "deep"), "blk.3.attn_v.weight")
    refused(path, good.gguf(folder / "qwen.gguf", model, "qwen2"), "architecture 'qwen2'")
    refused(path, path, "not a LoRA adapter")
    refused(path, folder / "none", "none")
    (folder / "empty").mkdir()
    refused(path, folder / "empty", "adapter_config.json")
    broken = good.peft(folder / "broken")
    raw = (broken / "adapter_model.safetensors").read_bytes()
    for cut in (0, 7, 20, len(raw) // 2, len(raw) - 1):
        (broken / "adapter_model.safetensors").write_bytes(raw[:cut])
        refused(path, broken, "adapter_model.safetensors")


def other_forms(folder, name, model, path):
    """The same model in other files."""
    forms = {"ONNX": folder / f"{path.stem}.onnx"}
    done = subprocess.run([architectures.PROBE, "--convert", str(path), str(forms["ONNX"])], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    if "mixed" not in name:
        forms["safetensors"] = folder / f"{path.stem}.hf"
        hugging_face_folders.write_folder(forms["safetensors"], hugging_face_folders.config_of(model), hugging_face_folders.tensors_of(model))
    return forms


def unknown_names(folder, model):
    """Adapters of what a network has not, and networks whose products have no names."""
    place = folder / "0.onnx"
    deeper = Adapter(Model("llama", layers=4, seed=3), ["attn_v"], 2, 4, 9)
    refused(place, deeper.peft(folder / "deeper"), "blk.3.attn_v.weight")
    other = Model("llama", width=32, size=8, rotary=8, seed=3)
    refused(place, Adapter(other, ["attn_v"], 2, 4, 9).peft(folder / "narrow"), "does not fit", "blk.0.attn_v.weight")
    longer = Model("llama", size=32, rotary=32, seed=3)
    refused(place, Adapter(longer, ["attn_v"], 2, 4, 9).peft(folder / "longer"), "does not fit", "blk.0.attn_v.weight")
    raw = (place / "model.onnx").read_bytes()
    (place / "model.onnx").write_bytes(raw.replace(b"v_proj", b"w_proj"))
    refused(place, Adapter(model, ["attn_v"], 2, 4, 9).peft(folder / "unnamed"), "blk.0.attn_v.weight")
    (place / "model.onnx").write_bytes(raw)


def stored_networks(folder):
    """Networks of other programs, beside the same with the adapter in their weights."""
    try:
        import onnx
        from onnx import numpy_helper
    except ImportError:
        return print("no package onnx: no networks of other programs")
    models = pathlib.Path(os.environ.get("SDX_TEST_MODELS", "none")) / "llm_stories260k"
    rng = np.random.default_rng(8)
    for kind in ("genai_fp32", "optimum"):
        if not (models / kind / "model.onnx").exists():
            print(f"no {models / kind}")
            continue
        place = folder / kind
        place.mkdir()
        for file in [*models.glob("*.json"), *(models / kind).glob("*.json")]:
            (place / file.name).write_bytes(file.read_bytes())
        network = onnx.load(models / kind / "model.onnx")
        onnx.save(network, place / "model.onnx")
        tensors, merged = {}, 0
        for weight in network.graph.initializer:
            words = weight.name.split(".")
            if len(words) < 2 or words[-2] not in ("q_proj", "v_proj", "down_proj", "gate_proj", "lm_head"):
                continue
            w = numpy_helper.to_array(weight)  # [k, n]
            a, b = (rng.standard_normal((3, w.shape[0])) * 0.2).astype(np.float32), (rng.standard_normal((w.shape[1], 3)) * 0.2).astype(np.float32)
            inner = {"q_proj": "self_attn.", "v_proj": "self_attn."}.get(words[-2], "mlp.")
            module = "lm_head" if words[-2] == "lm_head" else f"model.layers.{words[-3]}.{inner}{words[-2]}"
            tensors[f"base_model.model.{module}.lora_A.weight"], tensors[f"base_model.model.{module}.lora_B.weight"] = a, b
            weight.CopyFrom(numpy_helper.from_array((w + 2 * (b.astype(np.float64) @ a).T).astype(np.float32), weight.name))
            merged += 1
        assert merged > 15, merged
        adapter = folder / f"{kind}.adapter"
        adapter.mkdir()
        safetensors(adapter / "adapter_model.safetensors", tensors)
        (adapter / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA", "r": 3, "lora_alpha": 6}))
        with_weights = folder / f"{kind}.merged"
        with_weights.mkdir()
        for file in place.glob("*.json"):
            (with_weights / file.name).write_bytes(file.read_bytes())
        onnx.save(network, with_weights / "model.onnx")
        ids = [1, 403, 407, 261, 378, 432]
        expected, plain = (np.array(probe(p, 0, ids)["logits"]) for p in (with_weights, place))
        made = np.array(probe(place, 0, ids, 0, [(adapter, 1.0)])["logits"])
        worst = np.abs(made - expected).max()
        print(f"{kind}: off by {worst:.1e}, the adapter moves logits by {np.abs(expected - plain).max():.2f}")
        assert worst < 1e-4 * max(1.0, np.abs(expected).max()) and np.abs(expected - plain).max() > 0.5


def main():
    with scratch() as folder:
        models = {"llama": Model("llama"), "llama, types mixed": Model("llama", kinds=("f16", "q8_0", "bf16", "q4_0", "f32"), tied=False, seed=2),
                  "qwen2": Model("qwen2", bias=True, seed=6), "phi3": Model("phi3", tied=False, seed=11), "gemma3": Model("gemma3", layers=3, norms=True, seed=10)}
        for i, (name, model) in enumerate(models.items()):
            path = folder / f"{i}.gguf"
            model.file.write(path)
            everything = list(MODULES) + ([] if model.o["tied"] else ["output"])
            one, two = Adapter(model, everything, 4, 6, 1), Adapter(model, ["attn_q", "attn_k", "ffn_down"], 2, 3, 2)
            one.peft(folder / f"one{i}")
            one.gguf(folder / f"one{i}.gguf", model)
            two.peft(folder / f"two{i}", use_rslora=True)
            both = two.merged(one.merged(model.w, 6 / 4), -2 * 3 / 2**0.5)
            for kind, place in {"GGUF": path, **other_forms(folder, name, model, path)}.items():
                check(f"{name} as {kind}, a folder", model, place, [(folder / f"one{i}", 1.0)], one.merged(model.w, 6 / 4))
                check(f"{name} as {kind}, a GGUF file", model, place, [(folder / f"one{i}.gguf", 0.5)], one.merged(model.w, 0.5 * 6 / 4))
                check(f"{name} as {kind}, both", model, place, [(folder / f"one{i}", 1.0), (folder / f"two{i}", -2.0)], both)
        model = models["llama"]
        adapter = Adapter(model, ["attn_v", "ffn_up"], 2, 8, 4)
        weights = Adapter.merged(adapter, model.w, 8 / 2)
        for name in model.w:
            if name.endswith("attn_v.weight"):
                weights[name] = model.w[name] + 3 / 2 * adapter.parts[name][1].astype(np.float64) @ adapter.parts[name][0]
        check("alphas of modules", model, folder / "0.gguf", [(adapter.peft(folder / "alphas", alpha_pattern={"v_proj": 3}), 1.0)], weights)
        refusals(folder, model, folder / "0.gguf")
        unknown_names(folder, model)
        stored_networks(folder)


main()
