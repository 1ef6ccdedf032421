"""sardonyx.array at the edges: numbers that a type does not hold, arrays without elements, special numbers on all instruction sets."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import sardonyx
import sardonyx.array as mx

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(sardonyx.__file__).absolute().parent.parent)}


@pytest.mark.parametrize("isa", ["scalar", "sse4", "avx2", "avx512", "neon"])
def test_special_numbers(isa):
    script = Path(__file__).with_name("array_functions.py")
    done = subprocess.run([sys.executable, "-B", str(script)], env={**ENVIRONMENT, "SDX_CPU_ISA": isa}, capture_output=True, text=True,
                          timeout=300)
    if "this machine cannot run it" in done.stderr or "no such instruction set" in done.stderr:
        pytest.skip(f"this machine has no {isa}")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


@pytest.mark.parametrize(
    "value, dtype",
    [([300], "uint8"), (300, "uint8"), ([-1], "uint8"), ([[1, 128]], "int8"), ([-129], "int8"), ([1 << 16], "uint16"),
     ([1 << 31], "int32"), ([-1], "uint32"), ([1 << 63], "int64"), ([-1], "uint64"), ([1 << 64], "uint64"), ([-(1 << 63) - 1], "int64")],
)
def test_integers_that_the_type_does_not_hold(value, dtype):
    for make in (mx.array, mx.asarray):
        with pytest.raises(OverflowError):
            make(value, dtype=getattr(mx, dtype))


def test_integers_that_the_type_just_holds():
    for name in ("uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"):
        limits = np.iinfo(name)
        ends = [int(limits.min), int(limits.max)]
        assert mx.array(ends, dtype=getattr(mx, name)).tolist() == ends
        for end, beyond in zip(ends, (ends[0] - 1, ends[1] + 1)):
            a = mx.array([end], dtype=getattr(mx, name))
            assert (a == end).item()
            with pytest.raises((ValueError, OverflowError)):
                a + beyond
    assert mx.array([300], mx.bool).tolist() == [True] and mx.array([300], mx.float32).tolist() == [300]
    assert mx.array([300]).astype(mx.uint8).tolist() == [44]


def test_mlx_lets_integers_wrap_around(tmp_path):
    script = tmp_path / "program.py"
    script.write_text(
        "import mlx.core as mx\n"
        "print(mx.array([300, -1], mx.uint8).tolist(), mx.array(300, mx.uint8).item(), (mx.array([1], mx.uint64) + (-1)).tolist())\n"
    )
    done = subprocess.run([sys.executable, "-B", "-m", "sardonyx.as_mlx", str(script)], env=ENVIRONMENT, capture_output=True, text=True,
                          timeout=120)
    assert done.stdout == "[44, 255] 44 [0]\n", done.stderr


def test_arrays_without_elements():
    none = mx.zeros((0, 3))
    for place in (mx.argmax, mx.argmin):
        assert place(none, axis=1).shape == (0,) and place(none, axis=1, keepdims=True).shape == (0, 1)
        for axis in (0, None):
            with pytest.raises(ValueError, match="no elements"):
                place(none, axis=axis)
    assert mx.logsumexp(none).item() == -np.inf and mx.logsumexp(none, axis=0).tolist() == [-np.inf] * 3
    assert mx.logsumexp(none, axis=1).shape == (0,) and mx.logsumexp(none, axis=(0, 1), keepdims=True).shape == (1, 1)
    assert mx.grad(lambda x: mx.logsumexp(x, axis=0).sum())(none).shape == (0, 3)


def test_axes_of_one_argument():
    x, y = mx.array([[1.0, 2], [3, 4]]), mx.array([10.0, 20])
    wanted = [[11, 22], [13, 24]]
    for in_axes in ([0, None], (0, None), ([0, None],), [[0, None]]):
        assert mx.vmap(lambda t: t[0] + t[1], in_axes=in_axes)([x, y]).tolist() == wanted, in_axes
        assert mx.vmap(lambda t: t[0] + t[1], in_axes=in_axes)((x, y)).tolist() == wanted, in_axes
    assert mx.vmap(lambda t: t["x"] + t["y"][0], in_axes={"x": 0, "y": [None]})({"x": x, "y": [y]}).tolist() == wanted
    assert mx.vmap(lambda t: t[0]["x"] + t[1], in_axes=[{"x": 0}, None])([{"x": x}, y]).tolist() == wanted
    for in_axes in (0, (0,), [0]):
        assert mx.vmap(lambda t: t[0].sum() + t[1], in_axes=in_axes)([x, y]).tolist() == [13, 27]
        assert mx.vmap(lambda t: t.sum(), in_axes=in_axes)(x).tolist() == [3, 7]
    for in_axes in ([0, None, 0], [None, 3], ["a", 0], {"x": 0}):
        with pytest.raises(ValueError):
            mx.vmap(lambda t: t[0] + t[1], in_axes=in_axes)([x, y])


def test_no_positions_in_an_array_without_elements():
    none, mask, where = mx.zeros((0,)), mx.zeros((0,), dtype=mx.bool_), mx.array([], dtype=mx.int32)
    for value in (mx.zeros((0,)), 2.0):
        for place in (mask, where):
            a = mx.zeros((0,))
            a[place] = value
            assert a.shape == (0,)
    rows = mx.zeros((0, 3))
    rows[mask] = mx.zeros((0, 3))
    rows[where] = 1.0
    assert rows.shape == (0, 3) and rows[where].shape == (0, 3) and rows[where, where].shape == (0,)
    rows[where, where] = mx.zeros((0,))
    for name in ("add", "subtract", "multiply", "divide", "maximum", "minimum"):
        assert getattr(none.at[where], name)(1.0).shape == (0,)

    def put(a, v):
        b = a * 1
        b[where] = v
        return b.sum()

    by_array, by_value = mx.grad(put, argnums=(0, 1))(rows, mx.zeros((0, 3)))
    assert by_array.shape == (0, 3) and by_value.shape == (0, 3)
    with pytest.raises(Exception):
        mx.eval(none[mx.array([0])])
