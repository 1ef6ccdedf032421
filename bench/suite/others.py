"""Models that are neither pictures nor sequences: a graph network and a forest; weights are random."""

import numpy as np

from builder import FLOAT, INT64, Builder


def _softmax_of_targets(b, scores, index, nodes, heads):
    """Softmax over the edges with the same target, as PyTorch Geometric exports it."""
    highest = b.op("ScatterElements", [b.const(np.full((nodes, heads), -1e30, np.float32)), index, scores], axis=0, reduction="max")
    powers = b.op("Exp", [b.op("Sub", [scores, b.op("GatherElements", [highest, index], axis=0)])])
    sums = b.op("ScatterElements", [b.const(np.zeros((nodes, heads), np.float32)), index, powers], axis=0, reduction="add")
    return b.op("Div", [powers, b.op("Add", [b.op("GatherElements", [sums, index], axis=0), b.scalar(1e-16)])])


def gat(nodes=2708, edges=13264, features=1433, heads=8, hidden=8, classes=7):
    """Velickovic et al. 2018, a graph attention network with the sizes of Cora: features are gathered for each edge and scattered to its target."""
    b = Builder("gat", opset=18, seed=90)
    x, pairs = b.input("features", [nodes, features]), b.input("edges", [2, edges], INT64)
    source, target = (b.op("Gather", [pairs, b.scalar(i, np.int64)], axis=0) for i in range(2))
    for layer, (inputs, count, width) in enumerate([(features, heads, hidden), (heads * hidden, 1, classes)]):
        x = b.reshape(b.op("MatMul", [x, b.normal((inputs, count * width), np.sqrt(2 / (inputs + count * width)))]), -1, count, width)
        to_edges = lambda index: b.op("Gather", [b.op("ReduceSum", [b.op("Mul", [x, b.normal((1, count, width), 0.5)]), b.ints(-1)], keepdims=0), index], axis=0)
        scores = b.op("LeakyRelu", [b.op("Add", [to_edges(source), to_edges(target)])], alpha=0.2)
        index = b.op("Expand", [b.op("Unsqueeze", [target, b.ints(1)]), b.ints(edges, count)])
        shares = b.op("Unsqueeze", [_softmax_of_targets(b, scores, index, nodes, count), b.ints(-1)])
        messages = b.op("Mul", [b.op("Gather", [x, source], axis=0), shares])
        index = b.op("Expand", [b.op("Unsqueeze", [target, b.ints(1, 2)]), b.ints(edges, count, width)])
        x = b.op("ScatterElements", [b.const(np.zeros((nodes, count, width), np.float32)), index, messages], axis=0, reduction="add")
        x = b.op("Add", [b.reshape(x, nodes, count * width), b.normal((count * width,), 0.02)])
        if layer == 0:
            x = b.op("Elu", [x])
    b.output(b.op("LogSoftmax", [x], axis=-1), [nodes, classes], name="log_probabilities")
    return b.model()


def _tree(random, depth, features, classes):
    """Columns of one tree's nodes and leaves; a fifth of the branches ends early, as in trees that were trained."""
    nodes, leaves = [], []

    def grow(level):
        number = len(nodes)
        nodes.append(None)
        if level == depth or (level > 2 and random.random() < 0.2):
            nodes[number] = ("LEAF", 0, 0.0, 0, 0)
            shares = random.dirichlet(np.full(classes, 0.3))
            leaves.extend((number, c, float(s)) for c, s in enumerate(shares))
        else:
            feature, value = int(random.integers(features)), float(np.float32(random.normal()))
            yes, no = grow(level + 1), grow(level + 1)
            nodes[number] = ("BRANCH_LEQ", feature, value, yes, no)
        return number

    grow(0)
    return nodes, leaves


def forest(rows=256, trees=100, depth=10, features=32, classes=3):
    """A random forest as skl2onnx writes it: votes are averaged over a hundred trees."""
    b = Builder("forest", seed=91, ir_version=8, domains=[("ai.onnx.ml", 3)])
    x = b.input("features", [rows, features])
    columns = {key: [] for key in "treeids nodeids modes featureids values truenodeids falsenodeids".split()}
    votes = {key: [] for key in "treeids nodeids ids weights".split()}
    for tree in range(trees):
        nodes, leaves = _tree(b.random, depth, features, classes)
        for number, (mode, feature, value, yes, no) in enumerate(nodes):
            for key, entry in zip(columns, (tree, number, mode, feature, value, yes, no)):
                columns[key].append(entry)
        for number, kind, share in leaves:
            for key, entry in zip(votes, (tree, number, kind, share / trees)):
                votes[key].append(entry)
    attributes = {f"nodes_{key}": column for key, column in columns.items()}
    attributes.update({f"class_{key}": column for key, column in votes.items()})
    label, shares = b.op("TreeEnsembleClassifier", [x], outputs=2, domain="ai.onnx.ml", classlabels_int64s=list(range(classes)), post_transform="NONE",
                         **attributes)
    b.output(label, [rows], INT64)
    b.output(shares, [rows, classes], FLOAT)
    return b.model()
