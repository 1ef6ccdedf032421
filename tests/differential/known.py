"""Differences that are expected, each with its reason."""

import re

import numpy as np


def attribute(node, name, default=None):
    from onnx import helper

    return next((helper.get_attribute_value(a) for a in node.attribute if a.name == name), default)


def arrays(node, model, feeds):
    from onnx import numpy_helper

    constants = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    return [np.asarray(feeds[i]) if i in feeds else constants.get(i) for i in node.input]


def numbers(text):
    """The two numbers in "element 3 is np.float32(1.0), expected np.float32(2.0)"."""
    found = re.search(r"element \d+ is (?:np\.\w+\()?([^(),]+)\)?, expected (?:np\.\w+\()?([^(),]+)", text)
    try:
        return float(found[1]), float(found[2])
    except (TypeError, ValueError):
        return None


RULES = []


def rule(*operators):
    def add(function):
        RULES.append((operators, function))
        return function

    return add


def reason(node, model, feeds, text):
    """Why this node, with these inputs, is expected to differ; or None."""
    for operators, function in RULES:
        if operators and node.op_type not in operators:
            continue
        found = function(node, arrays(node, model, feeds), text, {o.domain: o.version for o in model.opset_import})
        if found:
            return found
    return None


@rule("Slice")
def slice_backwards_to_the_largest(node, inputs, text, opsets):
    """The specification clamps an end to [-1, n - 1] when stepping backwards, so that nothing lies between; ONNX Runtime takes the largest
    integer as "to the end" in that direction as well."""
    if len(inputs) > 4 and inputs[4] is not None and np.any((inputs[4] < 0) & (inputs[2] >= 2**31 - 1)):
        return "Slice: ONNX Runtime reads an end of INT_MAX with a negative step as 'everything'"


@rule("ArgMax", "ArgMin")
def extremes_of_what_is_no_number(node, inputs, text, opsets):
    """A NaN is the extreme here, as in NumPy; ONNX Runtime compares, and where a NaN comes to stand depends on the order."""
    if inputs[0] is not None and inputs[0].dtype.kind in "fV" and np.isnan(inputs[0].astype(np.float32)).any():
        return "ArgMax and ArgMin: ONNX Runtime's answer depends on where a NaN stands"


@rule("MatMul")
def product_of_no_terms(node, inputs, text, opsets):
    if inputs[0] is not None and inputs[0].size == 0:
        return "MatMul: where the inner extent is 0, ONNX Runtime does not broadcast the outer ones, or leaves the result as the memory was"


@rule("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare")
def reduction_of_nothing(node, inputs, text, opsets):
    if inputs[0] is not None and inputs[0].size == 0 and "shape" in text:
        return "Reduce*: ONNX Runtime gives the wrong shape for a tensor without elements"


@rule("NonZero")
def non_zero_of_a_scalar(node, inputs, text, opsets):
    if inputs[0] is not None and inputs[0].ndim == 0:
        return "NonZero: ONNX Runtime takes a scalar as a vector; the specification asks for shape [0, n]"


@rule("Resize")
def aligned_corners_of_fractions(node, inputs, text, opsets):
    """The official tests (resize_downsample_scales_linear_align_corners) take the resized length before it is rounded down."""
    if attribute(node, "coordinate_transformation_mode") == b"align_corners" and (len(inputs) == 3 or attribute(node, "keep_aspect_ratio_policy", b"stretch") != b"stretch"):
        return "Resize: with align_corners and scales, ONNX Runtime uses the rounded length (the official tests do not)"


@rule("StringSplit")
def split_of_an_empty_string(node, inputs, text, opsets):
    if inputs[0] is not None and "" in inputs[0].reshape(-1).tolist() and attribute(node, "delimiter"):
        return "StringSplit: ONNX Runtime splits an empty string by a delimiter into nothing, ONNX's reference into one empty string"


