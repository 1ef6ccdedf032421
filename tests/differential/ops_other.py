"""Sequences, optionals, control flow, text, and ai.onnx.ml."""

import numpy as np
from draw import WORDS, Skip, T
from onnx import helper
from recipes import recipe


@recipe(weight=1.5)
def sequences(d):
    d.need("SequenceConstruct", 11)
    dtype = d.choice([T.FLOAT, T.INT64, T.DOUBLE, T.STRING])
    shape = d.shape(d.int(1, 3), 200)
    parts = [d.new(dtype, shape) for _ in range(d.int(1, 4))]
    s = d.node("SequenceConstruct", parts, types={}, keep=False)
    n = len(parts)
    for _ in range(d.int(0, 3)):
        if d.chance(0.5):
            s = d.node("SequenceInsert", [s, d.new(dtype, shape), d.ints(d.int(-n, n)) if d.chance(0.7) else None], types={})
            n += 1
        elif n > 1:
            s = d.node("SequenceErase", [s, d.ints(d.int(-n, n - 1)) if d.chance(0.7) else None], types={})
            n -= 1
    for op in ("SequenceAt", "SequenceLength", "ConcatFromSequence"):
        if d.chance(0.6):
            if op == "SequenceAt":
                d.node(op, [s, d.ints(d.int(-n, n - 1))], types=[(dtype, shape)])
            elif op == "SequenceLength":
                d.node(op, [s], types=[(T.INT64, ())])
            else:
                new = d.choice([None, 0, 1])
                d.node(op, [s], types={}, axis=d.int(-len(shape), len(shape) - 1), new_axis=new)


@recipe()
def SplitToSequence(d):
    d.need("SplitToSequence", 11)
    x = d.pick(d.choice([T.FLOAT, T.INT64, T.STRING]), where=lambda s: len(s) > 0 and 0 not in s)
    axis = d.axis(len(x.shape))
    size = x.shape[axis]
    how = d.choice(["none", "scalar", "list"])
    split = d.ints(d.int(1, size)) if how == "scalar" else d.ints([1] * (size - 1) + [1]) if how == "list" else None
    d.node("SplitToSequence", [x, split], axis=axis, keepdims=d.choice([None, 0, 1]) if how == "none" else None, types={})


@recipe()
def If(d):
    dtype = d.choice([T.FLOAT, T.INT64])
    x = d.pick(dtype, tame=True)
    branches = []
    for op in ("Add", "Mul"):
        name = d.fresh("b")
        node = helper.make_node(op, [x.name, x.name], [name])
        branches.append(helper.make_graph([node], op, [], [helper.make_tensor_value_info(name, dtype, None)]))
    d.node("If", [d.new(T.BOOL, ())], types=[(dtype, x.shape)], then_branch=branches[0], else_branch=branches[1], exact=dtype == T.INT64, tame=False)


@recipe(weight=1.5)
def Loop(d):
    if d.opset < 11:
        raise Skip
    x = d.pick(T.FLOAT, tame=True, where=lambda s: len(s) < 4)
    turns = d.int(0, 5)
    names = {k: d.fresh(k) for k in ("i", "go", "v", "w", "next", "scan")}
    nodes = [helper.make_node("Identity", [names["go"]], [names["next"]]), helper.make_node("Add", [names["v"], x.name], [names["w"]]),
             helper.make_node(d.choice(["Identity", "Neg", "Abs"]), [names["w"]], [names["scan"]])]
    info = helper.make_tensor_value_info
    body = helper.make_graph(nodes, "body", [info(names["i"], T.INT64, []), info(names["go"], T.BOOL, []), info(names["v"], T.FLOAT, x.shape)],
                             [info(names["next"], T.BOOL, []), info(names["w"], T.FLOAT, x.shape), info(names["scan"], T.FLOAT, x.shape)])
    d.node("Loop", [d.ints(turns), d.given(np.asarray(True)) if d.chance(0.5) else None, x], 2, body=body,
           types=[(T.FLOAT, x.shape), (T.FLOAT, (turns, *x.shape))], exact=False, tame=False)


