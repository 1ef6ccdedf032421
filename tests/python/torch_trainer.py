"""sardonyx.torch.Trainer beside plain PyTorch: the same losses and parameters after the same steps.

Run with an interpreter that has PyTorch; exits with 77 where there is none.
"""

import contextlib
import copy
import importlib.util
import inspect
import io
import os
import sys
import tempfile
import unittest
import warnings
from pathlib import Path

try:
    import torch
except ImportError:
    print("skipped: no PyTorch")
    sys.exit(77)

from torch import nn

import sardonyx
from sardonyx.torch import Module, Trainer
from sardonyx.training import artifacts
from sardonyx.training.api import CheckpointState
from torch_module import Encoder, batches, convolutional

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from scratch import scratch  # noqa: E402

OPTIMIZERS = {
    "AdamW": lambda p: torch.optim.AdamW(p, lr=2e-3, weight_decay=0.05, betas=(0.8, 0.99)),
    "Adam": lambda p: torch.optim.Adam(p, lr=2e-3, weight_decay=0.01),
    "SGD": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True, weight_decay=1e-3),
    "RMSprop": lambda p: torch.optim.RMSprop(p, lr=1e-3, momentum=0.5),
    "Adagrad": lambda p: torch.optim.Adagrad(p, lr=1e-2),
}


class Compared(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)

    def train_both(self, plain, data, optimizer, loss=None, tolerance=1e-4, **options):
        loss = loss or nn.CrossEntropyLoss()
        compiled = copy.deepcopy(plain)
        trainer = Trainer(compiled, loss, optimizer(compiled.parameters()), **options)
        ours = optimizer(plain.parameters())
        for step, (x, y) in enumerate(data):
            ours.zero_grad()
            value = loss(plain(x), y)
            value.backward()
            if "clip_norm" in options:
                nn.utils.clip_grad_norm_(plain.parameters(), options["clip_norm"])
            ours.step()
            received = trainer.train_step(x, y)
            self.assertLessEqual(abs(value.item() - received), tolerance * abs(value.item()), f"step {step}")
        self.assertEqual(trainer.steps, len(data))
        for (name, p), (_, q) in zip(plain.named_parameters(), compiled.named_parameters(), strict=True):
            self.assertTrue(torch.allclose(p, q, rtol=1e-3, atol=1e-4), name)
        return trainer, compiled