@rule("Cast")
def text_of_floats(node, inputs, text, opsets):
    if attribute(node, "to") == 8 and inputs[0] is not None and inputs[0].dtype.kind == "f":
        got = numbers(text.replace("'", ""))
        if got and abs(got[0] - got[1]) <= 1e-6 * abs(got[1]):
            return "Cast: ONNX Runtime writes floats with eight digits; NumPy, and this engine, with as few as say which number it is"


@rule("ConvTranspose")
def same_padding_of_wide_strides(node, inputs, text, opsets):
    if attribute(node, "auto_pad", b"").startswith(b"SAME") and "shape" in text:
        kernel, strides, dilations = inputs[1].shape[2:], attribute(node, "strides"), attribute(node, "dilations") or [1, 1, 1]
        if any((k - 1) * e + 1 < s for k, s, e in zip(kernel, strides or [], dilations)):
            return "ConvTranspose: with auto_pad SAME and a stride wider than the kernel, ONNX Runtime gives less than input * stride"


@rule("LpPool", "MaxPool", "AveragePool")
def same_padding_of_dilations(node, inputs, text, opsets):
    if attribute(node, "auto_pad", b"").startswith(b"SAME") and max(attribute(node, "dilations") or [1]) > 1:
        return "Pooling: with auto_pad SAME, ONNX Runtime leaves dilations out of the padding"


@rule("LpPool", "MaxPool", "AveragePool")
def same_padding_of_wide_pools(node, inputs, text, opsets):
    kernel, strides = attribute(node, "kernel_shape"), attribute(node, "strides") or []
    if attribute(node, "auto_pad", b"").startswith(b"SAME") and any(k < s for k, s in zip(kernel, strides)):
        return "Pooling: with auto_pad SAME and a stride wider than the window, ONNX Runtime's first window begins inside; those of its Conv do not"


@rule("HannWindow", "HammingWindow", "BlackmanWindow")
def windows_in_float(node, inputs, text, opsets):
    got = numbers(text)
    if got and abs(got[0] - got[1]) < 2e-7:
        return "Window functions: ONNX Runtime computes them in float32, double or not"


@rule("HannWindow", "HammingWindow", "BlackmanWindow")
def window_of_one(node, inputs, text, opsets):
    if attribute(node, "periodic", 1) == 0 and inputs[0] is not None and inputs[0] == 1:
        return "Window functions: a symmetric one of length 1 divides 0 by 0 in ONNX Runtime; it is 1"


@rule("MeanVarianceNormalization")
def variance_of_one(node, inputs, text, opsets):
    axes = attribute(node, "axes") or [0, 2, 3]
    if inputs[0] is not None and np.prod([inputs[0].shape[a] for a in axes]) == 1:
        return "MeanVarianceNormalization: ONNX Runtime leaves the epsilon of the function's definition out, and divides 0 by 0"


@rule("Gather")
def rows_of_strings(node, inputs, text, opsets):
    if inputs[0] is not None and inputs[0].dtype.kind in "OU" and "expected ''" in text:
        return "Gather: ONNX Runtime copies only the first string of each slice"


@rule("Attention")
def causal_with_past(node, inputs, text, opsets):
    """ONNX's reference gives what this engine gives."""
    if attribute(node, "is_causal") and len(inputs) > 4:
        return "Attention: with is_causal and a past, ONNX Runtime aligns the mask otherwise than the specification where query and key differ in length"


@rule("ReduceL2", "ReduceLogSum", "ReduceLogSumExp")
def roots_of_integers(node, inputs, text, opsets):
    got = numbers(text)
    if inputs[0] is not None and inputs[0].dtype.kind in "iu" and got and abs(got[0] - got[1]) <= 1:
        return "ReduceL2, ReduceLogSum, ReduceLogSumExp of integers: a root or logarithm just below an integer is cut to the one before"


