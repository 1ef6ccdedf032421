"""Differences that are expected, each with its reason."""

import numpy as np


def attribute(node, name, default=None):
    from onnx import helper

    return next((helper.get_attribute_value(a) for a in node.attribute if a.name == name), default)


def arrays(node, model, feeds):
    from onnx import numpy_helper

    constants = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    return [np.asarray(feeds[i]) if i in feeds else constants.get(i) for i in node.input]


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