class Training(Compared):
    def test_optimisers(self):
        for name, optimizer in OPTIMIZERS.items():
            with self.subTest(name):
                torch.manual_seed(0)
                plain = nn.Sequential(nn.Linear(12, 24), nn.Tanh(), nn.Linear(24, 5))
                self.train_both(plain, batches((16, 12), 5, count=12), optimizer)

    def test_clipped_gradients(self):
        plain = nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, 5))
        self.train_both(plain, batches((16, 12), 5, count=12), OPTIMIZERS["SGD"], clip_norm=0.3)

    def test_convolutions_with_batch_normalisation(self):
        plain = convolutional()
        # With Adam the bias before a normalisation, whose gradient is noise about 0, would go by that.
        _, compiled = self.train_both(plain, batches((8, 3, 16, 16), 5), OPTIMIZERS["SGD"])
        self.assertTrue(torch.allclose(plain[1].running_mean, compiled[1].running_mean, rtol=1e-3, atol=1e-4))
        self.assertEqual(compiled[1].num_batches_tracked.item(), 20)
        plain.eval()
        compiled.eval()
        x = torch.randn(4, 3, 16, 16)
        self.assertTrue(torch.allclose(plain(x), compiled(x), rtol=1e-2, atol=1e-2))

    def test_transformer(self):
        g = torch.Generator().manual_seed(2)
        data = [(torch.randint(0, 50, (8, 12), generator=g), torch.randint(0, 5, (8,), generator=g)) for _ in range(20)]
        self.train_both(Encoder(), data, OPTIMIZERS["SGD"])

    def test_batches_of_changing_sizes(self):
        plain = nn.Sequential(nn.Linear(12, 24), nn.Tanh(), nn.Linear(24, 5))
        self.train_both(plain, batches((0, 12), 5, count=8, size=[16, 3]), OPTIMIZERS["SGD"])

    def test_parts_that_do_not_train(self):
        plain = nn.Sequential(nn.Linear(12, 24), nn.Tanh(), nn.Linear(24, 5))
        plain[0].requires_grad_(False)
        before = plain[0].weight.clone()
        _, compiled = self.train_both(
            plain, batches((16, 12), 5, count=5), lambda p: torch.optim.SGD([q for q in p if q.requires_grad], lr=0.1)
        )
        self.assertTrue(torch.equal(before, compiled[0].weight))

    def test_several_arguments_and_a_loss_of_ones_own(self):
        class Two(nn.Module):
            def __init__(self):
                super().__init__()
                self.a = nn.Linear(4, 3)

            def forward(self, x, y):
                return {"sum": self.a(x) + self.a(y), "left": x}

        def loss(result, target, weight):
            return ((result["sum"] - target).square() * weight).mean()

        plain = Two()
        compiled = copy.deepcopy(plain)
        optimizer = torch.optim.SGD(plain.parameters(), lr=0.1)
        trainer = Trainer(compiled, loss, "sgd", learning_rate=0.1)
        for _ in range(5):
            x, y, t, w = torch.randn(6, 4), torch.randn(6, 4), torch.randn(6, 3), torch.rand(6, 1)
            optimizer.zero_grad()
            result = plain(x, y)
            value = loss(result, t, w)
            value.backward()
            optimizer.step()
            self.assertAlmostEqual(trainer.train_step((x, y), (t, w)), value.item(), places=5)
            last = trainer.last_outputs()
            self.assertTrue(torch.allclose(last["sum"], result["sum"], atol=1e-5))

    def test_a_model_that_gives_its_loss(self):
        class WithLoss(nn.Module):
            def __init__(self):
                super().__init__()
                self.a = nn.Linear(4, 3)

            def forward(self, x, labels):
                return nn.functional.cross_entropy(self.a(x), labels)

        plain = WithLoss()
        compiled = copy.deepcopy(plain)
        optimizer = torch.optim.SGD(plain.parameters(), lr=0.1)
        trainer = Trainer(compiled, None, "sgd", learning_rate=0.1)
        for x, y in batches((6, 4), 3, count=4):
            optimizer.zero_grad()
            value = plain(x, y)
            value.backward()
            optimizer.step()
            self.assertAlmostEqual(trainer.train_step({"x": x, "labels": y}), value.item(), places=5)

    def test_the_module_serves_in_between(self):
        compiled = nn.Sequential(nn.Linear(12, 24), nn.Tanh(), nn.Linear(24, 5))
        wrapped = Module(compiled)
        trainer = Trainer(compiled, nn.CrossEntropyLoss(), "adamw", learning_rate=1e-2)
        x, y = batches((16, 12), 5, count=1)[0]
        losses = []
        for _ in range(5):
            with torch.no_grad():
                losses.append(nn.functional.cross_entropy(wrapped(x), y).item())
            self.assertAlmostEqual(trainer.train_step(x, y), losses[-1], places=5)
        self.assertLess(losses[-1], losses[0])

    def test_rates_and_checkpoints(self):
        compiled = nn.Sequential(nn.Linear(12, 5))
        trainer = Trainer(compiled, nn.CrossEntropyLoss(), torch.optim.SGD(compiled.parameters(), lr=0.25))
        self.assertEqual(trainer.learning_rate, 0.25)
        x, y = batches((16, 12), 5, count=1)[0]
        trainer.train_step(x, y)
        before = compiled[0].weight.clone()
        trainer.learning_rate = 0.0
        trainer.train_step(x, y)
        self.assertTrue(torch.equal(before, compiled[0].weight))
        with scratch() as folder:
            path = os.path.join(folder, "checkpoint")
            trainer.save_checkpoint(path)
            from sardonyx.training.api import CheckpointState

            state = CheckpointState.load_checkpoint(path)
            saved = state.parameters["model.0.weight"].data
        self.assertTrue(torch.equal(torch.tensor(saved), compiled[0].weight.detach()))