@recipe()
def Scan(d):
    d.need("Scan", 9)
    x = d.pick(T.FLOAT, tame=True, where=lambda s: len(s) > 1 and 0 not in s)
    axis = d.axis(len(x.shape)) if d.since("Scan") >= 11 else d.int(0, len(x.shape) - 1)
    step = tuple(e for i, e in enumerate(x.shape) if i != axis % len(x.shape))
    names = {k: d.fresh(k) for k in ("s", "e", "o", "y")}
    info = helper.make_tensor_value_info
    body = helper.make_graph([helper.make_node("Add", [names["s"], names["e"]], [names["o"]]), helper.make_node("Neg", [names["o"]], [names["y"]])], "body",
                             [info(names["s"], T.FLOAT, step), info(names["e"], T.FLOAT, step)], [info(names["o"], T.FLOAT, step), info(names["y"], T.FLOAT, step)])
    d.node("Scan", [d.new(T.FLOAT, step), x], 2, body=body, num_scan_inputs=1, scan_input_axes=[axis], scan_input_directions=[d.int(0, 1)],
           scan_output_directions=[d.int(0, 1)], types=[(T.FLOAT, step), (T.FLOAT, (x.shape[axis], *step))], exact=False, tame=False)


def words(d, shape=None):
    return d.new(T.STRING, d.shape() if shape is None else shape)


@recipe()
def StringConcat(d):
    d.need("StringConcat", 20)
    a, b = d.broadcast_shapes(2)
    d.node("StringConcat", [words(d, a), words(d, b)])


@recipe()
def StringSplit(d):
    d.need("StringSplit", 20)
    d.node("StringSplit", [words(d)], 2, delimiter=d.choice([None, "", " ", "-", "o"]), maxsplit=d.choice([None, 0, 1, 2]))


@recipe()
def StringNormalizer(d):
    d.need("StringNormalizer", 10)
    shape = d.choice([(d.int(1, 6),), (1, d.int(1, 6))])
    d.node("StringNormalizer", [words(d, shape)], case_change_action=d.choice([None, "NONE", "LOWER", "UPPER"]), is_case_sensitive=d.choice([None, 0, 1]),
           stopwords=d.choice([None, ["the"], ["a", "the", "Zebra"]]))


@recipe()
def RegexFullMatch(d):
    d.need("RegexFullMatch", 20)
    d.node("RegexFullMatch", [words(d)], pattern=d.choice([r"\w+", "a*", "[a-z ]+", r"-?\d+(\.\d+)?", ".*"]))


@recipe()
def TfIdfVectorizer(d):
    d.need("TfIdfVectorizer", 9)
    grams = [1, 2, 3, 4, 5, 1, 2, 3, 4]
    x = d.ints(d.rng.integers(0, 6, d.choice([(d.int(1, 9),), (d.int(1, 3), d.int(1, 9))])), False, d.choice([T.INT32, T.INT64]))
    low = d.int(1, 2)
    d.node("TfIdfVectorizer", [x], mode=d.choice(["TF", "IDF", "TFIDF"]), min_gram_length=low, max_gram_length=d.int(low, 2), max_skip_count=d.int(0, 3),
           pool_int64s=grams, ngram_counts=[0, 5], ngram_indexes=[int(i) for i in d.rng.permutation(7)],
           weights=d.choice([None, [float(i) / 2 for i in range(7)]]), exact=False)


@recipe()
def LabelEncoder(d):
    if d.ml < 2:
        raise Skip
    numbers, text = [int(n) for n in d.rng.permutation(20)[:5]], WORDS[:5]
    floats = [float(n) for n in numbers]
    kind = d.choice(["si", "is", "sf", "fs", "if", "fi", "ii", "ss", "ff"])
    names = {"s": ("strings", text, T.STRING), "i": ("int64s", numbers, T.INT64), "f": ("floats", floats, T.FLOAT)}
    key, value = names[kind[0]], names[kind[1]]
    shape = d.shape()
    x = words(d, shape) if kind[0] == "s" else d.given(d.rng.integers(0, 20, shape).astype(np.int64 if kind[0] == "i" else np.float32))
    default = {"s": ("default_string", "none"), "i": ("default_int64", -7), "f": ("default_float", 2.5)}[kind[1]]
    d.node("LabelEncoder", [x], domain="ai.onnx.ml", **{f"keys_{key[0]}": key[1], f"values_{value[0]}": value[1], default[0]: default[1] if d.chance(0.6) else None})


