"""sardonyx.array: what is refused, what compiled functions tell apart and hold, and objects that change while they are read."""

import collections
import copy
import enum
import gc
import pickle
import weakref

import numpy as np
import pytest
import sardonyx.array as mx


def same(a, expected, dtype=None):
    assert a.tolist() == expected
    assert dtype is None or a.dtype is dtype


def test_types_cannot_be_made():
    for make in (mx.Dtype, lambda: mx.Dtype("float32"), lambda: mx.Dtype.__new__(mx.Dtype), lambda: object.__new__(mx.Dtype)):
        with pytest.raises(TypeError):
            make()
    for dtype in (mx.bool, mx.uint8, mx.int64, mx.float16, mx.bfloat16, mx.float32, mx.complex64):
        assert pickle.loads(pickle.dumps(dtype)) is dtype and copy.deepcopy(dtype) is dtype and copy.copy(dtype) is dtype
    memory = type(memoryview(mx.array([1, 2])).obj)
    for kind in (type(mx.compile(abs)), memory):
        with pytest.raises((TypeError, ValueError)):
            kind()


def test_lists_without_an_end_are_refused():
    itself = []
    itself.append(itself)
    first, last, twice, deep = [], [], [], [1]
    first += [first, mx.array(1)]
    last += [mx.array(1), last]
    twice += [twice, twice]
    for _ in range(100_000):
        deep = [deep, mx.array(1)]
    for value in (itself, first, last, twice, deep, tuple(deep)):
        with pytest.raises(ValueError, match="nested too deep"):
            mx.array(value)
    nested = 5
    for _ in range(8):
        nested = [nested]
    assert mx.array(nested).shape == (1,) * 8
    while deep != [1]:  # from the outside, for letting go of it
        deep = deep[0]


def test_lists_that_change_while_they_are_read():
    class Mean:
        def __getattr__(self, name):
            values.clear()
            raise AttributeError(name)

    class Float(int):
        def __float__(self):
            values.clear()
            return 2.0

    values = [Mean(), [Mean()], Mean()]
    assert mx.array(values).shape == (0,)
    values = [Float(10**6 + i) for i in range(100)]
    assert mx.array(values, mx.complex64).tolist() == [2 + 0j] * 100


def test_what_the_array_protocol_gives():
    class Gives:
        def __init__(self, what):
            self.what = what

        def __array__(self):
            return self if self.what is None else self.what

    same(mx.array(Gives(np.array([1, 2], np.int16))), [1, 2], mx.int16)
    for wrong in (None, 3, [1, 2], Gives(np.array(1))):
        with pytest.raises(TypeError, match="no NumPy array"):
            mx.array(Gives(wrong))


def test_integers_that_no_type_holds():
    same(mx.array([1 << 63, 1]), [1 << 63, 1], mx.uint64)
    same(mx.array([1 << 63, -1], mx.float32), [2.0**63, -1.0], mx.float32)
    same(mx.array([1 << 63, -1, 0.5]), [2.0**63, -1.0, 0.5], mx.float32)
    for value in ([1 << 63, -1], [[-1], [(1 << 64) - 1]]):
        with pytest.raises(ValueError, match="no integer type"):
            mx.array(value)


def test_compile_tells_constants_apart():
    add = mx.compile(lambda x, n: x + n)
    for n in (-1, -2, 0, 1, True, False, 0.0, -0.0, 1.0, 1 << 20, -(1 << 20)):
        same(add(mx.array(10), n), 10 + n)
    kind = mx.compile(lambda x, n: x + len(n if isinstance(n, str) else hex(n)) + (n == (1 << 61) - 1))
    prime = (1 << 61) - 1  # Python's hashes are remainders of it
    integers = [0, prime, 1 << 63, -(1 << 63), -(1 << 63) - 1, (1 << 64) - 1, 1 << 64, 1 << 70, (1 << 70) + prime, 1 << 500]
    for n in integers + ["", "a", "a\0", "a" * 8, "a" * 8 + "\0", "\udcc3\udca9", "\u00e9", "\ud800"]:
        expected = len(n if isinstance(n, str) else hex(n)) + (n == (1 << 61) - 1)
        same(kind(mx.array(0), n), expected)
    first = mx.compile(lambda x, n: x + ord(n[0]))
    for n in ("\udcc3\udca9", "\u00e9", "\ud800"):
        same(first(mx.array(0), n), ord(n[0]))


