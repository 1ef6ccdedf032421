"""Single operators and small blocks, Sardonyx beside ONNX Runtime and OpenVINO: `operators.py [--only A,B] [--save]`.

The engines take turns in one process, with one thread; times are the process's CPU time. A graph of one operator includes what a network pays once: reordering its channels, starting a run (3 to 9 us in Python, with OpenVINO 20 to 30).
"""

import argparse
import datetime
import io
import math
import os
import time

import numpy as np
import onnx
import onnxruntime
import openvino
import sardonyx
from onnx import helper, numpy_helper

import processor

random = np.random.default_rng(0)


def normal(*shape, scale=1.0):
    return (random.standard_normal(shape) * scale).astype(np.float32)


def integers(low, high, *shape, dtype=np.int64):
    return random.integers(low, high, shape).astype(dtype)


def array(values, dtype=np.int64):
    return np.array(values, dtype)


class Case:
    """A graph: `node` adds an operator that reads names of `inputs`, `constants` and earlier outputs; the last one's outputs are the graph's."""

    def __init__(self, name, inputs, constants=None, opset=21):
        self.name, self.inputs, self.constants, self.opset, self.nodes = name, inputs, constants or {}, opset, []

    def node(self, op, inputs, outputs="y", domain="", **attributes):
        self.nodes.append(helper.make_node(op, inputs.split(","), outputs.split(","), domain=domain, **attributes))
        return self

    def model(self):
        inputs = [helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for k, v in self.inputs.items()]
        outputs = [helper.make_empty_tensor_value_info(name) for name in self.nodes[-1].output]
        constants = [numpy_helper.from_array(np.asarray(v), k) for k, v in self.constants.items()]
        graph = helper.make_graph(self.nodes, self.name, inputs, outputs, constants)
        opsets = [helper.make_opsetid("", self.opset), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()


def single(op, inputs, constants=None, name=None, outputs="y", opset=21, **attributes):
    return Case(name or op, inputs, constants, opset).node(op, ",".join([*inputs, *(constants or {})]), outputs, **attributes)


def elementwise():
    x = normal(1, 64, 56, 56)
    far, near = np.abs(x) + 1, np.clip(x, -0.9, 0.9)
    for op in ("Abs Atan Celu Ceil Cos Elu Erf Exp Floor Gelu HardSigmoid HardSwish LeakyRelu Mish Neg Reciprocal Relu Round Selu Sigmoid Sign "
               "Sin Softplus Softsign Tan Tanh ThresholdedRelu IsNaN IsInf").split():
        yield single(op, {"x": x}, opset=22)
    for op, v in (("Sqrt", far), ("Log", far), ("Acosh", far), ("Asin", near), ("Acos", near), ("Not", x > 0)):
        yield single(op, {"x": v}, opset=22)
    yield single("Clip", {"x": x}, {"low": array(0, np.float32), "high": array(6, np.float32)})
    for op in "Add Sub Mul Div Pow Max Min Greater LessOrEqual Equal PRelu".split():
        yield single(op, {"a": far, "b": np.abs(normal(1, 64, 56, 56)) + 0.5})
    for exponent in (0.5, 2.2):
        yield single("Pow", {"x": far}, {"e": array(exponent, np.float32)}, name=f"Pow, {exponent}")
    yield single("Mod", {"a": far, "b": far[::-1] + 1}, fmod=1)
    yield single("And", {"a": x > 0, "b": x < 1})
    yield single("Add", {"a": x, "b": normal(1, 64, 1, 1)}, name="Add, a channel")
    yield single("Mul", {"a": normal(1, 128, 768), "b": normal(768)}, name="Mul, a row")
    yield single("Add", {"a": normal(1, 128, 1, 64), "b": normal(1, 1, 128, 64)}, name="Add, outer")
    yield single("Where", {"c": x > 0, "a": x, "b": normal(1, 64, 56, 56)})
    yield single("Sum", {"a": x, "b": far, "c": near})
    for name, v, to in (("float16", x, 10), ("int64", x, 7), ("uint8", far, 2), ("bool", x, 9)):
        yield single("Cast", {"x": v}, name=f"Cast to {name}", to=to)
    yield single("Cast", {"x": (x * 9).astype(np.int64)}, name="Cast from int64", to=1)
    yield single("QuantizeLinear", {"x": x}, {"s": array(0.05, np.float32), "z": array(128, np.uint8)})
    yield single("DequantizeLinear", {"x": integers(0, 255, 1, 64, 56, 56, dtype=np.uint8)}, {"s": array(0.05, np.float32), "z": array(128, np.uint8)})
    yield single("DynamicQuantizeLinear", {"x": normal(1, 128, 768)}, outputs="y,s,z")


def reductions():
    x, rows = normal(1, 64, 56, 56), normal(128, 768)
    for op in "ReduceSum ReduceMean ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 ReduceSumSquare ReduceLogSumExp".split():
        for name, v, axes in (("2 last axes", x, [2, 3]), ("last axis", rows, [-1]), ("first axis", rows, [0])):
            yield single(op, {"x": v}, {"axes": array(axes)}, name=f"{op}, {name}")
    for op in ("ReduceMean", "ReduceMax"):
        for name, v, axes in (("of channels", normal(8, 64, 28, 28), [0, 2, 3]), ("rows of 7", normal(20000, 7), [-1]), ("rows of 49", normal(3136, 49), [-1])):
            yield single(op, {"x": v}, {"axes": array(axes)}, name=f"{op}, {name}")
    yield single("ArgMax", {"x": normal(128, 1000)}, name="ArgMax, last axis", axis=-1)
    yield single("ArgMax", {"x": normal(1, 21, 128, 128)}, name="ArgMax, channels", axis=1)
    yield single("Softmax", {"x": normal(12, 128, 128)}, name="Softmax, last axis", axis=-1)
    yield single("Softmax", {"x": normal(1, 21, 128, 128)}, name="Softmax, channels", axis=1)
    yield single("Softmax", {"x": normal(20000, 8)}, name="Softmax, rows of 8", axis=-1)
    yield single("Softmax", {"x": normal(3136, 49)}, name="Softmax, rows of 49", axis=-1)
    yield single("LogSoftmax", {"x": normal(128, 1000)}, axis=-1)
    yield single("CumSum", {"x": normal(64, 1024)}, {"axis": array(1)})
    yield single("CumSum", {"x": normal(1024, 64)}, {"axis": array(0)}, name="CumSum, first axis")
    yield single("TopK", {"x": normal(64, 1000)}, {"k": array([5])}, name="TopK, 5 of 1000", outputs="y,i")
    yield single("TopK", {"x": normal(1, 8400)}, {"k": array([300])}, name="TopK, 300 of 8400", outputs="y,i")
    yield single("TopK", {"x": normal(1, 672000)}, {"k": array([100])}, name="TopK, 100 of 672000", outputs="y,i")
    yield single("TopK", {"x": normal(100, 64, 8)}, {"k": array([5])}, name="TopK, middle axis", outputs="y,i", axis=1)


def norms():
    x, tokens, scale = normal(1, 64, 56, 56), normal(1, 128, 768), {"s": normal(64), "b": normal(64)}
    yield single("LayerNormalization", {"x": tokens}, {"s": normal(768), "b": normal(768)})
    yield single("RMSNormalization", {"x": tokens}, {"s": normal(768)}, opset=23)
    yield single("SkipLayerNormalization", {"x": tokens, "r": normal(1, 128, 768)}, {"s": normal(768), "b": normal(768)}, domain="com.microsoft")
    yield single("InstanceNormalization", {"x": x}, scale)
    yield single("GroupNormalization", {"x": x}, scale, num_groups=8)
    yield single("BatchNormalization", {"x": x}, {**scale, "m": normal(64), "v": np.abs(normal(64)) + 0.1})
    rows = {"s": normal(256), "b": normal(256), "m": normal(256), "v": np.abs(normal(256)) + 0.1}
    yield single("BatchNormalization", {"x": normal(64, 256)}, rows, name="BatchNormalization, rows")
    yield single("LpNormalization", {"x": normal(128, 768)}, axis=-1, p=2)
    yield single("LRN", {"x": x}, size=5)
    yield single("MeanVarianceNormalization", {"x": x})


def movement():
    x, table, small = normal(1, 64, 56, 56), normal(64, 1024), normal(1, 64, 28, 28)
    yield Case("Gather, rows", {"i": integers(0, 30000, 1, 128)}, {"w": normal(30000, 768)}).node("Gather", "w,i")
    yield single("GatherElements", {"x": table, "i": integers(0, 1024, 64, 256)}, axis=1)
    yield single("GatherND", {"x": normal(64, 64, 64), "i": integers(0, 64, 2000, 2)})
    yield single("ScatterND", {"x": normal(64, 64, 64), "i": integers(0, 64, 500, 2), "u": normal(500, 64)})
    yield single("ScatterElements", {"x": table, "i": np.argsort(table)[:, :256].copy(), "u": normal(64, 256)}, axis=1)
    for name, v, order in (("heads", normal(1, 128, 12, 64), [0, 2, 1, 3]), ("channels last", x, [0, 2, 3, 1]), ("matrix", normal(768, 768), [1, 0]),
                           ("any", normal(8, 16, 32, 48), [3, 1, 0, 2])):
        yield single("Transpose", {"x": v}, name=f"Transpose, {name}", perm=order)
    yield single("Concat", {"a": x, "b": normal(1, 32, 56, 56)}, name="Concat, channels", axis=1)
    yield single("Concat", {"a": normal(1, 12, 128, 32), "b": normal(1, 12, 128, 32)}, name="Concat, last axis", axis=3)
    yield single("Slice", {"x": x}, {"b": array([0, 0]), "e": array([28, 28]), "a": array([2, 3])})
    yield single("Slice", {"x": x}, {"b": array([0, 0]), "e": array([56, 56]), "a": array([2, 3]), "s": array([2, 2])}, name="Slice, steps of 2")
    yield single("Split", {"x": x}, outputs="y,z", axis=1, num_outputs=2)
    yield single("Tile", {"x": small}, {"r": array([1, 1, 2, 2])})
    yield single("Expand", {"x": normal(1, 64, 1, 1)}, {"s": array([1, 64, 56, 56])})
    yield single("Pad", {"x": x}, {"p": array([0, 0, 1, 1, 0, 0, 1, 1])})
    yield single("Pad", {"x": x}, {"p": array([0, 0, 3, 3, 0, 0, 3, 3])}, name="Pad, reflect", mode="reflect")
    yield single("DepthToSpace", {"x": x}, blocksize=2)
    yield single("SpaceToDepth", {"x": x}, blocksize=2)
    for mode, coordinates in (("nearest", "asymmetric"), ("linear", "half_pixel"), ("linear", "align_corners"), ("cubic", "half_pixel")):
        more = {"nearest_mode": "floor"} if mode == "nearest" else {}
        yield Case(f"Resize, {mode}, {coordinates}", {"x": small}, {"s": array([1, 1, 2, 2], np.float32)}).node(
            "Resize", "x,,s", mode=mode, coordinate_transformation_mode=coordinates, **more)
    yield Case("Resize, a picture", {"x": normal(1, 3, 480, 640)}, {"z": array([1, 3, 224, 224])}).node("Resize", "x,,,z", mode="linear")
    yield Case("Resize, a picture of bytes", {"x": integers(0, 255, 1, 3, 480, 640, dtype=np.uint8)}, {"z": array([1, 3, 224, 224])}).node("Resize", "x,,,z", mode="linear")
    yield Case("Resize, antialias", {"x": normal(1, 3, 480, 640)}, {"z": array([1, 3, 192, 256])}).node("Resize", "x,,,z", mode="linear", antialias=1)
    yield single("Trilu", {"x": normal(1, 12, 128, 128)})
    yield single("NonZero", {"x": normal(128, 128) > 1})
    yield single("OneHot", {"i": integers(0, 1000, 128)}, {"d": array(1000), "v": array([0, 1], np.float32)})
    yield single("Unique", {"x": integers(0, 1000, 4096)})
    yield single("Compress", {"x": normal(1000, 64), "c": normal(1000) > 0}, axis=0)
    yield single("GridSample", {"x": normal(1, 32, 64, 64), "g": np.clip(normal(1, 64, 64, 2), -1, 1)})
    boxes = np.abs(normal(50, 4)) * array([10, 10, 100, 100], np.float32)
    yield single("RoiAlign", {"x": x, "r": boxes, "b": array([0] * 50)}, output_height=7, output_width=7, sampling_ratio=2, spatial_scale=0.25)
    corner = np.abs(normal(1, 2000, 2))
    boxes = np.concatenate([corner, corner + np.abs(normal(1, 2000, 2)) * np.float32(0.1)], 2)
    yield single("NonMaxSuppression", {"b": boxes, "s": np.abs(normal(1, 4, 2000))}, {"m": array([100]), "i": array([0.5], np.float32), "t": array([0.3], np.float32)})


def convolution(name, x, w, op="Conv", **attributes):
    outputs = w[0] if op == "Conv" else w[1] * attributes.get("group", 1)
    return single(op, {"x": normal(*x)}, {"w": normal(*w, scale=0.1), "b": normal(outputs)}, name=f"{op}, {name}", **attributes)


def convolutions():
    yield convolution("1-D", (1, 80, 3000), (384, 80, 3), pads=[1, 1])
    yield convolution("1-D, stride 2", (1, 384, 3000), (384, 384, 3), pads=[1, 1], strides=[2])
    yield convolution("1-D, 10 taps, stride 5, 1 channel", (1, 1, 16000), (512, 1, 10), strides=[5])
    yield convolution("1-D, depthwise, 31 taps", (1, 256, 500), (256, 1, 31), pads=[15, 15], group=256)
    yield convolution("1-D, dilation 4", (1, 64, 2000), (64, 64, 3), pads=[4, 4], dilations=[4])
    yield convolution("3-D", (1, 16, 16, 56, 56), (32, 16, 3, 3, 3), pads=[1] * 6)
    yield convolution("depthwise 7x7", (1, 96, 56, 56), (96, 1, 7, 7), pads=[3] * 4, group=96)
    yield convolution("depthwise 5x5, stride 2", (1, 144, 56, 56), (144, 1, 5, 5), pads=[2] * 4, strides=[2, 2], group=144)
    yield convolution("depthwise 3x3, 7x7 pixels", (1, 960, 7, 7), (960, 1, 3, 3), pads=[1] * 4, group=960)
    yield convolution("depthwise 3x3, dilation 2", (1, 96, 33, 33), (96, 1, 3, 3), pads=[2] * 4, dilations=[2, 2], group=96)
    yield convolution("3-D, depthwise", (1, 64, 8, 28, 28), (64, 1, 3, 3, 3), pads=[1] * 6, group=64)
    yield convolution("1-D, 16 groups, 128 taps", (1, 768, 149), (768, 48, 128), pads=[64, 64], group=16)
    yield convolution("7x1", (1, 160, 17, 17), (192, 160, 7, 1), pads=[3, 0, 3, 0])
    yield convolution("patches of 4", (1, 3, 224, 224), (96, 3, 4, 4), strides=[4, 4])
    yield convolution("patches of 16", (1, 3, 224, 224), (768, 3, 16, 16), strides=[16, 16])
    yield convolution("dilation 2", (1, 256, 32, 32), (256, 256, 3, 3), pads=[2] * 4, dilations=[2, 2])
    yield convolution("32 groups of 8", (1, 256, 28, 28), (256, 8, 3, 3), pads=[1] * 4, group=32)
    yield convolution("1x7", (1, 128, 17, 17), (128, 128, 1, 7), pads=[0, 3, 0, 3])
    yield convolution("5x5", (1, 64, 28, 28), (64, 64, 5, 5), pads=[2] * 4)
    yield convolution("7x7 pixels", (1, 512, 7, 7), (512, 512, 3, 3), pads=[1] * 4)
    yield convolution("1 channel", (1, 1, 128, 128), (16, 1, 3, 3), pads=[1] * 4)
    yield convolution("3 filters", (1, 32, 128, 128), (3, 32, 3, 3), pads=[1] * 4)
    yield convolution("2x2, stride 2", (1, 128, 28, 28), (128, 64, 2, 2), op="ConvTranspose", strides=[2, 2])
    yield convolution("4x4, stride 2", (1, 128, 28, 28), (128, 64, 4, 4), op="ConvTranspose", strides=[2, 2], pads=[1] * 4)
    yield convolution("4x4, stride 2, 512 channels", (1, 512, 4, 4), (512, 256, 4, 4), op="ConvTranspose", strides=[2, 2], pads=[1] * 4)
    yield convolution("16x16, stride 8", (1, 21, 34, 34), (21, 21, 16, 16), op="ConvTranspose", strides=[8, 8])
    yield convolution("3x3", (1, 64, 28, 28), (64, 64, 3, 3), op="ConvTranspose", pads=[1] * 4)
    yield convolution("depthwise", (1, 64, 28, 28), (64, 1, 4, 4), op="ConvTranspose", strides=[2, 2], pads=[1] * 4, group=64)
    yield convolution("1-D", (1, 256, 200), (256, 128, 16), op="ConvTranspose", strides=[8], pads=[4, 4])
    yield single("MaxPool", {"x": normal(1, 64, 112, 112)}, name="MaxPool, 3x3, stride 2", kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    yield single("MaxPool", {"x": normal(1, 128, 20, 20)}, name="MaxPool, 5x5", kernel_shape=[5, 5], pads=[2] * 4)
    yield single("MaxPool", {"x": normal(1, 16, 16, 32, 32)}, name="MaxPool, 3-D", kernel_shape=[2] * 3, strides=[2] * 3)
    yield single("AveragePool", {"x": normal(1, 64, 56, 56)}, kernel_shape=[2, 2], strides=[2, 2])
    yield single("GlobalAveragePool", {"x": normal(1, 64, 56, 56)})


def recurrent(op, gates, steps, inputs, batch, directions=1, **attributes):
    units = 256
    if directions == 2:
        attributes["direction"] = "bidirectional"
    constants = {"w": normal(directions, gates * units, inputs, scale=0.05), "r": normal(directions, gates * units, units, scale=0.05),
                 "b": normal(directions, 2 * gates * units, scale=0.1)}
    return single(op, {"x": normal(steps, batch, inputs)}, constants, name=f"{op}, {steps} steps, batch {batch}, {directions} directions", outputs="y,h",
                  hidden_size=units, **attributes)


def recurrent_lengths(op, gates):
    """Sequences of different lengths."""
    case = recurrent(op, gates, 50, 256, 16)
    case.constants["l"] = np.linspace(5, 50, 16).astype(np.int32)
    case.name = f"{op}, 5 to 50 steps, batch 16"
    case.nodes[0].input.append("l")
    return case


def quantised_lstm(steps, inputs, units, batch, directions):
    """Weights as quantize_dynamic writes them."""
    constants = {"b": normal(directions, 8 * units, scale=0.1)}
    for name, rows in (("w", inputs), ("r", units)):
        constants[name] = integers(-127, 128, directions, rows, 4 * units, dtype=np.int8)
        constants[name + "s"], constants[name + "z"] = np.full(directions, 0.001, np.float32), np.zeros(directions, np.int8)
    case = Case(f"DynamicQuantizeLSTM, {steps} steps, batch {batch}, {directions} directions", {"x": normal(steps, batch, inputs)}, constants)
    return case.node("DynamicQuantizeLSTM", "x,w,r,b,,,,,ws,wz,rs,rz", "y,h", domain="com.microsoft", hidden_size=units,
                     direction="bidirectional" if directions == 2 else "forward")


def coded_product(rows, inputs, outputs, block):
    """Weights of 4 bits, activations of 8."""
    constants = {"c": integers(0, 256, outputs, inputs // block, block // 2, dtype=np.uint8), "s": np.abs(normal(outputs * inputs // block, scale=0.01))}
    case = Case(f"MatMulNBits, {rows} rows, blocks of {block}", {"x": normal(rows, inputs)}, constants)
    return case.node("MatMulNBits", "x,c,s", domain="com.microsoft", K=inputs, N=outputs, bits=4, block_size=block, accuracy_level=4)


def products():
    for name, a, b, constant in (("128x768x768", (1, 128, 768), (768, 768), True), ("1 row", (1, 1, 768), (768, 3072), True), ("4 rows", (1, 4, 768), (768, 768), True),
                                 ("512, not constant", (512, 512), (512, 512), False), ("heads", (1, 12, 128, 64), (1, 12, 64, 128), False),
                                 ("16x16", (1, 16, 16), (16, 16), True), ("1 column", (1000, 256), (256, 1), True), ("k 4", (1000, 4), (4, 64), True),
                                 ("small batches", (1, 256, 7, 32), (1, 256, 32, 7), False)):
        right = {"w": normal(*b)}
        yield Case(f"MatMul, {name}", {"x": normal(*a), **({} if constant else right)}, right if constant else {}).node("MatMul", "x,w")
    for rows, block in ((1, 32), (16, 32), (128, 32), (128, 128)):
        yield coded_product(rows, 2048, 2048, block)
    yield single("Gemm", {"x": normal(32, 512)}, {"w": normal(1000, 512), "b": normal(1000)}, transB=1)
    yield single("Einsum", {"q": normal(1, 12, 128, 64), "k": normal(1, 12, 128, 64)}, name="Einsum, scores", equation="bhid,bhjd->bhij")
    yield single("Einsum", {"x": normal(1, 128, 768)}, {"w": normal(768, 12, 64)}, name="Einsum, projection", equation="btc,chd->bthd")
    for op, gates in (("RNN", 1), ("GRU", 3), ("LSTM", 4)):
        yield recurrent(op, gates, 100, 128, 1)
        yield recurrent(op, gates, 1, 128, 1)
        yield recurrent(op, gates, 50, 256, 16, 2)
        yield recurrent_lengths(op, gates)
    yield quantised_lstm(100, 128, 256, 1, 1)
    yield quantised_lstm(30, 512, 512, 1, 2)
    yield quantised_lstm(50, 256, 256, 16, 2)
    yield single("DFT", {"x": normal(1, 400, 1)}, {"n": array(400)}, opset=20, onesided=1)
    yield single("STFT", {"x": normal(1, 16000, 1)}, {"s": array(160), "w": normal(400)}, opset=17, onesided=1)


def attention(name, q, k, biases=()):
    case = Case(f"attention, {name}", {"q": normal(*q), "k": normal(*k), "v": normal(*k)}, {"c": array(0.125, np.float32)})
    case.node("Transpose", "k", "t", perm=[0, 1, 3, 2]).node("Mul", "q,c", "s").node("MatMul", "s,t", "a0")
    for i, shape in enumerate(biases):
        case.constants[f"b{i}"] = normal(*shape)
        case.node("Add", f"a{i},b{i}", f"a{i + 1}")
    return case.node("Softmax", f"a{len(biases)}", "p", axis=-1).node("MatMul", "p,v")


def next_block(channels, pixels):
    """ConvNeXt's block."""
    constants = {"d": normal(channels, 1, 7, 7, scale=0.1), "db": normal(channels), "g": normal(channels), "b": normal(channels), "w1": normal(channels, 4 * channels, scale=0.1),
                 "b1": normal(4 * channels), "w2": normal(4 * channels, channels, scale=0.1), "b2": normal(channels), "scale": normal(channels)}
    case = Case(f"ConvNeXt, {channels} channels", {"x": normal(1, channels, pixels, pixels)}, constants)
    case.node("Conv", "x,d,db", "c", pads=[3] * 4, group=channels).node("Transpose", "c", "t", perm=[0, 2, 3, 1]).node("LayerNormalization", "t,g,b", "l")
    case.node("MatMul", "l,w1", "m").node("Add", "m,b1", "n").node("Gelu", "n", "o").node("MatMul", "o,w2", "p").node("Add", "p,b2", "q").node("Mul", "q,scale", "r")
    return case.node("Transpose", "r", "u", perm=[0, 3, 1, 2]).node("Add", "x,u")


def blocks():
    yield attention("windows of 49", (64, 3, 49, 32), (64, 3, 49, 32), [(1, 3, 49, 49), (64, 1, 49, 49)])
    yield attention("256 with bias", (1, 8, 256, 64), (1, 8, 256, 64), [(1, 8, 256, 256)])
    yield attention("77", (1, 8, 77, 64), (1, 8, 77, 64))
    yield attention("197", (1, 12, 197, 64), (1, 12, 197, 64))
    padded = attention("8 texts of 20 to 128", (8, 12, 128, 64), (8, 12, 128, 64), [(8, 1, 1, 128)])
    padded.constants["b0"] = np.where(np.arange(128) < np.linspace(20, 128, 8).astype(int)[:, None, None, None], 0, -10000).astype(np.float32)
    yield padded
    yield attention("1024", (1, 8, 1024, 40), (1, 8, 1024, 40))
    yield attention("1024 to 77", (1, 8, 1024, 40), (1, 8, 77, 40))
    yield next_block(96, 56)
    yield next_block(384, 14)
    for channels, pixels in ((256, 28), (512, 14)):
        constants = {"w1": normal(channels, channels, 1, 1, scale=0.05), "w2": normal(channels, channels // 32, 3, 3, scale=0.1),
                     "w3": normal(channels, channels, 1, 1, scale=0.05), "b": normal(channels)}
        case = Case(f"ResNeXt, {channels} channels", {"x": normal(1, channels, pixels, pixels)}, constants)
        case.node("Conv", "x,w1,b", "a").node("Relu", "a", "c").node("Conv", "c,w2,b", "d", pads=[1] * 4, group=32).node("Relu", "d", "e").node("Conv", "e,w3,b", "f")
        yield case.node("Add", "f,x", "g").node("Relu", "g")
    case = Case("GroupNorm, SiLU, Conv", {"x": normal(1, 320, 32, 32)}, {"g": normal(320), "b": normal(320), "w": normal(320, 320, 3, 3, scale=0.05)})
    case.node("GroupNormalization", "x,g,b", "n", num_groups=32).node("Sigmoid", "n", "s").node("Mul", "n,s", "m").node("Conv", "m,w,b", "c", pads=[1] * 4)
    yield case.node("Add", "c,x")


def cpu_times(engines, inputs, seconds):
    """Milliseconds of CPU time of a run of each engine: the sixth part of the runs is faster."""
    begin = time.perf_counter()
    engines[0].run(None, inputs)
    repeats = max(1, int(0.003 / max(time.perf_counter() - begin, 1e-6)))
    times = [[] for _ in engines]
    end = time.perf_counter() + seconds
    while len(times[0]) < 6 or time.perf_counter() < end:
        for engine, found in zip(engines, times):
            engine.run(None, inputs)
            begin = time.process_time_ns()
            for _ in range(repeats):
                engine.run(None, inputs)
            found.append((time.process_time_ns() - begin) / 1e6 / repeats)
    return [sorted(found)[len(found) // 6] for found in times]


def difference(ours, theirs):
    """The largest, over the largest magnitude."""
    worst = 0.0
    for a, b in zip(ours, theirs):
        if a.shape != b.shape:
            return math.inf
        if a.size:
            a, b = a.astype(np.float64), b.astype(np.float64)
            worst = max(worst, float(np.max(np.abs(a - b))) / max(float(np.max(np.abs(b))), 1e-30))
    return worst


class OpenVino:
    def __init__(self, model):
        settings = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1, "NUM_STREAMS": 1}
        core = openvino.Core()
        self.request = core.compile_model(core.read_model(io.BytesIO(model)), "CPU", settings).create_infer_request()

    def run(self, _, inputs):
        return list(self.request.infer(inputs, share_inputs=True, share_outputs=True).values())


def sessions(model):
    theirs = onnxruntime.SessionOptions()
    theirs.intra_op_num_threads, theirs.log_severity_level = 1, 4
    ours = sardonyx.SessionOptions()
    ours.intra_op_num_threads = 1
    return sardonyx.InferenceSession(model, ours, providers=["cpu"]), onnxruntime.InferenceSession(model, theirs, providers=["CPUExecutionProvider"])


def summary(peer, ratios):
    mean = math.exp(sum(math.log(ratio) for ratio in ratios) / max(1, len(ratios)))
    return f"Beside {peer}: geometric mean {mean:.2f}x, faster in {sum(ratio >= 1 for ratio in ratios)} of {len(ratios)}."


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="parts of names, separated by commas")
    parser.add_argument("--seconds", type=float, default=0.2, help="for each operator")
    parser.add_argument("--save", action="store_true", help="the table, as bench/results/<processor>/operators.md")
    args = parser.parse_args()
    wanted = [part.lower() for part in args.only.split(",") if part]
    rows = []
    for family in (elementwise, reductions, norms, movement, convolutions, products, blocks):
        for case in family():
            if wanted and not any(part in case.name.lower() for part in wanted):
                continue
            try:
                pair = sessions(case.model())
                off = difference(*(s.run(None, case.inputs) for s in pair))
            except Exception as error:  # an engine that lacks the operator
                print(f"{case.name}: {str(error).splitlines()[0][:120]}")
                continue
            try:
                third = [OpenVino(case.model())]
                third[0].run(None, case.inputs)
            except Exception:  # it lacks com.microsoft's operators
                third = []
            ours, theirs, *other = cpu_times([*pair, *third], case.inputs, args.seconds)
            rows.append((theirs / ours, case.name, ours, theirs, other[0] if other else None, off))
    lines = ["| operator | sdx ms | onnxruntime ms | × | openvino ms | × | diff |", "|---|--:|--:|--:|--:|--:|--:|"]
    for ratio, name, ours, theirs, other, off in sorted(rows, key=lambda row: row[:2]):
        third = f"{other:.4f} | {other / ours:.2f}" if other else "– | –"
        lines.append(f"| {name} | {ours:.4f} | {theirs:.4f} | {ratio:.2f} | {third} | {off:.0e} |")
    lines += ["", f"{len(rows)} operators and blocks, 1 thread, CPU time; sardonyx {sardonyx.__version__}, onnxruntime {onnxruntime.__version__}, "
                  f"openvino {openvino.__version__.split('-')[0]}, onnx {onnx.__version__}. {summary('onnxruntime', [row[0] for row in rows])} "
                  f"{summary('openvino', [row[4] / row[2] for row in rows if row[4]])}"]
    text = "\n".join(lines) + "\n"
    print(text)
    if args.save:
        os.makedirs(processor.folder(), exist_ok=True)
        path = os.path.join(processor.folder(), "operators.md")
        with open(path + ".new", "w") as file:
            file.write(f"# {datetime.date.today()}\n\n{processor.described(processor.machine())}.\n\n{text}")
        os.replace(path + ".new", path)


if __name__ == "__main__":
    main()
