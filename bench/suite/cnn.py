"""Convolutional networks for images, after the papers that define them; weights are random."""

from builder import Builder
from calibrate import calibrate


def _classifier(b, x, channels, hidden=None, classes=1000):
    x = b.op("Flatten", [b.op("GlobalAveragePool", [x])], axis=1)
    if hidden:
        x = b.op("HardSwish", [b.gemm(x, channels, hidden)])
        channels = hidden
    b.output(b.gemm(x, channels, classes), [1, classes], name="logits")


def mobilenet_v2():
    """Sandler et al. 2018, table 2."""
    b = Builder("mobilenet_v2", seed=2)
    clip = lambda x: b.op("Clip", [x, b.scalar(0.0), b.scalar(6.0)])
    x = clip(b.conv(b.input("image", [1, 3, 224, 224]), 3, 32, 3, 2))
    channels = 32
    for expand, out, repeat, stride in [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]:
        for i in range(repeat):
            step = stride if i == 0 else 1
            mid = channels * expand
            y = clip(b.conv(x, channels, mid, 1)) if expand != 1 else x
            y = clip(b.conv(y, mid, mid, 3, step, group=mid))
            y = b.conv(y, mid, out, 1)
            x = b.op("Add", [x, y]) if step == 1 and channels == out else y
            channels = out
    _classifier(b, clip(b.conv(x, channels, 1280, 1)), 1280)
    return calibrate(b.model())


def _squeeze_excite(b, x, channels, squeezed, gate):
    y = b.op("GlobalAveragePool", [x])
    y = b.conv(y, channels, squeezed, 1)
    y = b.op("Relu", [y]) if gate == "HardSigmoid" else b.silu(y)
    y = b.conv(y, squeezed, channels, 1)
    y = b.op("HardSigmoid", [y], alpha=1 / 6, beta=0.5) if gate == "HardSigmoid" else b.op("Sigmoid", [y])
    return b.op("Mul", [x, y])


def mobilenet_v3_large():
    """Howard et al. 2019, table 1."""
    b = Builder("mobilenet_v3_large", seed=3)
    relu = lambda x: b.op("Relu", [x])
    swish = lambda x: b.op("HardSwish", [x])
    x = swish(b.conv(b.input("image", [1, 3, 224, 224]), 3, 16, 3, 2))
    channels = 16
    rows = [(3, 16, 16, 0, relu, 1), (3, 64, 24, 0, relu, 2), (3, 72, 24, 0, relu, 1), (5, 72, 40, 24, relu, 2), (5, 120, 40, 32, relu, 1),
            (5, 120, 40, 32, relu, 1), (3, 240, 80, 0, swish, 2), (3, 200, 80, 0, swish, 1), (3, 184, 80, 0, swish, 1), (3, 184, 80, 0, swish, 1),
            (3, 480, 112, 120, swish, 1), (3, 672, 112, 168, swish, 1), (5, 672, 160, 168, swish, 2), (5, 960, 160, 240, swish, 1),
            (5, 960, 160, 240, swish, 1)]
    for kernel, mid, out, squeezed, act, stride in rows:
        y = act(b.conv(x, channels, mid, 1)) if mid != channels else x
        y = act(b.conv(y, mid, mid, kernel, stride, group=mid))
        if squeezed:
            y = _squeeze_excite(b, y, mid, squeezed, "HardSigmoid")
        y = b.conv(y, mid, out, 1)
        x = b.op("Add", [x, y]) if stride == 1 and channels == out else y
        channels = out
    _classifier(b, swish(b.conv(x, channels, 960, 1)), 960, hidden=1280)
    return calibrate(b.model())


