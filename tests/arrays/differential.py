"""Random operations on arrays, computed by sardonyx.array and by NumPy: differential.py [--count N] [--seed S].

Shapes have up to four axes with extents from 0 to 33, operands broadcast, types are all that arrays have. Fails if one result is
outside its type's tolerance, with the operation, the types and the first element that differs.
"""

import argparse
import collections
import math
import sys

import numpy as np

import sardonyx.array as mx
from values import (
    COMPLEX,
    FLOATS,
    INTEGERS,
    TYPES,
    Typed,
    broadcastable,
    difference,
    draw,
    draw_shape,
    finite,
    numpy_type,
    promote,
    rounded,
)

# Types by name, for those of NumPy's that sardonyx.array spells otherwise.
DTYPES = {name: getattr(mx, "bool" if name == "bool" else name) for name in TYPES if hasattr(mx, name)}


def to_array(x):
    # With its type: float64 would become float32.
    return mx.array(x.values, dtype=DTYPES[x.name])


def from_array(a):
    name = next(name for name, dtype in DTYPES.items() if a.dtype == dtype)
    return np.array(a.astype(mx.float32) if name == "bfloat16" else a), name


def each(function):
    """Of every element, for functions that SciPy would vectorise."""
    return np.vectorize(lambda x: function(float(x)), otypes=[np.float64])


def sigmoid(x):
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, e) / (1 + e)


UNARY = {
    name: getattr(np, name)
    for name in "abs negative sign square sqrt exp expm1 log log2 log10 log1p sin cos tan arcsin "
    "arccos arctan sinh cosh tanh arcsinh arccosh "
    "arctanh degrees radians floor ceil trunc isnan isinf isfinite isposinf isneginf logical_not real imag conjugate".split()
}
UNARY |= {
    "reciprocal": lambda x: 1 / x,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sigmoid": sigmoid,
    "erf": each(math.erf),
    "bitwise_invert": np.invert,
}
# Of booleans and integers by way of float32.
FRACTIONAL = set(
    "sqrt rsqrt reciprocal exp expm1 log log2 log10 log1p sigmoid erf sin cos tan arcsin arccos "
    "arctan sinh cosh tanh arcsinh arccosh arctanh "
    "degrees radians".split()
)
REAL_ONLY = set("expm1 sigmoid erf floor ceil trunc degrees radians isposinf isneginf".split())


def floor_divide(a, b):
    quotient = np.floor_divide(a, b)
    return np.where(np.isinf(a), a / b, quotient) if a.dtype.kind == "f" else quotient


def power(a, b):
    if a.dtype.kind != "i":
        return np.power(a, b)
    inverse = np.where(a == 1, 1, np.where(a == -1, np.where(b % 2 == 0, 1, -1), 0))
    return np.where(b < 0, inverse, np.power(a, np.where(b < 0, 0, b))).astype(a.dtype)


BINARY = {
    name: getattr(np, name)
    for name in "add subtract multiply divide remainder maximum minimum arctan2 logaddexp equal not_equal less "
    "less_equal greater greater_equal logical_and "
    "logical_or logical_xor bitwise_and bitwise_or bitwise_xor left_shift right_shift".split()
}
BINARY |= {"floor_divide": floor_divide, "power": power}
PREDICATES = set(
    "isnan isinf isfinite isposinf isneginf logical_not equal not_equal less less_equal greater "
    "greater_equal logical_and logical_or "
    "logical_xor".split()
)
WHOLE_ONLY = set("bitwise_and bitwise_or bitwise_xor left_shift right_shift bitwise_invert".split())
# Of booleans NumPy computes these in int8, or not at all.
NOT_OF_BOOL = set("negative sign square subtract floor_divide remainder power conjugate real imag floor ceil trunc".split())


class Skip(Exception):
    """NumPy has no such operation."""


def wide(values, name):
    """For sums and the like: in the widest type of the kind."""
    return values.astype("complex128" if name in COMPLEX else "float64")


def result_of_sum(name):
    return "int32" if name in ("bool", "int8", "int16") else "uint32" if name in ("uint8", "uint16") else name


def loose(name, values, power=1):
    """Tolerance of sums: of the largest element."""
    if name not in FLOATS + COMPLEX:
        return None
    relative = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 1e-5, "float64": 1e-12, "complex64": 1e-4, "complex128": 1e-11}[
        name
    ]
    largest = float(np.max(np.abs(np.where(np.isfinite(values), values, 0)), initial=0))
    return 4 * relative, 4 * relative * (1 + largest**power)


