"""Functions of elements at the numbers where they are special: zeros of both signs, infinities, NaN, subnormal and huge numbers.

Fails if a result differs from NumPy's: another sign of a zero, another NaN or infinity, or more than a few units in the last place.
SDX_CPU_ISA chooses the instruction set.
"""

import sys

import numpy as np
import sardonyx.array as mx

UNARY = """abs negative sign square sqrt exp expm1 log log2 log10 log1p sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh
arccosh arctanh degrees radians floor ceil trunc rint reciprocal rsqrt sigmoid erf""".split()
BINARY = "add subtract multiply divide power arctan2 remainder logaddexp maximum minimum floor_divide".split()
TYPES = {"float16": np.float16, "bfloat16": np.float32, "float32": np.float32, "float64": np.float64}
# log2(8) is 3 exactly; so are these.
EXACT = {"exp": [0.0], "cos": [0.0, 1e-9], "cosh": [0.0], "arccos": [1.0], "log2": [1.0, 8.0], "log10": [1.0, 1000.0], "log": [1.0],
         "arccosh": [1.0], "sigmoid": [0.0], "sqrt": [4.0]}


def erf(x):
    import math

    return np.vectorize(math.erf, otypes=[np.float64])(x)


def reference(name, *values):
    if name == "rsqrt":
        return 1 / np.sqrt(values[0])
    if name == "sigmoid":
        e = np.exp(-np.abs(values[0]))
        return np.where(values[0] >= 0, 1, e) / (1 + e)
    if name == "sign":  # of both zeros 0
        return np.sign(values[0]) + 0.0
    return erf(*values) if name == "erf" else getattr(np, name)(*values)


def special(dtype):
    limits = np.finfo(dtype)
    positive = [0.0, limits.smallest_subnormal, limits.tiny / 2, limits.tiny, 1e-4, 0.25, 0.5, 1.0, 1.5, 2.0, np.pi, 8.0, 50.0, np.inf]
    positive += [limits.max] if dtype != np.float16 else []
    positive += [1e-9, 1e-20, 1000.0, 2000.0, 1e6] if dtype != np.float16 else []
    return np.array([s * v for v in positive for s in (1, -1)] + [np.nan], dtype=dtype)


def values_of(a):
    return np.array(a.astype(mx.float64))


def differs(got, want, units):
    """Where results in a type of this precision are wrong."""
    both_nan = np.isnan(got) & np.isnan(want)
    tiny, step = units
    near = np.abs(got - want) <= step * np.abs(want) + tiny
    zeros = (want == 0) & (np.signbit(got) != np.signbit(want))
    return ~(both_nan | (got == want) | near) | zeros


def narrowed(want, name):
    """What the type makes of exact results: bfloat16 by way of the array's own conversion."""
    wide = mx.array(want, dtype=mx.float64)
    return values_of(wide.astype(getattr(mx, name)))


def units_of(name):
    if name == "bfloat16":
        return 1e-40, 2**-7
    limits = np.finfo(TYPES[name])
    return 4 * float(limits.smallest_subnormal), 8 * float(limits.eps)


def computed(name, arrays):
    """Alone, and among other operations, which are one step then."""
    function = mx.round if name == "rint" else getattr(mx, name)
    alone = function(*arrays)
    mx.eval(alone)
    among = mx.negative(mx.negative(function(*arrays)))
    return values_of(alone), values_of(among)


def check(name, type_name, inputs):
    arrays = [mx.array(v, dtype=mx.float64).astype(getattr(mx, type_name)) for v in inputs]
    exact = [values_of(a) for a in arrays]
    with np.errstate(all="ignore"):
        want = narrowed(reference(name, *exact), type_name)
    wrong = []
    for got in computed(name, arrays):
        at = np.flatnonzero(differs(got, want, units_of(type_name)))
        wrong += [f"{name} of {type_name}: {[float(e.flat[i]) for e in exact]} gives {got.flat[i]}, not {want.flat[i]}" for i in at[:5]]
    return wrong


def check_exact(name, type_name):
    x = mx.array(EXACT[name], dtype=mx.float64).astype(getattr(mx, type_name))
    got, want = values_of(getattr(mx, name)(x)), narrowed(reference(name, values_of(x)), type_name)
    return [] if np.array_equal(got, want) else [f"{name} of {type_name}: {EXACT[name]} gives {got.tolist()}, not {want.tolist()}"]


def main():
    wrong = []
    for type_name, dtype in TYPES.items():
        x = special(dtype).astype(np.float64)
        for name in UNARY:
            # Angles are reduced by the C library from some size on: NumPy has its own.
            of = x[~(np.abs(x) > 1e7) | ~np.isfinite(x)] if name in ("sin", "cos", "tan") else x
            for count in (len(of), 1):
                wrong += check(name, type_name, [of[:count]])
        for name in EXACT:
            wrong += check_exact(name, type_name) if type_name in ("float32", "float64") else []
        some = np.array([0.0, -0.0, 1.0, -1.5, 2.0, 1e-3, np.inf, -np.inf, np.nan])
        a, b = (v.ravel() for v in np.meshgrid(some, some))
        for name in BINARY:
            # Of two zeros, infinities and the like the array API leaves more than one result.
            keep = np.isfinite(a) & np.isfinite(b) & (b != 0) if name in ("floor_divide", "remainder") else np.full(a.shape, True)
            keep &= ~((a == 0) & (b == 0)) if name in ("maximum", "minimum") else True
            wrong += check(name, type_name, [a[keep], b[keep]])
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