def efficientnet_b0():
    """Tan and Le 2019, table 1."""
    b = Builder("efficientnet_b0", seed=4)
    x = b.silu(b.conv(b.input("image", [1, 3, 224, 224]), 3, 32, 3, 2))
    channels = 32
    for expand, out, repeat, stride, kernel in [(1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3), (6, 112, 3, 1, 5), (6, 192, 4, 2, 5),
                                                (6, 320, 1, 1, 3)]:
        for i in range(repeat):
            step = stride if i == 0 else 1
            mid = channels * expand
            y = b.silu(b.conv(x, channels, mid, 1)) if expand != 1 else x
            y = b.silu(b.conv(y, mid, mid, kernel, step, group=mid))
            y = _squeeze_excite(b, y, mid, max(1, channels // 4), "Sigmoid")
            y = b.conv(y, mid, out, 1)
            x = b.op("Add", [x, y]) if step == 1 and channels == out else y
            channels = out
    _classifier(b, b.silu(b.conv(x, channels, 1280, 1)), 1280)
    return calibrate(b.model())


class _Yolo:
    """The blocks of YOLOv8 (width 0.25, depth 0.33)."""

    def __init__(self, b):
        self.b = b

    def conv(self, x, cin, cout, k=1, s=1):
        return self.b.silu(self.b.conv(x, cin, cout, k, s))

    def c2f(self, x, cin, cout, repeat, shortcut):
        b, half = self.b, cout // 2
        x = self.conv(x, cin, cout)
        parts = b.op("Split", [x, b.ints(half, half)], outputs=2, axis=1)
        for _ in range(repeat):
            y = self.conv(self.conv(parts[-1], half, half, 3), half, half, 3)
            parts.append(b.op("Add", [parts[-1], y]) if shortcut else y)
        return self.conv(b.op("Concat", parts, axis=1), half * (2 + repeat), cout)

    def sppf(self, x, channels):
        b = self.b
        parts = [self.conv(x, channels, channels // 2)]
        for _ in range(3):
            parts.append(b.op("MaxPool", [parts[-1]], kernel_shape=[5, 5], strides=[1, 1], pads=[2, 2, 2, 2]))
        return self.conv(b.op("Concat", parts, axis=1), channels * 2, channels)

    def up(self, x):
        b = self.b
        return b.op("Resize", [x, "", b.const_floats(1, 1, 2, 2)], mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor")


def yolov8n(size=640, classes=80):
    """The shape of YOLOv8n: backbone, path aggregation, decoupled heads, distribution focal decoding to boxes."""
    import numpy as np

    b = Builder("yolov8n", seed=8)
    b.const_floats = lambda *v: b.const(np.array(v, np.float32))
    y = _Yolo(b)
    x = y.conv(b.input("images", [1, 3, size, size]), 3, 16, 3, 2)
    x = y.c2f(y.conv(x, 16, 32, 3, 2), 32, 32, 1, True)
    p3 = y.c2f(y.conv(x, 32, 64, 3, 2), 64, 64, 2, True)
    p4 = y.c2f(y.conv(p3, 64, 128, 3, 2), 128, 128, 2, True)
    p5 = y.sppf(y.c2f(y.conv(p4, 128, 256, 3, 2), 256, 256, 1, True), 256)
    n4 = y.c2f(b.op("Concat", [y.up(p5), p4], axis=1), 384, 128, 1, False)
    n3 = y.c2f(b.op("Concat", [y.up(n4), p3], axis=1), 192, 64, 1, False)
    o4 = y.c2f(b.op("Concat", [y.conv(n3, 64, 64, 3, 2), n4], axis=1), 192, 128, 1, False)
    o5 = y.c2f(b.op("Concat", [y.conv(o4, 128, 128, 3, 2), p5], axis=1), 384, 256, 1, False)
    boxes, scores = [], []
    for level, channels in [(n3, 64), (o4, 128), (o5, 256)]:
        box = b.conv(y.conv(y.conv(level, channels, 64, 3), 64, 64, 3), 64, 64, 1)
        cls = b.conv(y.conv(y.conv(level, channels, 80, 3), 80, 80, 3), 80, classes, 1)
        boxes.append(b.reshape(box, 1, 64, -1))
        scores.append(b.reshape(cls, 1, classes, -1))
    anchors = sum((size // s) ** 2 for s in (8, 16, 32))
    box = b.reshape(b.op("Concat", boxes, axis=2), 1, 4, 16, anchors)
    box = b.op("Softmax", [b.transpose(box, 0, 2, 1, 3)], axis=1)
    bins = b.const(np.arange(16, dtype=np.float32).reshape(1, 16, 1, 1))
    distance = b.reshape(b.op("Conv", [box, bins], kernel_shape=[1, 1]), 1, 4, anchors)
    top, bottom = b.op("Split", [distance, b.ints(2, 2)], outputs=2, axis=1)
    grid, strides = [], []
    for s in (8, 16, 32):
        side = size // s
        gy, gx = np.meshgrid(np.arange(side) + 0.5, np.arange(side) + 0.5, indexing="ij")
        grid.append(np.stack([gx.ravel(), gy.ravel()]))
        strides.append(np.full(side * side, s))
    points = b.const(np.concatenate(grid, 1)[None].astype(np.float32))
    low, high = b.op("Sub", [points, top]), b.op("Add", [points, bottom])
    center = b.op("Div", [b.op("Add", [low, high]), b.scalar(2.0)])
    box = b.op("Concat", [center, b.op("Sub", [high, low])], axis=1)
    box = b.op("Mul", [box, b.const(np.concatenate(strides)[None, None].astype(np.float32))])
    cls = b.op("Sigmoid", [b.op("Concat", scores, axis=2)])
    b.output(b.op("Concat", [box, cls], axis=1), [1, 4 + classes, anchors], name="detections")
    return calibrate(b.model())
