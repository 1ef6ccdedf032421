"""Operands of random shapes and types, and how results are compared, for differential.py."""

import numpy as np

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float16", "bfloat16", "float32", "float64"]
COMPLEX = ["complex64", "complex128"]
TYPES = ["bool"] + INTEGERS + FLOATS + COMPLEX
SPECIAL = [
    0.0,
    -0.0,
    1,
    -1,
    np.inf,
    -np.inf,
    np.nan,
    0.5,
    -0.5,
    2,
    -2,
    3.5,
    2.5,
    -2.5,
    1e-5,
    88.8,
    100,
    700,
    np.pi,
    -np.pi / 2,
    65504,
]

# Relative and absolute error allowed, by type.
TOLERANCE = {
    "float16": (2e-3, 1e-3),
    "bfloat16": (1.6e-2, 1e-2),
    "float32": (3e-6, 1e-6),
    "float64": (1e-12, 1e-13),
    "complex64": (3e-5, 3e-6),
    "complex128": (1e-11, 1e-12),
}


class Typed:
    """A NumPy array and the type that it stands for. bfloat16, which NumPy lacks, is kept in float32."""

    def __init__(self, values, name):
        self.values, self.name = np.asarray(values), name


def numpy_type(name):
    return np.dtype("float32" if name == "bfloat16" else name)


def rounded(values, name):
    """Values as the type holds them."""
    with np.errstate(all="ignore"):
        values = np.asarray(values).astype(numpy_type(name))
    if name != "bfloat16":
        return values
    bits = values.view(np.uint32).astype(np.uint64)
    held = ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32)
    return np.where(np.isnan(values), np.float32(np.nan), held).reshape(values.shape)


def draw(rng, shape, name):
    if name == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if name in INTEGERS:
        limits = np.iinfo(name)
        if rng.integers(0, 3) == 0:
            return rng.integers(limits.min, limits.max, shape, dtype=name, endpoint=True)
        return rng.integers(max(limits.min, -9), 10, shape).astype(name)
    if name in COMPLEX:
        part = "float32" if name == "complex64" else "float64"
        result = np.empty(shape, name)
        result.real, result.imag = draw(rng, shape, part), draw(rng, shape, part)
        return result
    values = rng.standard_normal(shape) * rng.choice([0.1, 1, 1, 3, 30])
    if rng.integers(0, 3) == 0:
        values = np.where(rng.random(shape) < 0.3, rng.choice(SPECIAL, shape), values)
    return rounded(values, name)


def draw_shape(rng):
    extents = [0, 1, 2, 3, 4, 5, 7, 17, 33]
    share = [0.04, 0.2, 0.16, 0.16, 0.12, 0.1, 0.1, 0.06, 0.06]
    return tuple(int(n) for n in rng.choice(extents, int(rng.integers(0, 5)), p=share))


def broadcastable(rng, shape):
    """A shape that broadcasts to `shape` with others of the kind."""
    shape = [1 if rng.random() < 0.3 else n for n in shape]
    return tuple(shape[int(rng.integers(0, len(shape) + 1)) :] if rng.random() < 0.3 else shape)


def finite(values):
    return np.where(np.isfinite(values), values, 1).astype(values.dtype)


def promote(a, b):
    """MLX's promotion, with float64 and complex64 giving complex128."""
    if a == b:
        return a
    rank = {
        name: 0 if name == "bool" else 1 if name[0] == "u" else 2 if name[0] == "i" else 3 if name in FLOATS else 4
        for name in (a, b)
    }
    if rank[a] > rank[b]:
        a, b = b, a
    width = {name: 2 if name == "bfloat16" else np.dtype(name).itemsize for name in (a, b)}
    if rank[b] == 4:
        return "complex128" if "complex128" in (a, b) or a == "float64" else "complex64"
    if rank[b] == 3:
        if rank[a] < 3:
            return b
        return "float32" if width[a] == width[b] else max(a, b, key=width.get)
    if rank[a] == rank[b]:
        return max(a, b, key=width.get)
    if rank[a] == 0 or width[b] > width[a]:
        return b
    return "float32" if width[a] == 8 else f"int{width[a] * 16}"


def difference(got, name, wanted, wanted_name, tolerance=None):
    """None where both agree, else what differs."""
    wanted = rounded(wanted, wanted_name)
    if name != wanted_name:
        return f"type {name}, expected {wanted_name}"
    if got.shape != wanted.shape:
        return f"shape {got.shape}, expected {wanted.shape}"
    if name not in TOLERANCE:
        return None if np.array_equal(got, wanted) else "values"
    relative, absolute = tolerance or TOLERANCE[name]
    wide = "complex128" if name in COMPLEX else "float64"
    g, w = got.astype(wide), wanted.astype(wide)
    with np.errstate(all="ignore"):
        size = np.where(np.isfinite(np.abs(w)), np.abs(w), 0)
        agree = np.ones(g.shape, bool)
        for x, y in ((g.real, w.real), (g.imag, w.imag)):
            agree &= (x == y) | (np.isnan(x) & np.isnan(y)) | (np.abs(x - y) <= absolute + relative * size)
    if agree.all():
        return None
    at = tuple(int(i) for i in np.argwhere(~agree)[0])
    return f"{got[at]!r}, expected {wanted[at]!r} at {at}"
