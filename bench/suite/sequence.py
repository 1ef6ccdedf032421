"""Transformers and a recurrent network, in the form in which PyTorch's exporter writes them; weights are random."""

import numpy as np

from builder import FLOAT, INT64, Builder


def heads_first(b, x, length, heads, size):
    return b.transpose(b.reshape(x, 1, length, heads, size), 0, 2, 1, 3)


def _attend(b, q, k, v, size, mask=None):
    """q, k, v: [1, heads, length, size]."""
    scores = b.op("MatMul", [q, b.transpose(k, 0, 1, 3, 2)])
    scores = b.op("Div", [scores, b.scalar(np.sqrt(size))])
    if mask is not None:
        scores = b.op("Add", [scores, mask])
    return b.op("MatMul", [b.op("Softmax", [scores], axis=-1), v])


def _self_attention(b, x, length, features, heads, mask=None, key_bias=True):
    size = features // heads
    q, k, v = (heads_first(b, b.linear(x, features, features, bias), length, heads, size) for bias in (True, key_bias, True))
    y = b.reshape(b.transpose(_attend(b, q, k, v, size, mask), 0, 2, 1, 3), 1, length, features)
    return b.linear(y, features, features)


def bert(length, layers=12, features=768, heads=12, vocabulary=30522, seed=20):
    """Devlin et al. 2018; post-normalisation."""
    b = Builder(f"bert_{length}", seed=seed)
    ids = b.input("input_ids", [1, length], INT64)
    mask = b.input("attention_mask", [1, length], INT64)
    words = b.op("Gather", [b.normal((vocabulary, features), 0.02), ids])
    positions = b.op("Gather", [b.normal((512, features), 0.02), b.const(np.arange(length, dtype=np.int64)[None])])
    x = b.layer_norm(b.op("Add", [words, positions]), features, 1e-12)
    mask = b.op("Cast", [b.op("Unsqueeze", [mask, b.ints(1, 2)])], to=FLOAT)
    mask = b.op("Mul", [b.op("Sub", [b.scalar(1.0), mask]), b.scalar(-10000.0)])
    for _ in range(layers):
        x = b.layer_norm(b.op("Add", [_self_attention(b, x, length, features, heads, mask), x]), features, 1e-12)
        y = b.linear(b.gelu(b.linear(x, features, 4 * features)), 4 * features, features)
        x = b.layer_norm(b.op("Add", [y, x]), features, 1e-12)
    b.output(x, [1, length, features], name="last_hidden_state")
    return b.model()


def _pre_norm_block(b, x, length, features, heads, hidden, epsilon=1e-5, key_bias=True):
    x = b.op("Add", [x, _self_attention(b, b.layer_norm(x, features, epsilon), length, features, heads, key_bias=key_bias)])
    y = b.linear(b.gelu(b.linear(b.layer_norm(x, features, epsilon), features, hidden)), hidden, features)
    return b.op("Add", [x, y])


def vit_b16(layers=12, features=768):
    """Dosovitskiy et al. 2021, ViT-B/16 at 224."""
    b = Builder("vit_b16", seed=30)
    x = b.op("Conv", [b.input("pixel_values", [1, 3, 224, 224]), b.normal((features, 3, 16, 16), 0.04), b.normal((features,), 0.02)],
             kernel_shape=[16, 16], strides=[16, 16])
    x = b.transpose(b.reshape(x, 1, features, 196), 0, 2, 1)
    x = b.op("Concat", [b.normal((1, 1, features), 0.02), x], axis=1)
    x = b.op("Add", [x, b.normal((1, 197, features), 0.02)])
    for _ in range(layers):
        x = _pre_norm_block(b, x, 197, features, 12, 4 * features, 1e-6)
    x = b.op("Gather", [b.layer_norm(x, features, 1e-6), b.scalar(0, np.int64)], axis=1)
    b.output(b.gemm(x, features, 1000), [1, 1000], name="logits")
    return b.model()


