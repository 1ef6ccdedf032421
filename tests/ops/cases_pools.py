"""Poolings whose windows reach beyond the padded input's end."""

import numpy as np

f32 = np.float32
TOL = (1e-5, 1e-6)
SAME_EXTENT = [  # window, stride, dilation, pads of both axes of a [., ., 2, 5] image; each gives an extent of 1 somewhere
    ([3, 3], [2, 2], [1, 1], [0, 0, 0, 0]),
    ([3, 3], [3, 1], [1, 1], [0, 0, 0, 0]),
    ([4, 9], [3, 5], [1, 1], [0, 0, 0, 0]),
    ([5, 8], [2, 4], [1, 1], [1, 0, 1, 1]),
    ([2, 3], [3, 3], [3, 3], [0, 0, 0, 0]),
]


def floats(r):
    for number, (kernel, strides, dilations, pads) in enumerate(SAME_EXTENT):
        for auto_pad in (None, "VALID"):
            if auto_pad and any(pads):
                continue
            common = dict(domain="", opset=22, kernel_shape=kernel, strides=strides, dilations=dilations, ceil_mode=1, auto_pad=auto_pad,
                          pads=None if auto_pad else pads)
            name = f"{number}{' valid' if auto_pad else ''}"
            x = r.normal(1, 9, 2, 5)
            r.case("MaxPool", [x], outputs=2, name=f"{name} and where", **common)
            r.case("MaxPool", [x], name=name, **common)
            r.case("LpPool", [x], name=name, tolerance=TOL, **common)
            for counts in (0, 1):
                r.case("AveragePool", [x], name=f"{name}{' counting pads' if counts else ''}", tolerance=TOL, count_include_pad=counts, **common)


def bytes_of_both_kinds(r):
    for kind in (np.uint8, np.int8):
        n = np.dtype(kind).name
        x = r.ints(-90 if kind == np.int8 else 0, 100, 2, 2, 5, 3, dtype=kind)
        r.case("NhwcMaxPool", [x], name=n, kernel_shape=[3, 9], strides=[2, 5], ceil_mode=1)
        r.case("MaxPool", [x.transpose(0, 3, 1, 2).copy()], name=n, domain="", opset=12, kernel_shape=[3, 9], strides=[2, 5], ceil_mode=1)
        z = np.array(7, kind)
        for counts in (0, 1):
            for last in (0, 1):
                image = x if last else x.transpose(0, 3, 1, 2).copy()
                r.case("QLinearAveragePool", [image, np.array(0.02, f32), z, np.array(0.0307, f32), z],
                       name=f"{n}{' counting pads' if counts else ''}{' channels last' if last else ''}", kernel_shape=[3, 9],
                       strides=[2, 5], ceil_mode=1, count_include_pad=counts, channels_last=last)


def refused(r):
    x = f"opset 22\ninput x: float32[1,2,2,5] = {'1 ' * 20}".rstrip()
    text = "is larger than the padded input (2 + 0 + 0)"
    for op in ("MaxPool", "AveragePool", "LpPool"):
        r.fails(op, f"{x}\ny = {op}(x) {{kernel_shape=[6,3], strides=[2,2]}}\noutput y", f"{text} by two strides (2) or more")
        r.fails(op, f"{x}\ny = {op}(x) {{kernel_shape=[4,3], ceil_mode=1}}\noutput y", f"{text} by two strides (1) or more")


CASES = [floats, bytes_of_both_kinds, refused]
