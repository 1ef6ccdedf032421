"""BiasAdd, BiasSplitGelu (by formula: ONNX Runtime has no CPU kernel) and NGramRepeatBlock."""

import math

import numpy as np


def fusions(r):
    x, b, s = r.normal(2, 3, 4), r.normal(4), r.normal(2, 3, 4)
    r.case("BiasAdd", [x, b, s], expect=[x + b + s])
    left, right = np.split(x + b, 2, axis=-1)
    gelu = right * 0.5 * (1 + np.vectorize(math.erf)(right / math.sqrt(2)))
    r.case("BiasSplitGelu", [x, b], expect=[(left * gelu).astype(np.float32)])
    ids = np.array([[1, 2, 3, 1, 2], [4, 4, 4, 4, 4]], np.int64)
    for n in (1, 2, 3, 6):
        r.case("NGramRepeatBlock", [ids, r.normal(2, 6)], name=f"{n}", ngram_size=n)
    r.fails("NGramRepeatBlock", """
input i: int64[1,2] = 9 1
input s: float32[1,3] = 1 2 3
y = com.microsoft.NGramRepeatBlock(i, s) {ngram_size=1}
output y""", "outside the vocabulary")


CASES = [fusions]
