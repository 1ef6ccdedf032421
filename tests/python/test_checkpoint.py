"""sardonyx.training.api.CheckpointState. What ONNX Runtime wrote needs SDX_TEST_MODELS."""

import math
import os
import sys
from pathlib import Path

import numpy as np
import pytest
import sardonyx
from sardonyx.training.api import CheckpointState

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))
from tiny_checkpoints import checkpoint  # noqa: E402

MODELS = Path(os.environ.get("SDX_TEST_MODELS") or "none") / "training"


@pytest.fixture
def state():
    return CheckpointState.from_bytes(checkpoint({"w": [1, 2], "b": [3]}, {"mean": [9]}, moments={"w": [5, 6]}, epoch=3))


def test_parameters(state):
    assert [name for name, _ in state.parameters] == state.parameters.keys() == ["w", "b", "mean"]
    assert len(state.parameters) == 3 and "w" in state.parameters and "x" not in state.parameters
    w = state.parameters["w"]
    assert (w.name, w.requires_grad, w.grad) == ("w", True, None)
    assert w.data.dtype == np.float32 and w.data.tolist() == [1, 2]
    assert repr(state.parameters["mean"]) == "Parameter(name=mean, requires_grad=False)"
    w.data[0] = 100  # a copy's
    w.data = np.array([7, 8], np.float32)
    assert state.parameters["w"].data.tolist() == [7, 8]
    state.parameters["b"] = [4]
    assert state.parameters["b"].data.tolist() == [4]
    with pytest.raises(KeyError, match="Parameter x not found"):
        state.parameters["x"]
    with pytest.raises(KeyError, match="Parameter x not found"):
        state.parameters["x"] = [1]


@pytest.mark.parametrize("value, received", [(np.zeros(3, np.float32), r"float32\[3\]"), (np.zeros(2), r"float64\[2\]"),
                                             (np.zeros((1, 2), np.float32), r"float32\[1,2\]")])
def test_values_that_do_not_fit(state, value, received):
    with pytest.raises(sardonyx.InvalidArgument, match=r"'w' is float32\[2\]; received " + received):
        state.parameters["w"] = value
    assert state.parameters["w"].data.tolist() == [1, 2]


def test_properties(state):
    assert dict(state.properties.items()) == {"best": 0.5, "epoch": 3, "note": "tiny"}
    state.properties["epoch"] = 4
    state.properties["loss"] = 0.25
    state.properties["größe"] = "läuft"
    again = CheckpointState.from_bytes(state.to_bytes())
    assert dict(again.properties) == {"best": 0.5, "epoch": 4, "note": "tiny", "loss": 0.25, "größe": "läuft"}
    assert "loss" in again.properties and len(again.properties) == 5
    with pytest.raises(KeyError, match="Property none not found"):
        state.properties["none"]
    with pytest.raises(TypeError, match="int, float or str"):
        state.properties["list"] = [1]
    with pytest.raises(OverflowError):
        state.properties["large"] = 1 << 70


def test_files(state, tmp_path):
    path = tmp_path / "checkpoint"
    CheckpointState.save_checkpoint(state, path)
    assert CheckpointState.load_checkpoint(str(path)).optimizers == {}
    CheckpointState.save_checkpoint(state, path, include_optimizer_state=True)
    group = CheckpointState.load_checkpoint(path).optimizers["group0"]
    assert (group["step"], group["initial_learning_rate"]) == (20, 0.125)
    assert group["moments"]["w"]["momentum0"].tolist() == [5, 6]
    with pytest.raises(sardonyx.NoSuchFile, match="none"):
        CheckpointState.load_checkpoint(tmp_path / "none")
    with pytest.raises(sardonyx.InvalidGraph, match="ODTC"):
        CheckpointState.load_checkpoint(__file__)
    with pytest.raises(sardonyx.NoSuchFile):
        CheckpointState.save_checkpoint(state, tmp_path / "no" / "folder")
    with pytest.raises(TypeError, match="load_checkpoint"):
        CheckpointState(3)


def test_buffers_and_arithmetic(state):
    assert (state.size(), state.size(False)) == (3, 4)
    assert state.to_buffer().tolist() == [1, 2, 3] and state.to_buffer(False).tolist() == [1, 2, 3, 9]
    other = state.clone()
    other.from_buffer(np.array([3, 6, 3], np.float32))
    assert state.to_buffer().tolist() == [1, 2, 3]
    delta = other.diff(state)
    assert delta.to_buffer().tolist() == [2, 4, 0]
    assert state.apply(delta, 0.5).to_buffer().tolist() == [2, 4, 3]
    assert CheckpointState.average([state, other]).to_buffer().tolist() == [2, 4, 3]
    assert CheckpointState.average([state, other], [3, 1]).to_buffer().tolist() == [1.5, 3, 3]
    with pytest.raises(sardonyx.InvalidArgument, match=r"float32\[3\]"):
        other.from_buffer(np.zeros(2, np.float32))
    with pytest.raises(sardonyx.InvalidArgument, match="nothing to average"):
        CheckpointState.average([])
    with pytest.raises(sardonyx.InvalidArgument, match="weights"):
        CheckpointState.average([state, other], [1, -1])
    for bad in (math.inf, math.nan):
        with pytest.raises(sardonyx.InvalidArgument, match="must be finite"):
            CheckpointState.average([state, other], [1, bad])
        with pytest.raises(sardonyx.InvalidArgument, match="finite"):
            state.apply(other, bad)
    assert CheckpointState.average([state, other], [1.2e308, 0.4e308]).to_buffer().tolist() == [1.5, 3, 3]


def test_nominal():
    state = CheckpointState.from_bytes(checkpoint({"w": [1, 2]}, nominal=True))
    assert state.nominal and state.parameters.keys() == ["w"]
    with pytest.raises(sardonyx.InvalidArgument, match="nominal"):
        state.parameters["w"].data
    with pytest.raises(sardonyx.InvalidArgument, match="nominal"):
        state.parameters["w"] = [1, 2]


@pytest.mark.skipif(not MODELS.exists(), reason="no model files (SDX_TEST_MODELS)")
@pytest.mark.parametrize("case", ["mlp_adamw", "encoder_layernorm_adamw"])
def test_what_onnx_runtime_wrote(case):
    state = CheckpointState.load_checkpoint(MODELS / case / "checkpoint_after_20")
    expected = np.load(MODELS / case / "final_params.npz")
    assert sorted(state.parameters.keys()) == sorted(expected.files)
    for name, parameter in state.parameters:
        np.testing.assert_array_equal(parameter.data, expected[name])
