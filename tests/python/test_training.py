"""sardonyx.training.api: Module, Optimizer, LinearLRScheduler, Trainer. Recorded steps are in src/train/step/recorded_test.cc."""

import gc
import sys
import threading
from pathlib import Path

import numpy as np
import onnx
import pytest
import sardonyx
from onnx import TensorProto, helper
from sardonyx.training.api import CheckpointState, LinearLRScheduler, Module, Optimizer, Trainer

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))
from tiny_checkpoints import checkpoint  # noqa: E402

X = np.array([[1, 2], [3, -1], [0, 1]], np.float32)
TARGET = np.array([[0, 1], [2, 2], [1, -1]], np.float32)
W, B = [0.5, -0.25], [0.1, 0.2]


def value(name, shape, dtype=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


def save(path, nodes, inputs, outputs):
    opsets = [helper.make_opsetid(d, v) for d, v in (("", 17), ("com.microsoft", 1), ("ai.onnx.preview.training", 1))]
    model = helper.make_model(helper.make_graph(nodes, "g", inputs, outputs), opset_imports=opsets, ir_version=8)
    onnx.save(model, str(path))


@pytest.fixture
def artifacts(tmp_path):
    """pred = x * w + b, mean squares; SGD."""
    inputs = [value("x", ["N", 2]), value("target", ["N", 2]), value("w", [2]), value("b", [2])]
    forward = [helper.make_node("Mul", ["x", "w"], ["scaled"]), helper.make_node("Add", ["scaled", "b"], ["pred"]),
               helper.make_node("Sub", ["pred", "target"], ["off"]), helper.make_node("Mul", ["off", "off"], ["squares"]),
               helper.make_node("ReduceMean", ["squares"], ["loss"], keepdims=0)]
    loss = value("loss", [])
    save(tmp_path / "eval_model.onnx", forward, inputs, [loss])
    nodes = [*forward, helper.make_node("Gradient", ["w", "b"], ["w_grad", "b_grad"], domain="ai.onnx.preview.training", xs=["w", "b"],
                                        y="loss")]
    outputs = [loss]
    for name in "wb":
        inputs.append(value(f"{name}_grad.accumulation.buffer", [2]))
        nodes.append(helper.make_node("InPlaceAccumulatorV2", [f"{name}_grad.accumulation.buffer", f"{name}_grad", "lazy_reset_grad"],
                                      [f"{name}_grad.accumulation.out"], domain="com.microsoft"))
        outputs.append(value(f"{name}_grad.accumulation.out", [1], TensorProto.BOOL))
    inputs.append(value("lazy_reset_grad", [1], TensorProto.BOOL))
    save(tmp_path / "training_model.onnx", nodes, inputs, outputs)
    lists = [helper.make_tensor_sequence_value_info(n, TensorProto.FLOAT, None) for n in ("params", "gradients", "first_order_moments")]
    save(tmp_path / "optimizer_model.onnx",
         [helper.make_node("SGDOptimizerV2", ["learning_rate", "params", "gradients"], ["done"], domain="com.microsoft")],
         [value("learning_rate", [1]), value("step", [1], TensorProto.INT64), *lists], [value("done", [1], TensorProto.BOOL)])
    return tmp_path


@pytest.fixture
def state():
    return CheckpointState.from_bytes(checkpoint({"w": W, "b": B}))


def reference(w, b):
    off = X * w + b - TARGET
    return np.mean(off**2), (2 * off * X).sum(0) / X.size, (2 * off).sum(0) / X.size


def test_steps(artifacts, state):
    module = Module(artifacts / "training_model.onnx", state, artifacts / "eval_model.onnx")
    optimizer = Optimizer(artifacts / "optimizer_model.onnx", module)
    assert module.input_names() == ["x", "target"] and module.output_names() == ["loss"]
    assert optimizer.get_learning_rate() == pytest.approx(0.001)
    optimizer.set_learning_rate(0.1)
    assert state.parameters["w"].grad is None
    w, b = np.array(W, np.float32), np.array(B, np.float32)
    for _ in range(3):
        loss, to_w, to_b = reference(w, b)
        got = module(X, TARGET)
        assert isinstance(got, np.ndarray) and got.shape == () and got == pytest.approx(loss, rel=1e-6)
        assert state.parameters["w"].grad == pytest.approx(to_w, rel=1e-5)
        optimizer.step()
        module.lazy_reset_grad()
        w, b = w - 0.1 * to_w, b - 0.1 * to_b
        assert state.parameters["w"].data == pytest.approx(w, rel=1e-5)
        assert state.parameters["b"].data == pytest.approx(b, rel=1e-5)
    module.eval()
    assert not module.training
    assert module(X, TARGET) == pytest.approx(reference(w, b)[0], rel=1e-5)
    module.train()
    assert module.training


def test_gradients_add_up(artifacts, state):
    module = Module(artifacts / "training_model.onnx", state)
    once = reference(np.array(W), np.array(B))[1]
    for times in (1, 2, 3):
        module(X, TARGET)
        assert state.parameters["w"].grad == pytest.approx(times * once, rel=1e-5)
    module.lazy_reset_grad()
    module(X, TARGET)
    assert state.parameters["w"].grad == pytest.approx(once, rel=1e-5)


def test_ort_values(artifacts, state):
    module = Module(artifacts / "training_model.onnx", state)
    got = module(*[sardonyx.OrtValue.ortvalue_from_numpy(a) for a in (X, TARGET)])
    assert isinstance(got, sardonyx.OrtValue)
    assert got.numpy() == pytest.approx(reference(np.array(W), np.array(B))[0], rel=1e-6)


def test_buffers(artifacts, state):
    module = Module(artifacts / "training_model.onnx", state)
    assert module.get_parameters_size() == 4
    flat = module.get_contiguous_parameters()
    assert flat.numpy() == pytest.approx(np.array(W + B))
    module.copy_buffer_to_parameters(sardonyx.OrtValue.ortvalue_from_numpy(np.arange(4, dtype=np.float32)))
    assert state.parameters["b"].data.tolist() == [2, 3]
    assert module(X, TARGET) == pytest.approx(reference(np.array([0, 1]), np.array([2, 3]))[0], rel=1e-6)


def test_scheduler(artifacts, state):
    module = Module(artifacts / "training_model.onnx", state)
    optimizer = Optimizer(artifacts / "optimizer_model.onnx", module)
    scheduler = LinearLRScheduler(optimizer, 2, 4, 0.5)
    rates = []
    for _ in range(5):
        rates.append(optimizer.get_learning_rate())
        scheduler.step()
    assert rates == pytest.approx([0, 0.25, 0.5, 0.25, 0])


def test_export(artifacts, state, tmp_path):
    module = Module(artifacts / "training_model.onnx", state, artifacts / "eval_model.onnx")
    module.export_model_for_inferencing(tmp_path / "exported.onnx", ["pred"])
    session = sardonyx.InferenceSession(tmp_path / "exported.onnx")
    assert [i.name for i in session.get_inputs()] == ["x"]
    assert session.run(None, {"x": X})[0] == pytest.approx(X * W + B, rel=1e-6)
    with pytest.raises(sardonyx.InvalidArgument, match="did you mean 'pred'"):
        module.export_model_for_inferencing(tmp_path / "exported.onnx", ["pre"])


def test_errors(artifacts, state):
    module = Module(artifacts / "training_model.onnx", state)
    with pytest.raises(sardonyx.InvalidArgument, match="takes 2 inputs"):
        module(X)
    with pytest.raises(sardonyx.InvalidArgument, match=r"input 'target' must be float32\[N,2\], received float64\[3,2\]"):
        module(X, TARGET.astype(float))
    with pytest.raises(sardonyx.InvalidArgument, match="no eval model"):
        module.eval()(X, TARGET)
    with pytest.raises(sardonyx.InvalidArgument, match="before the optimizer"):
        Optimizer(artifacts / "optimizer_model.onnx", module).step()
    with pytest.raises(sardonyx.InvalidArgument, match="device 'cpu'"):
        Module(artifacts / "training_model.onnx", state, device="cuda:0")
    with pytest.raises(sardonyx.InvalidArgument, match="no parameter 'b'"):
        Module(artifacts / "training_model.onnx", CheckpointState.from_bytes(checkpoint({"w": W})))


@pytest.mark.parametrize("batch", [[X, TARGET], (X, TARGET), {"target": TARGET, "x": X}])
def test_trainer(artifacts, state, batch, tmp_path):
    trainer = Trainer(artifacts, state, learning_rate=0.1)
    loss, to_w, _ = reference(np.array(W), np.array(B))
    assert trainer.train_step(batch) == pytest.approx(loss, rel=1e-6)
    assert trainer.last_outputs()[0] == pytest.approx(loss, rel=1e-6)
    assert state.parameters["w"].data == pytest.approx(np.array(W) - 0.1 * to_w, rel=1e-5)
    assert trainer.steps == 1 and trainer.learning_rate == pytest.approx(0.1)
    assert trainer.eval_step(batch) < loss
    trainer.save_checkpoint(tmp_path / "after")
    again = Trainer(artifacts / "training_model.onnx", tmp_path / "after", learning_rate=0.1)
    assert again.steps == 1
    assert again.train_step(batch) == trainer.train_step(batch)
    trainer.learning_rate = 0.5
    assert trainer.learning_rate == 0.5


def test_trainer_options(artifacts, state):
    trainer = Trainer(artifacts, state, "sgd", momentum=0.9, clip_norm=0.1, learning_rate=1, schedule="linear", warmup=1, total=3)
    assert [trainer.learning_rate, trainer.train_step([X, TARGET])][0] == 0
    assert trainer.learning_rate == 1
    before = np.concatenate([p.data for _, p in state.parameters])
    trainer.train_step([X, TARGET])
    # A momentum of 0.9 of the first gradient, and this one, each of norm 0.1.
    assert np.linalg.norm(np.concatenate([p.data for _, p in state.parameters]) - before) == pytest.approx(0.19, rel=1e-3)
    for wrong in ({"momentun": 1}, {"momentum": 0.9}):
        with pytest.raises(TypeError):
            Trainer(artifacts, state, **wrong)
    with pytest.raises(sardonyx.InvalidArgument, match="not an optimizer; permitted: adamw"):
        Trainer(artifacts, state, "adamm")
    with pytest.raises(sardonyx.InvalidArgument, match="not a schedule"):
        Trainer(artifacts, state, schedule="square")
    with pytest.raises(sardonyx.InvalidArgument, match="inputs are"):
        trainer.train_step({"x": X})


def test_losses_that_are_not_finite(artifacts, state):
    trainer = Trainer(artifacts, state)
    with pytest.raises(sardonyx.RuntimeException, match="the loss of step 1 is nan"):
        trainer.train_step([X * np.float32(np.nan), TARGET])
    assert state.parameters["w"].data.tolist() == W


def test_threads_take_turns(artifacts, state):
    trainer = Trainer(artifacts, state)
    failed = []

    def work():
        try:
            for _ in range(50):
                trainer.train_step([X, TARGET])
        except Exception as error:  # noqa: BLE001
            failed.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failed and trainer.steps == 200


def test_what_other_threads_see_is_whole(tmp_path):
    """All elements of the parameter are the same before and after each update."""
    count = 300_000
    inputs = [value("x", [count]), value("w", [count]), value("w_grad.accumulation.buffer", [count]),
              value("lazy_reset_grad", [1], TensorProto.BOOL)]
    nodes = [helper.make_node("Mul", ["x", "w"], ["product"]), helper.make_node("ReduceSum", ["product"], ["loss"], keepdims=0),
             helper.make_node("Gradient", ["w"], ["w_grad"], domain="ai.onnx.preview.training", xs=["w"], y="loss"),
             helper.make_node("InPlaceAccumulatorV2", ["w_grad.accumulation.buffer", "w_grad", "lazy_reset_grad"],
                              ["w_grad.accumulation.out"], domain="com.microsoft")]
    save(tmp_path / "training_model.onnx", nodes, inputs,
         [value("loss", []), value("w_grad.accumulation.out", [1], TensorProto.BOOL)])
    state = CheckpointState.from_bytes(checkpoint({"w": [1.0] * count}))
    trainer = Trainer(tmp_path / "training_model.onnx", state, "adamw")
    x = np.ones(count, np.float32)
    done = threading.Event()

    def train():
        while not done.is_set():
            trainer.train_step([x])

    thread = threading.Thread(target=train)
    thread.start()
    try:
        for i in range(60):
            state.properties[f"seen{i}"] = i
            seen = state.to_buffer()
            stored = CheckpointState.from_bytes(state.to_bytes(include_optimizer_state=True)).parameters["w"].data
            for values in (seen, stored, state.parameters["w"].data, state.clone().parameters["w"].data):
                assert values.min() == values.max()
    finally:
        done.set()
        thread.join()
    assert trainer.steps > 0 and state.properties["seen59"] == 59


def test_lifetimes(artifacts):
    optimizer = Optimizer(artifacts / "optimizer_model.onnx",
                          Module(artifacts / "training_model.onnx", CheckpointState.from_bytes(checkpoint({"w": W, "b": B}))))
    gc.collect()
    optimizer.set_learning_rate(0.5)
    assert optimizer.get_learning_rate() == 0.5
    state = CheckpointState.from_bytes(checkpoint({"w": W, "b": B}))
    Module(artifacts / "training_model.onnx", state)(X, TARGET)
    gc.collect()
    assert state.parameters["w"].grad is None  # the module is gone


# Gradients that are not finite: a step with one changes nothing, whatever the optimizer, and what follows is as if it had not been.
TABLE = [1, 2, 3, 1, 0]
SHAPES = {"w": [1], "table": [5]}
OPTIMIZERS = [
    {"kind": "sgd"}, {"kind": "sgd", "momentum": 0.9}, {"kind": "sgd", "momentum": 0.9, "nesterov": True}, {"kind": "sgd", "weight_decay": 0.1},
    {"kind": "adam"}, {"kind": "adamw"}, {"kind": "rmsprop"}, {"kind": "rmsprop", "momentum": 0.9}, {"kind": "adagrad"}, {"kind": "lion"},
]  # fmt: skip


@pytest.fixture(scope="module")
def roots(tmp_path_factory):
    """The mean of sqrt(x * w + table[ids]), whose slope at 0 is infinite."""
    folder = tmp_path_factory.mktemp("artifacts")
    inputs = [value("x", ["N"]), value("ids", ["N"], TensorProto.INT64), *(value(n, s) for n, s in SHAPES.items())]
    nodes = [helper.make_node("Gather", ["table", "ids"], ["rows"]), helper.make_node("Mul", ["x", "w"], ["scaled"]),
             helper.make_node("Add", ["scaled", "rows"], ["sum"]), helper.make_node("Sqrt", ["sum"], ["roots"]),
             helper.make_node("ReduceMean", ["roots"], ["loss"], keepdims=0)]
    outputs = [value("loss", [])]
    save(folder / "eval_model.onnx", nodes, inputs, outputs)
    nodes.append(helper.make_node("Gradient", [*SHAPES], [f"{n}_grad" for n in SHAPES], domain="ai.onnx.preview.training", xs=[*SHAPES], y="loss"))
    for name, shape in SHAPES.items():
        buffer, out = f"{name}_grad.accumulation.buffer", f"{name}_grad.accumulation.out"
        inputs.append(value(buffer, shape))
        nodes.append(helper.make_node("InPlaceAccumulatorV2", [buffer, f"{name}_grad", "lazy_reset_grad"], [out], domain="com.microsoft"))
        outputs.append(value(out, [1], TensorProto.BOOL))
    inputs.append(value("lazy_reset_grad", [1], TensorProto.BOOL))
    save(folder / "training_model.onnx", nodes, inputs, outputs)
    lists = [helper.make_tensor_sequence_value_info(n, TensorProto.FLOAT, None) for n in ("params", "gradients")]
    moments = [helper.make_tensor_sequence_value_info(f"{n}_order_moments", TensorProto.FLOAT, None) for n in ("first", "second")]
    common = [value("learning_rate", [1]), value("step", [1], TensorProto.INT64)]
    done = [value("done", [1], TensorProto.BOOL)]
    save(folder / "sgd.onnx",
          [helper.make_node("SGDOptimizerV2", ["learning_rate", "params", "gradients"], ["done"], domain="com.microsoft")],
          [*common, *lists, moments[0]], done)
    adamw = ["learning_rate", "step", "params", "gradients", "first_order_moments", "second_order_moments"]
    save(folder / "adamw.onnx", [helper.make_node("AdamWOptimizer", adamw, ["done"], domain="com.microsoft")], [*common, *lists, *moments], done)
    return folder


def of_roots():
    return CheckpointState.from_bytes(checkpoint({"w": [0.5], "table": TABLE}))


def good(seed):
    random = np.random.default_rng(seed)
    return random.uniform(1, 2, 3).astype(np.float32), random.integers(0, 4, 3)


BAD = (np.zeros(3, np.float32), np.array([0, 4, 1]))  # row 4 is 0


def numbers(s):
    return {name: np.array(s.parameters[name].data) for name in SHAPES}


def equal(a, b):
    return all(np.array_equal(a[name], b[name]) for name in SHAPES)


@pytest.mark.parametrize("clip", [0, 1.0])
@pytest.mark.parametrize("settings", OPTIMIZERS, ids=lambda s: " ".join(str(v) for v in s.values()))
def test_a_gradient_that_is_not_finite(roots, settings, clip):
    options = {"learning_rate": 0.01, "clip_norm": clip, "threads": 1}
    hurt, twin = of_roots(), of_roots()
    first, second = (Trainer(roots, s, dict(settings), **options) for s in (hurt, twin))
    for seed in range(2):
        assert first.train_step(good(seed)) == second.train_step(good(seed))
    before = numbers(hurt)
    for _ in range(2):
        with pytest.raises(sardonyx.Error, match="not finite"):
            first.train_step(BAD)
        assert equal(before, numbers(hurt))
    for seed in range(2, 5):
        assert first.train_step(good(seed)) == second.train_step(good(seed))
    assert equal(numbers(hurt), numbers(twin)) and not equal(before, numbers(hurt))
    assert hurt.to_bytes() == twin.to_bytes()  # moments and steps too


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("settings", OPTIMIZERS[1::2], ids=lambda s: " ".join(str(v) for v in s.values()))
def test_sums_of_gradients_that_are_not_finite(roots, settings, place):
    """The sum with such a batch is given up, wherever it stands."""
    options = {"learning_rate": 0.01, "accumulate": 3, "threads": 1}
    hurt, twin = of_roots(), of_roots()
    first, second = (Trainer(roots, s, dict(settings), **options) for s in (hurt, twin))
    for seed in range(3):
        first.train_step(good(seed))
        second.train_step(good(seed))
    before = numbers(hurt)
    for seed in range(place):
        first.train_step(good(seed))
    refused = False
    for batch in [BAD, *(good(seed) for seed in range(place + 1, 3))]:
        try:
            first.train_step(batch)
        except sardonyx.Error as e:
            assert "not finite" in str(e)
            refused = True
            break
    assert refused and equal(before, numbers(hurt))
    for seed in range(3, 6):
        first.train_step(good(seed))
        second.train_step(good(seed))
    assert equal(numbers(hurt), numbers(twin)) and not equal(before, numbers(hurt))
    assert hurt.to_bytes() == twin.to_bytes()


@pytest.mark.parametrize("model", ["sgd", "adamw"])
def test_optimizers_refuse_what_is_not_finite(roots, model):
    hurt, twin = of_roots(), of_roots()
    pairs = []
    for s in (hurt, twin):
        module = Module(str(roots / "training_model.onnx"), s, str(roots / "eval_model.onnx"))
        pairs.append((module, Optimizer(str(roots / f"{model}.onnx"), module)))

    def step(pair, *batches):
        for batch in batches:
            pair[0](*batch)
        pair[1].step()
        pair[0].lazy_reset_grad()

    for pair in pairs:
        step(pair, good(0), good(1))
    before = numbers(hurt)
    for batches in ((BAD,), (good(2), BAD), (BAD, good(2))):
        with pytest.raises(sardonyx.Error, match="gradient of '(w|table)' is not finite"):
            step(pairs[0], *batches)
        assert equal(before, numbers(hurt))
        pairs[0][0].lazy_reset_grad()
    for pair in pairs:
        step(pair, good(3))
    assert equal(numbers(hurt), numbers(twin)) and hurt.to_bytes() == twin.to_bytes()


def test_what_is_not_finite_may_be_asked_for(roots):
    """The check can be left out; then a step is taken as it is."""
    s = of_roots()
    trainer = Trainer(roots, s, "sgd", learning_rate=0.01, refuse_non_finite=False)
    trainer.train_step(BAD)
    assert not all(np.isfinite(v).all() for v in numbers(s).values())