def test_compile_tells_classes_apart():
    Point, Pair = collections.namedtuple("Point", "a b"), collections.namedtuple("Pair", "b a")
    f = mx.compile(lambda p: p[0] - p[1] if type(p) is tuple else p.a * 100)
    one, two = mx.array(1), mx.array(2)
    for _ in range(2):
        same(f((one, two)), -1)
        same(f(Point(one, two)), 100)
        same(f(Pair(one, two)), 200)

    class Small(enum.IntEnum):
        one = 1

    class Other(enum.IntEnum):
        one = 1

    which = mx.compile(lambda x, n: x + (10 if isinstance(n, Small) else 20 if isinstance(n, Other) else 30 if n is True else 40))
    for n, expected in ((Small.one, 10), (Other.one, 20), (True, 30), (1, 40), (Small.one, 10)):
        same(which(mx.array(0), n), expected)
    for i in range(200):  # classes that come where others were
        Point = collections.namedtuple("Point", "a b" if i % 2 else "b a")
        same(f(Point(one, two)), 100 if i % 2 else 200)
        gc.collect(0)


def test_compiled_functions_are_collected():
    class State:
        pass

    for where in ("inputs", "outputs"):
        state = State()
        state.step = mx.compile(lambda x: x, **{where: [state]})
        same(state.step(mx.array(1)), 1)
        gone = weakref.ref(state)
        del state
        gc.collect()
        assert gone() is None

    state = [mx.array(1)]
    step = mx.compile(lambda x: x + state[0], inputs=state, outputs=state)
    for _ in range(3):
        gc.collect()
        same(step(mx.array(1)), 2)


def test_a_compiled_function_with_its_results_is_collected():
    class Holder:
        pass

    holder = Holder()
    holder.step = mx.compile(lambda x, held=[holder]: (x, held[0]))
    assert holder.step(mx.array(1))[1] is holder
    gone = weakref.ref(holder)
    del holder
    gc.collect()
    assert gone() is None


def test_integers_beyond_an_int_are_refused():
    a = mx.array([[1, 2], [3, 4]])
    for n in (1 << 31, 1 << 40, -(1 << 31) - 1, 1 << 80):
        for call in (
            lambda: mx.repeat(a, n),
            lambda: mx.sum(a, axis=n),
            lambda: mx.sum(a, axis=(0, n)),
            lambda: mx.split(a, n),
            lambda: a.split(n),
            lambda: mx.transpose(a, (0, n)),
            lambda: a.transpose(0, n),
            lambda: mx.moveaxis(a, 0, n),
            lambda: mx.tensordot(a, a, n),
        ):
            with pytest.raises(OverflowError):
                call()


def test_dicts_that_change_while_they_are_saved(tmp_path):
    class Clears:
        def __init__(self, target):
            self.target = target

        @property
        def __mlx_array__(self):
            self.target.clear()
            return lambda: mx.array([1, 2])

    arrays = {}
    arrays.update(a=Clears(arrays), b=Clears(arrays), c=mx.array([3.5]))
    mx.save_safetensors(str(tmp_path / "a.safetensors"), arrays)
    assert {k: v.tolist() for k, v in mx.load(str(tmp_path / "a.safetensors")).items()} == {"a": [1, 2], "b": [1, 2], "c": [3.5]}


def test_trees_that_change_while_they_are_read():
    class Clears(str):
        armed = False

        def __hash__(self):
            if Clears.armed:
                tree.clear()
            return 1

    tree = [{Clears("a"): [mx.array(1)], "b": [mx.array(2)]}, [mx.array(3)]]
    Clears.armed = True
    with pytest.raises(IndexError):
        mx.compile(lambda t: t)(tree)
    assert tree == []


def test_from_dlpack_of_pinned_memory():
    class Pinned:
        def __init__(self, kind, knows):
            self.kind, self.knows, self.a = kind, knows, mx.array([1, 2, 3])

        def __dlpack_device__(self):
            return (self.kind, 0)

        def __dlpack__(self, **how):
            if how and not self.knows:
                raise TypeError("before DLPack 1.0")
            assert not how or how["dl_device"] == (1, 0)
            return self.a.__dlpack__(**how)

    for kind in (3, 13):
        for knows in (True, False):
            same(mx.from_dlpack(Pinned(kind, knows)), [1, 2, 3])
    with pytest.raises(BufferError):
        mx.from_dlpack(Pinned(2, True))
