"""Operators that move elements: shapes, slices, gathers, scatters, padding."""

import numpy as np
from draw import INTS, PLAIN, Skip, T
from onnx import helper
from recipes import recipe

ANY = [*PLAIN, T.STRING]


@recipe(weight=3)
def Transpose(d):
    x = d.pick(d.type_of("Transpose", among=ANY))
    d.node("Transpose", [x], perm=[int(i) for i in d.rng.permutation(len(x.shape))] or None if d.chance(0.85) else None)


def regroup(d, shape):
    """Another shape of as many elements."""
    primes, n = [], int(np.prod(shape, dtype=np.int64))
    p = 2
    while n > 1 and p < 50:
        while n % p == 0:
            primes.append(p)
            n //= p
        p += 1
    out = [n] if n > 1 else []
    for p in primes:
        if out and d.chance(0.5):
            i = d.int(0, len(out) - 1)
            out[i] *= p
        else:
            out.insert(d.int(0, len(out)), p)
    while d.chance(0.2):
        out.insert(d.int(0, len(out)), 1)
    return out[:6] if len(out) <= 6 else [*out[:5], int(np.prod(out[5:]))]


@recipe(weight=3)
def Reshape(d):
    x = d.pick(d.type_of("Reshape", among=ANY))
    if 0 in x.shape:
        d.node("Reshape", [x, d.ints(list(x.shape))])
        return
    shape = regroup(d, x.shape)
    if shape and d.chance(0.4):
        shape[d.int(0, len(shape) - 1)] = -1
    for i, e in enumerate(shape):
        if i < len(x.shape) and e == x.shape[i] and d.chance(0.4):
            shape[i] = 0
    d.node("Reshape", [x, d.ints(np.array(shape, np.int64))])


@recipe()
def Flatten(d):
    x = d.pick(d.type_of("Flatten", among=PLAIN), where=lambda s: len(s) > 0)
    d.node("Flatten", [x], axis=d.int(0 if d.since("Flatten") < 11 else -len(x.shape), len(x.shape)))


@recipe(weight=2)
def Squeeze(d):
    x = d.pick(d.type_of("Squeeze", among=ANY), where=lambda s: 1 in s)
    axes = [i for i, e in enumerate(x.shape) if e == 1 and d.chance(0.7)] or [x.shape.index(1)]
    if d.since("Squeeze") >= 11 and d.chance(0.3):
        axes = [a - len(x.shape) for a in axes]
    if d.since("Squeeze") < 13:
        d.node("Squeeze", [x], axes=axes if d.chance(0.8) else None)
    else:
        d.node("Squeeze", [x, d.ints(axes) if d.chance(0.8) else None])


@recipe(weight=2)
def Unsqueeze(d):
    x = d.pick(d.type_of("Unsqueeze", among=ANY), where=lambda s: len(s) < 5)
    n = d.int(1, 2)
    axes = [int(a) for a in d.rng.permutation(len(x.shape) + n)[:n]]
    if d.since("Unsqueeze") >= 11 and d.chance(0.3):
        axes = [a - len(x.shape) - n for a in axes]
    d.node("Unsqueeze", [x], axes=axes) if d.since("Unsqueeze") < 13 else d.node("Unsqueeze", [x, d.ints(axes)])


@recipe(weight=3)
def Concat(d):
    x = d.pick(d.type_of("Concat", among=ANY), where=lambda s: len(s) > 0)
    axis = d.axis(len(x.shape), d.since("Concat") >= 11)
    parts = [x]
    for _ in range(d.int(0, 3)):
        shape = list(x.shape)
        shape[axis] = d.dim()
        parts.insert(d.int(0, len(parts)), d.new(x.dtype, shape))
    d.node("Concat", parts, axis=axis)


@recipe(weight=2)
def Split(d):
    x = d.pick(d.type_of("Split", among=ANY), where=lambda s: len(s) > 0)
    axis = d.axis(len(x.shape), d.since("Split") >= 11)
    size, n = x.shape[axis], d.int(1, 4)
    cuts = sorted(d.int(0, size) for _ in range(n - 1))
    sizes = [b - a for a, b in zip([0, *cuts], [*cuts, size])]
    version = d.since("Split")
    if version < 13:
        d.node("Split", [x], n, axis=axis, split=sizes)
    elif d.chance(0.6):
        d.node("Split", [x, d.ints(sizes)], n, axis=axis)
    elif version >= 18 and size >= n * n:
        d.node("Split", [x], n, axis=axis, num_outputs=n)
    elif version < 18 and size % n == 0:
        d.node("Split", [x], n, axis=axis)
    else:
        raise Skip


