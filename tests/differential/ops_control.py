"""Subgraphs that hand values through: captures, states and slices that come out as they went in, beside nodes that compute in their place."""

import numpy as np
from draw import Skip, T
from onnx import helper
from recipes import recipe

UNARY = ["Neg", "Sigmoid", "Relu", "Tanh", "Abs", "Exp"]


def unary(d, x):
    return d.node(d.choice(UNARY), [x], types=[(T.FLOAT, x.shape)], exact=False)


def info(name, dtype=T.FLOAT, shape=None):
    return helper.make_tensor_value_info(name, dtype, shape)


def flag(d, value=None):
    return d.given(np.array(d.chance(0.5) if value is None else value), constant=False)


def passed(d, names, depth=1):
    """Nodes that give one of these values, mostly as it is; and the name of the result."""
    out = d.fresh("h")
    source = d.choice(names)
    how = d.choice(["Identity", "Identity", "Identity", "twice", "Neg", "reused", "branch"])
    if how == "branch" and depth < 3:
        return nested(d, names, depth, out)
    if how == "twice":
        middle = d.fresh("h")
        return [helper.make_node("Identity", [source], [middle]), helper.make_node("Identity", [middle], [out])], out
    if how == "reused":  # made within, handed on, and computed with in place
        middle, side = d.fresh("h"), d.fresh("h")
        return [helper.make_node("Neg", [source], [middle]), helper.make_node("Identity", [middle], [out]),
                helper.make_node("Sigmoid", [middle], [side])], out
    return [helper.make_node("Neg" if how == "Neg" else "Identity", [source], [out])], out


def nested(d, names, depth, out):
    condition = d.fresh("h")
    bodies = {}
    for branch in ("then_branch", "else_branch"):
        nodes, result = passed(d, names, depth + 1)
        bodies[branch] = helper.make_graph(nodes, branch, [], [info(result)])
    value = helper.make_tensor(condition, T.BOOL, (), [d.chance(0.5)])
    return [helper.make_node("Constant", [], [condition], value=value), helper.make_node("If", [condition], [out], **bodies)], out


def source(d):
    """A value that a run has to compute, so that it lies in memory that others may use: (the value, names that show the same elements)."""
    x = d.pick(T.FLOAT, tame=True, where=lambda s: 0 not in s)
    if x.shape is None:
        raise Skip
    return unary(d, x)


def overwrite(d, values):
    for v in values:
        if d.chance(0.8):
            y = unary(d, v)
            if d.chance(0.3):
                unary(d, y)


@recipe(weight=3)
def handing_branch(d):
    a = source(d)
    values = [a, unary(d, a)] if d.chance(0.5) else [a]
    if d.chance(0.4):
        flat = d.node("Reshape", [a, d.ints(list(a.shape), True)], types=[(T.FLOAT, a.shape)])
        values.append(flat)
    count = d.int(1, 3)
    bodies = {}
    for branch in ("then_branch", "else_branch"):
        made = [passed(d, [v.name for v in values]) for _ in range(count)]
        bodies[branch] = helper.make_graph([n for nodes, _ in made for n in nodes], branch, [], [info(out) for _, out in made])
    d.node("If", [flag(d)], count, types=[(T.FLOAT, a.shape)] * count, exact=False, **bodies)
    overwrite(d, values)


@recipe(weight=3)
def handing_loop(d):
    a = source(d)
    states = [a, *(unary(d, a) for _ in range(d.int(0, 2)))]
    captured = [a, unary(d, a)] if d.chance(0.5) else []
    names = [d.fresh("s") for _ in states]
    scans = d.int(0, 2)
    nodes, results = [], []
    for i in range(len(states) + scans):
        if i < len(states) and d.chance(0.5):  # swapped states
            made = [helper.make_node("Identity", [names[(i + 1) % len(names)]], [d.fresh("h")])]
            out = made[0].output[0]
        else:
            made, out = passed(d, names + [v.name for v in captured])
        nodes += made
        results.append(out)
    count, go, on = d.fresh("i"), d.fresh("g"), d.fresh("g")
    nodes.append(helper.make_node("Identity", [go], [on]))
    body = helper.make_graph(nodes, "body", [info(count, T.INT64, ()), info(go, T.BOOL, ()), *(info(n, shape=a.shape) for n in names)],
                             [info(on, T.BOOL, ()), *(info(r) for r in results)])
    # Extents of what no iteration has made are whatever an engine infers.
    trips = d.given(np.array(d.int(1 if scans else 0, 3), np.int64), constant=d.chance(0.3))
    types = [(T.FLOAT, a.shape)] * len(states) + [(T.FLOAT, None)] * scans
    d.node("Loop", [trips, flag(d, True), *states], len(results), types=types, exact=False, body=body)
    overwrite(d, [*states, *captured])


@recipe(weight=3)
def handing_scan(d):
    d.need("Scan", 9)
    a = source(d)
    if not a.shape:
        raise Skip
    row = d.node("Gather", [a, d.ints(0, True)], axis=0, types=[(T.FLOAT, a.shape[1:])])
    states = [row, unary(d, row)] if d.chance(0.6) else [row]
    names = [d.fresh("s") for _ in states]
    slices = [d.fresh("r")] + ([d.fresh("r")] if d.chance(0.3) else [])
    nodes, results = [], []
    for i in range(len(states) + 1):
        made, out = passed(d, names + slices)
        if d.chance(0.3) and i < len(states):
            made = [helper.make_node("Identity", [names[i - 1]], [out])]
        nodes += made
        results.append(out)
    shape = a.shape[1:]
    body = helper.make_graph(nodes, "body", [*(info(n, shape=shape) for n in names), *(info(s, shape=shape) for s in slices)],
                             [info(r) for r in results])
    d.node("Scan", [*states, *[a] * len(slices)], len(results), types=[(T.FLOAT, shape)] * len(states) + [(T.FLOAT, a.shape)], exact=False,
           body=body, num_scan_inputs=len(slices))
    overwrite(d, [a, *states])


@recipe()
def handing_sequence(d):
    d.need("SequenceMap", 17)
    a = source(d)
    s = d.node("SequenceConstruct", [a] * d.int(1, 3), types={}, keep=False)
    item, more = d.fresh("e"), d.fresh("e")
    nodes, out = passed(d, [item, more])
    body = helper.make_graph(nodes, "body", [info(item), info(more)], [info(out)])
    mapped = d.node("SequenceMap", [s, a], types={}, keep=False, body=body)
    d.node("SequenceAt", [mapped, d.ints(0)], types=[(T.FLOAT, a.shape)], exact=False)
    overwrite(d, [a])
