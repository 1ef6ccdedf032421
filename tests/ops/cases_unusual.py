"""Shapes, ranks and attributes that few models have."""

import numpy as np

f32, i64 = np.float32, np.int64
TOL = (1e-4, 1e-5)


def onnx(r, op, inputs, opset, **more):
    r.case(op, inputs, domain="", opset=opset, **more)


def windows(r):
    """Windows larger than the padded input: one that is partial, or none. Other refusals: cases_pools.py."""
    for op, opset in (("MaxPool", 12), ("AveragePool", 22), ("LpPool", 22)):
        for name, shape, attributes in (("none", (1, 2, 2), {"kernel_shape": [3]}), ("one, partial", (1, 2, 2), {"kernel_shape": [3], "strides": [2]}),
                                        ("one beside none", (1, 1, 2, 3), {"kernel_shape": [4, 4], "strides": [2, 2]}),
                                        ("none by a stride", (2, 1, 3, 3), {"kernel_shape": [5, 5], "strides": [2, 2], "ceil_mode": 1}),
                                        ("pads", (1, 1, 1), {"kernel_shape": [4], "strides": [3], "pads": [1, 0]}),
                                        ("dilations", (1, 1, 4, 5), {"kernel_shape": [3, 2], "dilations": [2, 1], "strides": [2, 1]}),
                                        ("VALID", (1, 1, 2, 5), {"kernel_shape": [3, 3], "auto_pad": "VALID"})):
            for counts in (0, 1) if op == "AveragePool" and "pads" in attributes else (None,):
                onnx(r, op, [r.normal(*shape)], opset, name=f"{name}{' counted' if counts else ''}", tolerance=TOL, count_include_pad=counts, **attributes)
    for op in ("QLinearAveragePool", "NhwcMaxPool"):
        x, s, z = r.ints(0, 99, 1, 2, 5, 1, dtype=np.uint8), np.array(0.5, f32), np.array(3, np.uint8)
        inputs = [x, s, z, s, z] if op == "QLinearAveragePool" else [x]
        r.case(op, inputs, name="larger window", kernel_shape=[3, 3], strides=[2, 2], channels_last=1 if len(inputs) > 1 else None)


def convolutions(r):
    x, w, t = r.normal(1, 2, 7), r.normal(3, 2, 3), r.normal(2, 3, 3)
    for pads in ([-1, -1], [-1, 2], [2, -1], [-2, -2]):
        for constants in ((), (1,)):
            name = f"pads {pads}{', weights' if constants else ''}"
            onnx(r, "Conv", [x, w], 11, name=name, tolerance=TOL, pads=pads, constants=constants, declared={0: None, 1: None})
            onnx(r, "ConvTranspose", [x, t], 11, name=name, tolerance=TOL, pads=pads, constants=constants, declared={0: None, 1: None})
    picture, bytes_in, bytes_of = r.normal(1, 2, 7, 7), r.ints(0, 9, 1, 2, 7, 7, dtype=np.uint8), r.ints(0, 9, 16, 2, 3, 3, dtype=np.uint8)
    onnx(r, "Conv", [picture, r.normal(16, 2, 3, 3)], 11, name="crop of a picture", tolerance=TOL, pads=[-1, 0, 1, 2], constants=(1,),
         declared={0: None})
    onnx(r, "ConvInteger", [bytes_in, bytes_of], 10, name="crop", pads=[-1, 0, 1, -2], constants=(1,), declared={0: None})
    for bias in (None, r.normal(2)):  # ONNX Runtime 1.31 does not come to an end
        name, each = ("bias", bias) if bias is not None else ("no bias", np.zeros(2, f32))
        line, area = np.tile(each.reshape(1, 2, 1), (1, 1, 3)), np.tile(each.reshape(1, 2, 1, 1), (2, 1, 3, 3))
        onnx(r, "Conv", [np.zeros((1, 0, 3), f32), np.zeros((2, 0, 3), f32), bias], 11, name=f"no input channels, {name}", pads=[1, 1], expect=[line])
        onnx(r, "Conv", [np.zeros((2, 0, 5, 5), f32), np.zeros((2, 0, 3, 3), f32), bias], 11, name=f"no input channels of pictures, {name}", expect=[area])
        onnx(r, "ConvTranspose", [np.zeros((1, 0, 3), f32), np.zeros((0, 2, 1), f32), bias], 11, name=f"no input channels, {name}", expect=[line])
    for name, shape, kernel in (("line", (1, 2, 1), (2, 1, 2)), ("picture", (1, 2, 1, 4), (2, 3, 2, 3))):  # ONNX Runtime refuses empty results
        for constants in ((), (1,)):
            empty = np.zeros((1, kernel[1], 0, *shape[3:]), f32)
            onnx(r, "ConvTranspose", [r.normal(*shape), r.normal(*kernel)], 11, name=f"{name} without a result{', weights' if constants else ''}", pads=[1, 1] * (len(shape) - 2),
                 constants=constants, expect=[empty])