@recipe(weight=3)
def Slice(d):
    x = d.pick(d.type_of("Slice", among=ANY), where=lambda s: len(s) > 0)
    rank, version = len(x.shape), d.since("Slice")
    axes = sorted(int(a) for a in d.rng.permutation(rank)[: d.int(1, rank)])
    starts, ends, steps = [], [], []
    for a in axes:
        n = x.shape[a]
        starts.append(d.int(-n - 2, n + 2))
        ends.append(d.choice([d.int(-n - 2, n + 2), 2**31 - 1, 2**63 - 1]) if d.chance(0.8) else -(2**31))
        steps.append(d.choice([1, 1, 1, 2, 3, -1, -2, 7]) if version >= 10 else 1)
    if version < 10:
        d.node("Slice", [x], starts=starts, ends=ends, axes=axes if d.chance(0.8) or axes != list(range(len(axes))) else None)
        return
    if d.chance(0.3):
        axes = [a - rank for a in axes]
    dtype = d.choice([T.INT64, T.INT32])
    if dtype == T.INT32:
        ends = [min(e, 2**31 - 1) for e in ends]
    constant = d.chance(0.7)
    one = lambda v: d.ints(v, constant, dtype)  # noqa: E731
    d.node("Slice", [x, one(starts), one(ends), one(axes), one(steps) if d.chance(0.8) or any(s != 1 for s in steps) else None])


def indices(d, size, shape, negative=True):
    if size == 0 and np.prod(shape, dtype=np.int64):
        raise Skip
    low = -size if negative else 0
    return d.rng.integers(low, max(size, low + 1), shape)


@recipe(weight=2)
def Gather(d):
    x = d.pick(d.type_of("Gather", among=ANY), where=lambda s: len(s) > 0)
    axis = d.axis(len(x.shape))
    dtype = d.choice([T.INT32, T.INT64])
    d.node("Gather", [x, d.ints(indices(d, x.shape[axis], d.shape(d.int(0, 2), 40), d.since("Gather") >= 11), dtype=dtype)], axis=axis)


@recipe()
def GatherElements(d):
    d.need("GatherElements", 11)
    x = d.pick(d.type_of("GatherElements", among=ANY), where=lambda s: len(s) > 0)
    axis = d.axis(len(x.shape))
    shape = [d.int(0 if d.chance(0.05) else min(1, e), e) for e in x.shape]
    shape[axis] = d.dim()
    d.node("GatherElements", [x, d.ints(indices(d, x.shape[axis], shape), dtype=d.choice([T.INT32, T.INT64]))], axis=axis)


def nd_indices(d, shape, depth, outer):
    parts = [indices(d, shape[i], (*outer, 1)) for i in range(depth)]
    return np.concatenate(parts, axis=-1) if parts else np.zeros((*outer, 0), np.int64)


@recipe()
def GatherND(d):
    d.need("GatherND", 11)
    x = d.pick(d.type_of("GatherND", among=ANY), where=lambda s: len(s) > 0)
    batch = d.int(0, len(x.shape) - 1) if d.since("GatherND") >= 12 and d.chance(0.4) else 0
    depth = d.int(1, len(x.shape) - batch)
    outer = (*x.shape[:batch], *d.shape(d.int(0, 2), 30))
    d.node("GatherND", [x, d.ints(nd_indices(d, x.shape[batch:], depth, outer))], batch_dims=batch or None)


@recipe()
def ScatterND(d):
    d.need("ScatterND", 11)
    x = d.pick(d.type_of("ScatterND", among=ANY), where=lambda s: len(s) > 0 and 0 not in s)
    depth = d.int(1, len(x.shape))
    places = int(np.prod(x.shape[:depth]))
    n = d.int(0, min(places, 12))
    flat = d.rng.permutation(places)[:n]  # each place once: the order of several is not defined
    where = np.stack(np.unravel_index(flat, x.shape[:depth]), -1).reshape(n, depth)
    mode = d.choice([None, "none", "add", "mul", "max", "min"]) if d.since("ScatterND") >= 18 else d.choice([None, "add", "mul"]) if d.since("ScatterND") >= 16 else None
    if x.dtype in (T.STRING, T.BOOL):
        mode = None
    d.node("ScatterND", [x, d.ints(where), d.new(x.dtype, (n, *x.shape[depth:]))], reduction=mode, tame=False)


