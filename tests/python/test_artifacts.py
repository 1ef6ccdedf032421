"""sardonyx.training.artifacts and onnxblock. ONNX Runtime's recorded files need SDX_TEST_MODELS."""

import os
from pathlib import Path

import numpy as np
import onnx
import pytest
import sardonyx
from onnx import TensorProto, helper, numpy_helper
from sardonyx.training import artifacts, onnxblock
from sardonyx.training.api import CheckpointState

MODELS = Path(os.environ.get("SDX_TEST_MODELS") or "none") / "training"
CASES = sorted(p.parent.name for p in MODELS.glob("*/model.onnx") if (p.parent / "training_model.onnx").exists())
LOSSES = {"CrossEntropyLoss": "labels", "MSELoss": "target", "BCEWithLogitsLoss": "target", "L1Loss": "target"}


def classifier(outputs=("scores",)):
    """x [n,3] -> hidden [n,4] -> scores [n,2]"""
    rng = np.random.default_rng(1)
    weights = {"w1": (3, 4), "b1": (4,), "w2": (4, 2), "b2": (2,)}
    graph = helper.make_graph(
        [
            helper.make_node("Gemm", ["x", "w1", "b1"], ["h"]),
            helper.make_node("Tanh", ["h"], ["hidden"]),
            helper.make_node("Gemm", ["hidden", "w2", "b2"], ["scores"]),
        ],
        "classifier",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3])],
        [helper.make_tensor_value_info(o, TensorProto.FLOAT, ["n", 2 if o == "scores" else 4]) for o in outputs],
        [numpy_helper.from_array(rng.standard_normal(s).astype(np.float32), n) for n, s in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def names(values):
    return [v.name for v in values]


def step(folder, feeds):
    """Outputs of the training model and its gradients, by name."""
    model = onnx.load(folder / "training_model.onnx")
    state = CheckpointState.load_checkpoint(folder / "checkpoint")
    for node in model.graph.node:
        if node.op_type == "InPlaceAccumulatorV2":
            model.graph.output.add(name=node.input[1])
    feeds = dict(feeds, lazy_reset_grad=np.array([True]))
    for info in model.graph.input:
        if info.name in state.parameters:
            feeds[info.name] = state.parameters[info.name].data
        elif info.name.endswith(".buffer"):
            feeds[info.name] = np.zeros([d.dim_value for d in info.type.tensor_type.shape.dim], np.float32)
    session = sardonyx.InferenceSession(model.SerializeToString())
    return dict(zip(names(session.get_outputs()), session.run(None, feeds)))


FEEDS = {"x": np.linspace(-1, 1, 15, dtype=np.float32).reshape(5, 3), "labels": np.array([0, 1, 1, 0, 1])}


@pytest.mark.parametrize("source", ["proto", "path", "bytes"])
def test_files_and_their_ends(tmp_path, source):
    model = classifier()
    onnx.save(model, tmp_path / "m.onnx")
    given = {"proto": model, "path": tmp_path / "m.onnx", "bytes": model.SerializeToString()}[source]
    artifacts.generate_artifacts(
        given,
        requires_grad=["w2", "b2"],
        frozen_params=["w1"],
        loss=artifacts.LossType.CrossEntropyLoss,
        optimizer=artifacts.OptimType.AdamW,
        artifact_directory=tmp_path / "out",
        prefix="a_",
        additional_output_names=["scores"],
        nominal_checkpoint=True,
    )
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == sorted(
        "a_" + n for n in ("training_model.onnx", "eval_model.onnx", "optimizer_model.onnx", "checkpoint", "nominal_checkpoint")
    )
    graph = onnx.load(tmp_path / "out" / "a_training_model.onnx").graph
    accumulation = [f"{p}_grad.accumulation" for p in ("w2", "b2")]
    buffers = [a + ".buffer" for a in accumulation]
    assert names(graph.input) == ["x", "labels", "w1", "w2", "b2", *buffers, "lazy_reset_grad"]
    assert names(graph.output) == ["onnx::loss::2", "scores", *(a + ".out" for a in accumulation)]
    assert graph.input[0].type.tensor_type.shape.dim[0].dim_param == "n"
    assert names(graph.initializer).count("b1") == 1  # neither trained nor frozen
    onnx.checker.check_model(onnx.load(tmp_path / "out" / "a_eval_model.onnx"))


@pytest.mark.parametrize("loss", LOSSES)
def test_losses_by_enum_text_and_block(tmp_path, loss):
    feeds = {"x": FEEDS["x"], LOSSES[loss]: FEEDS["labels"] if loss == "CrossEntropyLoss" else FEEDS["x"][:, :2]}
    forms = {"enum": artifacts.LossType[loss], "text": loss, "block": getattr(onnxblock.loss, loss)()}
    made = {}
    for form, value in forms.items():
        artifacts.generate_artifacts(classifier(), loss=value, artifact_directory=tmp_path / form)
        assert not (tmp_path / form / "optimizer_model.onnx").exists()
        made[form] = step(tmp_path / form, feeds)
    for form in ("text", "block"):
        for a, b in zip(made["enum"].values(), made[form].values()):
            np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-7)


