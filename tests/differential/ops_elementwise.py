"""Operators that work element by element, and reductions."""

import numpy as np
from draw import FLOATS, INTS, PLAIN, Skip, T
from onnx import helper
from recipes import recipe

NUMBERS = [*FLOATS, *INTS]


@recipe("Abs", "Neg", "Sign", "Identity", "Relu", "Not", "BitwiseNot", "IsNaN", "IsInf", "Ceil", "Floor", "Round")
def exact_unary(d, op):
    dtype = d.type_of(op, among=[*PLAIN, T.BFLOAT16, T.STRING] if op == "Identity" else [*PLAIN, T.BFLOAT16])
    rounds = op in ("Ceil", "Floor", "Round", "Sign", "IsNaN", "IsInf")
    x = d.new(dtype, d.shape(), "wild") if d.chance(0.25) else d.pick(dtype, exact=rounds)
    attributes = {}
    if op == "IsInf":
        attributes = {"detect_negative": d.choice([None, 0, 1]), "detect_positive": d.choice([None, 0, 1])}
    d.node(op, [x], **attributes)


DOMAINS = {"Sqrt": "positive", "Log": "positive", "Asin": "unit", "Acos": "unit", "Atanh": "unit", "Reciprocal": "positive", "Tan": "unit"}


@recipe("Sqrt", "Exp", "Log", "Reciprocal", "Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Tanh", "Asinh", "Atanh", "Erf",
        "Sigmoid", "Softplus", "Softsign", "HardSwish", "Mish", "Acosh", "Selu", "Elu", "LeakyRelu", "Celu", "ThresholdedRelu",
        "HardSigmoid", "Gelu", "Swish", "Shrink")
def float_unary(d, op):
    dtype = d.type_of(op, among=NUMBERS)
    kind = DOMAINS.get(op, "normal")
    if op == "Shrink" and dtype in INTS:  # wider ones do not fit into the float in which both compute
        dtype = d.choice([T.INT8, T.INT16])
    if d.chance(0.1) and op not in ("Sin", "Cos", "Tan", "Acosh"):
        x = d.new(dtype, d.shape(), "wild")
    elif op == "Acosh":
        x = d.node("Add", [d.new(dtype, d.shape(), "positive"), d.new(dtype, (), "positive", True)]) if dtype == T.FLOAT else None
        if x is None:
            x = d.given(d.numbers(dtype, d.shape(), "positive") + np.ones((), helper.tensor_dtype_to_np_dtype(dtype)), dtype)
    else:
        x = d.pick(dtype, kind=kind, tame=True, exact=op in ("ThresholdedRelu", "Shrink"))
    attributes = {}
    some = lambda low, high: round(float(d.rng.uniform(low, high)), 3) if d.chance(0.7) else None  # noqa: E731
    if op in ("Elu", "Celu", "LeakyRelu", "ThresholdedRelu", "Swish", "HardSigmoid", "Selu"):
        attributes["alpha"] = some(0.05, 1.5)
    if op == "HardSigmoid":
        attributes["beta"] = some(0, 1)
    if op == "Selu":
        attributes["gamma"] = some(0.5, 2)
    if op == "Shrink":
        attributes = {"bias": some(-1, 1), "lambd": some(0, 1)}
    if op == "Gelu":
        attributes["approximate"] = d.choice([None, "none", "tanh"])
    d.node(op, [x], exact=op in ("LeakyRelu", "Shrink", "ThresholdedRelu") and x.exact, tame=x.tame and op not in ("Exp", "Sinh", "Cosh"),
           **attributes)


@recipe("Add", "Sub", "Mul", "Div", "And", "Or", "Xor", "Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual", "BitwiseAnd",
        "BitwiseOr", "BitwiseXor", "Max", "Min", "Sum", "Mean", "PRelu", weight=1.5)
