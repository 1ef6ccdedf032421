"""Writes the small models and data files that the command-line tests use. Standard library only."""

import json
import struct
import sys
import zlib
from pathlib import Path

from tiny_checkpoints import write_checkpoints
from tiny_speech import write_speech
from tiny_training import write_training

FLOAT, UINT8, INT32, INT64, STRING = 1, 2, 6, 7, 8
FLOAT_ATTRIBUTE, INT_ATTRIBUTE = 1, 2


def varint(value):
    out = bytearray()
    value &= (1 << 64) - 1
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field, value):
    return varint(field << 3) + varint(value)


def data(field, value):
    value = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(value)) + value


def value_info(name, elem, shape):
    dims = b"".join(data(1, number(1, d) if isinstance(d, int) else data(2, d)) for d in shape)
    return data(1, name) + data(2, data(1, number(1, elem) + data(2, dims)))


def node(op, inputs, outputs, domain="", **attributes):
    out = b"".join(data(1, i) for i in inputs) + b"".join(data(2, o) for o in outputs) + data(3, f"{op}_0") + data(4, op)
    for name, value in attributes.items():
        out += data(5, data(1, name) + number(3, value) + number(20, INT_ATTRIBUTE))
    return out + (data(7, domain) if domain else b"")


def tensor(name, elem, shape, raw):
    return b"".join(number(1, d) for d in shape) + number(2, elem) + data(8, name) + data(9, raw)


def model(nodes, inputs, outputs, initializers=(), opset=17):
    graph = b"".join(data(1, n) for n in nodes) + data(2, "tiny") + b"".join(data(5, t) for t in initializers)
    graph += b"".join(data(11, i) for i in inputs) + b"".join(data(12, o) for o in outputs)
    return number(1, 8) + data(2, "tests") + data(7, graph) + data(8, data(1, "") + number(2, opset))


def npy(descr, shape, raw):
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape!r}, }}".encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + raw