def test_the_losses_values(tmp_path):
    x = FEEDS["x"]
    scores = sardonyx.InferenceSession(classifier().SerializeToString()).run(None, {"x": x})[0].astype(np.float64)
    target = x[:, :2].astype(np.float64)
    log_sums = np.log(np.exp(scores).sum(1))
    expected = {
        "CrossEntropyLoss": (log_sums - scores[np.arange(5), FEEDS["labels"]]).mean(),
        "MSELoss": ((scores - target) ** 2).mean(),
        "L1Loss": np.abs(scores - target).mean(),
        "BCEWithLogitsLoss": (np.log1p(np.exp(scores)) - scores * target).mean(),
    }
    for loss, name in LOSSES.items():
        artifacts.generate_artifacts(classifier(), loss=loss, artifact_directory=tmp_path / loss)
        feeds = {"x": x, name: FEEDS["labels"] if name == "labels" else x[:, :2]}
        assert next(iter(step(tmp_path / loss, feeds).values())) == pytest.approx(expected[loss], rel=1e-6)


def test_bce_of_large_scores_stays_finite(tmp_path):
    model = classifier()
    model.graph.initializer[3].CopyFrom(numpy_helper.from_array(np.array([1000, -1000], np.float32), "b2"))
    artifacts.generate_artifacts(model, loss="BCEWithLogitsLoss", artifact_directory=tmp_path)
    out = step(tmp_path, {"x": FEEDS["x"], "target": np.tile(np.array([[0, 1]], np.float32), (5, 1))})
    assert all(np.isfinite(v).all() for v in out.values()) and next(iter(out.values())) == pytest.approx(1000, rel=1e-2)


class WeightedLoss(onnxblock.Block):
    """What the documents of ONNX Runtime show: blocks within a block."""

    def __init__(self):
        super().__init__()
        self._mse, self._l1 = onnxblock.loss.MSELoss(), onnxblock.loss.L1Loss()
        self._add, self._mul, self._factor = onnxblock.blocks.Add(), onnxblock.blocks.Mul(), onnxblock.blocks.Constant(0.5)

    def build(self, scores, hidden):
        return self._add(self._mse(scores, "target"), self._mul(self._l1(hidden, "target.1"), self._factor()))


def test_a_loss_of_ones_own_over_two_outputs(tmp_path):
    artifacts.generate_artifacts(
        classifier(("scores", "hidden")), loss=WeightedLoss(), artifact_directory=tmp_path, additional_output_names=["scores"]
    )
    x = FEEDS["x"]
    out = step(tmp_path, {"x": x, "target": x[:, :2], "target.1": np.zeros((5, 4), np.float32)})
    hidden = sardonyx.InferenceSession(classifier(("hidden",)).SerializeToString()).run(None, {"x": x})[0]
    expected = ((out["scores"] - x[:, :2]) ** 2).mean() + 0.5 * np.abs(hidden).mean()
    assert next(iter(out.values())) == pytest.approx(expected, rel=1e-5)


def test_two_names_make_the_second_the_target(tmp_path):
    model = classifier(("scores", "hidden"))
    model.graph.node.append(helper.make_node("Identity", ["wanted"], ["again"]))
    model.graph.input.append(helper.make_tensor_value_info("wanted", TensorProto.FLOAT, ["n", 2]))
    model.graph.output.append(helper.make_tensor_value_info("again", TensorProto.FLOAT, ["n", 2]))
    artifacts.generate_artifacts(model, loss="MSELoss", loss_input_names=["scores", "again"], artifact_directory=tmp_path)
    assert "target" not in names(onnx.load(tmp_path / "training_model.onnx").graph.input)