def broadcast(d, op):
    dtype = d.type_of(op, among=[*PLAIN, T.BFLOAT16, T.STRING] if op == "Equal" else [*PLAIN, T.BFLOAT16])
    variadic = op in ("Max", "Min", "Sum", "Mean")
    exact = op in ("Less", "Greater", "LessOrEqual", "GreaterOrEqual", "Equal")
    if op in ("Max", "Min", "Sum", "Mean") and d.since(op) < 8:
        shapes = [d.shape()] * d.int(1, 3)
    else:
        shapes = d.broadcast_shapes(d.int(1, 4) if variadic else 2)
    first = d.pick(dtype, exact=exact) if d.chance(0.5) else None
    if first is not None:
        shapes = [first.shape, *[tuple(1 if d.chance(0.2) else e for e in first.shape[d.int(0, len(first.shape)):]) for _ in shapes[1:]]]
        if op in ("Max", "Min", "Sum", "Mean") and d.since(op) < 8:
            shapes = [first.shape] * len(shapes)
    kind = "wild" if d.chance(0.08) and op not in ("Sum", "Mean", "Div", "PRelu") else "normal"
    inputs = [first if first is not None and i == 0 else d.new(dtype, s, kind if dtype not in INTS or op != "Div" else "normal")
              for i, s in enumerate(shapes)]
    if op == "Div":
        inputs[1] = d.new(dtype, shapes[1], "positive")
    if op == "PRelu":
        if len(shapes[1]) > len(shapes[0]) or np.broadcast_shapes(*shapes) != shapes[0]:
            raise Skip
    d.node(op, inputs, exact=None if op not in ("Div", "Mean", "Mul") or dtype in INTS else False,
           tame=op not in ("Mul", "Div") and all(v.tame for v in inputs) and dtype not in INTS)


@recipe()
def Pow(d):
    dtype = d.type_of("Pow", 0, among=PLAIN)
    exponent = d.type_of("Pow", 1, among=PLAIN) if d.since("Pow") >= 12 else dtype
    a, b = d.broadcast_shapes(2)
    power = np.asarray(d.rng.choice([0, 1, 2, 3] if dtype in INTS or exponent in INTS else [0, 0.5, 1, 2, 3, -1], size=b))
    y = d.given(power.astype(helper.tensor_dtype_to_np_dtype(exponent)), exponent)
    d.node("Pow", [d.new(dtype, a, "positive"), y], exact=False, tame=False)


@recipe()
def Mod(d):
    dtype = d.type_of("Mod", among=PLAIN)
    a, b = d.broadcast_shapes(2)
    y = d.numbers(dtype, b, "positive")
    if dtype not in (T.UINT8, T.UINT16, T.UINT32, T.UINT64) and d.chance(0.5):
        y = -y
    fmod = 1 if dtype in FLOATS else d.choice([0, 1, None])
    d.node("Mod", [d.new(dtype, a), d.given(y, dtype)], exact=dtype in INTS, fmod=fmod)


@recipe()
def BitShift(d):
    dtype = d.type_of("BitShift")
    a, b = d.broadcast_shapes(2)
    y = np.asarray(d.rng.integers(0, 8, b)).astype(helper.tensor_dtype_to_np_dtype(dtype))
    d.node("BitShift", [d.new(dtype, a, "full"), d.given(y, dtype)], direction=d.choice(["LEFT", "RIGHT"]))


@recipe(weight=1.5)
def Where(d):
    d.need("Where", 9)
    dtype = d.type_of("Where", "T", among=[*PLAIN, T.STRING])
    a, b, c = d.broadcast_shapes(3)
    d.node("Where", [d.new(T.BOOL, a), d.new(dtype, b), d.new(dtype, c)])


@recipe(weight=1.5)
def Clip(d):
    dtype = d.type_of("Clip", among=PLAIN)
    x = d.pick(dtype)
    if d.since("Clip") < 11:
        d.node("Clip", [x], min=d.choice([None, -1.0, 0.0]), max=d.choice([None, 1.0, 6.0]))
        return
    low, high = sorted(float(v) for v in d.rng.integers(0 if "uint" in str(helper.tensor_dtype_to_np_dtype(dtype)) else -4, 7, 2))
    bound = lambda v: d.given(np.asarray(v, helper.tensor_dtype_to_np_dtype(dtype)), dtype, constant=d.chance(0.7))  # noqa: E731
    d.node("Clip", [x, bound(low) if d.chance(0.7) else None, bound(high) if d.chance(0.7) else None])