@recipe("ScatterElements", "Scatter")
def scatter_elements(d, op):
    if op == "Scatter" and not 9 <= d.opset < 11:
        raise Skip
    d.need(op, 9)
    x = d.pick(d.type_of(op, among=ANY), where=lambda s: len(s) > 0 and 0 not in s)
    axis = d.axis(len(x.shape), op != "Scatter")
    shape = list(x.shape)
    shape[axis] = d.int(0, x.shape[axis])
    order = np.argsort(d.rng.random(x.shape), axis=axis)
    where = np.take(order, np.arange(shape[axis]), axis=axis)
    if op == "ScatterElements" and d.chance(0.4):
        where = where - x.shape[axis]
    version = d.since(op)
    mode = d.choice([None, "none", "add", "mul", "max", "min"]) if version >= 18 else d.choice([None, "add", "mul"]) if version >= 16 else None
    if x.dtype in (T.STRING, T.BOOL):
        mode = None
    d.node(op, [x, d.ints(where, dtype=d.choice([T.INT32, T.INT64])), d.new(x.dtype, shape)], axis=axis,
           reduction=mode, tame=False)


@recipe()
def TensorScatter(d):
    d.need("TensorScatter", 24)
    batch, length, width, n = d.int(1, 3), d.int(1, 8), d.int(1, 5), d.int(1, 3)
    n = min(n, length)
    mode = d.choice([None, "linear", "circular"])
    starts = d.rng.integers(0, length if mode == "circular" else length - n + 1, batch)
    d.node("TensorScatter", [d.pick(T.FLOAT, shape=(batch, length, width)), d.new(T.FLOAT, (batch, n, width)),
                             d.ints(starts) if d.chance(0.8) else None], axis=-2, mode=mode)


@recipe(weight=2)
def Expand(d):
    x = d.pick(d.type_of("Expand", among=ANY))
    shape = [e if e != 1 or d.chance(0.3) else d.dim(empty=0.02) for e in x.shape]
    shape = [1 if d.chance(0.2) and e else e for e in shape]
    while d.chance(0.3) and len(shape) < 6:
        shape.insert(0, d.int(1, 3))
    d.node("Expand", [x, d.ints(np.array(shape, np.int64))])


@recipe()
def Tile(d):
    x = d.pick(d.type_of("Tile", among=ANY))
    d.node("Tile", [x, d.ints(np.array([d.choice([1, 1, 2, 3, 0]) for _ in x.shape], np.int64))])


@recipe(weight=2)
def Pad(d):
    version = d.since("Pad")
    x = d.pick(d.type_of("Pad", among=ANY if version >= 13 else PLAIN), where=lambda s: len(s) > 0)
    modes = [None, "constant", "reflect", "edge"] + (["wrap"] if version >= 19 else [])
    mode = d.choice(modes) if 0 not in x.shape else d.choice([None, "constant"])
    rank = len(x.shape)
    axes = None
    if version >= 18 and d.chance(0.4):
        axes = [int(a) for a in d.rng.permutation(rank)[: d.int(1, rank)]]
    limits = [x.shape[a] for a in (axes or range(rank))]
    low = -1 if mode in (None, "constant") and d.chance(0.2) else 0
    pads = [d.int(low if n > 2 else 0, max(0, min(n - 1, 3)) if mode == "reflect" else 3) for n in limits * 2]
    if version < 11:
        d.node("Pad", [x], mode=mode, pads=pads, value=d.choice([None, 1.5]) if mode in (None, "constant") else None)
        return
    value = d.new(x.dtype, ()) if d.chance(0.5) and mode in (None, "constant") else None
    if axes and d.chance(0.3):
        axes = [a - rank for a in axes]
    d.node("Pad", [x, d.ints(pads), value, d.ints(axes) if axes else None], mode=mode)