def whisper_tiny_encoder(layers=4, features=384):
    """Radford et al. 2022: two convolutions over 80 mel bins and 3000 frames, four blocks."""
    b = Builder("whisper_tiny_encoder", seed=40)
    conv = lambda x, cin, stride: b.op("Conv", [x, b.normal((features, cin, 3), np.sqrt(1 / (3 * cin))), b.normal((features,), 0.02)],
                                       kernel_shape=[3], pads=[1, 1], strides=[stride])
    x = b.gelu(conv(b.input("input_features", [1, 80, 3000]), 80, 1))
    x = b.transpose(b.gelu(conv(x, features, 2)), 0, 2, 1)
    x = b.op("Add", [x, b.normal((1500, features), 0.02)])
    for _ in range(layers):
        x = _pre_norm_block(b, x, 1500, features, 6, 4 * features, key_bias=False)
    b.output(b.layer_norm(x, features), [1, 1500, features], name="last_hidden_state")
    return b.model()


def _gelu_tanh(b, x):
    cube = b.op("Pow", [x, b.scalar(3.0)])
    inner = b.op("Add", [x, b.op("Mul", [cube, b.scalar(0.044715)])])
    inner = b.op("Tanh", [b.op("Mul", [inner, b.scalar(np.sqrt(2 / np.pi))])])
    return b.op("Mul", [b.op("Mul", [x, b.scalar(0.5)]), b.op("Add", [inner, b.scalar(1.0)])])


def gpt2(new, past, layers=12, features=768, heads=12, vocabulary=50257):
    """Radford et al. 2019, GPT-2 small: `new` tokens after `past` that are in the cache; the last token's logits."""
    b = Builder(f"gpt2_{new}_{past}", seed=50)
    size, total = features // heads, new + past
    ids = b.input("input_ids", [1, new], INT64)
    table = b.normal((vocabulary, features), 0.02)
    positions = b.normal((1024, features), 0.02)
    x = b.op("Add", [b.op("Gather", [table, ids]), b.op("Gather", [positions, b.const(np.arange(past, total, dtype=np.int64)[None])])])
    causal = np.where(np.arange(total)[None] > np.arange(past, total)[:, None], -1e9, 0).astype(np.float32)
    mask = b.const(causal[None, None])
    linear = lambda t, fin, fout: b.op("Add", [b.op("MatMul", [t, b.normal((fin, fout), 1 / np.sqrt(fin))]), b.normal((fout,), 0.02)])
    for layer in range(layers):
        y = linear(b.layer_norm(x, features), features, 3 * features)
        q, k, v = (heads_first(b, part, new, heads, size) for part in b.op("Split", [y, b.ints(features, features, features)], outputs=3, axis=-1))
        if past:
            k, v = (b.op("Concat", [b.input(f"past.{layer}.{kind}", [1, heads, past, size]), part], axis=2) for kind, part in (("key", k), ("value", v)))
        y = b.reshape(b.transpose(_attend(b, q, k, v, size, mask), 0, 2, 1, 3), 1, new, features)
        x = b.op("Add", [x, linear(y, features, features)])
        y = linear(_gelu_tanh(b, linear(b.layer_norm(x, features), features, 4 * features)), 4 * features, features)
        x = b.op("Add", [x, y])
        for kind, part in (("key", k), ("value", v)):
            b.output(part, [1, heads, total, size], name=f"present.{layer}.{kind}")
    x = b.op("Gather", [b.layer_norm(x, features), b.ints(new - 1)], axis=1)
    b.output(b.op("MatMul", [x, b.transpose(table, 1, 0)]), [1, 1, vocabulary], name="logits")
    return b.model()


def lstm(length=100, features=256, hidden=512):
    """Two layers, both directions: a speech or text tagger."""
    b = Builder("lstm", seed=60)
    x = b.input("frames", [length, 1, features])
    for width in (features, 2 * hidden):
        weight = lambda n: b.normal((2, 4 * hidden, n), 1 / np.sqrt(hidden))
        y = b.op("LSTM", [x, weight(width), weight(hidden), b.normal((2, 8 * hidden), 0.1)], direction="bidirectional", hidden_size=hidden)
        x = b.reshape(b.transpose(y, 0, 2, 1, 3), length, 1, 2 * hidden)
    b.output(b.linear(x, 2 * hidden, 64), [length, 1, 64], name="scores")
    return b.model()
