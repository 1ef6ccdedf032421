"""Whether two engines' outputs agree."""

import numpy as np

# Relative and absolute tolerance; the absolute one is of the largest finite element, as sums cancel (a sole
# element may be all that is left: hence a floor for all but float64).
TOLERANCES = {"float16": (4e-3, 2e-3), "bfloat16": (3e-2, 1.6e-2), "float32": (2e-4, 2e-5), "float64": (1e-6, 1e-8)}


def same(a, b, slack=0):
    """What differs between a and b, or "". slack: units by which integers may differ (where rounding made them)."""
    if isinstance(a, (list, dict)) or isinstance(b, (list, dict)):
        return same_containers(a, b, slack)
    if a is None or b is None:
        return "" if a is b else f"{describe(a)} in place of {describe(b)}"
    a, b = np.asarray(a), np.asarray(b)
    if b.dtype == np.uint8 and a.dtype.itemsize == 1 and a.dtype.kind == "V" or str(a.dtype).startswith("float8"):
        a, b = a.view(np.uint8), b.view(np.uint8)  # ONNX Runtime's Python package has no other name for eight bits
    if a.dtype != b.dtype:
        return f"type {a.dtype} in place of {b.dtype}"
    if a.shape != b.shape:
        return f"shape {a.shape} in place of {b.shape}"
    if a.dtype.kind in "OUS":
        wrong = np.array([x != y for x, y in zip(a.reshape(-1), b.reshape(-1))], bool)
    elif str(a.dtype) in TOLERANCES:
        wrong = ~close(a.astype(np.float64), b.astype(np.float64), *TOLERANCES[str(a.dtype)]).reshape(-1)
    elif a.dtype.kind in "iu" and slack:
        wrong = (np.abs(a.astype(np.float64) - b.astype(np.float64)) > slack).reshape(-1)
    else:
        wrong = (a != b).reshape(-1)
    if not wrong.any():
        return ""
    i = int(np.flatnonzero(wrong)[0])
    return f"values: {int(wrong.sum())} of {a.size} elements of {a.dtype}{list(a.shape)}; element {i} is {a.reshape(-1)[i]!r}, expected {b.reshape(-1)[i]!r}"


def close(a, b, relative, absolute):
    finite = np.isfinite(b)
    largest = np.abs(b[finite]).max(initial=0)
    with np.errstate(invalid="ignore", over="ignore"):
        near = np.abs(a - b) <= absolute * largest + relative * np.abs(b) + (5e-7 if absolute > 1e-6 else 1e-30)
    return np.where(finite & np.isfinite(a), near, (a == b) | (np.isnan(a) & np.isnan(b)))


def same_containers(a, b, slack):
    if type(a) is not type(b) or len(a) != len(b):
        return f"{describe(a)} in place of {describe(b)}"
    if isinstance(a, dict):
        if set(a) != set(b):
            return f"keys {sorted(a)} in place of {sorted(b)}"
        pairs = [(a[k], b[k]) for k in a]
    else:
        pairs = list(zip(a, b))
    for i, (x, y) in enumerate(pairs):
        difference = same(x, y, slack)
        if difference:
            return f"at {i}: {difference}"
    return ""


def describe(x):
    return f"{type(x).__name__} of {len(x)}" if isinstance(x, (list, dict)) else "None" if x is None else f"{np.asarray(x).dtype}{list(np.shape(x))}"
