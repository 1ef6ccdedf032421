"""sardonyx.array: who may write to an array's memory, and how buffers describe it."""

import copy
import ctypes
import json
import signal
import subprocess
import sys

import numpy as np
import pytest
import sardonyx.array as mx


def views(a):
    return [np.asarray(memoryview(a)), np.from_dlpack(a)]


def test_memory_that_an_array_has_alone_is_writable():
    a = mx.ones((3,)) * 2
    mx.eval(a)
    memoryview(a)[0] = 9.0
    assert a.tolist() == [9.0, 2.0, 2.0]
    np.from_dlpack(a)[1] = 5.0
    assert a.tolist() == [9.0, 5.0, 2.0]


def test_memory_that_arrays_share_is_for_reading():
    for share in (copy.copy, copy.deepcopy, mx.stop_gradient, lambda a: a + 1, lambda a: mx.array([a, a]), memoryview, np.asarray):
        a = mx.ones((3,)) * 2
        mx.eval(a)
        other = share(a)
        for view in views(a):
            assert not view.flags.writeable
            with pytest.raises(ValueError, match="read-only"):
                view[0] = 9.0
        del other, view
        assert views(a)[0].flags.writeable


def test_a_copy_stays_as_it_was():
    a = mx.array([1.0, 2.0])
    b = copy.deepcopy(a)
    with pytest.raises(ValueError, match="read-only"):
        np.asarray(memoryview(a))[0] = 9
    assert b.tolist() == [1.0, 2.0]


def test_buffers_in_columns():
    columns = ctypes.c_int(0x0040 | 0x0010 | 0x0008)  # PyBUF_F_CONTIGUOUS
    view = ctypes.create_string_buffer(256)
    get = ctypes.pythonapi.PyObject_GetBuffer
    with pytest.raises(BufferError, match="in rows"):
        get(ctypes.py_object(mx.ones((2, 3))), view, columns)
    for shape in ((), (3,), (1, 3)):
        assert get(ctypes.py_object(mx.ones(shape)), view, columns) == 0
        ctypes.pythonapi.PyBuffer_Release(view)


def test_a_mapped_file_that_is_cut_short(tmp_path):
    code = """
import json, os, sys
import numpy as np, sardonyx, sardonyx.array as mx
if sys.argv[2] == "survive":
    sardonyx.survive_mapped_faults()
mx.save_safetensors(sys.argv[1], {"w": mx.ones((3 << 20,))})
w = mx.load(sys.argv[1])["w"]
before = float(mx.sum(w[:10]))
sardonyx.check_mapped_files()
os.truncate(sys.argv[1], 4096)
after = float(mx.sum(w[-10:]))
try:
    sardonyx.check_mapped_files()
    told = ""
except Exception as error:
    told = str(error)
print(json.dumps([before, after, told]))"""

    def ends(how):
        command = [sys.executable, "-B", "-c", code, str(tmp_path / "w.safetensors"), how]
        return subprocess.run(command, capture_output=True, text=True, timeout=300)

    assert ends("die").returncode == -signal.SIGBUS
    survived = ends("survive")
    assert survived.returncode == 0, survived.stderr
    before, after, told = json.loads(survived.stdout)
    assert (before, after) == (10, 0) and "w.safetensors' was cut short while in use" in told
