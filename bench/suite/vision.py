"""Vision networks beside plain convolutional ones: ConvNeXt, Swin, DETR, SAM's encoder; after their papers and in the form in which PyTorch's exporter writes them."""

import numpy as np

from builder import Builder
from calibrate import calibrate


def _norm_channels(b, x, channels):
    """LayerNorm over the channels of [N, C, H, W]."""
    return b.transpose(b.layer_norm(b.transpose(x, 0, 2, 3, 1), channels, 1e-6), 0, 3, 1, 2)


def convnext_t(depths=(3, 3, 9, 3), widths=(96, 192, 384, 768)):
    """Liu et al. 2022, ConvNeXt-T at 224."""
    b = Builder("convnext_t", seed=70)
    x = _norm_channels(b, b.conv(b.input("image", [1, 3, 224, 224]), 3, widths[0], 4, 4, padding=0), widths[0])
    for stage, (depth, width) in enumerate(zip(depths, widths)):
        if stage:
            x = b.conv(_norm_channels(b, x, widths[stage - 1]), widths[stage - 1], width, 2, 2, padding=0)
        for _ in range(depth):
            y = b.transpose(b.conv(x, width, width, 7, group=width), 0, 2, 3, 1)
            y = b.gelu(b.linear(b.layer_norm(y, width, 1e-6), width, 4 * width))
            y = b.op("Mul", [b.normal((width,), 0.2, "scale"), b.linear(y, 4 * width, width)])
            x = b.op("Add", [b.transpose(y, 0, 3, 1, 2), x])
    x = b.op("GlobalAveragePool", [x])
    x = b.op("Flatten", [_norm_channels(b, x, widths[-1])], axis=1)
    b.output(b.gemm(x, widths[-1], 1000), [1, 1000], name="logits")
    return calibrate(b.model())


def _heads(b, x, batch, length, heads, size):
    return b.transpose(b.reshape(x, batch, length, heads, size), 0, 2, 1, 3)


def _swin_attention(b, x, windows, width, heads, shift_mask):
    """x: [windows, 49, width]; a learned bias for each pair of places, and for shifted windows the mask of what was apart."""
    size = width // heads
    qkv = b.transpose(b.reshape(b.linear(x, width, 3 * width), windows, 49, 3, heads, size), 2, 0, 3, 1, 4)
    q, k, v = (b.op("Gather", [qkv, b.scalar(i, np.int64)], axis=0) for i in range(3))
    q = b.op("Mul", [q, b.scalar(size**-0.5)])
    scores = b.op("MatMul", [q, b.transpose(k, 0, 1, 3, 2)])
    scores = b.op("Add", [scores, b.normal((1, heads, 49, 49), 0.5, "bias")])
    if shift_mask is not None:
        scores = b.reshape(scores, 1, windows, heads, 49, 49)
        scores = b.reshape(b.op("Add", [scores, shift_mask]), -1, heads, 49, 49)
    y = b.op("MatMul", [b.op("Softmax", [scores], axis=-1), v])
    return b.linear(b.reshape(b.transpose(y, 0, 2, 1, 3), windows, 49, width), width, width)


def _rolled(b, x, side, by):
    """torch.roll of height and width of [1, side, side, C] by -by, as slices that change places."""
    for axis in (1, 2):
        first = b.op("Slice", [x, b.ints(by % side), b.ints(side), b.ints(axis)])
        second = b.op("Slice", [x, b.ints(0), b.ints(by % side), b.ints(axis)])
        x = b.op("Concat", [first, second], axis=axis)
    return x


def _shift_mask(side):
    """[1, windows, 1, 49, 49]: -100 between places that come from different sides of the image."""
    regions = np.zeros((side, side))
    parts = (slice(0, -7), slice(-7, -3), slice(-3, None))
    for i, rows in enumerate(parts):
        for j, columns in enumerate(parts):
            regions[rows, columns] = 3 * i + j
    n = side // 7
    windows = regions.reshape(n, 7, n, 7).transpose(0, 2, 1, 3).reshape(n * n, 49)
    return np.where(windows[:, None] != windows[:, :, None], -100, 0).astype(np.float32)[None, :, None]