@recipe("DepthToSpace", "SpaceToDepth")
def depth_space(d, op):
    dtype = d.type_of(op, among=PLAIN)
    b, n, c, h, w = d.int(1, 3), d.dim(), d.int(1, 3), d.dim(large=0.02), d.dim(large=0.02)
    if op == "DepthToSpace":
        d.node(op, [d.pick(dtype, shape=(min(n, 4), c * b * b, h, w))], blocksize=b, mode=d.choice([None, "DCR", "CRD"]) if d.since(op) >= 11 else None)
    else:
        d.node(op, [d.pick(dtype, shape=(min(n, 4), c, h * b, w * b))], blocksize=b)


@recipe()
def ReverseSequence(d):
    d.need("ReverseSequence", 10)
    x = d.pick(d.type_of("ReverseSequence", among=ANY), where=lambda s: len(s) > 1 and 0 not in s)
    time = d.int(0, 1)
    lengths = d.rng.integers(1, x.shape[time] + 1, x.shape[1 - time])
    d.node("ReverseSequence", [x, d.ints(lengths)], time_axis=time, batch_axis=1 - time)


@recipe()
def Compress(d):
    d.need("Compress", 9)
    x = d.pick(d.type_of("Compress", among=ANY), where=lambda s: len(s) > 0)
    axis = d.axis(len(x.shape), d.since("Compress") >= 11) if d.chance(0.7) else None
    size = x.shape[axis] if axis is not None else int(np.prod(x.shape))
    d.node("Compress", [x, d.new(T.BOOL, (d.int(0, size),))], axis=axis)


@recipe()
def NonZero(d):
    d.need("NonZero", 9)
    d.node("NonZero", [d.pick(d.type_of("NonZero", among=PLAIN), exact=True)])


@recipe()
def Unique(d):
    d.need("Unique", 11)
    x = d.new(d.type_of("Unique", among=[T.FLOAT, T.DOUBLE, T.INT64, T.INT8, T.STRING]), d.shape(limit=500), "small")
    d.node("Unique", [x], [1, *(d.int(0, 1) for _ in range(3))], axis=d.axis(len(x.shape)) if x.shape and d.chance(0.6) else None,
           sorted=d.choice([None, 0, 1]))


@recipe()
def OneHot(d):
    d.need("OneHot", 9)
    depth = d.int(1, 7)
    index, count, dtype = d.choice([T.INT64, T.INT32, T.FLOAT]), d.choice([T.INT64, T.FLOAT]), d.choice([T.FLOAT, T.INT64, T.INT32, T.STRING])
    shape = d.shape(d.int(0, 3), 200)
    numbers = d.rng.integers(-depth - (d.since("OneHot") >= 11), depth + 2, shape)
    d.node("OneHot", [d.ints(numbers, dtype=index), d.ints([depth] if d.chance(0.5) else depth, dtype=count), d.new(dtype, (2,))],
           axis=d.int(-len(shape) - 1, len(shape)))


@recipe("Shape", "Size", weight=1.5)
def shapes(d, op):
    x = d.pick(d.choice([T.FLOAT, T.INT64, T.STRING]))
    if op == "Shape" and d.since(op) >= 15:
        d.node(op, [x], start=d.choice([None, d.int(-6, 6)]), end=d.choice([None, d.int(-6, 6)]), exact=True, tame=False)
    else:
        d.node(op, [x], exact=True, tame=False)


@recipe()
def ConstantOfShape(d):
    d.need("ConstantOfShape", 9)
    dtype = d.type_of("ConstantOfShape", "T2", among=PLAIN)
    value = helper.make_tensor("value", dtype, [1], d.numbers(dtype, (1,)).tolist()) if d.chance(0.8) else None
    d.node("ConstantOfShape", [d.ints(np.array(d.shape(), np.int64))], value=value)


@recipe()
def Range(d):
    d.need("Range", 11)
    dtype = d.type_of("Range", among=PLAIN)
    kind = helper.tensor_dtype_to_np_dtype(dtype)
    start, step = d.int(-5, 5), d.choice([-3, -1, 1, 2, 3])
    end = d.int(-20, 20)
    half = 0.5 if dtype not in INTS else 1
    d.node("Range", [d.given(np.asarray(v * half).astype(kind), dtype) for v in (start, end, step)])


@recipe()
def EyeLike(d):
    d.need("EyeLike", 9)
    d.node("EyeLike", [d.pick(d.choice([T.FLOAT, T.INT32, T.DOUBLE]), rank=2)], k=d.choice([None, d.int(-4, 4)]), dtype=d.choice([None, T.FLOAT, T.INT64, T.DOUBLE]))


