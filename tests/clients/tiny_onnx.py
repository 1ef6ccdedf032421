"""Tiny ONNX models with weights that are the same every time, in the form that published packages expect: sentence encoders, image encoders,
speech recognisers."""

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper, numpy_helper
from tiny_folders import random


class Graph:
    """Nodes, one after another; what they are called does not matter."""

    def __init__(self, seed):
        self.nodes, self.weights, self.seed = [], [], seed

    def op(self, kind, *inputs, outputs=1, **attributes):
        names = [f"{kind}_{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, **attributes))
        return names[0] if outputs == 1 else names

    def const(self, value, dtype=np.float32):
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.array(value, dtype), name))
        return name

    def ints(self, *value):
        return self.const(value, np.int64)

    def weight(self, *shape, by=None):
        self.seed += 1
        return self.const(random(self.seed, *shape, by=by))

    def linear(self, x, inner, outer):
        return self.op("Add", self.op("MatMul", x, self.const(random(self.seed, outer, inner).T)), self.weight(outer, by=0.1))

    def norm(self, x, width):
        return self.op("LayerNormalization", x, self.const(1 + random(self.seed + 7, width, by=0.1)), self.weight(width, by=0.1), epsilon=1e-5)

    def gelu(self, x):
        half = self.op("Mul", x, self.const(0.5))
        return self.op("Mul", half, self.op("Add", self.op("Erf", self.op("Div", x, self.const(2**0.5))), self.const(1)))

    def heads(self, x, count, width):
        return self.op("Transpose", self.op("Reshape", x, self.ints(0, 0, count, width // count)), perm=[0, 2, 1, 3])

    def layer(self, x, width, heads, mask=None):
        """A layer of a transformer as BERT's, and its attention's weights."""
        q, k, v = (self.heads(self.linear(x, width, width), heads, width) for _ in range(3))
        scores = self.op("Div", self.op("MatMul", q, self.op("Transpose", k, perm=[0, 1, 3, 2])), self.const((width // heads) ** 0.5))
        shares = self.op("Softmax", self.op("Add", scores, mask) if mask else scores, axis=-1)
        seen = self.op("Reshape", self.op("Transpose", self.op("MatMul", shares, v), perm=[0, 2, 1, 3]), self.ints(0, 0, width))
        x = self.norm(self.op("Add", x, self.linear(seen, width, width)), width)
        inner = self.linear(self.gelu(self.linear(x, width, 2 * width)), 2 * width, width)
        return self.norm(self.op("Add", x, inner), width), shares

    def output(self, value, name):
        self.nodes.append(helper.make_node("Identity", [value], [name]))

    def save(self, path, inputs, outputs, external=False, **metadata):
        """inputs and outputs: {name: (type, shape)}."""
        infos = [[helper.make_tensor_value_info(n, *typed) for n, typed in side.items()] for side in (inputs, outputs)]
        model = helper.make_model(helper.make_graph(self.nodes, "tiny", *infos, self.weights), opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        helper.set_model_props(model, metadata)
        onnx.checker.check_model(model)
        more = {"save_as_external_data": True, "location": f"{path.name}_data", "size_threshold": 4096} if external else {}
        onnx.save(model, path, **more)


def text_encoder(path, vocab, outputs, width=64, heads=4, seed=1, external=False, types=True):
    """As BERT: its states, and beside them what packages ask of one: logits over words (`logits`), a pair's score (`score`), the attention of
    the last layer (`attention_6`), one vector per text (`text_embeds`). outputs: which of these the model gives; types: it takes token_type_ids."""
    g, rows = Graph(seed), ("batch", "sequence")
    x = g.op("Gather", g.weight(vocab, width, by=0.5), "input_ids")
    if types:
        x = g.op("Add", x, g.op("Gather", g.weight(2, width, by=0.1), "token_type_ids"))
    length = g.op("Gather", g.op("Shape", "input_ids"), g.ints(1))
    x = g.norm(g.op("Add", x, g.op("Slice", g.weight(256, width, by=0.3), g.ints(0), length, g.ints(0))), width)
    seen = g.op("Cast", g.op("Unsqueeze", "attention_mask", g.ints(1, 2)), to=T.FLOAT)
    mask = g.op("Mul", g.op("Sub", g.const(1), seen), g.const(np.finfo(np.float32).min))
    for _ in range(2):
        x, shares = g.layer(x, width, heads, mask)
    first = g.op("Gather", x, g.const(0, np.int64), axis=1)
    g.output(x, "last_hidden_state")
    g.output(g.linear(x, width, vocab), "logits")
    g.output(g.linear(first, width, 1), "score")
    g.output(shares, "attention_6")
    g.output(g.op("Tanh", g.linear(first, width, width)), "text_embeds")
    shapes = {"last_hidden_state": [*rows, width], "logits": [*rows, vocab], "score": ["batch", 1],
              "attention_6": ["batch", heads, rows[1], rows[1]], "text_embeds": ["batch", width]}  # fmt: skip
    inputs = {n: (T.INT64, rows) for n in ("input_ids", "attention_mask", *(["token_type_ids"] if types else []))}
    g.save(path, inputs, {n: (T.FLOAT, shapes[n]) for n in outputs}, external)


def image_encoder(path, size=32, patch=8, width=64, heads=4):
    """As CLIP's: patches, a class token, two layers, a projection."""
    g = Graph(40)
    x = g.op("Conv", "pixel_values", g.weight(width, 3, patch, patch, by=0.07), kernel_shape=[patch, patch], strides=[patch, patch])
    x = g.op("Transpose", g.op("Reshape", x, g.ints(0, width, -1)), perm=[0, 2, 1])
    count = g.op("Slice", g.op("Shape", x), g.ints(0), g.ints(1))
    first = g.op("Expand", g.weight(1, 1, width, by=0.5), g.op("Concat", count, g.ints(1, width), axis=0))
    x = g.norm(g.op("Add", g.op("Concat", first, x, axis=1), g.weight((size // patch) ** 2 + 1, width, by=0.3)), width)
    for _ in range(2):
        x, _ = g.layer(x, width, heads)
    g.output(g.linear(g.op("Gather", x, g.const(0, np.int64), axis=1), width, 32), "image_embeds")
    g.save(path, {"pixel_values": (T.FLOAT, ["batch", 3, size, size])}, {"image_embeds": (T.FLOAT, ["batch", 32])})


# --- speech: the parts of FunASR's models -----------------------------------------------------------------------------------------


def memory(g, x, width, order, cache=None):
    """A sequence memory: each channel's convolution over time, after `order - 1` frames of a cache or of zeros. Its result, the next cache."""
    x = g.op("Unsqueeze", g.op("Transpose", x, perm=[0, 2, 1]), g.ints(3))
    if cache is None:
        padded = g.op("Pad", x, g.ints(0, 0, order - 1, 0, 0, 0, 0, 0))
    else:
        padded = g.op("Concat", cache, x, axis=2)
    kept = g.op("Slice", padded, g.ints(-(order - 1)), g.ints(2**31), g.ints(2))
    y = g.op("Add", x, g.op("Conv", padded, g.weight(width, 1, order, 1, by=0.2), kernel_shape=[order, 1], group=width))
    return g.op("Transpose", g.op("Squeeze", y, g.ints(3)), perm=[0, 2, 1]), kept


def voice_detector(path, features, layers=2, width=16, order=5, classes=12):
    """FSMN-VAD: chances of silence and of sounds for each frame, with a cache for each layer."""
    g = Graph(60)
    x = g.op("Relu", g.linear("speech", features, width))
    caches = {}
    for i in range(layers):
        y, kept = memory(g, g.linear(x, width, width), width, order, f"in_cache{i}")
        g.output(kept, f"out_cache{i}")
        caches[i] = (T.FLOAT, [1, width, order - 1, 1])
        x = g.op("Relu", g.linear(y, width, width))
    g.output(g.op("Softmax", g.linear(x, width, classes), axis=-1), "logits")
    inputs = {"speech": (T.FLOAT, [1, "frames", features]), **{f"in_cache{i}": c for i, c in caches.items()}}
    g.save(path, inputs, {"logits": (T.FLOAT, [1, "frames", classes]), **{f"out_cache{i}": c for i, c in caches.items()}})


def speech_encoder(g, features, width, heads):
    """SANM's: attention beside a memory, over the frames that each sequence has."""
    x = g.linear("speech", features, width)
    frames = g.op("Range", g.const(0, np.int64), g.op("Gather", g.op("Shape", "speech"), g.const(1, np.int64)), g.const(1, np.int64))
    lengths = g.op("Unsqueeze", g.op("Cast", "speech_lengths", to=T.INT64), g.ints(1))
    seen = g.op("Cast", g.op("Less", frames, lengths), to=T.FLOAT)
    mask = g.op("Mul", g.op("Sub", g.const(1), g.op("Unsqueeze", seen, g.ints(1, 2))), g.const(-1e4))
    for _ in range(2):
        y, _ = memory(g, x, width, 5)
        x, _ = g.layer(g.norm(g.op("Add", x, y), width), width, heads, mask)
    return g.op("Mul", x, g.op("Unsqueeze", seen, g.ints(2))), seen


def recogniser(path, features, vocab, width=32, heads=4):
    """Paraformer: frames integrate until they fire; each firing is a token's vector, from which its word is read."""
    g = Graph(80)
    x, seen = speech_encoder(g, features, width, heads)
    share = g.op("Mul", g.op("Sigmoid", g.linear(x, width, 1)), g.op("Unsqueeze", seen, g.ints(2)))
    sums = g.op("CumSum", share, g.const(1, np.int64))
    total = g.op("ReduceSum", share, g.ints(1, 2), keepdims=0)
    tokens = g.op("Cast", g.op("Floor", total), to=T.INT32)
    longest = g.op("Cast", g.op("ReduceMax", tokens, keepdims=0), to=T.INT64)
    places = g.op("Range", g.const(0, np.int64), longest, g.const(1, np.int64))
    at = g.op("Cast", g.op("Floor", g.op("Sub", sums, share)), to=T.INT64)
    fired = g.op("Transpose", g.op("Cast", g.op("Equal", at, places), to=T.FLOAT), perm=[0, 2, 1])
    vectors = g.op("MatMul", fired, g.op("Mul", x, share))
    inner, _ = g.layer(g.norm(vectors, width), width, heads)
    g.output(g.op("LogSoftmax", g.linear(inner, width, vocab), axis=-1), "logits")
    g.output(tokens, "token_num")
    rows = ["batch", "frames"]
    g.save(path, {"speech": (T.FLOAT, [*rows, features]), "speech_lengths": (T.INT32, ["batch"])},
           {"logits": (T.FLOAT, ["batch", "tokens", vocab]), "token_num": (T.INT32, ["batch"])})  # fmt: skip


def spoken_language(path, features, vocab, width=32, heads=4):
    """SenseVoice: a language's and a style's vector before the frames, and CTC's logits."""
    g = Graph(100)
    x, _ = speech_encoder(g, features, width, heads)
    told = [g.op("Unsqueeze", g.op("Gather", g.weight(16, width), n), g.ints(1)) for n in ("language", "textnorm")]
    g.output(g.linear(g.op("Concat", *told, x, axis=1), width, vocab), "ctc_logits")
    g.output(g.op("Add", "speech_lengths", g.const(2, np.int32)), "encoder_out_lens")
    numbers = {n: (T.INT32, ["batch"]) for n in ("speech_lengths", "language", "textnorm")}
    g.save(path, {"speech": (T.FLOAT, ["batch", "frames", features]), **numbers},
           {"ctc_logits": (T.FLOAT, ["batch", "steps", vocab]), "encoder_out_lens": (T.INT32, ["batch"])})  # fmt: skip


def punctuation(path, vocab, marks, width=32, heads=4):
    """CT-Transformer: a mark, or none, after each word."""
    g = Graph(120)
    x = g.norm(g.op("Gather", g.weight(vocab, width, by=1.0), "inputs"), width)
    for _ in range(2):
        x, _ = g.layer(x, width, heads)
    g.output(g.linear(x, width, marks), "logits")
    g.save(path, {"inputs": (T.INT32, ["batch", "words"]), "text_lengths": (T.INT32, ["batch"])}, {"logits": (T.FLOAT, ["batch", "words", marks])})