def features(d, rank=None):
    dtype = d.choice([T.FLOAT, T.FLOAT, T.DOUBLE, T.INT64, T.INT32])
    return d.new(dtype, (d.int(1, 5), d.int(1, 6)) if rank != 1 else (d.int(1, 6),))


@recipe("Scaler", "Normalizer", "Binarizer", "Imputer", "ArrayFeatureExtractor", "OneHotEncoder", "FeatureVectorizer")
def ml_features(d, op):
    x = features(d, d.int(1, 2))
    n = x.shape[-1]
    floats = lambda size: [round(float(v), 2) for v in d.rng.standard_normal(size)]  # noqa: E731
    ml = {"domain": "ai.onnx.ml", "exact": False}
    if op == "Scaler":
        d.node(op, [x], offset=floats(d.choice([1, n])), scale=floats(d.choice([1, n])), **ml)
    elif op == "Normalizer":
        d.node(op, [x], norm=d.choice(["MAX", "L1", "L2"]), **ml)
    elif op == "Binarizer":
        d.node(op, [d.new(d.choice([T.FLOAT]), x.shape)], threshold=d.choice([None, 0.5]), **ml)
    elif op == "Imputer":
        x = d.new(T.FLOAT, (d.int(1, 4), n))
        d.node(op, [x], imputed_value_floats=floats(d.choice([1, n])), replaced_value_float=float("nan") if d.chance(0.5) else 1.0, **ml)
    elif op == "ArrayFeatureExtractor":
        d.node(op, [x, d.ints(d.rng.integers(0, n, d.int(1, 4)))], **ml)
    elif op == "OneHotEncoder":
        d.node(op, [d.given(d.rng.integers(0, 5, d.shape(empty=0)).astype(np.int64))], cats_int64s=[0, 1, 2, 3], zeros=1, **ml)
    else:
        parts = [d.new(d.choice([T.FLOAT]), (3, d.int(1, 4))) for _ in range(d.int(1, 3))]
        d.node(op, parts, inputdimensions=[p.shape[1] for p in parts], **ml)


@recipe("LinearRegressor", "LinearClassifier")
def ml_linear(d, op):
    x = d.new(d.choice([T.FLOAT, T.FLOAT, T.DOUBLE, T.INT64, T.INT32]), (d.int(1, 5), d.int(1, 6)))
    classes = d.int(2, 4) if op == "LinearClassifier" else d.int(1, 3)
    floats = lambda size: [round(float(v), 3) for v in d.rng.standard_normal(size)]  # noqa: E731
    post = d.choice([None, "NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"])
    if op == "LinearRegressor":
        d.node(op, [x if x.dtype == T.FLOAT else d.new(T.FLOAT, x.shape)], domain="ai.onnx.ml", coefficients=floats(classes * x.shape[1]), targets=classes,
               intercepts=floats(classes) if d.chance(0.7) else None, exact=False)
        return
    labels = {"classlabels_ints": [int(i) for i in d.rng.permutation(9)[:classes]]} if d.chance(0.5) else {"classlabels_strings": WORDS[1: 1 + classes]}
    d.node(op, [x], 2, domain="ai.onnx.ml", coefficients=floats(classes * x.shape[1]), intercepts=floats(classes), post_transform=post, exact=False, **labels)


@recipe("TreeEnsembleRegressor", "TreeEnsembleClassifier")
def trees(d, op):
    width, count = d.int(1, 4), d.int(1, 5)
    targets = d.int(1, 3)
    a = {k: [] for k in ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids", "missing_value_tracks_true")}
    leaves = []
    modes = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]
    one = d.choice(modes) if d.chance(0.6) else None
    for tree in range(count):
        depth = d.int(0, 3)
        inner = 2**depth - 1
        for i in range(2 * inner + 1):
            leaf = i >= inner
            row = (tree, i, 0 if leaf else d.int(0, width - 1), 0.0 if leaf else float(d.int(-2, 2)) / 2, "LEAF" if leaf else one or d.choice(modes),
                   0 if leaf else 2 * i + 1, 0 if leaf else 2 * i + 2, 0 if leaf else d.int(0, 1))
            for key, v in zip(a, row):
                a[key].append(v)
            if leaf:
                leaves += [(tree, i, t, round(float(d.rng.standard_normal()), 3)) for t in range(targets) if op.endswith("Regressor") or d.chance(0.7)]
    if not leaves:
        raise Skip
    attributes = {f"nodes_{k}": v for k, v in a.items()}
    kind = "target" if op.endswith("Regressor") else "class"
    for key, column in zip(("treeids", "nodeids", "ids", "weights"), zip(*leaves)):
        attributes[f"{kind}_{key}"] = list(column)
    post = d.choice([None, "NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"])
    x = d.given((d.rng.integers(-3, 4, (d.int(1, 9), width)) / 2).astype(np.float32))
    if kind == "target":
        d.node(op, [x], domain="ai.onnx.ml", n_targets=targets, aggregate_function=d.choice([None, "SUM", "AVERAGE", "MIN", "MAX"]), post_transform=d.choice([None, "NONE"]),
               base_values=d.choice([None, [0.5] * targets]), exact=False, **attributes)
    else:
        classes = max(targets, 2)
        d.node(op, [x], 2, domain="ai.onnx.ml", classlabels_int64s=list(range(classes)), post_transform=post, exact=False, **attributes)




