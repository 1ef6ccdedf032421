"""MurmurHash3."""

import numpy as np


def hashes(r):
    for dtype in (np.int32, np.uint32, np.int64, np.uint64, np.float32, np.float64):
        r.case("MurmurHash3", [r.ints(0, 1000, 2, 3, dtype=dtype)], name=np.dtype(dtype).name)
    words = np.array(["", "a", "be", "sea", "four", "five5", "six six", "sevensix", "seven six"], object)
    r.case("MurmurHash3", [words], name="strings")
    r.case("MurmurHash3", [words], name="strings, signed, seed", positive=0, seed=42)


CASES = [hashes]