@recipe(weight=3)
def Cast(d):
    source = d.type_of("Cast", "T1", among=[*PLAIN, T.BFLOAT16, T.STRING])
    target = d.type_of("Cast", "T2", among=[*PLAIN, T.BFLOAT16, T.FLOAT8E4M3FN, T.FLOAT8E5M2, T.INT4, T.UINT4, T.STRING])
    if source == T.STRING:
        numbers = d.rng.integers(0, 100, d.shape())
        text = np.array([str(n) for n in numbers.reshape(-1)], dtype=object).reshape(numbers.shape)
        if target in (T.BOOL, T.INT4, T.UINT4, T.FLOAT8E4M3FN, T.FLOAT8E5M2, T.BFLOAT16):
            raise Skip
        x = d.given(text, T.STRING)
    elif target == T.STRING:
        x = d.pick(d.choice([T.FLOAT, T.INT32, T.INT64, T.BOOL, T.UINT8, T.DOUBLE]), exact=True)
    else:
        if target in (T.INT4, T.UINT4) and source in FLOATS:  # ONNX's reference truncates, as this engine; ONNX Runtime rounds
            source = T.INT32
        x = d.pick(source, exact=True)
    unsigned = target in (T.UINT8, T.UINT16, T.UINT32, T.UINT64, T.UINT4)
    if unsigned and x.dtype in FLOATS:  # negative to unsigned is what the hardware makes of it
        x = d.node("Abs", [x])
    y = d.node("Cast", [x], to=target)
    if target not in PLAIN and target != T.STRING and y.dtype is not None:
        d.node("Cast", [y], to=T.FLOAT)


@recipe()
def CastLike(d):
    d.need("CastLike", 15)
    d.node("CastLike", [d.pick(d.choice([T.FLOAT, T.INT32, T.INT64, T.BOOL]), exact=True), d.pick(d.choice([T.FLOAT, T.DOUBLE, T.INT64, T.INT32]))])


@recipe("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp",
        "ReduceSumSquare")
def reduction(d, op):
    dtype = d.type_of(op, among=PLAIN)
    positive = op in ("ReduceLogSum",)
    extreme = op in ("ReduceMax", "ReduceMin")
    x = d.new(dtype, d.shape(limit=3000), "positive") if positive else d.new(dtype, d.shape(limit=3000)) if dtype in INTS else d.pick(dtype, tame=not extreme)
    if 0 in x.shape and extreme and dtype not in FLOATS and dtype != T.BOOL:
        raise Skip
    rank = len(x.shape)
    axes = d.axes(rank) if d.chance(0.85) else None
    keep = d.choice([None, 0, 1])
    limit = 13 if op == "ReduceSum" else 18
    exact = x.exact and (extreme or dtype in INTS)
    if d.opset < limit:
        d.node(op, [x], axes=axes or None, keepdims=keep, exact=exact, tame=extreme)
    else:
        d.node(op, [x, d.ints(axes) if axes is not None else None], keepdims=keep, noop_with_empty_axes=d.choice([None, 0, 1]), exact=exact,
               tame=extreme)


@recipe("ArgMax", "ArgMin")
def arg_extreme(d, op):
    x = d.pick(d.type_of(op, among=PLAIN), exact=True, where=lambda s: len(s) > 0 and 0 not in s)
    last = d.choice([None, 0, 1]) if d.since(op) >= 12 else None
    d.node(op, [x], axis=d.axis(len(x.shape), d.since(op) >= 11), keepdims=d.choice([None, 0, 1]), select_last_index=last)