@rule("ReduceMax", "ReduceMin")
def extremes_of_nan(node, inputs, text, opsets):
    if inputs[0] is not None and inputs[0].dtype.kind == "f" and np.isnan(inputs[0]).any():
        return "ReduceMax, ReduceMin: ONNX Runtime keeps or drops a NaN by its position; here, as in NumPy, it stays"


@rule("Clip")
def clip_of_infinity(node, inputs, text, opsets):
    """From opset 13 on, the function's definition leaves out the bound that is not given."""
    if inputs[0] is not None and inputs[0].dtype.kind == "f" and "inf" in text and (len(node.input) < 3 or not all(node.input)):
        return "Clip: without a bound, ONNX Runtime cuts infinity to the largest number"


@rule("QLinearSoftmax")
def softmax_of_one(node, inputs, text, opsets):
    got = numbers(text)
    if got and got[0] - got[1] in (255, 256):
        return "QLinearSoftmax: a share of 1 is 256 steps of 1/256, which ONNX Runtime wraps around to 0; here it saturates"


@rule("ReduceProd", "ReduceSumSquare", "ReduceSum", "ReduceL1")
def overflow_of_integers(node, inputs, text, opsets):
    """ONNX's reference wraps around, as NumPy does."""
    got = numbers(text)
    if inputs[0] is not None and inputs[0].dtype in (np.int32, np.int64):
        limits = np.iinfo(inputs[0].dtype)
        if got and got[1] in (float(limits.min), float(limits.max)):
            return "Reduce*: where integers overflow, ONNX Runtime stops at the largest; here they wrap around"


@rule("SkipLayerNormalization", "SkipSimplifiedLayerNormalization")
def skip_of_another_batch(node, inputs, text, opsets):
    """Its definition lets skip have the input's shape, or a batch of 1 or none; of any other batch ONNX Runtime takes what comes first."""
    if inputs[0] is not None and inputs[1] is not None and inputs[1].ndim == 3 and inputs[1].shape[0] not in (1, inputs[0].shape[0]):
        return "SkipLayerNormalization: ONNX Runtime does not compare the batch of skip with the input's"


@rule("PRelu")
def slope_larger_than_x(node, inputs, text, opsets):
    """The slope is "unidirectionally broadcastable" to X; ONNX Runtime broadcasts X to the slope as well."""
    if inputs[0] is not None and inputs[1] is not None and np.broadcast_shapes(inputs[0].shape, inputs[1].shape) != inputs[0].shape:
        return "PRelu: ONNX Runtime broadcasts X to the slope"


@rule("GroupNormalization")
def one_scale_for_all_channels(node, inputs, text, opsets):
    """Scale and bias have an element for each channel or group; ONNX Runtime broadcasts any shape that its function's body takes."""
    if any(x is not None and x.size == 1 for x in inputs[1:3]):
        return "GroupNormalization: ONNX Runtime broadcasts a single scale or bias"


@rule("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")
def labels_of_another_shape(node, inputs, text, opsets):
    """Labels have the scores' shape without the classes, and each class a weight; ONNX Runtime compares neither, and broadcasts."""
    if inputs[0] is None or inputs[1] is None:
        return None
    scores, labels, weight = inputs[0].shape, inputs[1].shape, inputs[2] if len(inputs) > 2 else None
    if labels != (scores[0], *scores[2:]) or (weight is not None and weight.shape != (scores[1],)):
        return "Losses: ONNX Runtime does not compare the shapes of labels and weights with that of the scores"


@rule("Inverse")
def inverse_of_no_square(node, inputs, text, opsets):
    if inputs[0] is not None and inputs[0].shape[-1] != inputs[0].shape[-2]:
        return "Inverse: ONNX Runtime takes matrices that are not square"


@rule("GatherND")
def batches_of_two_sizes(node, inputs, text, opsets):
    batch = attribute(node, "batch_dims", 0)
    if inputs[0] is not None and inputs[1] is not None and inputs[0].shape[:batch] != inputs[1].shape[:batch]:
        return "GatherND: ONNX Runtime takes data and indices of two batches"
