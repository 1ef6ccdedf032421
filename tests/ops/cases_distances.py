"""CDist and DynamicTimeWarping."""

import numpy as np


def distances(r):
    for dtype in (np.float32, np.float64):
        for metric in ("euclidean", "sqeuclidean"):
            r.case("CDist", [r.normal(3, 4, dtype=dtype), r.normal(5, 4, dtype=dtype)], name=f"{np.dtype(dtype).name} {metric}", metric=metric,
                   tolerance=(1e-4, 1e-5))
    r.fails("CDist", """
input a: float32[1,2] = 1 2
input b: float32[1,2] = 1 2
y = com.microsoft.CDist(a, b) {metric="jaccard"}
output y""", "expected euclidean or sqeuclidean")

    for shape in ((4, 7), (1, 6, 3), (1, 1), (5, 1), (1, 5)):
        r.case("DynamicTimeWarping", [r.rng.random(shape).astype(np.float32)], name=str(shape))


CASES = [distances]