def swin_t(depths=(2, 2, 6, 2), heads=(3, 6, 12, 24), width=96):
    """Liu et al. 2021, Swin-T at 224: windows of 7 by 7, every other layer shifted by 3."""
    b = Builder("swin_t", seed=71)
    side = 56
    x = b.conv(b.input("image", [1, 3, 224, 224]), 3, width, 4, 4, padding=0)
    x = b.layer_norm(b.transpose(x, 0, 2, 3, 1), width)
    for stage, depth in enumerate(depths):
        n = side // 7
        for layer in range(depth):
            shifted = layer % 2 == 1 and side > 7
            y = b.layer_norm(x, width)
            if shifted:
                y = _rolled(b, y, side, 3)
            y = b.transpose(b.reshape(y, 1, n, 7, n, 7, width), 0, 1, 3, 2, 4, 5)
            y = _swin_attention(b, b.reshape(y, n * n, 49, width), n * n, width, heads[stage], b.const(_shift_mask(side)) if shifted else None)
            y = b.reshape(b.transpose(b.reshape(y, 1, n, n, 7, 7, width), 0, 1, 3, 2, 4, 5), 1, side, side, width)
            if shifted:
                y = _rolled(b, y, side, -3)
            x = b.op("Add", [x, y])
            y = b.linear(b.gelu(b.linear(b.layer_norm(x, width), width, 4 * width)), 4 * width, width)
            x = b.op("Add", [x, y])
        if stage < 3:  # four neighbours become one
            corners = [b.op("Slice", [x, b.ints(i, j), b.ints(side, side), b.ints(1, 2), b.ints(2, 2)]) for j in (0, 1) for i in (0, 1)]
            x = b.linear(b.layer_norm(b.op("Concat", corners, axis=-1), 4 * width), 4 * width, 2 * width, bias=False)
            side, width = side // 2, 2 * width
    x = b.op("ReduceMean", [b.layer_norm(x, width)], axes=[1, 2], keepdims=0)
    b.output(b.gemm(x, width, 1000), [1, 1000], name="logits")
    return calibrate(b.model())


