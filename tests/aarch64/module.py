"""Imports the package and runs a model, as the last step of tests/aarch64/run.py."""

import platform
import tempfile
from pathlib import Path

import numpy as np
import sardonyx
import sardonyx.array as mx

assert platform.machine() == "aarch64", platform.machine()
a, b = mx.array(np.arange(12, dtype=np.float32).reshape(3, 4)), mx.array(np.ones((4, 2), dtype=np.float32))
assert np.array_equal(np.asarray(a @ b), np.arange(12).reshape(3, 4).sum(1, keepdims=True).repeat(2, 1))

# x + x: an ONNX model of one node, by hand.


def field(number, content):
    return bytes([number << 3 | 2, len(content)]) + content


def tensor(name):
    shape = field(1, b"\x08\x02") + field(1, b"\x08\x03")
    return field(1, name) + field(2, field(1, b"\x08\x01" + field(2, shape)))


graph = field(1, field(1, b"x") + field(1, b"x") + field(2, b"y") + field(4, b"Add")) + field(2, b"g") + field(11, tensor(b"x")) + field(12, tensor(b"y"))
model = b"\x08\x08" + field(7, graph) + field(8, b"\x10\x0d")
with tempfile.TemporaryDirectory() as folder:
    file = Path(folder) / "add.onnx"
    file.write_bytes(model)
    session = sardonyx.InferenceSession(str(file))
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert np.array_equal(session.run(None, {"x": x})[0], x + x)
print("python: ok")