def png(width, height, rgb):
    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    rows = b"".join(b"\0" + rgb[y * width * 3:(y + 1) * width * 3] for y in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def wav(rate, samples):
    raw = struct.pack(f"<{len(samples)}h", *samples)
    return (b"RIFF" + struct.pack("<I", 36 + len(raw)) + b"WAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 1, rate, rate * 2, 2, 16) +
            b"data" + struct.pack("<I", len(raw)) + raw)


def aiff(rate, samples):
    raw = struct.pack(f">{len(samples)}h", *samples)
    common = struct.pack(">HIHHQ", 1, len(samples), 16, 0x3FFF + rate.bit_length() - 1, rate << (64 - rate.bit_length()))
    body = b"AIFFCOMM" + struct.pack(">I", len(common)) + common + b"SSND" + struct.pack(">III", 8 + len(raw), 0, 0) + raw
    return b"FORM" + struct.pack(">I", len(body)) + body


def write_sound(put):
    put("tone.wav", wav(8000, [0, 16384, -16384, 0]))
    put("tone.aiff", aiff(8000, [0, 16384, -16384, 0]))
    write_speech(put, sys.modules[__name__])


def floats(*values):
    return struct.pack(f"<{len(values)}f", *values)


def face_detector():
    """A detector with SCRFD's outputs that sees one face, 32 x 32 in the middle of its 64 x 64 pixels, in whatever is not dark."""
    nodes = [node("ReduceMax", ["image"], ["most"], keepdims=0), node("Add", ["most", "one"], ["light"])]
    constants, outputs = [tensor("one", FLOAT, [], floats(1))], []
    for stride in (8, 16, 32):
        cells = 2 * (64 // stride) ** 2
        seen = 2 * (4 * 8 + 4) if stride == 8 else -1  # the first of two anchors whose centre is (32, 32)
        for kind, width, values in (("score", 1, [0.45]), ("bbox", 4, [2, 2, 2, 2]),
                                    ("kps", 10, [-1, -0.75, 1, -0.75, 0, 0, -0.75, 1, 0.75, 1])):
            name = f"{kind}_{stride}"
            rows = b"".join(floats(*(values if i == seen else [0] * width)) for i in range(cells))
            constants.append(tensor(f"of_{name}", FLOAT, [cells, width], rows))
            nodes.append(node("Mul", [f"of_{name}", "light"], [name]) if kind == "score" else node("Identity", [f"of_{name}"], [name]))
            outputs.append(value_info(name, FLOAT, [cells, width]))
    return model(nodes, [value_info("image", FLOAT, [1, 3, 64, 64])], outputs, constants)


def alphabet():
    """GPT-2's letters for all bytes; what ends texts and brackets comes first, so that an answer that is held to JSON is short."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters, beyond = {}, 0
    for byte in range(256):
        if byte in plain:
            letters[byte] = chr(byte)
        else:
            letters[byte], beyond = chr(256 + beyond), beyond + 1
    first = [ord(c) for c in "\"}]0,:"]
    order = [*first, *(b for b in plain if b not in first), *(b for b in range(256) if b not in plain)]
    return [letters[b] for b in order]


def gguf(words=(), context=16, template="{{ tools | length if tools else '' }}{% for m in messages %}{{ m.content }}{% endfor %}") -> bytes:
    """A language model of one layer, all zeros: each token is as likely as the others, and the first comes first. `words`: its tokens
    (eight without), the last of which ends a text."""
    text = lambda value: struct.pack("<Q", len(value.encode())) + value.encode()
    keys = [text("general.architecture") + struct.pack("<I", 8) + text("llama")]
    for name, value in {"context_length": context, "embedding_length": 32, "block_count": 1, "feed_forward_length": 32, "attention.head_count": 2,
                        "attention.head_count_kv": 1}.items():
        keys.append(text(f"llama.{name}") + struct.pack("<II", 4, value))
    if words:
        keys += [text("tokenizer.ggml.model") + struct.pack("<I", 8) + text("gpt2"),
                 text("tokenizer.ggml.tokens") + struct.pack("<IIQ", 9, 8, len(words)) + b"".join(map(text, words)),
                 text("tokenizer.ggml.token_type") + struct.pack(f"<IIQ{len(words)}i", 9, 5, len(words), *[1] * (len(words) - 1), 3),
                 text("tokenizer.ggml.merges") + struct.pack("<IIQ", 9, 8, 0),
                 text("tokenizer.ggml.eos_token_id") + struct.pack("<II", 4, len(words) - 1),
                 text("tokenizer.chat_template") + struct.pack("<I", 8) + text(template)]
    tensors, at = b"", 0
    shapes = {"token_embd": (32, len(words) or 8), "output_norm": (32,), "blk.0.attn_norm": (32,), "blk.0.attn_q": (32, 32), "blk.0.attn_k": (32, 16),
              "blk.0.attn_v": (32, 16), "blk.0.attn_output": (32, 32), "blk.0.ffn_norm": (32,), "blk.0.ffn_gate": (32, 32),
              "blk.0.ffn_up": (32, 32), "blk.0.ffn_down": (32, 32)}
    for name, shape in shapes.items():
        tensors += text(name + ".weight") + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, 0, at)
        at += 4 * shape[0] * (shape[1] if len(shape) > 1 else 1)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(shapes), len(keys)) + b"".join(keys) + tensors
    return head + b"\0" * (-len(head) % 32 + at)


def write_faces(put):
    put("faces.onnx", face_detector())
    light, dark = png(64, 64, bytes([250, 240, 230]) * 4096), png(64, 64, bytes(3 * 4096))
    for name in ("photos/light.png", "photos/sub/light.png", "photos/name with é.png", "photos/.hidden.png", "light.png"):
        put(name, light)
    put("photos/dark.png", dark)
    put("photos/notes.txt", "no picture")
    put("mixed/light.png", light)
    put("mixed/broken.png", light[:60])
    put("frame.ppm", b"P6 64 64 255\n" + bytes([250, 240, 230]) * 4096)
    put("people.csv", "photo;number\nlight.png;0007\n\"sub/light.png\";team/0008.png\n")


def write_language(put):
    put("tiny.gguf", gguf())
    put("talker.gguf", gguf(["a", "b", "1", "2", "\u0120", '"', "c", "<end>"]))
    put("question.json", json.dumps([{"role": "user", "content": "ab"}]))
    put("tools.json", json.dumps([{"type": "function", "function": {"name": "f", "parameters": {}}}]))
    put("prompt.txt", "ab")
    put("number.gbnf", 'root ::= "b" [12] "c"\n')
    put("schema.json", json.dumps({"enum": [12]}))
    for folder in ("letters", "embedder", "reranker"):
        put(folder + "/tokenizer.json", json.dumps({
            "version": "1.0", "added_tokens": [{"id": i, "content": c, "special": True, "normalized": False} for i, c in
                                               ((1, "<s>"), (2, "</s>"))],
            "pre_tokenizer": {"type": "WhitespaceSplit"},
            "post_processor": {"type": "BertProcessing", "cls": ["<s>", 1], "sep": ["</s>", 2]},
            "model": {"type": "WordLevel", "unk_token": "[UNK]", "vocab": {"[UNK]": 0, "<s>": 1, "</s>": 2, "a": 3, "ab": 4}}}))
    texts = [value_info("input_ids", INT64, ["texts", "tokens"]), value_info("attention_mask", INT64, ["texts", "tokens"])]
    put("embedder/model.onnx", model([node("Cast", ["input_ids"], ["numbers"], to=FLOAT),
                                      node("Unsqueeze", ["numbers", "axes"], ["last_hidden_state"])],
                                     texts, [value_info("last_hidden_state", FLOAT, ["texts", "tokens", 1])],
                                     [tensor("axes", INT64, [1], struct.pack("<q", 2))]))
    put("embedder/config_sentence_transformers.json", json.dumps({"prompts": {"query": "ab "}}))
    put("reranker/model.onnx", model([node("Cast", ["input_ids"], ["numbers"], to=FLOAT),
                                      node("ReduceSum", ["numbers", "axes"], ["logits"])],
                                     texts, [value_info("logits", FLOAT, ["texts", 1])],
                                     [tensor("axes", INT64, [1], struct.pack("<q", 1))]))
    put("texts.txt", "ab a\nab\n")
    put("strong.txt", "".join(" ".join(["a"] * n) + "\n" for n in (4, 6, 5, 1)))
    put("texts.jsonl", '{"text": "ab a"}\n\n"ab"\n')
    put("wrong.jsonl", "[1]\n")


LINES = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"


def write_served(folder: Path, context: int):
    """What tests of servers serve: letters.gguf, with room for this many tokens, and the files of write_language() and write_speech()."""
    (folder / "letters.gguf").write_bytes(gguf([*alphabet(), "<end>"], context, LINES))

    def put(name, content):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)

    write_language(put)
    write_speech(put, sys.modules[__name__])


def write_old(put):
    # As files of IR version 3 do: every weight is an input with a default.
    put("old.onnx", model([node("Sum", ["X", *(f"w{i}" for i in range(6))], ["Y"])],
                          [value_info("X", FLOAT, [2]), *(value_info(f"w{i}", FLOAT, [2]) for i in range(6))],
                          [value_info("Y", FLOAT, [2])], [tensor(f"w{i}", FLOAT, [2], floats(1, 2)) for i in range(6)]))


def write_benchmarks(put):
    def benchmark(model="m", backend="cpu", shape=(1,), ms=10.0, **more):
        times = [ms + 0.001 * (i * 37 % 101) for i in range(100)]
        return json.dumps({"model": model, "inputs": [{"name": "X", "dtype": "float32", "shape": shape}],
                           "results": [{"backend": backend, "latencies_ms": times}], **more})

    put("fast.json", benchmark())
    put("slow.json", benchmark(ms=11.0))
    put("other_model.json", benchmark(model="other.onnx"))
    put("contents.json", benchmark(model_hash="1"))
    put("other_contents.json", benchmark(model_hash="2"))
    put("renamed.json", benchmark(model="other.onnx", model_hash="1"))
    put("other_backend.json", benchmark(backend="cuda"))
    put("other_inputs.json", benchmark(shape=(2,)))
    put("wrong.json", json.dumps({"results": [{"backend": "cpu", "latencies_ms": [1, -2]}]}))


def write_indices(put):
    # As a text encoder: ids and token types index tables; `I` of places.onnx indexes what only a run knows the length of.
    put("types.onnx", model([node("Gather", ["words", "ids"], ["a"]), node("Cast", ["types"], ["t"], to=INT64), node("Gather", ["kinds", "t"], ["b"]),
                             node("Add", ["a", "b"], ["Y"])],
                            [value_info("ids", INT64, ["batch", "sequence"]), value_info("types", INT32, ["batch", "sequence"])],
                            [value_info("Y", FLOAT, ["batch", "sequence", 1])],
                            [tensor("words", FLOAT, [3, 1], floats(1, 2, 3)), tensor("kinds", FLOAT, [2, 1], floats(10, 20))]))
    put("places.onnx", model([node("NonZero", ["X"], ["found"]), node("Gather", ["found", "I"], ["Y"], axis=1)],
                             [value_info("X", FLOAT, [2]), value_info("I", INT64, [64])], [value_info("Y", INT64, [1, 64])]))


def write_inexact(put):
    """Y = X + 1.5, by constants that are the same number in float16."""
    constants = [tensor("far", FLOAT, [64], floats(*[4097.5] * 64)), tensor("near", FLOAT, [64], floats(*[4096.0] * 64))]
    put("cancel.onnx", model([node("Add", ["X", "far"], ["a"]), node("Sub", ["a", "near"], ["Y"])], [value_info("X", FLOAT, [64])],
                             [value_info("Y", FLOAT, [64])], constants))


def write_all(folder: Path):
    def put(name, content):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())

    put("add.onnx", model([node("Add", ["A", "B"], ["C"])],
                          [value_info("A", FLOAT, [2]), value_info("B", FLOAT, [2])], [value_info("C", FLOAT, [2])]))
    put("far.onnx", model([node("Gelu", ["X"], ["Y"], domain="com.microsft")], [value_info("X", FLOAT, [2])], [value_info("Y", FLOAT, [2])]) +
        data(8, data(1, "com.microsft") + number(2, 1)))
    put("scale.onnx", model([node("Mul", ["X", "factor"], ["Y"])],
                            [value_info("X", FLOAT, ["n"]), value_info("factor", FLOAT, [1])], [value_info("Y", FLOAT, ["n"])],
                            [tensor("factor", FLOAT, [1], floats(10))]))
    write_old(put)
    put("names.onnx", model([node("Identity", ["S"], ["T"])], [value_info("S", STRING, [2])], [value_info("T", STRING, [2])]))
    put("broad.onnx", model([node("Relu", ["X"], ["Y"])], [value_info("X", FLOAT, ["width"])], [value_info("Y", FLOAT, ["width"])]))
    put("ints.onnx", model([node("Add", ["I", "I"], ["J"])], [value_info("I", INT64, ["n"])], [value_info("J", INT64, ["n"])]))
    put("picture.onnx", model([node("Identity", ["image"], ["copy"])],
                              [value_info("image", FLOAT, [1, 3, 2, 2])], [value_info("copy", FLOAT, [1, 3, 2, 2])]))
    put("bytes.onnx", model([node("Identity", ["image"], ["copy"])],
                            [value_info("image", UINT8, [1, "h", "w", 3])], [value_info("copy", UINT8, [1, "h", "w", 3])]))
    put("sound.onnx", model([node("Identity", ["wave"], ["copy"])],
                            [value_info("wave", FLOAT, [1, "n"])], [value_info("copy", FLOAT, [1, "n"])]))
    write_indices(put)
    put("chain.onnx", model([node("Neg", ["X"], ["a"]), node("Sigmoid", ["a"], ["b"]), node("Abs", ["b"], ["c"]),
                             node("Neg", ["c"], ["Y"])], [value_info("X", FLOAT, [512])], [value_info("Y", FLOAT, [512])]))
    write_inexact(put)
    put("unknown_op.onnx", model([node("Frobnicate", ["A"], ["C"])], [value_info("A", FLOAT, [2])], [value_info("C", FLOAT, [2])]))
    put("broken.onnx", b"\x08\x08\x3a\xff\xff\xff\x0f")
    put("a.npy", npy("<f4", (2,), floats(1, 2)))
    put("b.npy", npy("<f8", (2,), struct.pack("<2d", 10, 20)))
    put("c.npy", npy("<f4", (2,), floats(11, 22)))
    put("wrong.npy", npy("<f4", (2,), floats(11, 23)))
    put("cut.npy", npy("<f4", (2,), floats(1)))
    put("inputs.json", json.dumps({"A": [1, 2], "B": {"dtype": "float32", "shape": [2], "data": [3, 4]}}))
    put("red.png", png(2, 2, bytes([255, 0, 0]) * 4))
    (folder / "project").mkdir()
    put("project/sdx.yml", b"name: pictures\nmodel: {source: ../picture.onnx}\n"
        b"runtime: {providers: [cpu], threads: 1, timeout: 30, enable_profiling: true}\n"
        b"preprocessing: {normalize: custom, mean: 0.5, std: 0.5, scale: 1/255, color: bgr}\n")
    put("scores.yml", b"name: scores\nmodel: {source: add.onnx}\noutputs: {C: {labels: labels.txt, top_k: 2, softmax: true}}\n")
    put("other.txt", "first\nsecond\n")
    put("threshold.yml", b"name: threshold\nmodel: {source: add.onnx}\npostprocessing: {activation: sigmoid, threshold: 0.5}\n")
    put("demands.yml", b"name: demands\nmodel: {source: scale.onnx}\ninputs: {X: {max_length: 3}}\n")
    put("contradiction.yml", b"name: contradiction\nmodel: {source: add.onnx}\ninputs:\n  A: {type: int64}\n  B: {}\n")
    put("tokens.yml", b"name: tokens\nmodel: {source: ints.onnx}\ninputs:\n  I: {preprocessing: {tokenizer: tokenizer.json}}\n")
    put("crop.yml", b"name: crop\nmodel: {source: picture.onnx}\npreprocessing: {resize: 2, crop: 2, interpolation: nearest, normalize: 0-1}\n")
    # Red and green columns in turn: 8 wide, 2 high.
    put("wide.png", png(8, 2, bytes([255, 0, 0, 0, 255, 0]) * 8))
    for index in range(3):
        put(f"vectors/v{index}.json", json.dumps([index, 10 * index]))
    put("lines.jsonl", '[1, 2]\n\n{"X": [3]}\n{"data": [4, 5], "shape": [2]}\n')
    put("pairs.json", json.dumps([{"A": [1, 2], "B": [3, 4]}, {"A": [5, 6], "B": [7, 8]}]))
    put("row.onnx", model([node("Relu", ["R"], ["S"])], [value_info("R", FLOAT, ["n", 2])], [value_info("S", FLOAT, ["n", 2])]))
    put("rows.jsonl", "[[1, -2]]\n[[-3, 4]]\n[[5, 6]]\n")
    put("batched.yml", b"name: batched\nmodel: {source: row.onnx}\nruntime: {batch_size: 2}\n")
    put("memory.yml", b"name: memory\nmodel: {source: add.onnx}\nruntime:\n  gpu: {memory: 1GB}\n  providers: [cpu]\n")
    put("native.yml", b"name: native\nmodel: {source: add.onnx}\nruntime: {runtime: native, gpu: {backend: cuda}}\n")
    put("strict.yml", b"name: strict\nmodel: {source: add.onnx}\nruntime: {providers: [vitisai], fallback: strict}\n")
    put("typo.yml", b"name: typo\nmodel: {source: add.onnx}\nruntime: {thread: 4}\n")
    put("classifier.onnx", model([node("MatMul", ["X", "hidden.weight"], ["a"]), node("Add", ["a", "hidden.bias"], ["b"]),
                                  node("Relu", ["b"], ["c"]), node("Gemm", ["c", "out.weight", "out.bias"], ["scores"], transB=1)],
                                 [value_info("X", FLOAT, ["n", 2])], [value_info("scores", FLOAT, ["n", 3])],
                                 [tensor("hidden.weight", FLOAT, [2, 2], floats(1, 2, 3, 4)), tensor("hidden.bias", FLOAT, [2], floats(0, 1)),
                                  tensor("out.weight", FLOAT, [3, 2], floats(1, 0, 0, 1, 1, 1)),
                                  tensor("out.bias", FLOAT, [3], floats(0, 0, 0))]))
    write_language(put)
    write_sound(put)
    put("labels.txt", "cat\ndog\n")
    put("more.txt", "cat\ndog\ncow\n")
    put("good.case.json", json.dumps({"model": "add.onnx", "inputs": {"A": "a.npy", "B": "b.npy"}, "outputs": {"C": "c.npy"}}))
    put("bad.case.json", json.dumps({"model": "add.onnx", "sets": [
        {"dir": "one", "inputs": {"A": "a.npy", "B": "b.npy"}, "outputs": {"C": "wrong.npy"}}]}))
    write_benchmarks(put)
    put("add/model.onnx", (folder / "add.onnx").read_bytes())
    write_faces(put)
    write_checkpoints(put)
    write_training(put, folder, sys.modules[__name__])
    for name, values in {"input_0": (1, 2), "input_1": (10, 20), "output_0": (11, 22)}.items():
        put(f"add/test_data_set_0/{name}.pb", tensor("", FLOAT, [2], floats(*values)))