@recipe("SVMRegressor", "SVMClassifier")
def svm(d, op):
    width, n = d.int(1, 4), d.int(2, 6)
    floats = lambda size: [round(float(v), 3) for v in d.rng.standard_normal(size)]  # noqa: E731
    kernel = d.choice(["LINEAR", "POLY", "RBF", "SIGMOID"])
    x = d.new(T.FLOAT, (d.int(1, 5), width))
    shared = {"kernel_type": kernel, "kernel_params": [round(float(d.rng.uniform(0.05, 0.5)), 3), 0.3, 2.0], "support_vectors": floats(n * width)}
    if op == "SVMRegressor":
        d.node(op, [x], domain="ai.onnx.ml", n_supports=n, coefficients=floats(n), rho=floats(1), one_class=d.choice([None, 0]), exact=False, **shared)
        return
    classes = d.int(2, 3)
    counts = [1] * (classes - 1) + [n - classes + 1]
    if counts[-1] < 1:
        raise Skip
    pairs = classes * (classes - 1) // 2
    labels = {"classlabels_ints": list(range(classes))} if d.chance(0.6) else {"classlabels_strings": WORDS[1: 1 + classes]}
    d.node(op, [x], 2, domain="ai.onnx.ml", vectors_per_class=counts, coefficients=floats((classes - 1) * n), rho=floats(pairs),
           post_transform=d.choice([None, "NONE", "SOFTMAX", "LOGISTIC"]), exact=False, **labels, **shared)


@recipe()
def ZipMap(d):
    n = d.int(1, 4)
    labels = {"classlabels_int64s": [int(i) for i in d.rng.permutation(9)[:n]]} if d.chance(0.5) else {"classlabels_strings": WORDS[1: 1 + n]}
    d.node("ZipMap", [d.new(T.FLOAT, (d.int(1, 3), n))], domain="ai.onnx.ml", types={}, **labels)


@recipe()
def CategoryMapper(d):
    x = words(d) if d.chance(0.5) else d.given(d.rng.integers(0, 5, d.shape()).astype(np.int64))
    d.node("CategoryMapper", [x], domain="ai.onnx.ml", cats_int64s=[0, 1, 2, 3], cats_strings=["a", "A", "word", "the"], default_int64=-3, default_string="none")


@recipe()
def SequenceMap(d):
    d.need("SequenceMap", 17)
    x = d.new(T.FLOAT, d.shape(2, 60))
    s = d.node("SequenceConstruct", [x] * d.int(1, 3), types={}, keep=False)
    names = [d.fresh("e"), d.fresh("m")]
    body = helper.make_graph([helper.make_node("Neg", names[:1], names[1:])], "body", [helper.make_tensor_value_info(names[0], T.FLOAT, None)],
                             [helper.make_tensor_value_info(names[1], T.FLOAT, None)])
    d.node("SequenceMap", [s], types={}, body=body)


@recipe()
def optionals(d):
    d.need("OptionalHasElement", 18)
    x = d.pick(d.choice([T.FLOAT, T.INT64]))
    o = d.node("Optional", [x], types={}, keep=False)
    d.node("OptionalGetElement", [o], types=[(x.dtype, x.shape)])
    d.node("OptionalHasElement", [o], types=[(T.BOOL, ())])
