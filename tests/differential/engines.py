"""Runs models on an engine in a process of its own, so that a crash or a hang is an answer.

As a program: engines.py sardonyx|onnxruntime: answers requests on standard input until it ends.
"""

import os
import pickle
import selectors
import struct
import subprocess
import sys


def send(pipe, what):
    data = pickle.dumps(what, protocol=5)
    pipe.write(struct.pack("<Q", len(data)) + data)
    pipe.flush()


def receive(pipe):
    head = pipe.read(8)
    if len(head) < 8:
        raise EOFError
    (size,) = struct.unpack("<Q", head)
    data = pipe.read(size)
    if len(data) < size:
        raise EOFError
    return pickle.loads(data)


class Engine:
    """One engine's process. run() gives ("ok", outputs), ("error", class, message), ("crash", what was seen) or ("hang", seconds)."""

    def __init__(self, name, seconds=120, memory=4 << 30, environment=None):
        self.name, self.seconds, self.memory = name, seconds, memory
        self.environment = environment
        self.process = None

    def start(self):
        environment = dict(os.environ, **(self.environment or {}))
        self.process = subprocess.Popen([sys.executable, "-B", __file__, self.name, str(self.memory)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)
        os.set_blocking(self.process.stderr.fileno(), False)
        try:
            receive(self.process.stdout)
        except EOFError:
            raise RuntimeError(f"{self.name} does not start: {self.crashed()[1]}") from None

    def run(self, model, feeds, **settings):
        if self.process is None:
            self.start()
        try:
            send(self.process.stdin, (model, feeds, settings))
        except BrokenPipeError:
            return self.crashed()
        with selectors.DefaultSelector() as ready:
            ready.register(self.process.stdout, selectors.EVENT_READ)
            if not ready.select(self.seconds):
                self.stop()
                return ("hang", self.seconds)
        try:
            return receive(self.process.stdout)
        except EOFError:
            return self.crashed()

    def crashed(self):
        self.process.wait()
        said = (self.process.stderr.read() or b"").decode(errors="replace")
        code = self.process.returncode
        self.process = None
        return ("crash", f"exit code {code}: {said[-3000:]}")

    def stop(self):
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
            self.process = None


def session_of(engine, model, settings):
    options = engine.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = settings.get("threads", 1)
    if not settings.get("optimize", False):
        options.graph_optimization_level = engine.GraphOptimizationLevel.ORT_DISABLE_ALL
    if engine.__name__ == "sardonyx":
        options.memory_limit = settings.get("memory_limit", 1 << 30)
    return engine.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def main():
    name, memory = sys.argv[1], int(sys.argv[2])
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever an engine prints
    if memory and os.environ.get("SDX_SANITIZED") != "1":  # shadow memory takes terabytes of addresses
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    engine = __import__(name)
    send(answers, "ready")
    while True:
        try:
            model, feeds, settings = receive(requests)
        except EOFError:
            return
        try:
            answer = ("ok", session_of(engine, model, settings).run(None, feeds))
        except Exception as e:  # every refusal is an answer
            answer = ("error", type(e).__name__, str(e)[:4000])
        send(answers, answer)


if __name__ == "__main__":
    main()