@recipe()
def Trilu(d):
    d.need("Trilu", 14)
    x = d.pick(d.type_of("Trilu", among=PLAIN), where=lambda s: len(s) > 1)
    d.node("Trilu", [x, d.ints(d.int(-5, 5)) if d.chance(0.6) else None], upper=d.choice([None, 0, 1]))


@recipe()
def CenterCropPad(d):
    d.need("CenterCropPad", 18)
    x = d.pick(d.type_of("CenterCropPad", among=PLAIN), where=lambda s: len(s) > 0 and 0 not in s)
    rank = len(x.shape)
    axes = [int(a) for a in d.rng.permutation(rank)[: d.int(1, rank)]] if d.chance(0.6) else None
    d.node("CenterCropPad", [x, d.ints([d.int(1, 10) for _ in (axes or x.shape)])], axes=axes)


@recipe(weight=2)
def Resize(d):
    version = d.since("Resize") if d.opset >= 10 else 0
    if not version:
        raise Skip
    dtype = d.choice([T.FLOAT, T.FLOAT, T.UINT8, T.INT32, T.FLOAT16])
    rank = d.choice([1, 2, 3, 4, 4, 4])
    mode = d.choice(["nearest", "linear", "cubic"]) if version >= 11 else d.choice(["nearest", "linear"])
    if mode == "linear" and version < 11 or mode == "linear" and rank > 3:
        rank = 4
    if mode == "cubic":
        rank, dtype = 4, T.FLOAT
    if mode != "nearest" and dtype == T.INT32:
        dtype = T.FLOAT
    shape = [d.int(1, 9) for _ in range(rank)]
    free = [i for i in range(rank) if i >= rank - 2 or (mode == "nearest" and d.chance(0.3))]
    scales = [float(d.choice([0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 0.4])) if i in free else 1.0 for i in range(rank)]
    scales = [max(s, 1.0 / e) for s, e in zip(scales, shape)]
    x = d.pick(dtype, shape=tuple(shape))
    exact = mode == "nearest" and x.exact
    if version < 11:
        d.node("Resize", [x, d.given(np.array(scales, np.float32), constant=True)], mode=mode, exact=exact)
        return
    places = ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"] + (["half_pixel_symmetric"] if version >= 19 else [])
    attributes = {"mode": mode, "coordinate_transformation_mode": d.choice([None, *places])}
    if mode == "nearest":
        attributes["nearest_mode"] = d.choice([None, "round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
    if mode == "cubic":
        attributes |= {"cubic_coeff_a": d.choice([None, -0.5]), "exclude_outside": d.choice([None, 0, 1])}
    if version >= 18 and mode != "nearest" and d.chance(0.3):
        attributes["antialias"] = 1
    sizes = None
    if d.chance(0.5):
        sizes = [d.int(1, 12) if i in free else e for i, e in enumerate(shape)]
    if sizes and version >= 18 and d.chance(0.3) and mode != "cubic":
        attributes |= {"axes": free, "keep_aspect_ratio_policy": d.choice([None, "stretch", "not_larger", "not_smaller"])}
        sizes = [sizes[i] for i in free]
    roi = d.given(np.zeros(0, np.float32), constant=True) if version < 13 else None
    if sizes:
        inputs = [x, roi, d.given(np.zeros(0, np.float32), constant=True) if version < 13 else None, d.ints(sizes, True)]
    else:
        inputs = [x, roi, d.given(np.array(scales, np.float32), constant=d.chance(0.8))]
    d.node("Resize", inputs, exact=exact, **attributes)


@recipe()
def Upsample(d):
    if d.opset > 9:
        raise Skip
    x = d.pick(T.FLOAT, rank=4, where=lambda s: 0 not in s)
    scales = [1.0, 1.0, d.choice([1.0, 2.0, 3.0]), d.choice([1.0, 2.0, 1.5])]
    mode = d.choice(["nearest", "linear"])
    if d.since("Upsample") < 9:
        d.node("Upsample", [x], mode=mode, scales=scales, exact=False)
    else:
        d.node("Upsample", [x, d.given(np.array(scales, np.float32), constant=True)], mode=mode, exact=False)
