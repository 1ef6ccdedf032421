"""Speech encoders, in the form in which PyTorch's exporter writes them; weights are random."""

import numpy as np

from builder import Builder
from calibrate import calibrate


def _conv1d(b, x, channels_in, channels_out, kernel, stride=1, group=1, padding=0, bias=True):
    fan_in = channels_in // group * kernel
    inputs = [x, b.normal((channels_out, channels_in // group, kernel), np.sqrt(1.0 / fan_in))] + ([b.normal((channels_out,), 0.02, "b")] if bias else [])
    return b.op("Conv", inputs, kernel_shape=[kernel], strides=[stride], pads=[padding] * 2, group=group)


def _heads(b, x, length, heads, size):
    return b.transpose(b.reshape(x, 1, length, heads, size), 0, 2, 1, 3)


def _relative_attention(b, x, length, width, heads, positions):
    """Transformer-XL's: scores of the contents and of the distances; row i of the distances is moved by i places (pad, reshape, slice)."""
    size = width // heads
    q, k, v = (b.reshape(b.linear(x, width, width), 1, length, heads, size) for _ in range(3))
    p = _heads(b, b.linear(positions, width, width, bias=False), 2 * length - 1, heads, size)
    with_bias = lambda: b.transpose(b.op("Add", [q, b.normal((heads, size), 0.1, "bias")]), 0, 2, 1, 3)
    contents = b.op("MatMul", [with_bias(), b.transpose(k, 0, 2, 3, 1)])
    places = b.op("MatMul", [with_bias(), b.transpose(p, 0, 1, 3, 2)])
    places = b.op("Concat", [b.const(np.zeros((1, heads, length, 1), np.float32)), places], axis=3)
    places = b.reshape(places, 1, heads, 2 * length, length)
    places = b.reshape(b.op("Slice", [places, b.ints(1), b.ints(2 * length), b.ints(2)]), 1, heads, length, 2 * length - 1)
    places = b.op("Slice", [places, b.ints(0), b.ints(length), b.ints(3)])
    scores = b.op("Div", [b.op("Add", [contents, places]), b.scalar(np.sqrt(size))])
    y = b.op("MatMul", [b.op("Softmax", [scores], axis=-1), b.transpose(v, 0, 2, 1, 3)])
    return b.linear(b.reshape(b.transpose(y, 0, 2, 1, 3), 1, length, width), width, width)


def _half_step(b, x, width):
    y = b.linear(b.silu(b.linear(b.layer_norm(x, width), width, 4 * width)), 4 * width, width)
    return b.op("Add", [x, b.op("Mul", [y, b.scalar(0.5)])])


def _convolution_module(b, x, width):
    y = _conv1d(b, b.transpose(b.layer_norm(x, width), 0, 2, 1), width, 2 * width, 1)
    value, gate = b.op("Split", [y, b.ints(width, width)], outputs=2, axis=1)
    y = b.op("Mul", [value, b.op("Sigmoid", [gate])])
    y = b.silu(_conv1d(b, y, width, width, 31, group=width, padding=15))
    return b.op("Add", [x, b.transpose(_conv1d(b, y, width, width, 1), 0, 2, 1)])


def conformer(frames=1000, layers=12, width=256, heads=4):
    """Gulati et al. 2020, Conformer-M's widths with twelve layers: ten seconds of 80 mel bins, a quarter of the frames after two convolutions."""
    b = Builder("conformer", seed=80)
    length, bins = (((frames - 1) // 2) - 1) // 2, (((80 - 1) // 2) - 1) // 2
    x = b.op("Unsqueeze", [b.input("features", [1, frames, 80]), b.ints(1)])
    x = b.op("Relu", [b.conv(x, 1, width, 3, 2, padding=0)])
    x = b.op("Relu", [b.conv(x, width, width, 3, 2, padding=0)])
    x = b.linear(b.reshape(b.transpose(x, 0, 2, 1, 3), 1, length, width * bins), width * bins, width)
    place = np.arange(length - 1, -length, -1)[:, None] * np.exp(np.arange(0, width, 2) * -(np.log(10000.0) / width))
    positions = b.const(np.stack([np.sin(place), np.cos(place)], 2).reshape(1, 2 * length - 1, width).astype(np.float32))
    for _ in range(layers):
        x = _half_step(b, x, width)
        x = b.op("Add", [x, _relative_attention(b, b.layer_norm(x, width), length, width, heads, positions)])
        x = _half_step(b, _convolution_module(b, x, width), width)
        x = b.layer_norm(x, width)
    b.output(b.op("LogSoftmax", [b.linear(x, width, 512)], axis=-1), [1, length, 512], name="log_probabilities")
    return calibrate(b.model())


def wav2vec2(samples=32000, layers=6, width=768, heads=12):
    """Baevski et al. 2020, the base model with half of its layers: two seconds of sound, seven convolutions, places by a convolution of 128 taps."""
    b = Builder("wav2vec2", seed=81)
    x, channels, length = b.op("Unsqueeze", [b.input("sound", [1, samples]), b.ints(1)]), 1, samples
    for i, (kernel, stride) in enumerate([(10, 5), (3, 2), (3, 2), (3, 2), (3, 2), (2, 2), (2, 2)]):
        x = _conv1d(b, x, channels, 512, kernel, stride, bias=False)
        channels, length = 512, (length - kernel) // stride + 1
        if i == 0:  # group normalisation with a group for each channel
            y = b.reshape(x, 0, 512, -1)
            y = b.op("InstanceNormalization", [y, b.const(np.ones(512, np.float32)), b.const(np.zeros(512, np.float32))], epsilon=1e-5)
            y = b.op("Mul", [b.reshape(y, 1, 512, length), b.const((1 + 0.1 * b.random.standard_normal((512, 1), np.float32)))])
            x = b.op("Add", [y, b.normal((512, 1), 0.02)])
        x = b.gelu(x)
    x = b.linear(b.layer_norm(b.transpose(x, 0, 2, 1), 512), 512, width)
    y = _conv1d(b, b.transpose(x, 0, 2, 1), width, width, 128, group=16, padding=64)
    y = b.gelu(b.op("Slice", [y, b.ints(0), b.ints(-1), b.ints(2)]))
    x = b.layer_norm(b.op("Add", [x, b.transpose(y, 0, 2, 1)]), width)
    size = width // heads
    for _ in range(layers):
        q = b.op("Mul", [b.linear(x, width, width), b.scalar(size**-0.5)])
        q, k, v = (_heads(b, t, length, heads, size) for t in (q, b.linear(x, width, width), b.linear(x, width, width)))
        y = b.op("MatMul", [b.op("Softmax", [b.op("MatMul", [q, b.transpose(k, 0, 1, 3, 2)])], axis=-1), v])
        y = b.linear(b.reshape(b.transpose(y, 0, 2, 1, 3), 1, length, width), width, width)
        x = b.layer_norm(b.op("Add", [x, y]), width)
        y = b.linear(b.gelu(b.linear(x, width, 4 * width)), 4 * width, width)
        x = b.layer_norm(b.op("Add", [x, y]), width)
    b.output(b.linear(x, width, 32), [1, length, 32], name="logits")
    return calibrate(b.model())
