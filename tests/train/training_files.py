"""Models and data that the tests of training use, and the same models for PyTorch. Standard library only, but for torch_*()."""

import math
import random
import struct
import sys
import zipfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "cli"))
import tiny_models as tiny  # noqa: E402


def attribute(name, value):
    out = tiny.data(1, name)
    if isinstance(value, float):
        return out + tiny.varint(2 << 3 | 5) + struct.pack("<f", value) + tiny.number(20, 1)
    if isinstance(value, int):
        return out + tiny.number(3, value) + tiny.number(20, 2)
    return out + b"".join(tiny.number(8, v) for v in value) + tiny.number(20, 7)


def node(op, inputs, outputs, **attributes):
    out = b"".join(tiny.data(1, i) for i in inputs) + b"".join(tiny.data(2, o) for o in outputs)
    out += tiny.data(3, f"{op}_{outputs[0]}") + tiny.data(4, op)
    return out + b"".join(tiny.data(5, attribute(n, v)) for n, v in attributes.items())


class Net:
    """A chain of layers with random weights: the text of an ONNX model, and what PyTorch computes."""

    def __init__(self, shape, seed=1):
        self.random = random.Random(seed)
        self.shape = ["N", *shape]
        self.nodes, self.weights, self.steps = [], {}, []
        self.value, self.count = "x", 0
        self.channels = shape[0]

    def weight(self, name, shape, scale):
        self.weights[name] = (shape, [self.random.gauss(0, scale) for _ in range(math.prod(shape))])
        return name

    def constant(self, name, shape, low, high):
        self.weights[name] = (shape, [self.random.uniform(low, high) for _ in range(math.prod(shape))])
        return name

    def add(self, op, extra, step, **attributes):
        self.count += 1
        value = f"v{self.count}"
        self.nodes.append(node(op, [self.value, *extra], [value], **attributes))
        self.steps.append((self.value, value, step))
        self.value = value
        return self

    def conv(self, name, out, kernel=3, stride=1, group=1):
        each = self.channels // group
        w = self.weight(name + ".weight", [out, each, kernel, kernel], math.sqrt(2 / (each * kernel * kernel)))
        b = self.weight(name + ".bias", [out], 0.01)
        pad = kernel // 2
        self.channels = out
        return self.add("Conv", [w, b], ("conv", w, b, stride, pad, group), kernel_shape=[kernel, kernel], strides=[stride, stride],
                        pads=[pad] * 4, group=group)

    def norm(self, name):
        parts = [self.constant(f"{name}.{part}", [self.channels], low, high)
                 for part, low, high in (("scale", 0.8, 1.2), ("shift", -0.1, 0.1), ("mean", -0.1, 0.1), ("var", 0.5, 1.5))]
        return self.add("BatchNormalization", parts, ("norm", *parts))

    def relu(self):
        return self.add("Relu", [], ("relu",))

    def relu6(self):
        low, high = self.constant("low", [], 0, 0), self.constant("high", [], 6, 6)
        return self.add("Clip", [low, high], ("relu6",))

    def pool(self):
        return self.add("MaxPool", [], ("pool",), kernel_shape=[2, 2], strides=[2, 2])

    def mean(self):
        return self.add("GlobalAveragePool", [], ("mean",))

    def flatten(self, width):
        self.channels = width
        return self.add("Flatten", [], ("flatten",))

    def linear(self, name, out):
        w = self.weight(name + ".weight", [out, self.channels], math.sqrt(1 / self.channels))
        b = self.weight(name + ".bias", [out], 0.01)
        self.channels = out
        return self.add("Gemm", [w, b], ("linear", w, b), transB=1)

    def residual(self, of):
        return self.add("Add", [of], ("add", of))

    def onnx(self, classes):
        self.nodes.append(node("Identity", [self.value], ["scores"]))
        constants = [tiny.tensor(n, tiny.FLOAT, s, tiny.floats(*v)) for n, (s, v) in self.weights.items()]
        return tiny.model(self.nodes, [tiny.value_info("x", tiny.FLOAT, self.shape)],
                          [tiny.value_info("scores", tiny.FLOAT, ["N", classes])], constants)

    def torch_forward(self, torch, weights, x, first=0, last=None):
        """The layers `first` to `last`."""
        f = torch.nn.functional
        values, result = {self.steps[first][0]: x}, self.steps[(last or len(self.steps)) - 1][1]
        for before, after, step in self.steps[first:last]:
            v, kind, rest = values[before], step[0], [weights.get(s, s) if isinstance(s, str) else s for s in step[1:]]
            if kind == "conv":
                out = f.conv2d(v, rest[0], rest[1], stride=rest[2], padding=rest[3], groups=rest[4])
            elif kind == "norm":
                out = f.batch_norm(v, rest[2], rest[3], rest[0], rest[1])
            elif kind == "linear":
                out = f.linear(v, rest[0], rest[1])
            elif kind == "add":
                out = v + values[step[1]]
            else:
                out = {"relu": f.relu, "relu6": f.relu6, "pool": lambda t: f.max_pool2d(t, 2), "mean": lambda t: t.mean((2, 3), True),
                       "flatten": lambda t: t.flatten(1)}[kind](v)
            values[after] = out
        return values[result]


