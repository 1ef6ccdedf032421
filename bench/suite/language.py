"""Language models as they are deployed: with 4-bit weights for onnxruntime-genai, and DistilBERT; weights are random."""

import numpy as np
from onnx import TensorProto

from builder import FLOAT, INT64, Builder
from sequence import heads_first


def distilbert(length=128, layers=6, features=768, heads=12, vocabulary=30522):
    """Sanh et al. 2019: half of BERT's layers; hidden places get -inf by Where, whose mask is expanded to all heads."""
    b = Builder("distilbert", seed=22)
    size = features // heads
    ids, mask = b.input("input_ids", [1, length], INT64), b.input("attention_mask", [1, length], INT64)
    words = b.op("Gather", [b.normal((vocabulary, features), 0.02), ids])
    x = b.layer_norm(b.op("Add", [words, b.op("Gather", [b.normal((512, features), 0.02), b.const(np.arange(length, dtype=np.int64)[None])])]), features, 1e-12)
    hidden = b.op("Equal", [mask, b.scalar(0, np.int64)])
    hidden = b.op("Expand", [b.reshape(hidden, 1, 1, 1, length), b.ints(1, heads, length, length)])
    for _ in range(layers):
        q, k, v = (heads_first(b, b.linear(x, features, features), length, heads, size) for _ in range(3))
        q = b.op("Div", [q, b.scalar(np.sqrt(size))])
        scores = b.op("Where", [hidden, b.scalar(np.finfo(np.float32).min), b.op("MatMul", [q, b.transpose(k, 0, 1, 3, 2)])])
        y = b.op("MatMul", [b.op("Softmax", [scores], axis=-1), v])
        y = b.linear(b.reshape(b.transpose(y, 0, 2, 1, 3), 1, length, features), features, features)
        x = b.layer_norm(b.op("Add", [y, x]), features, 1e-12)
        y = b.linear(b.gelu(b.linear(x, features, 4 * features)), 4 * features, features)
        x = b.layer_norm(b.op("Add", [y, x]), features, 1e-12)
    b.output(x, [1, length, features], name="last_hidden_state")
    return b.model()


class _Int4(Builder):
    """Linear layers as MatMulNBits: 4 bits in blocks of 32, symmetric, products of 8-bit activations (accuracy level 4)."""

    def codes(self, rows, columns):
        """(codes [rows, columns / 32, 16], scales [rows * columns / 32]) of normal weights with a deviation of 1 / sqrt(columns)."""
        codes = np.clip(np.rint(8 + 2.7 * self.random.standard_normal((rows, columns // 32, 32), np.float32)), 0, 15).astype(np.uint8)
        scales = self.random.uniform(0.8, 1.2, rows * columns // 32) / (2.7 * np.sqrt(columns))
        return codes[..., 0::2] | codes[..., 1::2] << 4, scales.astype(np.float32)

    def product(self, x, inputs, outputs):
        codes, scales = self.codes(outputs, inputs)
        return self.op("MatMulNBits", [x, self.const(codes), self.const(scales)], domain="com.microsoft", K=inputs, N=outputs, bits=4, block_size=32,
                       accuracy_level=4)

    def scale(self, features):
        return self.const(1 + 0.1 * self.random.standard_normal(features, np.float32), "gamma")


def llm_int4(new, past, layers=4, features=2048, heads=32, key_heads=4, hidden=5632, vocabulary=32000):
    """Four of the 22 layers of TinyLlama 1.1B (Zhang et al. 2024) as onnxruntime-genai's builder writes them for CPUs: `new` tokens after `past`."""
    b = _Int4(f"llm_int4_{new}_{past}", opset=21, seed=51, ir_version=10)
    size, total, microsoft = features // heads, new + past, "com.microsoft"
    ids, mask = b.input("input_ids", [1, new], INT64), b.input("attention_mask", [1, total], INT64)
    length = b.op("ReduceSum", [mask, b.ints(1)], keepdims=0)
    last = b.op("Cast", [b.op("Sub", [length, b.ints(1)])], to=TensorProto.INT32)
    whole = b.op("Cast", [b.op("Gather", [b.op("Shape", [mask]), b.scalar(1, np.int64)])], to=TensorProto.INT32)
    angles = np.arange(2048)[:, None] * 10000.0 ** (-np.arange(0, size, 2) / size)
    cos, sin = b.const(np.cos(angles).astype(np.float32)), b.const(np.sin(angles).astype(np.float32))
    table = (b.random.standard_normal((vocabulary, features), np.float32) * np.float32(0.7)).astype(np.float16)
    residual = b.op("Cast", [b.op("Gather", [b.const(table), ids])], to=FLOAT)
    x = b.op("SimplifiedLayerNormalization", [residual, b.scale(features)], axis=-1, epsilon=1e-5, stash_type=1)
    skip = lambda y, r: b.op("SkipSimplifiedLayerNormalization", [y, r, b.scale(features)], outputs=["sum", "", "", "rest"], domain=microsoft, epsilon=1e-5)
    for layer in range(layers):
        q, k, v = b.product(x, features, features), b.product(x, features, key_heads * size), b.product(x, features, key_heads * size)
        old = [b.input(f"past_key_values.{layer}.{kind}", [1, key_heads, past, size]) for kind in ("key", "value")]
        y, key, value = b.op("GroupQueryAttention", [q, k, v, *old, last, whole, cos, sin], outputs=3, domain=microsoft, num_heads=heads,
                             kv_num_heads=key_heads, do_rotary=1, scale=size**-0.5)
        for kind, present in (("key", key), ("value", value)):
            b.output(present, [1, key_heads, total, size], name=f"present.{layer}.{kind}")
        x, residual = skip(residual, b.product(y, features, features))
        gate, up = b.product(x, features, hidden), b.product(x, features, hidden)
        y = b.product(b.op("Mul", [b.silu(gate), up]), hidden, features)
        x, residual = skip(residual, y)
    b.output(b.product(x, features, vocabulary), [1, new, vocabulary], name="logits")
    b.outputs.insert(0, b.outputs.pop())
    return b.model()
