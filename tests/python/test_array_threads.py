"""sardonyx.array among threads: the engine's own, Python's, and those that the interpreter leaves behind when it ends."""

import os
import subprocess
import sys


def run(code, **variables):
    command = [sys.executable, "-B", "-X", "faulthandler", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env={**os.environ, **variables})
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_process_ends_while_a_thread_computes():
    assert run(
        "import sardonyx.array as mx, threading, time\n"
        "x = mx.ones((64, 64)); mx.eval(x)\n"
        "def work():\n"
        "    while True: mx.eval(x @ x)\n"
        "def call():\n"
        "    while True: mx.grad(lambda a: sum([mx.sum(a)] * 20))(x)\n"
        "for f in (work, call): threading.Thread(target=f, daemon=True).start()\n"
        "time.sleep(0.1)\n"
        "print('ends')\n"
    ) == "ends\n"


def test_streams_let_go_of_buffers_while_masks_are_computed():
    assert run(
        "import gc, weakref, numpy as np, sardonyx.array as mx\n"
        "class Numbers(np.ndarray): pass\n"
        "left = []\n"
        "z = mx.zeros((20000,))\n"
        "first, second = mx.new_stream(mx.cpu), mx.new_stream(mx.cpu)\n"
        "for k in range(300):\n"
        "    n = np.ones(20000, np.float32).view(Numbers)\n"
        "    left.append(weakref.ref(n))\n"
        "    a = mx.from_dlpack(n) if k % 2 else mx.asarray(n, copy=False)\n"
        "    y = mx.greater(mx.exp(a, stream=first), 1.2, stream=second)\n"
        "    del a, n\n"
        "    mx.async_eval(y)\n"
        "    assert z[y].shape == (20000,)\n"
        "del y\n"
        "mx.synchronize(first); mx.synchronize(second)\n"
        "mx.eval(mx.exp(z)); gc.collect()\n"
        "print(sum(r() is not None for r in left))\n"
    ) == "0\n"


def test_arrays_may_change_in_place_while_they_are_computed():
    # Memory that is let go of is filled with other bytes, so that reading it shows.
    code = (
        "import threading, time, sardonyx.array as mx\n"
        "x = mx.random.normal((700, 700)); o = mx.ones((700, 700)); mx.eval(x, o)\n"
        "scalars = [float, int, bool, mx.arange, lambda a: mx.linspace(0, a, 5)]\n"
        "wrong = []\n"
        "def read(f, a):\n"
        "    try: f(a)\n"
        "    except Exception as e: wrong.append(repr(e))\n"
        "for k in range(40):\n"
        "    a = mx.exp(x @ x) @ x\n"
        "    f = memoryview\n"
        "    if k > 19: a, o, f = mx.sum(a) > 0, mx.array(1), scalars[k % 5]\n"
        "    t = threading.Thread(target=read, args=(f, a)); t.start()\n"
        "    time.sleep(0.001)\n"
        "    a[...] = o\n"
        "    t.join()\n"
        "print(wrong)\n"
    )
    assert run(code, MALLOC_PERTURB_="165") == "[]\n"