@recipe()
def CumSum(d):
    d.need("CumSum", 11)
    x = d.pick(d.type_of("CumSum", among=PLAIN), tame=True, where=lambda s: len(s) > 0)
    d.node("CumSum", [x, d.ints(d.axis(len(x.shape)), dtype=d.choice([T.INT32, T.INT64]))], exclusive=d.choice([None, 0, 1]),
           reverse=d.choice([None, 0, 1]), exact=x.exact and x.dtype in INTS, tame=False)


@recipe("Softmax", "LogSoftmax", "Hardmax", weight=1.5)
def softmax(d, op):
    x = d.pick(d.type_of(op, among=PLAIN), tame=True, exact=op == "Hardmax", where=lambda s: len(s) > 0)
    axis = d.axis(len(x.shape), d.since(op) >= 11) if d.chance(0.8) else None
    if axis is None and d.since(op) < 13 and len(x.shape) < 2:
        raise Skip
    d.node(op, [x], axis=axis, exact=op == "Hardmax")


@recipe()
def TopK(d):
    x = d.pick(d.type_of("TopK", among=PLAIN), exact=True, where=lambda s: len(s) > 0)
    version = d.since("TopK")
    axis = d.axis(len(x.shape), version >= 11)
    k = d.int(0, x.shape[axis])
    if version < 10:
        if k == 0:
            raise Skip
        d.node("TopK", [x], 2, axis=axis, k=k)
        return
    d.node("TopK", [x, d.ints([k])], 2, axis=axis, largest=d.choice([None, 0, 1]) if version >= 11 else None)


@recipe()
def Einsum(d):
    d.need("Einsum", 12)
    sizes = {c: d.int(1, 6) for c in "abcde"}
    terms = ["".join(d.rng.permutation(list("abcde"))[: d.int(0, 3)]) for _ in range(d.int(1, 3))]
    letters = sorted(set("".join(terms)))
    result = "".join(d.rng.permutation(letters)[: d.int(0, len(letters))]) if letters else ""
    dtype = d.type_of("Einsum", among=[T.FLOAT, T.DOUBLE, T.INT32, T.INT64])
    inputs = [d.new(dtype, [sizes[c] for c in t]) for t in terms]
    d.node("Einsum", inputs, equation=",".join(terms) + ("->" + result if d.chance(0.8) else ""), exact=False, tame=False)


@recipe()
def Det(d):
    d.need("Det", 11)
    n = d.int(1, 5)
    d.node("Det", [d.new(T.FLOAT, (*d.shape(d.int(0, 2)), n, n))], exact=False, tame=False)


@recipe()
def Gemm(d):
    dtype = d.type_of("Gemm", among=PLAIN)
    m, k, n = d.dim(), d.dim(), d.dim()
    a_t, b_t = d.int(0, 1), d.int(0, 1)
    c = d.choice([(m, n), (n,), (1, n), (m, 1), (1, 1), (), (1,)])
    inputs = [d.pick(dtype, shape=(k, m) if a_t else (m, k), tame=True), d.new(dtype, (n, k) if b_t else (k, n), constant=d.chance(0.6))]
    if d.since("Gemm") < 11 or d.chance(0.7):
        inputs.append(d.new(dtype, c))
    whole = dtype in INTS
    d.node("Gemm", inputs, transA=a_t or None, transB=b_t or None, alpha=None if whole else d.choice([None, 1.0, 0.5, -2.0, 0.0]),
           beta=None if whole else d.choice([None, 1.0, 0.25, 0.0]), exact=whole, tame=False)


@recipe(weight=3)
def MatMul(d):
    dtype = d.type_of("MatMul", among=PLAIN)
    m, k, n = d.dim(), d.dim(), d.dim()
    kind = d.rng.random()
    if kind < 0.15:
        a, b = (k,), d.choice([(k,), (k, n), (2, k, n)])
    elif kind < 0.25:
        a, b = (2, m, k), (k,)
    else:
        left, right = d.broadcast_shapes(2, d.int(0, 2))
        a, b = (*left, m, k), (*right, k, n)
    d.node("MatMul", [d.pick(dtype, shape=a, tame=True), d.new(dtype, b, constant=d.chance(0.5))], exact=dtype in INTS, tame=False)