def _resnet50(b, x):
    """The four stages without a classifier; batch normalisation is folded."""
    relu = lambda v: b.op("Relu", [v])
    x = relu(b.conv(x, 3, 64, 7, 2))
    x = b.op("MaxPool", [x], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    channels = 64
    for width, repeat, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for i in range(repeat):
            step = stride if i == 0 else 1
            y = relu(b.conv(x, channels, width, 1))
            y = b.conv(relu(b.conv(y, width, width, 3, step)), width, 4 * width, 1)
            if i == 0:
                x = b.conv(x, channels, 4 * width, 1, step)
            x = relu(b.op("Add", [y, x]))
            channels = 4 * width
    return x


def _multi_head(b, q, k, v, queries, keys, width, heads):
    """torch.nn.MultiheadAttention of one text: q is scaled, heads are the batch."""
    size = width // heads
    q = b.op("Mul", [b.linear(q, width, width), b.scalar(size**-0.5)])
    q, k, v = (_heads(b, t, 1, n, heads, size) for t, n in ((q, queries), (b.linear(k, width, width), keys), (b.linear(v, width, width), keys)))
    y = b.op("MatMul", [b.op("Softmax", [b.op("MatMul", [q, b.transpose(k, 0, 1, 3, 2)])], axis=-1), v])
    return b.linear(b.reshape(b.transpose(y, 0, 2, 1, 3), 1, queries, width), width, width)


def _sine_positions(side, width):
    steps = 10000.0 ** (2 * (np.arange(width // 2) // 2) / (width // 2))
    place = (np.arange(side) + 1) / side * 2 * np.pi
    one = place[:, None] / steps
    one = np.stack([np.sin(one[:, 0::2]), np.cos(one[:, 1::2])], 2).reshape(side, -1)
    rows, columns = np.repeat(one, side, 0), np.tile(one, (side, 1))
    return np.concatenate([rows, columns], 1)[None].astype(np.float32)


def detr(size=480, width=256, queries=100, layers=6):
    """Carion et al. 2020: ResNet-50, six layers of encoder and decoder each, a hundred queries."""
    b = Builder("detr", seed=72)
    side = size // 32
    tokens = side * side
    x = b.conv(_resnet50(b, b.input("image", [1, 3, size, size])), 2048, width, 1)
    x = b.transpose(b.reshape(x, 1, width, tokens), 0, 2, 1)
    places = b.const(_sine_positions(side, width))
    with_place = lambda v, p: b.op("Add", [v, p])
    plus_norm = lambda v, y: b.layer_norm(b.op("Add", [v, y]), width)
    hidden = lambda v: b.linear(b.op("Relu", [b.linear(v, width, 2048)]), 2048, width)
    for _ in range(layers):
        qk = with_place(x, places)
        x = plus_norm(x, _multi_head(b, qk, qk, x, tokens, tokens, width, 8))
        x = plus_norm(x, hidden(x))
    query = b.normal((1, queries, width), 1.0, "query")
    y, keys = b.const(np.zeros((1, queries, width), np.float32)), with_place(x, places)
    for _ in range(layers):
        qk = with_place(y, query)
        y = plus_norm(y, _multi_head(b, qk, qk, y, queries, queries, width, 8))
        y = plus_norm(y, _multi_head(b, with_place(y, query), keys, x, queries, tokens, width, 8))
        y = plus_norm(y, hidden(y))
    y = b.layer_norm(y, width)
    b.output(b.linear(y, width, 92), [1, queries, 92], name="logits")
    for _ in range(2):
        y = b.op("Relu", [b.linear(y, width, width)])
    b.output(b.op("Sigmoid", [b.linear(y, width, 4)]), [1, queries, 4], name="boxes")
    return calibrate(b.model())


def _relative_bias(b, q, windows, side, size, heads):
    """SAM's decomposed relative places: q . (a vector for each difference of rows) + the same for columns -> [windows * heads, side^2, side^2]."""
    q = b.reshape(q, windows * heads, side, side, size)
    rows = b.op("Einsum", [q, b.normal((side, side, size), 0.02, "rows")], equation="bhwc,hkc->bhwk")
    columns = b.op("Einsum", [q, b.normal((side, side, size), 0.02, "columns")], equation="bhwc,wkc->bhwk")
    return b.op("Unsqueeze", [rows, b.ints(4)]), b.op("Unsqueeze", [columns, b.ints(3)])


def _sam_attention(b, x, windows, side, width, heads):
    size, tokens, groups = width // heads, side * side, windows * heads
    qkv = b.transpose(b.reshape(b.linear(x, width, 3 * width), windows, tokens, 3, heads, size), 2, 0, 3, 1, 4)
    qkv = b.reshape(qkv, 3, groups, tokens, size)
    q, k, v = (b.op("Gather", [qkv, b.scalar(i, np.int64)], axis=0) for i in range(3))
    scores = b.op("MatMul", [b.op("Mul", [q, b.scalar(size**-0.5)]), b.transpose(k, 0, 2, 1)])
    rows, columns = _relative_bias(b, q, windows, side, size, heads)
    scores = b.reshape(scores, groups, side, side, side, side)
    scores = b.op("Add", [b.op("Add", [scores, rows]), columns])
    y = b.op("MatMul", [b.op("Softmax", [b.reshape(scores, groups, tokens, tokens)], axis=-1), v])
    y = b.transpose(b.reshape(y, windows, heads, side, side, size), 0, 2, 3, 1, 4)
    return b.linear(b.reshape(y, windows, side, side, width), width, width)


def sam_encoder(size=512, width=384, heads=6, layers=6):
    """Kirillov et al. 2023, the image encoder at half its size, with widths of ViT-S and half of its layers: windows of 14, every third layer sees everything."""
    b = Builder("sam_encoder", seed=73)
    side, window = size // 16, 14
    n = -(-side // window)
    padded = n * window
    x = b.op("Conv", [b.input("image", [1, 3, size, size]), b.normal((width, 3, 16, 16), 0.04), b.normal((width,), 0.02)], kernel_shape=[16, 16], strides=[16, 16])
    x = b.op("Add", [b.transpose(x, 0, 2, 3, 1), b.normal((1, side, side, width), 0.02)])
    for layer in range(layers):
        y = b.layer_norm(x, width, 1e-6)
        if layer % 3 == 2:
            y = _sam_attention(b, y, 1, side, width, heads)
        else:
            y = b.op("Pad", [y, b.ints(0, 0, 0, 0, 0, padded - side, padded - side, 0)])
            y = b.transpose(b.reshape(y, 1, n, window, n, window, width), 0, 1, 3, 2, 4, 5)
            y = _sam_attention(b, b.reshape(y, n * n, window, window, width), n * n, window, width, heads)
            y = b.transpose(b.reshape(y, 1, n, n, window, window, width), 0, 1, 3, 2, 4, 5)
            y = b.op("Slice", [b.reshape(y, 1, padded, padded, width), b.ints(0, 0), b.ints(side, side), b.ints(1, 2)])
        x = b.op("Add", [x, y])
        y = b.linear(b.gelu(b.linear(b.layer_norm(x, width, 1e-6), width, 4 * width)), 4 * width, width)
        x = b.op("Add", [x, y])
    x = b.conv(b.transpose(x, 0, 3, 1, 2), width, 256, 1, bias=False)
    x = _norm_channels(b, x, 256)
    x = _norm_channels(b, b.conv(x, 256, 256, 3, bias=False), 256)
    b.output(x, [1, 256, side, side], name="embedding")
    return calibrate(b.model())