class Evaluated(Compared):
    """Models in eval(), whose parameters of equal values the exporter would join."""

    def test_models_in_eval_mode(self):
        plain = nn.Sequential(nn.Linear(12, 24), nn.BatchNorm1d(24), nn.LayerNorm(24), nn.ReLU(), nn.LayerNorm(24), nn.Linear(24, 5))
        nn.init.zeros_(plain[0].bias)
        plain.eval()
        _, compiled = self.train_both(plain, batches((16, 12), 5, count=6), OPTIMIZERS["SGD"])
        self.assertTrue(torch.equal(plain[1].running_var, compiled[1].running_var))

    def test_equal_gradients(self):
        class Sum(nn.Module):
            def __init__(self):
                super().__init__()
                self.a, self.b, self.c = nn.Parameter(torch.zeros(5)), nn.Parameter(torch.zeros(5)), nn.Linear(12, 5)

            def forward(self, x):
                return self.c(x) + self.a + self.b

        for name in ("SGD", "AdamW"):
            self.train_both(Sum(), batches((16, 12), 5, count=6), OPTIMIZERS[name])

    def test_padding_and_detached_values(self):
        class Words(nn.Module):
            def __init__(self):
                super().__init__()
                self.words, self.head = nn.Embedding(20, 8, padding_idx=0), nn.Linear(8, 5)

            def forward(self, ids):
                h = self.words(ids).mean(1)
                with torch.no_grad():
                    gate = torch.sigmoid(self.head(h)).mean(1, keepdim=True)
                return self.head(h * gate)

        g = torch.Generator().manual_seed(2)
        data = [(torch.randint(0, 4, (8, 6), generator=g), torch.randint(0, 5, (8,), generator=g)) for _ in range(6)]
        _, compiled = self.train_both(Words(), data, OPTIMIZERS["SGD"])
        self.assertEqual(compiled.words.weight[0].abs().max().item(), 0)

    def test_losses_of_large_scores(self):
        def scaled(x, y):
            return nn.functional.binary_cross_entropy_with_logits(100 * x, nn.functional.one_hot(y, 5).float())

        plain = nn.Sequential(nn.Linear(12, 5))
        self.train_both(plain, batches((16, 12), 5, count=6), OPTIMIZERS["SGD"], loss=scaled)


def said_by(function):
    """What is written to the process's standard error meanwhile."""
    kept = os.dup(2)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 2)
        try:
            function()
        finally:
            os.dup2(kept, 2)
            os.close(kept)
        file.seek(0)
        return file.read().decode()


class ExportsOfDocumentation(unittest.TestCase):
    """docs/converting.md: an export for inference joins equal parameters, of which artifacts warn; those for training do not."""

    def artifacts_of(self, **options):
        torch.manual_seed(0)
        layer = nn.TransformerEncoderLayer(8, 2, 12, dropout=0.0, batch_first=True)
        model = nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.TransformerEncoder(layer, 2), nn.Linear(8, 3))
        model.train(options.get("training") is not None)
        with scratch() as folder:
            path = os.path.join(folder, "model.onnx")
            with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
                warnings.simplefilter("ignore")
                torch.onnx.export(model, (torch.randn(2, 5, 4),), path, input_names=["x"], output_names=["y"], **options)
            said = said_by(lambda: artifacts.generate_artifacts(path, loss="MSELoss", optimizer="AdamW", artifact_directory=folder))
            state = CheckpointState.load_checkpoint(os.path.join(folder, "checkpoint"))
            return said, sum(p.requires_grad for _, p in state.parameters), len(list(model.parameters()))

    def test_the_older_exporter(self):
        options = {"opset_version": 15, "dynamic_axes": {"x": {0: "batch"}, "y": {0: "batch"}}}
        if "dynamo" in inspect.signature(torch.onnx.export).parameters:
            options["dynamo"] = False
        said, trained, parameters = self.artifacts_of(**options)
        self.assertLess(trained, parameters)
        self.assertIn("read in several places", said)
        options.update(training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False)
        said, trained, parameters = self.artifacts_of(**options)
        self.assertEqual((trained, said), (parameters, ""))

    @unittest.skipUnless(importlib.util.find_spec("onnxscript"), "onnxscript is not installed")
    @unittest.skipUnless("optimize" in inspect.signature(torch.onnx.export).parameters, "an older PyTorch")
    def test_the_newer_exporter(self):
        said, trained, parameters = self.artifacts_of(dynamo=True, verbose=False)
        self.assertLess(trained, parameters)
        self.assertIn("read in several places", said)
        said, trained, parameters = self.artifacts_of(dynamo=True, verbose=False, optimize=False)
        self.assertEqual((trained, said), (parameters, ""))