def test_optimizers(tmp_path):
    def made(optimizer):
        artifacts.generate_artifacts(classifier(), loss="CrossEntropyLoss", optimizer=optimizer, artifact_directory=tmp_path)
        graph = onnx.load(tmp_path / "optimizer_model.onnx").graph
        return graph, {a.name: helper.get_attribute_value(a) for a in graph.node[-1].attribute}

    graph, adamw = made("AdamW")
    assert names(graph.input) == ["learning_rate", "step", "params", "gradients", "first_order_moments", "second_order_moments"]
    assert adamw == pytest.approx(dict(alpha=0.9, beta=0.999, epsilon=1e-6, weight_decay=0, correct_bias=1, adam_mode=1))
    clip = onnxblock.optim.ClipGradNorm(2.5)
    graph, adamw = made(onnxblock.optim.AdamW(betas=(0.8, 0.99), weight_decay=0.1, clip_grad=clip))
    assert [n.op_type for n in graph.node] == ["InplaceClipGradNorm", "AdamWOptimizer"] and adamw["alpha"] == pytest.approx(0.8)
    assert graph.node[0].attribute[0].f == 2.5
    graph, _ = made(artifacts.OptimType.SGD)
    assert [n.op_type for n in graph.node] == ["SGDOptimizerV2"]
    assert list(graph.node[0].input) == ["learning_rate", "params", "gradients"]
    graph, sgd = made({"kind": "sgd", "momentum": 0.9})
    assert (graph.node[0].domain, graph.node[0].op_type, sgd["kind"]) == ("sdx", "Optimizer", b"sgd")

    class Doubled(onnxblock.optim.SGD):
        def _update(self, gradients):
            return self._sgd("learning_rate", "params", gradients)

    graph, _ = made(Doubled())
    assert [n.op_type for n in graph.node] == ["SGDOptimizerV2"] and len(list(tmp_path.iterdir())) == 4


def test_training_blocks(tmp_path):
    class Training(onnxblock.TrainingBlock):
        def __init__(self):
            super().__init__()
            self.loss = onnxblock.loss.CrossEntropyLoss()

        def build(self, scores):
            return self.loss(scores), scores

    block = Training()
    for name in ("w1", "w2", "b2"):
        block.requires_grad(name)
    block.requires_grad("w1", False)
    with pytest.raises(RuntimeError, match="build the training"):
        block.to_model_proto()
    with onnxblock.base(classifier()) as held:
        block("scores")
        training, evaluation = block.to_model_proto()
        trained, frozen = block.parameters()
        assert held.model is training
    assert ([t.name for t in trained], [t.name for t in frozen]) == (["w2", "b2"], ["w1"])
    assert names(evaluation.graph.output)[1:] == ["scores"]
    onnxblock.save_checkpoint(block.parameters(), tmp_path / "checkpoint")
    state = CheckpointState.load_checkpoint(tmp_path / "checkpoint")
    assert [(n, p.requires_grad) for n, p in state.parameters] == [("w2", True), ("b2", True), ("w1", False)]
    adamw = onnxblock.optim.AdamW()
    with onnxblock.empty_base():
        adamw(block.parameters())
        assert adamw.to_model_proto().graph.node[0].op_type == "AdamWOptimizer"
    with pytest.raises(RuntimeError, match="onnxblock.base"):
        onnxblock.blocks.Add()("a", "b")


def test_every_block_makes_a_valid_node(tmp_path):
    b = onnxblock.blocks

    class Many(onnxblock.Block):
        def build(self, scores):
            y = b.Linear(2, 3)(scores)
            for block in (b.Sigmoid(), b.Log(), b.Neg(), b.Abs(), b.Clip(0.01, 5), b.Pow(2.0), b.Cast(TensorProto.FLOAT)):
                y = block(y)
            y = b.Div()(b.Sub()(y, b.Constant(1)()), b.Constant(2)())
            return b.ReduceMean(keepdims=False)(b.ReduceSum()(b.PassThrough()(y)))

    artifacts.generate_artifacts(classifier(), loss=Many(), artifact_directory=tmp_path)
    state = CheckpointState.load_checkpoint(tmp_path / "checkpoint")
    assert any(name.startswith("onnx::linear.weight") for name in state.parameters.keys())
    with onnxblock.base(classifier()) as held:
        b.SequenceConstruct()("x", "x")
        b.ReduceAllL2()("w1", "w2")
        b.LabelEncoder(keys_int64s=[1], values_int64s=[2])(b.Cast(TensorProto.INT64)("x"))
        assert [n.op_type for n in held.model.graph.node][3:] == ["SequenceConstruct", "ReduceAllL2", "Cast", "LabelEncoder"]