def gathered(r):
    x = r.normal(2, 3)
    for name, shape, batch in (("no axis", (2, 0), 0), ("no axis, one", (0,), 0), ("no axis in batches", (2, 1, 0), 1), ("no axis, batches alone", (2, 0), 1)):
        for constants in ((), (1,)):
            onnx(r, "GatherND", [x, np.zeros(shape, i64)], 13, name=f"{name}{', constant' if constants else ''}", batch_dims=batch, constants=constants)
    onnx(r, "GatherND", [np.zeros((0, 3), f32), np.zeros((2, 0), i64)], 13, name="no axis of nothing")
    onnx(r, "GatherND", [np.array(3.5, f32), np.zeros((2, 0), i64)], 13, name="scalar", declared={0: None})
    onnx(r, "GatherND", [np.array(["a", "b"], object), np.zeros((1, 0), i64)], 13, name="strings")
    onnx(r, "ScatterND", [x, np.zeros((2, 0), i64), r.normal(2, 2, 3)], 16, name="no axis")
    onnx(r, "ScatterND", [x, np.zeros((0,), i64), r.normal(2, 3)], 16, name="no axis, one")
    onnx(r, "ScatterND", [x, np.zeros((2, 0), i64), r.normal(2, 2, 3)], 16, name="no axis, added", reduction="add", tolerance=TOL)


def reduced(r):
    for kind in (f32, np.float64, np.int32):
        for keep in (0, 1):
            onnx(r, "ReduceMean", [np.zeros((2, 0, 3), kind), np.array([1])], 18, name=f"of nothing, {np.dtype(kind).name}, keepdims {keep}", keepdims=keep)
    onnx(r, "ReduceMean", [np.zeros((2, 0), f32)], 18, name="of nothing at all")
    for constants in ((), (1,)):
        onnx(r, "Squeeze", [r.normal(1, 2, 1), np.zeros(0, i64)], 13, name=f"empty axes{', constant' if constants else ''}", constants=constants)


def resized(r):
    x = r.normal(1, 2, 4, 4)
    roi = np.array([0, 0, 0.25, 0.25, 1, 1, 0.5, 0.5], f32)
    for mode in ("nearest", "linear", "cubic"):
        crop = {"mode": mode, "coordinate_transformation_mode": "tf_crop_and_resize"}
        onnx(r, "Resize", [x, roi, np.ones(4, f32)], 13, name=f"{mode}, scales of 1 and a roi", **crop)
        onnx(r, "Resize", [x, roi, None, np.array([1, 2, 4, 4])], 13, name=f"{mode}, sizes of the input and a roi", **crop)
    onnx(r, "Resize", [r.normal(1, 1, 3, 3), None, None, np.array([1, 1, 11, 11])], 19, name="half_pixel_symmetric between two pixels", mode="nearest",
         nearest_mode="floor", coordinate_transformation_mode="half_pixel_symmetric")


def features(r):
    for dimensions in ([6, 2], [3, 3], [8, 2]):
        r.case("FeatureVectorizer", [r.normal(2, 2, 3), r.normal(2, 2)], domain="ai.onnx.ml", name=f"of three axes, {dimensions}", inputdimensions=dimensions)


def strings(r):
    for shape in ((0,), (0, 2), (2, 0)):
        r.case("Tokenizer", [np.zeros(shape, object)], name=f"nothing of shape {shape}", mark=1, mincharnum=1, pad_value="#", separators=["b"])
    grams = {"min_gram_length": 1, "max_gram_length": 2, "max_skip_count": 1, "mode": "TF", "ngram_counts": [0, 2], "ngram_indexes": [0, 1, 2]}
    for word in ("a", "z"):
        onnx(r, "TfIdfVectorizer", [np.array(word, object)], 9, name=f"scalar {word}", pool_strings=["a", "bb", "a", "bb"], declared={0: None}, **grams)
    onnx(r, "TfIdfVectorizer", [np.array(7)], 9, name="scalar number", pool_int64s=[7, 8, 7, 8], declared={0: None}, **grams)


CASES = [windows, convolutions, gathered, reduced, resized, features, strings]