class Refused(Compared):
    def refused(self, reason, **named):
        model = named.pop("model", nn.Linear(3, 2))
        optimizer = named.pop("optimizer", "sgd")
        with self.assertRaisesRegex(sardonyx.InvalidArgument, reason):
            trainer = Trainer(model, nn.CrossEntropyLoss(), optimizer, **named)
            trainer.train_step(torch.randn(4, 3), torch.tensor([0, 1, 0, 1]))

    def test_reasons(self):
        model = nn.Linear(3, 2)
        self.refused("amsgrad", optimizer=torch.optim.Adam(model.parameters(), amsgrad=True))
        self.refused("LBFGS", optimizer=torch.optim.LBFGS(model.parameters()))
        groups = [{"params": [model.weight]}, {"params": [model.bias], "lr": 1}]
        self.refused("groups", optimizer=torch.optim.SGD(groups, lr=0.1))
        self.refused("float64", model=nn.Linear(3, 2).double())

    def test_other_structure(self):
        trainer = Trainer(nn.Linear(3, 2), nn.CrossEntropyLoss(), "sgd")
        with self.assertRaisesRegex(sardonyx.InvalidArgument, "no step"):
            trainer.last_outputs()
        trainer.train_step(torch.randn(4, 3), torch.tensor([0, 1, 0, 1]))
        with self.assertRaisesRegex(sardonyx.InvalidArgument, "structure"):
            trainer.train_step((torch.randn(4, 3), 1), torch.tensor([0, 1, 0, 1]))


class Roots(nn.Module):
    """Whose slope is infinite where the input is 0."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([1.0, 4.0]))
        self.rows = nn.Embedding.from_pretrained(torch.tensor([[0.0, 0.0], [1.0, 2.0]]), freeze=False)

    def forward(self, x, ids):
        return torch.sqrt(x * self.weight + self.rows(ids)).mean()


class GradientsThatAreNotFinite(unittest.TestCase):
    GOOD = (torch.tensor([[1.0, 2.0]]), torch.tensor([1]))
    BAD = (torch.tensor([[0.0, 1.0]]), torch.tensor([0]))

    def test_a_trainer_refuses_them(self):
        for kind in ("adamw", "adam", "sgd", "rmsprop", "adagrad", "lion"):
            for accumulate in (1, 2):
                with self.subTest(kind=kind, accumulate=accumulate):
                    hurt, twin = Roots(), Roots()
                    trainers = [Trainer(m, None, kind, learning_rate=0.01, accumulate=accumulate) for m in (hurt, twin)]
                    for trainer in trainers:
                        trainer.train_step(self.GOOD)
                        trainer.train_step(self.GOOD)
                    before = copy.deepcopy(hurt.state_dict())
                    with self.assertRaisesRegex(sardonyx.Error, "not finite"):
                        for _ in range(accumulate):
                            trainers[0].train_step(self.BAD)
                    for name, v in hurt.state_dict().items():
                        self.assertTrue(torch.equal(v, before[name]), name)
                    for trainer in trainers:
                        trainer.train_step(self.GOOD)
                        trainer.train_step(self.GOOD)
                    for name, v in hurt.state_dict().items():
                        self.assertTrue(torch.equal(v, twin.state_dict()[name]), name)

    def test_a_module_goes_on_as_pytorch_does(self):
        for name, optimizer in OPTIMIZERS.items():
            with self.subTest(name):
                plain = Roots()
                wrapped = Module(copy.deepcopy(plain))
                pairs = [(m, optimizer(m.parameters())) for m in (plain, wrapped)]
                for batch in (self.GOOD, self.BAD, self.GOOD):
                    for m, o in pairs:
                        o.zero_grad()
                        m(*batch).backward()
                        o.step()
                self.assertEqual(wrapped.sardonyx_status()["reasons"], [])
                for (name, v), w in zip(plain.state_dict().items(), wrapped.state_dict().values()):
                    self.assertTrue(torch.allclose(v, w, equal_nan=True, atol=1e-6), f"{name}: {v} {w}")
                self.assertFalse(plain.weight.isfinite().all())


if __name__ == "__main__":
    unittest.main()
