"""Small random Whisper models: weights by NumPy, so that they are the same everywhere, and ONNX folders as optimum writes them."""

import json

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

LANGUAGES = ("en", "de", "fr")
END, START = 256, 257
LANGUAGE = {code: START + 1 + i for i, code in enumerate(LANGUAGES)}
TRANSLATE, TRANSCRIBE, LM, PREVIOUS, NO_SPEECH, NO_TIMESTAMPS = range(261, 267)
TIMES = NO_TIMESTAMPS + 1


def config(seconds=2, width=32, heads=4, layers=2, bins=80, positions=48):
    sources = seconds * 50
    return {
        "model_type": "whisper", "architectures": ["WhisperForConditionalGeneration"], "vocab_size": TIMES + sources + 1, "num_mel_bins": bins,
        "d_model": width, "encoder_layers": layers, "decoder_layers": layers, "encoder_attention_heads": heads, "decoder_attention_heads": heads,
        "encoder_ffn_dim": 2 * width, "decoder_ffn_dim": 2 * width, "max_source_positions": sources, "max_target_positions": positions,
        "activation_function": "gelu", "decoder_start_token_id": START, "eos_token_id": END, "bos_token_id": END, "pad_token_id": END,
        "scale_embedding": False, "use_cache": True, "suppress_tokens": [], "begin_suppress_tokens": [220, END],
    }


def generation_config(c):
    return {
        "decoder_start_token_id": START, "eos_token_id": END, "bos_token_id": END, "pad_token_id": END, "max_length": c["max_target_positions"],
        "no_timestamps_token_id": NO_TIMESTAMPS, "prev_sot_token_id": PREVIOUS, "is_multilingual": True, "return_timestamps": False,
        "lang_to_id": {f"<|{code}|>": i for code, i in LANGUAGE.items()}, "task_to_id": {"transcribe": TRANSCRIBE, "translate": TRANSLATE},
        "suppress_tokens": [1, 2, START, LM, PREVIOUS, NO_SPEECH], "begin_suppress_tokens": [220, END], "max_initial_timestamp_index": 20,
    }


def weights(c, seed, scale=1.0):
    """By transformers' names. `scale`: of the embedding, and so of the logits."""
    random = np.random.RandomState(seed)
    d, out = c["d_model"], {}

    def put(name, *shape, std):
        out[name] = (random.randn(*shape) * std).astype(np.float32)

    def linear(name, rows, columns, bias=True):
        put(f"{name}.weight", rows, columns, std=1.4 / columns**0.5)
        if bias:
            put(f"{name}.bias", rows, std=0.1)

    def norm(name):
        out[f"{name}.weight"] = (1 + 0.1 * random.randn(d)).astype(np.float32)
        put(f"{name}.bias", d, std=0.1)

    def attention(name):
        linear(f"{name}.k_proj", d, d, bias=False)
        for part in ("v_proj", "q_proj", "out_proj"):
            linear(f"{name}.{part}", d, d)

    def layers(side, crossed):
        for i in range(c[f"{side}_layers"]):
            at = f"model.{side}.layers.{i}"
            attention(f"{at}.self_attn")
            norm(f"{at}.self_attn_layer_norm")
            if crossed:
                attention(f"{at}.encoder_attn")
                norm(f"{at}.encoder_attn_layer_norm")
            linear(f"{at}.fc1", c[f"{side}_ffn_dim"], d)
            linear(f"{at}.fc2", d, c[f"{side}_ffn_dim"])
            norm(f"{at}.final_layer_norm")
        norm(f"model.{side}.layer_norm")

    put("model.encoder.conv1.weight", d, c["num_mel_bins"], 3, std=0.1)
    put("model.encoder.conv1.bias", d, std=0.1)
    put("model.encoder.conv2.weight", d, d, 3, std=0.15)
    put("model.encoder.conv2.bias", d, std=0.1)
    put("model.encoder.embed_positions.weight", c["max_source_positions"], d, std=0.3)
    layers("encoder", False)
    put("model.decoder.embed_tokens.weight", c["vocab_size"], d, std=scale)
    put("model.decoder.embed_positions.weight", c["max_target_positions"], d, std=0.5)
    layers("decoder", True)
    return out