def test_heads_lora_and_recomputation(tmp_path):
    make = artifacts.generate_artifacts
    make(classifier(), loss="CrossEntropyLoss", artifact_directory=tmp_path / "head", head_classes=7)
    state = CheckpointState.load_checkpoint(tmp_path / "head" / "checkpoint")
    assert {n: p.requires_grad for n, p in state.parameters} == {"w1": False, "b1": False, "w2": True, "b2": True}
    assert state.parameters["w2"].data.shape == (4, 7)
    make(classifier(), loss="CrossEntropyLoss", artifact_directory=tmp_path / "plain")
    pairs = {"rank": 2, "alpha": 4, "targets": ["w*"]}
    make(classifier(), loss="CrossEntropyLoss", artifact_directory=tmp_path / "lora", lora=pairs)
    plain, lora = step(tmp_path / "plain", FEEDS), step(tmp_path / "lora", FEEDS)
    assert lora["onnx::loss::2"] == plain["onnx::loss::2"]  # B is zero
    assert not lora["w1.lora_A_grad"].any() and lora["w1.lora_B_grad"].any() and lora["w1.lora_A_grad"].shape == (3, 2)
    make(classifier(), loss="CrossEntropyLoss", artifact_directory=tmp_path / "again", recompute=["hidden"])
    again = step(tmp_path / "again", FEEDS)
    assert any(n.name.startswith("again/") for n in onnx.load(tmp_path / "again" / "training_model.onnx").graph.node)
    assert all((again[n] == plain[n]).all() for n in plain)


@pytest.mark.parametrize(
    "arguments, message",
    [
        (dict(requires_grad=["w2"], frozen_params=["w2"]), "cannot be frozen and require gradient"),
        (dict(requires_grad=["v2"]), "did you mean 'w2'"),
        (dict(requires_grad=[]), "nothing to train"),
        (dict(requires_grad="w2"), "list of strings"),
        (dict(loss="Hinge"), "Unknown LossType 'Hinge'"),
        (dict(loss=3), "Unknown loss provided"),
        (dict(ort_format=True), "ort_format"),
        (dict(additional_output_names="scores"), "list of strings"),
        (dict(loss=None), "expected one number"),
        (dict(custom_op_library="none.so"), "none.so"),
        (dict(lora={"rang": 2}), "LoRA has no setting 'rang'"),
        (dict(optimizer={"kind": "sgd", "momentun": 1}), "no setting 'momentun'"),
        (dict(optimizer="Adam"), "Unknown OptimType 'Adam'"),
    ],
)
def test_refusals_leave_no_file(tmp_path, arguments, message):
    with pytest.raises(Exception, match=message):
        given = {"loss": "CrossEntropyLoss", "artifact_directory": tmp_path / "out", **arguments}
        artifacts.generate_artifacts(classifier(), **given)
    assert not list(tmp_path.glob("out/*"))
    with pytest.raises(TypeError, match="Unknown optimizer"):
        artifacts.generate_artifacts(classifier(), loss="CrossEntropyLoss", optimizer=3, artifact_directory=tmp_path)
    with pytest.raises(RuntimeError, match="ONNX ModelProto"):
        artifacts.generate_artifacts(3, loss="CrossEntropyLoss", artifact_directory=tmp_path)


@pytest.mark.parametrize("case", CASES)
def test_recorded_ends_and_gradients(tmp_path, case):
    import json

    folder = MODELS / case
    expected = json.loads((folder / "expected.json").read_text())
    artifacts.generate_artifacts(
        folder / "model.onnx",
        requires_grad=expected["trainable"],
        frozen_params=expected["frozen"],
        loss=expected["loss_type"],
        optimizer={"AdamWOptimizer": "AdamW", "SGDOptimizerV2": "SGD"}[expected["optimizer"]],
        artifact_directory=tmp_path,
    )
    for name in ("training_model.onnx", "eval_model.onnx", "optimizer_model.onnx"):
        ours, theirs = onnx.load(tmp_path / name).graph, onnx.load(folder / name).graph
        assert list(ours.input) == list(theirs.input) and names(ours.output) == names(theirs.output), name
    batches, gradients = np.load(folder / "batches.npz"), np.load(folder / "first_gradients.npz")
    out = step(tmp_path, {name: batches[key][0] for name, key in expected["inputs"].items()})
    assert next(iter(out.values())).item() == pytest.approx(expected["train_loss"][0], rel=1e-5)
    for name in gradients.files:
        received = out[name if name in out else name + "_grad"]
        scale = np.abs(gradients[name]).max()
        np.testing.assert_allclose(received, gradients[name], rtol=1e-4, atol=1e-5 * scale + 1e-7, err_msg=name)