def small_cnn(side, classes, seed=1):
    net = Net([1, side, side], seed)
    net.conv("conv1", 8).relu().pool().conv("conv2", 16).relu().pool().flatten(16 * (side // 4) ** 2)
    return net.linear("hidden", 32).relu().linear("classifier", classes)


def small_mobilenet(side, classes, seed=2):
    """Inverted residuals with depthwise convolutions, as MobileNetV2 has them, and a linear classifier."""
    net = Net([1, side, side], seed)
    net.conv("stem", 16).norm("stem_norm").relu6()
    for i, (expand, out, stride) in enumerate([(3, 16, 1), (3, 32, 2), (3, 32, 1), (3, 64, 2)]):
        before, channels = net.value, net.channels
        net.conv(f"b{i}.expand", channels * expand, 1).norm(f"b{i}.n1").relu6()
        net.conv(f"b{i}.depth", channels * expand, 3, stride, channels * expand).norm(f"b{i}.n2").relu6()
        net.conv(f"b{i}.project", out, 1).norm(f"b{i}.n3")
        if stride == 1 and out == channels:
            net.residual(before)
    net.conv("top", 128, 1).norm("top_norm").relu6().mean().flatten(128)
    return net.linear("classifier", classes)


def mlp(features, hidden, classes, seed=3):
    net = Net([features], seed)
    net.channels = features
    return net.linear("fc1", hidden).relu().linear("fc2", classes)


def npz(path, **arrays):
    """arrays: name=(descr, shape, raw bytes)."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, (descr, shape, raw) in arrays.items():
            info = zipfile.ZipInfo(name + ".npy")
            archive.writestr(info, tiny.npy(descr, tuple(shape), raw))


def floats(values):
    return struct.pack(f"<{len(values)}f", *values)


def ints(values):
    return struct.pack(f"<{len(values)}q", *values)


def labelled(pictures, labels, shape):
    flat = [v for picture in pictures for v in picture]
    return ("<f4", [len(pictures), *shape], floats(flat)), ("<i8", [len(labels)], ints(labels))


SHAPES = ("disc", "ring", "square", "frame", "cross", "plus", "bar", "column", "triangle", "dots")


def inside(shape, x, y):
    """Whether the point of [-1, 1] x [-1, 1] belongs to the shape."""
    far = math.hypot(x, y)
    return {"disc": far < 0.9, "ring": 0.5 < far < 0.95, "square": max(abs(x), abs(y)) < 0.8, "frame": 0.55 < max(abs(x), abs(y)) < 0.95,
            "cross": abs(abs(x) - abs(y)) < 0.3, "plus": min(abs(x), abs(y)) < 0.22, "bar": abs(y) < 0.3, "column": abs(x) < 0.3,
            "triangle": -0.9 < y < 0.9 and abs(x) < (y + 0.9) / 2, "dots": math.hypot(abs(x) - 0.6, abs(y) - 0.6) < 0.38}[shape]


def drawn(rng, shape, side):
    """One picture: a shape of random size and place, with noise; rows of values from 0 to 1."""
    radius = rng.uniform(0.28, 0.45) * side
    cx, cy = (rng.uniform(radius, side - radius) for _ in range(2))
    level, noise = rng.uniform(0.6, 1), rng.uniform(0, 0.15)
    out = []
    for y in range(side):
        for x in range(side):
            v = level if inside(shape, (x + 0.5 - cx) / radius, (y + 0.5 - cy) / radius) else 0
            out.append(min(1, max(0, v + rng.gauss(0, noise))))
    return out


def shapes(count, side=16, seed=4):
    """(pictures, labels), mixed."""
    rng = random.Random(seed)
    labels = [i % len(SHAPES) for i in range(count)]
    rng.shuffle(labels)
    return [drawn(rng, SHAPES[label], side) for label in labels], labels


def write_pictures(folder, pictures, labels, side):
    for i, (picture, label) in enumerate(zip(pictures, labels)):
        place = Path(folder) / SHAPES[label]
        place.mkdir(parents=True, exist_ok=True)
        grey = bytes(round(255 * v) for v in picture for _ in range(3))
        (place / f"{i:05}.png").write_bytes(tiny.png(side, side, grey))
