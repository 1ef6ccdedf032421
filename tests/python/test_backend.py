"""ONNX's Backend interface beyond what its own runner calls."""

import numpy as np
import onnx
import pytest
from conftest import model
from onnx import helper

import sardonyx.backend as backend


@pytest.fixture
def sub():
    return onnx.load_from_string(
        model([helper.make_node("Sub", ["a", "b"], ["c"])], [("a", 1, [2]), ("b", 1, [2])], [("c", 1, [2])])
    )


def test_prepare_and_run(sub):
    a, b = np.float32([5, 6]), np.float32([1, 2])
    rep = backend.prepare(sub, "CPU")
    outputs = rep.run([a, b])
    assert outputs[0].tolist() == [4, 4] and outputs.c.tolist() == [4, 4]
    assert rep.run({"b": a, "a": b})[0].tolist() == [-4, -4]
    assert backend.run_model(sub, [a, b])[0].tolist() == [4, 4]
    with pytest.raises(ValueError, match="2 inputs"):
        rep.run(a)


def test_run_node():
    node = helper.make_node("Clip", ["x", "", "high"], ["y"])
    (y,) = backend.run_node(node, [np.float32([-1, 5]), np.float32(2)])
    assert y.tolist() == [-1, 2]
    (y,) = backend.run_node(helper.make_node("Relu", ["x"], ["y"]), {"x": np.float32([-1, 5])}, opset_version=13)
    assert y.tolist() == [0, 5]


def test_devices_and_models(sub):
    assert backend.supports_device("CPU") and backend.supports_device("CPU:0") and not backend.supports_device("TPU")
    assert backend.is_compatible(sub)
    sub.graph.node[0].op_type = "Absent"
    assert not backend.is_compatible(sub.SerializeToString())
    with pytest.raises(RuntimeError, match="TPU"):
        backend.prepare(sub, "TPU")
