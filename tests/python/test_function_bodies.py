"""Operators that ONNX defines by a function body: our own kernel and the body, run as a function of the model, must agree. The cases are
the nodes of ONNX's own tests, at every version whose body the onnx package knows: with the tests' inputs, with others, and in other
element types."""

import functools
import warnings

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, defs, helper, numpy_helper
from onnx.backend.test.case import node as node_cases

import sardonyx

NOT_COMPARED = {"Bernoulli": "random"}
# rtol, and atol as a part of the largest expected element. Bodies round every intermediate result to the element type.
TOLERANCES = {np.dtype("float32"): 2e-5, np.dtype("float64"): 1e-6, np.dtype("float16"): 1e-2, np.dtype(ml_dtypes.bfloat16): 8e-2}
FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16)


def schemas():
    """(domain, name) of every operator with a body, and its versions that have one."""
    found = {}
    for schema in defs.get_all_schemas_with_history():
        if (schema.has_function or schema.has_context_dependent_function) and schema.name not in NOT_COMPARED:
            found.setdefault((schema.domain, schema.name), []).append(schema)
    return found


SCHEMAS = schemas()


def array_of(value):
    if isinstance(value, TensorProto):
        return numpy_helper.to_array(value)
    return np.asarray(value) if isinstance(value, np.generic) else value


@functools.cache
def all_cases():
    """ONNX's tests of a single node, by operator: {name: [(case, model, inputs)]}"""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy's, about the tests' own constants
        collected = node_cases.collect_testcases(None)
    found = {}
    for case in collected:
        if case.model and len(case.model.graph.node) == 1 and case.data_sets:
            inputs = [array_of(value) for value in case.data_sets[0][0]]
            found.setdefault(case.model.graph.node[0].op_type, []).append((case.name, case.model, inputs))
    return found


def with_defaults(node, schema):
    """The node with every attribute spelled out that has a default: a model's function knows none of the schema's."""
    full = onnx.NodeProto()
    full.CopyFrom(node)
    given = {a.name for a in node.attribute}
    for name, attribute in schema.attributes.items():
        if name not in given and attribute.default_value.type != onnx.AttributeProto.UNDEFINED:
            full.attribute.append(attribute.default_value)
    return full


def body_of(schema, node, types):
    """The FunctionProto for that node, or None where this version has none for it."""
    if schema.has_function:
        data = schema.get_function_with_opset_version(max(schema.function_opset_versions))
    else:
        version = max(schema.context_dependent_function_opset_versions)
        data = schema.get_context_dependent_function_with_opset_version(
            version, node.SerializeToString(), [t.SerializeToString() for t in types])
    if not data:
        return None
    body = onnx.FunctionProto.FromString(data)
    body.domain = "body"
    return body if body.node else None


def at_version(model, domain, version):
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    for opset in changed.opset_import:
        if opset.domain == domain:
            opset.version = version
    return changed


def at_type(model, element):
    """The model with `element` in place of float32."""
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    for value in [*changed.graph.input, *changed.graph.output]:
        if value.type.tensor_type.elem_type == TensorProto.FLOAT:
            value.type.tensor_type.elem_type = element
    return changed


def is_valid(model):
    try:
        onnx.checker.check_model(model)
        onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
        return True
    except Exception:  # the checker's and the inference's errors share no base class
        return False


def with_body(model, schema):
    node = with_defaults(model.graph.node[0], schema)
    types = {i.name: i.type for i in model.graph.input}
    body = body_of(schema, node, [types.get(name, onnx.TypeProto()) for name in node.input])
    if body is None:
        return None
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    changed.ir_version = max(changed.ir_version, 10)
    changed.functions.append(body)
    changed.opset_import.append(helper.make_opsetid("body", 1))
    known = set(body.attribute) | {a.name for a in body.attribute_proto}
    attributes = [a for a in node.attribute if a.name in known]
    del node.attribute[:]
    node.attribute.extend(attributes)
    node.domain = "body"
    changed.graph.node[0].CopyFrom(node)
    return changed


def redraw(value, seed):
    if not isinstance(value, np.ndarray) or value.dtype != np.float32:
        return value
    return np.random.default_rng(seed).normal(0, 2, value.shape).astype(np.float32)


def convert(value, element):
    if not isinstance(value, np.ndarray) or value.dtype != np.float32:
        return value
    return value.astype(helper.tensor_dtype_to_np_dtype(element))


def differs(ours, theirs):
    if isinstance(theirs, (list, tuple)):
        if len(ours) != len(theirs):
            return f"{len(ours)} elements, expected {len(theirs)}"
        return next((d for d in map(differs, ours, theirs) if d), "")
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    if (ours.dtype, ours.shape) != (theirs.dtype, theirs.shape):
        return f"{ours.dtype}{ours.shape}, expected {theirs.dtype}{theirs.shape}"
    tolerance = TOLERANCES.get(theirs.dtype)
    if tolerance is None:
        small_float = theirs.dtype.kind in "Vf"  # of ml_dtypes: NumPy knows no NaN in them
        a, b = (x.astype(np.float32) if small_float else x for x in (ours, theirs))
        return "" if np.array_equal(a, b, equal_nan=small_float) else f"{ours.tolist()}, expected {theirs.tolist()}"[:400]
    a, b = ours.astype(np.float64), theirs.astype(np.float64)
    finite = np.abs(b[np.isfinite(b)])
    largest = finite.max() if finite.size else 0.0
    if theirs.dtype.itemsize == 2:
        largest = max(largest, 1.0)  # a sum of a few terms near 1 may cancel
    if np.allclose(a, b, rtol=tolerance, atol=tolerance * largest, equal_nan=True):
        return ""
    worst = np.nanargmax(np.where(np.isfinite(a) & np.isfinite(b), np.abs(a - b), np.where(a == b, 0, 1e30)))
    return f"{theirs.dtype}: {a.flat[worst]} expected {b.flat[worst]}"


def run(model, inputs):
    session = sardonyx.InferenceSession(model.SerializeToString())
    return session.run(None, dict(zip([i.name for i in model.graph.input], inputs)))


def variants(model, inputs, schema):
    """(what, model, inputs)"""
    yield "the test's inputs", model, inputs
    drawn = [redraw(value, seed) for seed, value in enumerate(inputs)]
    if any(a is not b for a, b in zip(drawn, inputs)):
        yield "other inputs", model, drawn
        for element in FLOATS[1:]:
            yield TensorProto.DataType.Name(element), at_type(model, element), [convert(value, element) for value in drawn]


@pytest.mark.parametrize("domain,name", sorted(SCHEMAS), ids=lambda part: part or "ai.onnx")
def test_kernel_and_body_agree(domain, name):
    compared, problems = 0, []
    for case, model, inputs in all_cases().get(name, []):
        imported = next(o.version for o in model.opset_import if o.domain == domain)
        for schema in SCHEMAS[domain, name]:
            version = max(schema.since_version, imported) if schema is SCHEMAS[domain, name][-1] else schema.since_version
            for what, changed, values in variants(at_version(model, domain, version), inputs, schema):
                if not is_valid(changed):
                    continue
                other = with_body(changed, schema)
                if other is None:
                    continue
                compared += 1
                try:
                    difference = differs(run(changed, values), run(other, values))
                except RuntimeError as e:
                    difference = str(e)
                if difference:
                    problems.append(f"{case}, version {schema.since_version}, {what}: {difference}")
    assert compared, "no case of ONNX's has a body"
    assert not problems, f"{len(problems)} of {compared} differ:\n" + "\n".join(problems[:20])
