"""Ctrl-C, and other signals with a handler that raises, end a run between two nodes. Real signals, in processes of their own."""

import signal
import subprocess
import sys
from pathlib import Path

START = """if True:
    import signal, sys, threading
    sys.path.insert(0, TESTS)
    import conftest, numpy
    session = conftest.endless.__wrapped__()
    feed = {"x": numpy.float32(1)}
"""


def run(program, number):
    """What the program prints behind "running", after a signal that comes once it prints that."""
    code = START.replace("TESTS", repr(str(Path(__file__).parent))) + program
    with subprocess.Popen([sys.executable, "-B", "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout.readline() == "running\n", child.stderr.read()
            child.send_signal(number)
            out, err = child.communicate(timeout=120)
        finally:
            child.kill()
    return child.returncode, out.splitlines(), err


def test_ctrl_c_ends_a_run_and_the_session_stays_usable():
    status, printed, err = run("""
    for _ in range(2):
        try:
            print("running" if _ == 0 else "again", flush=True)
            if _ == 1:
                threading.Timer(0.1, signal.raise_signal, [signal.SIGINT]).start()
            session.run(None, feed)
        except KeyboardInterrupt:
            print("interrupted", flush=True)
    """, signal.SIGINT)
    assert (status, printed) == (0, ["interrupted", "again", "interrupted"]), err


def test_nobody_catching_it_ends_the_program():
    status, printed, err = run("""
    print("running", flush=True)
    session.run(None, feed)
    """, signal.SIGINT)
    assert status == -signal.SIGINT and printed == [] and err.rstrip().endswith("KeyboardInterrupt")


def test_handlers_run_and_what_they_raise_comes_out():
    status, printed, err = run("""
    class Enough(Exception):
        pass
    def handler(number, frame):
        print("handler", flush=True)
        raise Enough
    signal.signal(signal.SIGUSR1, handler)
    try:
        print("running", flush=True)
        session.run(None, feed)
    except Enough:
        print("enough")
    """, signal.SIGUSR1)
    assert (status, printed) == (0, ["handler", "enough"]), err


def test_handlers_that_raise_nothing_let_the_run_go_on():
    status, printed, err = run("""
    import sardonyx
    options = sardonyx.RunOptions()
    def handler(number, frame):
        print("handler", flush=True)
        threading.Timer(0.2, lambda: setattr(options, "terminate", True)).start()
    signal.signal(signal.SIGUSR1, handler)
    try:
        print("running", flush=True)
        session.run(None, feed, options)
    except sardonyx.Cancelled:
        print("cancelled")
    """, signal.SIGUSR1)
    assert (status, printed) == (0, ["handler", "cancelled"]), err


def test_runs_outside_the_main_thread_leave_signals_to_it():
    status, printed, err = run("""
    import sardonyx
    options, done = sardonyx.RunOptions(), threading.Event()
    def work():
        try:
            session.run(None, feed, options)
        except sardonyx.Cancelled:
            print("cancelled", flush=True)
        done.set()
    threading.Thread(target=work).start()
    try:
        print("running", flush=True)
        # CPython notices a signal that comes just before it begins to wait only at the next wait.
        while not done.wait(0.5):
            pass
    except KeyboardInterrupt:
        print("interrupted", flush=True)
        options.terminate = True
        done.wait()
    """, signal.SIGINT)
    assert (status, printed) == (0, ["interrupted", "cancelled"]), err