class Net:
    """Nodes and constants of a graph."""

    def __init__(self, c, w):
        self.c, self.w, self.nodes, self.constants, self.count = c, w, [], {}, 0

    def __call__(self, op, *inputs, **attributes):
        self.count += 1
        name = f"v{id(self) % 997}_{self.count}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], **attributes))
        return name

    def constant(self, value, dtype=np.float32):
        value = np.asarray(value, dtype)
        name = f"c_{value.dtype}_{'_'.join(map(str, value.reshape(-1).tolist()))}_{value.ndim}"
        self.constants[name] = value
        return name

    def weight(self, name, turned=False):
        key = name + (".T" if turned else "")
        self.constants[key] = np.ascontiguousarray(self.w[name].T) if turned else self.w[name]
        return key

    def linear(self, x, name):
        y = self("MatMul", x, self.weight(f"{name}.weight", True))
        return self("Add", y, self.weight(f"{name}.bias")) if f"{name}.bias" in self.w else y

    def norm(self, x, name):
        return self("LayerNormalization", x, self.weight(f"{name}.weight"), self.weight(f"{name}.bias"), epsilon=1e-5)

    def gelu(self, x):
        half = self("Mul", x, self.constant(0.5))
        erf = self("Erf", self("Mul", x, self.constant(2**-0.5)))
        return self("Mul", half, self("Add", erf, self.constant(1.0)))

    def heads(self, x, side):
        heads = self.c[f"{side}_attention_heads"]
        split = self("Reshape", x, self.constant([0, 0, heads, self.c["d_model"] // heads], np.int64))
        return self("Transpose", split, perm=[0, 2, 1, 3])

    def attend_fused(self, op, q, k, v):
        mixed = self(op, q, k, v)  # Attention of opset 23, or MultiHeadAttention
        return self("Reshape", self("Transpose", mixed, perm=[0, 2, 1, 3]), self.constant([0, 0, self.c["d_model"]], np.int64))

    def attend(self, q, k, v, mask=None):
        size = self.c["d_model"] // self.c["decoder_attention_heads"]
        scores = self("MatMul", self("Mul", q, self.constant(size**-0.5)), self("Transpose", k, perm=[0, 1, 3, 2]))
        scores = self("Add", scores, mask) if mask else scores
        mixed = self("Transpose", self("MatMul", self("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
        return self("Reshape", mixed, self.constant([0, 0, self.c["d_model"]], np.int64))

    def feed_forward(self, x, at):
        y = self.norm(x, f"{at}.final_layer_norm")
        return self("Add", x, self.linear(self.gelu(self.linear(y, f"{at}.fc1")), f"{at}.fc2"))

    def initializers(self):
        return [numpy_helper.from_array(v, k) for k, v in self.constants.items()]


def value(name, shape, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def save(graph, path, opset=17):
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    if opset == 17:  # old packages do not know newer ones
        onnx.checker.check_model(model)
    path.write_bytes(model.SerializeToString())


def encoder(c, w):
    n = Net(c, w)
    x = n.gelu(n("Conv", "input_features", n.weight("model.encoder.conv1.weight"), n.weight("model.encoder.conv1.bias"), pads=[1, 1]))
    x = n.gelu(n("Conv", x, n.weight("model.encoder.conv2.weight"), n.weight("model.encoder.conv2.bias"), pads=[1, 1], strides=[2]))
    x = n("Add", n("Transpose", x, perm=[0, 2, 1]), n.weight("model.encoder.embed_positions.weight"))
    for i in range(c["encoder_layers"]):
        at = f"model.encoder.layers.{i}"
        y = n.norm(x, f"{at}.self_attn_layer_norm")
        q, k, v = (n.heads(n.linear(y, f"{at}.self_attn.{p}_proj"), "encoder") for p in "qkv")
        x = n("Add", x, n.linear(n.attend(q, k, v), f"{at}.self_attn.out_proj"))
        x = n.feed_forward(x, at)
    x = n.norm(x, "model.encoder.layer_norm")
    n.nodes.append(helper.make_node("Identity", [x], ["last_hidden_state"]))
    frames = 2 * c["max_source_positions"]
    return helper.make_graph(n.nodes, "encoder", [value("input_features", ["batch", c["num_mel_bins"], frames])],
                             [value("last_hidden_state", ["batch", frames // 2, c["d_model"]])], n.initializers())


def cache_names(c, prefix):
    return [f"{prefix}.{i}.{side}.{part}" for i in range(c["decoder_layers"]) for side in ("decoder", "encoder") for part in ("key", "value")]


def decoder_body(c, w, past, fused=False):
    """Nodes from input_ids (and the pasts) to a list of results: logits, then the presents by name."""
    n = Net(c, w)
    length = n("Shape", "input_ids", start=1, end=2)
    before = n("Shape", "past_key_values.0.decoder.key", start=2, end=3) if past else n.constant([0], np.int64)
    total = n("Add", before, length)
    one, zero = n.constant(1, np.int64), n.constant(0, np.int64)
    scalar = [n("Squeeze", v, n.constant([0], np.int64)) for v in (before, total)]
    at = n("Range", scalar[0], scalar[1], one)
    x = n("Gather", n.weight("model.decoder.embed_tokens.weight"), "input_ids")
    x = n("Add", x, n("Gather", n.weight("model.decoder.embed_positions.weight"), at))
    later = n("Less", n("Unsqueeze", at, n.constant([1], np.int64)), n("Unsqueeze", n("Range", zero, scalar[1], one), n.constant([0], np.int64)))
    mask = n("Mul", n("Cast", later, to=TensorProto.FLOAT), n.constant(-1e9))
    presents = {}
    for i in range(c["decoder_layers"]):
        here = f"model.decoder.layers.{i}"
        y = n.norm(x, f"{here}.self_attn_layer_norm")
        q, k, v = (n.heads(n.linear(y, f"{here}.self_attn.{p}_proj"), "decoder") for p in "qkv")
        if past:
            k = n("Concat", f"past_key_values.{i}.decoder.key", k, axis=2)
            v = n("Concat", f"past_key_values.{i}.decoder.value", v, axis=2)
        presents[f"present.{i}.decoder.key"], presents[f"present.{i}.decoder.value"] = k, v
        x = n("Add", x, n.linear(n.attend(q, k, v, mask), f"{here}.self_attn.out_proj"))
        y = n.norm(x, f"{here}.encoder_attn_layer_norm")
        q = n.heads(n.linear(y, f"{here}.encoder_attn.q_proj"), "decoder")
        if past:
            k, v = f"past_key_values.{i}.encoder.key", f"past_key_values.{i}.encoder.value"
        else:
            k, v = (n.heads(n.linear("encoder_hidden_states", f"{here}.encoder_attn.{p}_proj"), "decoder") for p in "kv")
        presents[f"present.{i}.encoder.key"], presents[f"present.{i}.encoder.value"] = k, v
        attended = n.attend_fused("Attention", q, k, v) if fused else n.attend(q, k, v)
        x = n("Add", x, n.linear(attended, f"{here}.encoder_attn.out_proj"))
        x = n.feed_forward(x, here)
    logits = n("MatMul", n.norm(x, "model.decoder.layer_norm"), n.weight("model.decoder.embed_tokens.weight", True))
    return n, logits, presents


def decoder(c, w, kind):
    """"first": without pasts, "plain" and "fused" (with the operator Attention): also without presents, "later": with pasts, "merged": both, by
    use_cache_branch."""
    heads, size = c["decoder_attention_heads"], c["d_model"] // c["decoder_attention_heads"]
    ids = value("input_ids", ["batch", "length"], TensorProto.INT64)
    hidden = value("encoder_hidden_states", ["batch", c["max_source_positions"], c["d_model"]])
    pasts = [value(name, ["batch", heads, "past" if ".decoder." in name else "sound", size]) for name in cache_names(c, "past_key_values")]
    logits_out = value("logits", ["batch", "length", c["vocab_size"]])

    def outputs(names):
        return [logits_out, *(value(name, ["batch", heads, f"length of {name}", size]) for name in names)]

    if kind == "merged":
        return merged_decoder(c, w, ids, hidden, pasts, outputs)
    n, logits, presents = decoder_body(c, w, kind == "later", kind == "fused")
    names = [] if kind in ("plain", "fused") else [k for k in presents if kind == "first" or ".decoder." in k]
    for name, held in [("logits", logits), *((k, presents[k]) for k in names)]:
        n.nodes.append(helper.make_node("Identity", [held], [name]))
    return helper.make_graph(n.nodes, kind, [ids, *pasts] if kind == "later" else [ids, hidden], outputs(names), n.initializers())


def merged_decoder(c, w, ids, hidden, pasts, outputs):
    constants, branches = {}, {}
    heads, size = c["decoder_attention_heads"], c["d_model"] // c["decoder_attention_heads"]
    for past in (False, True):
        n, logits, presents = decoder_body(c, w, past)
        ends = []
        for name, held in [("logits", logits), *presents.items()]:
            end = f"{name}_{past}"
            if past and ".encoder." in name:  # as optimum does: nothing of use
                n.constants["nothing"] = np.zeros((0, heads, 1, size), np.float32)
                held = "nothing"
            n.nodes.append(helper.make_node("Identity", [held], [end]))
            ends.append(value(end, None))
        constants.update(n.constants)
        branches[past] = helper.make_graph(n.nodes, f"branch_{past}", [], ends)
    names = cache_names(c, "present")
    order = ["logits", *presents]
    node = helper.make_node("If", ["use_cache_branch"], order, then_branch=branches[True], else_branch=branches[False])
    switch = value("use_cache_branch", [1], TensorProto.BOOL)
    all_outputs = {o.name: o for o in outputs(names)}
    return helper.make_graph([node], "merged", [ids, hidden, *pasts, switch], [all_outputs[o] for o in order],
                             [numpy_helper.from_array(v, k) for k, v in constants.items()])


def byte_characters():
    """GPT-2's character for each byte."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    table, extra = {}, 0
    for byte in range(256):
        if byte in shown:
            table[byte] = chr(byte)
        else:
            table[byte] = chr(256 + extra)
            extra += 1
    return table


def tokenizer(c):
    special = {END: "<|endoftext|>", START: "<|startoftranscript|>", **{i: f"<|{code}|>" for code, i in LANGUAGE.items()},
               TRANSLATE: "<|translate|>", TRANSCRIBE: "<|transcribe|>", LM: "<|startoflm|>", PREVIOUS: "<|startofprev|>",
               NO_SPEECH: "<|nospeech|>", NO_TIMESTAMPS: "<|notimestamps|>",
               **{TIMES + i: f"<|{i * 0.02:.2f}|>" for i in range(c["max_source_positions"] + 1)}}
    added = [{"id": i, "content": text, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": i < TIMES}
             for i, text in special.items()]
    vocabulary = {character: byte for byte, character in byte_characters().items()}
    plain = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": None, "pre_tokenizer": plain,
            "post_processor": None, "decoder": plain,
            "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": "", "end_of_word_suffix": "",
                      "fuse_unk": False, "byte_fallback": False, "vocab": vocabulary, "merges": []}}


def safetensors(w, dtype):
    """The bytes of a .safetensors file, by transformers' names."""
    header, data, kind = {}, b"", {"float32": "F32", "float16": "F16"}[dtype]
    for name, tensor in w.items():
        part = tensor.astype(dtype).tobytes()
        header[name] = {"dtype": kind, "shape": list(tensor.shape), "data_offsets": [len(data), len(data) + len(part)]}
        data += part
    head = json.dumps(header).encode()
    return len(head).to_bytes(8, "little") + head + data


def write_folder(folder, c, w, kinds=("merged",), **generation):
    """`kinds`: of the decoders: ("merged",), ("first", "later"), ("plain",), ("fused",), or ("weights",): .safetensors. `generation`: more
    of generation_config.json."""
    folder.mkdir(parents=True, exist_ok=True)
    names = {"merged": "decoder_model_merged", "later": "decoder_with_past_model", **dict.fromkeys(("first", "plain", "fused"), "decoder_model")}
    if kinds == ("weights",):
        (folder / "model.safetensors").write_bytes(safetensors(w, "float32"))
        kinds = ()
    else:
        save(encoder(c, w), folder / "encoder_model.onnx")
    for kind in kinds:
        save(decoder(c, w, kind), folder / f"{names[kind]}.onnx", 23 if kind == "fused" else 17)
    files = {"config.json": c, "generation_config.json": {**generation_config(c), **generation}, "tokenizer.json": tokenizer(c),
             "preprocessor_config.json": {"feature_extractor_type": "WhisperFeatureExtractor", "feature_size": c["num_mel_bins"],
                                          "sampling_rate": 16000, "hop_length": 160, "n_fft": 400,
                                          "chunk_length": c["max_source_positions"] // 50}}
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content))


def sound(seconds, seed):
    """Bursts of noise and tones, as 16-bit numbers."""
    random = np.random.RandomState(seed)
    t = np.arange(int(seconds * 16000)) / 16000
    loud = 0.5 + 0.5 * np.sin(2 * np.pi * 1.7 * t)
    x = 0.2 * loud * np.sin(2 * np.pi * (200 + 300 * np.sin(3 * t)) * t) + 0.05 * loud**2 * random.randn(t.size)
    return np.clip(x * 32767, -32768, 32767).astype(np.int16)


def wav(samples, rate=16000):
    data = samples.astype("<i2").tobytes()
    import struct
    return (b"RIFF" + struct.pack("<I", 36 + len(data)) + b"WAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 1, rate, rate * 2, 2, 16) + b"data" +
            struct.pack("<I", len(data)) + data)