class Generator:
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def pick(self, names):
        names = list(names)
        return str(names[int(self.rng.integers(0, len(names)))])

    def operand(self, shape, name):
        return Typed(draw(self.rng, shape, name), name)

    # Each returns: what is computed, got, the expected values and their type, and a tolerance or None.

    def unary(self):
        f, name = self.pick(UNARY), self.pick(TYPES)
        if (
            (name == "bool" and f in NOT_OF_BOOL)
            or (name in COMPLEX and f in REAL_ONLY)
            or (f in WHOLE_ONLY and name in FLOATS + COMPLEX)
        ):
            raise Skip
        x = self.operand(draw_shape(self.rng), name)
        got = getattr(mx, f)(to_array(x))
        taken = "float32" if f in FRACTIONAL and name not in FLOATS + COMPLEX else name
        values = x.values.astype(numpy_type("float32" if taken == "float16" else taken))
        expected = UNARY[f](values)
        result = "bool" if f in PREDICATES else taken
        if name in COMPLEX and f in ("abs", "real", "imag"):
            result = "float32" if name == "complex64" else "float64"
        return f"{f} of {name}", got, expected, result, None

    def binary(self):
        f, a, shape = self.pick(BINARY), self.pick(TYPES), draw_shape(self.rng)
        b = a if self.rng.random() < 0.6 else self.pick(TYPES)
        common = promote(a, b)
        if f in ("divide", "arctan2", "logaddexp") and common not in FLOATS + COMPLEX:
            common = "float32"
        if (common in COMPLEX and f in ("floor_divide", "remainder", "arctan2", "logaddexp")) or (
            common == "bool" and f in NOT_OF_BOOL
        ):
            raise Skip
        if f in WHOLE_ONLY and common in FLOATS + COMPLEX:
            raise Skip
        if common == "bool" and f in ("left_shift", "right_shift"):
            common = "uint8"
        x, y = self.operand(broadcastable(self.rng, shape), a), self.operand(broadcastable(self.rng, shape), b)
        if f == "power" and common in COMPLEX:
            x.values, y.values = finite(x.values), finite(y.values)  # what infinities give is not defined
        if f in ("left_shift", "right_shift"):
            y.values = (np.abs(y.values.astype("float64")) % 8).astype(numpy_type(b))
        got = getattr(mx, f)(to_array(x), to_array(y))
        computed = numpy_type("float32" if common == "float16" else common)
        left, right = (rounded(o.values, common).astype(computed) for o in (x, y))
        expected = BINARY[f](left, right)
        if f == "power" and common in COMPLEX and not np.all(np.abs(expected) < 1e30):
            raise Skip
        return f"{f} of {a} and {b}", got, expected, "bool" if f in PREDICATES else common, None

    def axes(self, rank):
        if self.rng.random() < 0.3:
            return None
        return tuple(int(i) for i in self.rng.permutation(rank)[: int(self.rng.integers(0, rank + 1))])

    def reduction(self):
        f, name, shape = (
            self.pick("sum prod max min all any mean var median logsumexp softmax".split()),
            self.pick(TYPES),
            draw_shape(self.rng),
        )
        axes, keep = self.axes(len(shape)), bool(self.rng.integers(0, 2))
        count = math.prod(shape[i] for i in (range(len(shape)) if axes is None else axes))
        if (
            axes == ()
            or (0 in shape and f not in ("sum", "prod", "all", "any"))
            or (name in COMPLEX and f in ("max", "min", "median", "logsumexp", "softmax"))
        ):
            raise Skip
        x = self.operand(shape, name)
        if f in ("prod", "mean", "var", "softmax", "logsumexp", "sum"):
            x.values = finite(x.values)
        what = f"{f} of {name}{shape} over {axes}, keepdims={keep}"
        given = {"axis": list(axes) if axes is not None else None}
        got = getattr(mx, f)(to_array(x), **given, **({} if f == "softmax" else {"keepdims": keep}))
        inexact = name if name in FLOATS + COMPLEX else "float32"
        options = {"axis": axes, "keepdims": keep}
        if f in ("sum", "prod"):
            result = result_of_sum(name)
            values = wide(x.values, name) if name in FLOATS + COMPLEX else x.values.astype(result)
            expected = getattr(np, f)(values, dtype=values.dtype, **options)
            if f == "prod" and name in FLOATS + COMPLEX and np.abs(values).clip(1).prod() > 1e30:
                raise Skip
            return what, got, expected, result, loose(result, x.values)
        if f in ("all", "any"):
            return what, got, getattr(np, f)(x.values != 0, **options), "bool", None
        if f in ("max", "min"):
            return what, got, getattr(np, f)(x.values, **options), name, None
        if f == "median":
            return what, got, np.median(x.values.astype(numpy_type(inexact)), **options), inexact, None
        values = wide(x.values, name)
        if f in ("mean", "var"):
            if f == "var" and np.abs(values).max(initial=0) > 1e4:
                raise Skip
            result = {"complex64": "float32", "complex128": "float64"}.get(inexact, inexact) if f == "var" else inexact
            return what, got, getattr(np, f)(values, **options), result, loose(inexact, x.values, 2 if f == "var" else 1)
        e = np.exp(values - values.max(axis=axes, keepdims=True, initial=-1e300))
        if f == "softmax":
            return what, got, e / e.sum(axis=axes, keepdims=True), inexact, None
        most = values.max(axis=axes, keepdims=True, initial=-1e300)
        total = np.log(e.sum(axis=axes, keepdims=True)) + most
        return what, got, total if keep else total.squeeze(axes), inexact, loose(inexact, x.values)

    def running(self):
        f, name, shape = self.pick("cumsum cumprod cummax cummin".split()), self.pick(TYPES), draw_shape(self.rng)
        if not shape or name == "bool" or (name in COMPLEX and f in ("cummax", "cummin")):
            raise Skip
        axis, reverse = int(self.rng.integers(-len(shape), len(shape))), bool(self.rng.integers(0, 2))
        x = self.operand(shape, name)
        x.values = finite(x.values)
        got = getattr(mx, f)(to_array(x), axis=axis, reverse=reverse)
        values = wide(x.values, name) if name in FLOATS + COMPLEX else x.values
        values = np.flip(values, axis) if reverse else values
        with np.errstate(all="ignore"):
            if f in ("cumsum", "cumprod"):
                expected = getattr(np, f)(values, axis=axis, dtype=values.dtype)
            else:
                expected = (np.maximum if f == "cummax" else np.minimum).accumulate(values, axis=axis)
        if f == "cumprod" and not np.all(np.abs(expected) < 1e30):
            raise Skip  # how far a product of complex numbers goes before it overflows is not defined
        return (
            f"{f} of {name}{shape} along {axis}, reverse={reverse}",
            got,
            np.flip(expected, axis) if reverse else expected,
            name,
            loose(name, x.values),
        )

    def order(self):
        f, name, shape = self.pick("sort argsort argmax argmin topk".split()), self.pick(TYPES), draw_shape(self.rng)
        if self.rng.random() < 0.1:
            shape = (int(self.rng.integers(90, 5000)),)
        if not shape or 0 in shape or (name in COMPLEX and f != "sort"):
            raise Skip
        axis = int(self.rng.integers(-len(shape), len(shape)))
        x = self.operand(shape, name)
        x.values = x.values + 0  # -0 becomes 0: sorting tells them apart, NumPy does not
        what, a = f"{f} of {name}{shape} along {axis}", to_array(x)
        if f in ("argmax", "argmin"):
            return what, getattr(mx, f)(a, axis=axis), getattr(np, f)(x.values, axis=axis), "int64", None
        if f == "sort":
            return what, mx.sort(a, axis=axis), np.sort(x.values, axis=axis), name, None
        if f == "argsort":
            return what, mx.argsort(a, axis=axis), np.argsort(x.values, axis=axis, kind="stable"), "int64", None
        k = int(self.rng.integers(1, shape[axis] + 1))
        expected = np.take(np.sort(x.values, axis=axis), range(shape[axis] - k, shape[axis]), axis=axis)
        return what + f", k={k}", mx.sort(mx.topk(a, k, axis=axis), axis=axis), expected, name, None

    def choice(self):
        a, b, shape = self.pick(TYPES), self.pick(TYPES), draw_shape(self.rng)
        condition = self.operand(broadcastable(self.rng, shape), "bool")
        x, y = self.operand(broadcastable(self.rng, shape), a), self.operand(broadcastable(self.rng, shape), b)
        common = promote(a, b)
        got = mx.where(to_array(condition), to_array(x), to_array(y))
        return (
            f"where of {a} and {b}",
            got,
            np.where(condition.values, rounded(x.values, common), rounded(y.values, common)),
            common,
            None,
        )

    def conversion(self):
        a, b = self.pick(TYPES), self.pick(TYPES)
        x = self.operand(draw_shape(self.rng), a)
        if b in INTEGERS and a in FLOATS + COMPLEX:
            x.values = finite(x.values).real.clip(0 if b[0] == "u" else -100, 100).astype(numpy_type(a))
        with np.errstate(all="ignore"):
            values = x.values.real if a in COMPLEX and b not in COMPLEX + ["bool"] else x.values
            return f"{a} as {b}", to_array(x).astype(DTYPES[b]), rounded(values, b), b, None

    def one(self):
        kinds = [
            self.unary,
            self.unary,
            self.binary,
            self.binary,
            self.binary,
            self.reduction,
            self.running,
            self.order,
            self.choice,
            self.conversion,
        ]
        return kinds[int(self.rng.integers(0, len(kinds)))]()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    generator, compared, failures = Generator(options.seed), 0, collections.defaultdict(list)
    while compared < options.count:
        try:
            with np.errstate(all="ignore"):
                what, got, expected, name, tolerance = generator.one()
        except Skip:
            continue
        compared += 1
        values, got_name = from_array(got)
        different = difference(values, got_name, expected, name, tolerance)
        if different:
            failures[what.split("(")[0]].append(f"{what}: {different}")
    for found in failures.values():
        print(f"{len(found)} times: {found[0]}")
    print(f"{compared} operations compared, {sum(map(len, failures.values()))} differ")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
