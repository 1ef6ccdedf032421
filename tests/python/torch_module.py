"""sardonyx.torch.Module beside plain PyTorch: the same losses, gradients, statistics; and what it leaves to PyTorch.

Run with an interpreter that has PyTorch; exits with 77 where there is none.
"""

import copy
import pickle
import sys
import unittest
import warnings

try:
    import torch
except ImportError:
    print("skipped: no PyTorch")
    sys.exit(77)

from torch import nn

from sardonyx.torch import Module, exporter, symbolics


def batches(shape, classes, count=20, size=None, seed=1):
    g = torch.Generator().manual_seed(seed)
    sizes = [shape[0]] * count if size is None else [size[i % len(size)] for i in range(count)]
    return [(torch.randn(n, *shape[1:], generator=g), torch.randint(0, classes, (n,), generator=g)) for n in sizes]


class Compared(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)

    def gradients_agree(self, plain, other, tolerance=1e-4):
        scale = max(p.grad.abs().max().item() for p in plain.parameters() if p.grad is not None)
        for (name, p), (_, q) in zip(plain.named_parameters(), other.named_parameters(), strict=True):
            self.assertEqual(p.grad is None, q.grad is None, name)
            if p.grad is not None:
                self.assertLessEqual((p.grad - q.grad).abs().max().item(), tolerance * scale, name)

    def train_both(self, plain, data, optimizer=None, loss=None, tolerance=1e-4, accumulate=1):
        """Trains the module and its wrapped copy, and returns the latter."""
        loss = loss or nn.CrossEntropyLoss()
        optimizer = optimizer or (lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9))
        wrapped = Module(copy.deepcopy(plain))
        both = [(plain, optimizer(plain.parameters())), (wrapped, optimizer(wrapped.parameters()))]
        for step, (x, y) in enumerate(data):
            losses = []
            for module, o in both:
                value = loss(module(x), y)
                value.backward()
                losses.append(value.item())
            self.assertLessEqual(abs(losses[0] - losses[1]), tolerance * abs(losses[0]), f"step {step}: {losses}")
            self.gradients_agree(plain, wrapped)
            if (step + 1) % accumulate == 0:
                for _, o in both:
                    o.step()
                    o.zero_grad()
        for (name, p), (_, q) in zip(plain.named_buffers(), wrapped.named_buffers(), strict=True):
            self.assertTrue(torch.allclose(p, q, rtol=1e-3, atol=1e-4), name)
        self.assertEqual(wrapped.sardonyx_status()["reasons"], [])
        self.assertTrue(wrapped.sardonyx_status()["active"])
        return wrapped


def convolutional(dropout=0.0):
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, stride=2, padding=1, bias=False),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.Dropout(dropout),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(16, 5),
    )


class Encoder(nn.Module):
    def __init__(self, width=32, heads=4, layers=2, words=50, classes=5, dropout=0.0):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.places = nn.Parameter(torch.randn(64, width) * 0.02)
        layer = nn.TransformerEncoderLayer(width, heads, 2 * width, dropout=dropout, activation="gelu", batch_first=True)
        self.layers = nn.TransformerEncoder(layer, layers)
        self.head = nn.Linear(width, classes)

    def forward(self, ids):
        x = self.words(ids) + self.places[: ids.shape[1]]
        return self.head(self.layers(x).mean(dim=1))


class Training(Compared):
    def test_layers_of_products(self):
        plain = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 5))
        self.train_both(plain, batches((32, 20), 5), lambda p: torch.optim.AdamW(p, lr=1e-2))

    def test_convolutions_with_batch_normalisation(self):
        self.train_both(convolutional(), batches((8, 3, 16, 16), 5))

    def test_transformer(self):
        g = torch.Generator().manual_seed(2)
        data = [(torch.randint(0, 50, (8, 12), generator=g), torch.randint(0, 5, (8,), generator=g)) for _ in range(20)]
        self.train_both(Encoder(), data, lambda p: torch.optim.Adam(p, lr=1e-3))

    def test_batches_of_changing_sizes_need_one_export(self):
        wrapped = self.train_both(convolutional(), batches((0, 3, 16, 16), 5, count=9, size=[8, 5, 2]))
        status = wrapped.sardonyx_status()
        self.assertEqual((status["exports"], status["programs"]), (1, 3))

    def test_gradients_add_up(self):
        self.train_both(nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3)), batches((4, 6), 3, count=8), accumulate=4)

    def test_parts_that_do_not_train(self):
        plain = convolutional()
        plain[0].requires_grad_(False)
        plain[1].eval()
        wrapped = Module(copy.deepcopy(plain))
        x, y = batches((8, 3, 16, 16), 5, count=1)[0]
        for module in (plain, wrapped):
            nn.functional.cross_entropy(module(x), y).backward()
        self.assertIsNone(wrapped.module[0].weight.grad)
        self.gradients_agree(plain, wrapped)
        self.assertTrue(torch.equal(plain[1].running_mean, wrapped.module[1].running_mean))
        self.assertTrue(torch.allclose(plain[5].running_mean, wrapped.module[5].running_mean, atol=1e-5))

    def test_inside_of_other_modules(self):
        class Outer(nn.Module):
            def __init__(self, body):
                super().__init__()
                self.body = body
                self.scale = nn.Parameter(torch.ones(5))

            def forward(self, x):
                return self.body(x * 2) * self.scale

        torch.manual_seed(3)
        inner = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 5))
        plain, other = Outer(inner), Outer(Module(copy.deepcopy(inner)))
        self.assertEqual(list(plain.state_dict()), list(other.state_dict()))
        x = torch.randn(4, 6)
        for module in (plain, other):
            module(x).square().sum().backward()
        self.gradients_agree(plain, other)
        plain.load_state_dict(other.state_dict())
        self.assertEqual(len(list(other.parameters())), 5)


class Passes(Compared):
    def test_gradients_of_arguments(self):
        plain = nn.Sequential(nn.Linear(6, 8), nn.Softplus(), nn.Linear(8, 5))
        wrapped = Module(copy.deepcopy(plain))
        x = torch.randn(4, 6, requires_grad=True)
        z = x.detach().clone().requires_grad_()
        plain(x).square().mean().backward()
        wrapped(z).square().mean().backward()
        self.assertTrue(torch.allclose(x.grad, z.grad, atol=1e-6))

    def test_several_arguments_and_results(self):
        class Two(nn.Module):
            def __init__(self):
                super().__init__()
                self.a, self.b = nn.Linear(4, 3), nn.Linear(5, 3)

            def forward(self, x, other, *, scale=1.0):
                u, v = self.a(x["left"]), self.b(other[0])
                return {"sum": u + v, "parts": (u * scale, [v.relu()]), "largest": (u + v).argmax(1), "positive": u > 0}

        plain = Two()
        wrapped = Module(copy.deepcopy(plain))
        x, y = torch.randn(6, 4), torch.randn(6, 5)
        p, q = plain({"left": x}, [y], scale=2.5), wrapped({"left": x}, [y], scale=2.5)
        self.assertTrue(torch.allclose(p["sum"], q["sum"], atol=1e-6))
        self.assertTrue(torch.equal(p["largest"], q["largest"]))
        self.assertTrue(torch.equal(p["positive"], q["positive"]))
        self.assertFalse(q["largest"].requires_grad)
        for r in (p, q):
            (r["sum"].square().mean() + r["parts"][0].exp().mean() + r["parts"][1][0].sum()).backward()
        self.gradients_agree(plain, wrapped)
        self.assertTrue(wrapped.sardonyx_status()["active"])
        # One result alone.
        plain.zero_grad()
        wrapped.zero_grad()
        plain({"left": x}, [y])["parts"][0].sum().backward()
        wrapped({"left": x}, [y])["parts"][0].sum().backward()
        self.assertTrue(torch.allclose(plain.a.weight.grad, wrapped.a.weight.grad, atol=1e-5))

    def test_modes(self):
        plain = convolutional(0.5)
        wrapped = Module(copy.deepcopy(plain))
        x = torch.randn(8, 3, 16, 16)
        wrapped(x).sum().backward()
        wrapped.eval()
        plain.load_state_dict(wrapped.state_dict())
        plain.eval()
        self.assertFalse(wrapped.module[1].training)
        with torch.no_grad():
            self.assertTrue(torch.allclose(plain(x), wrapped(x), atol=1e-5))
            self.assertFalse(wrapped(x).requires_grad)
        plain.zero_grad()
        wrapped.zero_grad()
        for module in (plain, wrapped):
            module(x).square().sum().backward()
        self.gradients_agree(plain, wrapped)
        self.assertEqual(wrapped.sardonyx_status()["exports"], 2)

    def test_dropout_drops_anew_and_follows_the_seed(self):
        wrapped = Module(nn.Sequential(nn.Dropout(0.3)))
        x = torch.full((40, 50), 2.0, requires_grad=True)
        torch.manual_seed(5)
        first, second = wrapped(x), wrapped(x)
        torch.manual_seed(5)
        again = wrapped(x)
        self.assertTrue(torch.equal(first, again))
        self.assertFalse(torch.equal(first, second))
        self.assertAlmostEqual((first == 0).double().mean().item(), 0.3, delta=0.05)
        first.sum().backward()
        self.assertTrue(torch.allclose(x.grad, first.detach() / 2))  # the same elements

    def test_passes_before_others_are_over(self):
        plain = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 5))
        wrapped = Module(copy.deepcopy(plain))
        x, y = torch.randn(4, 6), torch.randn(4, 6)
        for module in (plain, wrapped):
            a, b = module(x), module(y)
            (a * b).sum().backward()
        self.gradients_agree(plain, wrapped)
        value = wrapped(x).sum()
        value.backward(retain_graph=True)
        value.backward()
        for _ in range(2):
            plain(x).sum().backward()
        self.gradients_agree(plain, wrapped)
        with self.assertRaises(RuntimeError):
            value.backward()

    def test_changes_in_between_are_noticed(self):
        wrapped = Module(nn.Sequential(nn.Linear(3, 3), nn.Sigmoid()))
        out = wrapped(torch.randn(2, 3))
        with torch.no_grad():
            wrapped.module[0].weight.mul_(2)
        Module(nn.Identity())
        x = torch.randn(2, 3, requires_grad=True)
        out = wrapped(x)
        with torch.no_grad():
            wrapped.module[0].weight.mul_(2)
        with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
            out.sum().backward()

    def test_parameters_that_move(self):
        wrapped = Module(nn.Linear(3, 2))
        x = torch.randn(4, 3)
        wrapped(x)
        wrapped.weight.data = torch.zeros(2, 3)
        with torch.no_grad():
            wrapped.bias.zero_()
        self.assertEqual(wrapped(x).abs().max().item(), 0)
        wrapped.double()
        out = wrapped(x.double())
        self.assertEqual(out.dtype, torch.float64)
        wrapped.load_state_dict({"weight": torch.ones(2, 3), "bias": torch.ones(2)})
        self.assertTrue(torch.allclose(wrapped(x.double()), x.double().sum(1, keepdim=True) + 1))
        self.assertTrue(wrapped.sardonyx_status()["active"])
        self.assertEqual(wrapped.sardonyx_status()["reasons"], [])


class EqualValues(Compared):
    """Parameters, buffers and gradients that are equal are not one."""

    def build(self):
        layer = nn.TransformerEncoderLayer(8, 2, 12, dropout=0.0, batch_first=True)
        return nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.TransformerEncoder(layer, 2), nn.LayerNorm(8), nn.Linear(8, 3))

    def test_validation_before_training(self):
        plain = self.build()
        wrapped = Module(copy.deepcopy(plain))
        both = [(plain, torch.optim.SGD(plain.parameters(), lr=0.1)), (wrapped, torch.optim.SGD(wrapped.parameters(), lr=0.1))]
        x, y = torch.randn(6, 5, 4), torch.randint(0, 3, (6, 5))
        for mode in (False, True, False, True, False):
            losses = []
            for module, optimizer in both:
                module.train(mode)
                loss = nn.functional.cross_entropy(module(x).transpose(1, 2), y)
                losses.append(loss.item())
                if mode:
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
            self.assertAlmostEqual(losses[0], losses[1], places=4)
        self.assertEqual(wrapped.sardonyx_status()["reasons"], [])

    def test_training_in_eval_mode(self):
        plain = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.BatchNorm1d(6), nn.Linear(6, 6), nn.LayerNorm(6))
        plain.eval()
        wrapped = Module(copy.deepcopy(plain))
        for _ in range(3):
            x = torch.randn(5, 4)
            for module in (plain, wrapped):
                module.zero_grad()
                module(x).square().sum().backward()
                with torch.no_grad():
                    for p in module.parameters():
                        p -= 0.01 * p.grad
            self.gradients_agree(plain, wrapped)
        self.assertEqual(wrapped.sardonyx_status()["reasons"], [])

    def test_gradients_that_are_equal(self):
        class Sum(nn.Module):
            def __init__(self):
                super().__init__()
                self.a, self.b = nn.Parameter(torch.zeros(4)), nn.Parameter(torch.zeros(4))

            def forward(self, x):
                return x + self.a + self.b

        module = Module(Sum())
        x = torch.zeros(8, 4, requires_grad=True)
        for passes in (1, 2, 3):
            module(x).sum().backward()
            for p in module.parameters():
                self.assertEqual(p.grad.tolist(), [8.0 * passes] * 4)
        nn.utils.clip_grad_norm_(module.parameters(), 1)
        self.assertAlmostEqual(sum(p.grad.square().sum() for p in module.parameters()).sqrt().item(), 1, places=4)
        places = [t.grad.data_ptr() for t in (*module.parameters(), x)]
        self.assertEqual(len(set(places)), 3)

    def test_the_gradient_that_is_given_is_not_taken(self):
        module = Module(nn.Sequential(nn.Flatten()))
        x = torch.zeros(3, 4, requires_grad=True)
        given = torch.ones(3, 4)
        module(x).backward(given)
        x.grad.zero_()
        self.assertEqual(given.sum().item(), 12)

    def test_results_that_are_equal(self):
        class Both(nn.Module):
            def forward(self, x):
                return x.relu(), x.relu(), x

        x = torch.ones(3)
        first, second, third = Module(Both())(x)
        first.mul_(5)
        self.assertEqual((second.sum().item(), x.sum().item()), (3, 3))

    def test_parameters_with_two_names(self):
        plain = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4))
        plain[2].weight = plain[0].weight
        for mode in (True, False):
            one = copy.deepcopy(plain).train(mode)
            wrapped = Module(copy.deepcopy(one))
            x = torch.randn(3, 4)
            for module in (one, wrapped):
                module(x).square().sum().backward()
            self.gradients_agree(one, wrapped)


class LeftToPyTorch(Compared):
    def expect_reason(self, module, reason, *arguments, **named):
        wrapped = Module(module)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            first = wrapped(*arguments, **named)
            wrapped(*arguments, **named)
        mine = [str(w.message) for w in caught if "Sardonyx" in str(w.message)]
        self.assertEqual(len(mine), 1, mine)
        self.assertRegex(mine[0], reason)
        status = wrapped.sardonyx_status()
        self.assertRegex(" ".join(status["reasons"]), reason)
        self.assertFalse(status["active"])
        return first

    def test_what_cannot_be_exported(self):
        class Odd(nn.Module):
            def __init__(self):
                super().__init__()
                self.a = nn.Linear(3, 3)

            def forward(self, x):
                return torch.linalg.matrix_exp(self.a(x)[:3, :3])

        x = torch.randn(3, 3)
        out = self.expect_reason(Odd(), "matrix_exp", x)
        out.sum().backward()

    def test_hooks(self):
        module = nn.Linear(3, 2)
        called = []
        module.register_forward_hook(lambda *_: called.append(1))
        self.expect_reason(module, "hooks", torch.randn(2, 3))
        self.assertEqual(len(called), 2)

    def test_arguments_of_other_kinds(self):
        class Takes(nn.Module):
            def forward(self, x, what):
                return x * len(what)

        self.expect_reason(Takes(), "set as an argument", torch.randn(2), {1, 2})

    def test_what_a_trace_hides(self):
        class Own(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x.round()

            @staticmethod
            def backward(ctx, gradient):
                return gradient

        class Uses(nn.Module):
            def __init__(self, function):
                super().__init__()
                self.a, self.function = nn.Linear(3, 3), function
                self.register_buffer("mean", torch.zeros(3))

            def forward(self, x):
                return self.function(self, self.a(x))

        def counts(module, h):
            with torch.no_grad():
                module.mean.add_(h.mean(0))
            return h

        def replaces(module, h):
            module.mean = h.detach().mean(0)
            return h

        def penalty(module, h):
            return torch.autograd.grad(h.sum(), module.a.weight, create_graph=True)[0]

        def hooked(module, h):
            h.register_hook(lambda g: 2 * g)
            return h

        x = torch.randn(2, 3)
        self.expect_reason(Uses(lambda _, h: Own.apply(h)), "Own", x)
        self.expect_reason(Uses(counts), "changes the buffer '.*mean'", x)
        self.expect_reason(Uses(replaces), "changes the buffer '.*mean'", x)
        self.expect_reason(Uses(penalty), "gradients itself", x)
        self.expect_reason(Uses(hooked), "hooks", x)
        self.expect_reason(nn.EmbeddingBag(5, 3, padding_idx=1), "padding_idx", torch.tensor([[0, 1]]))
        self.expect_reason(nn.Embedding(5, 3, sparse=True), "sparse", torch.tensor([[0, 1]]))

    def test_the_exporter_is_as_it_was(self):
        Module(nn.Embedding(5, 3, padding_idx=1))(torch.tensor([[0, 1]]))
        registry = exporter.registry()
        self.assertFalse(any(symbolics._is_users(name) for name in symbolics._FUNCTIONS))
        own = registry.get_function_group("aten::detach")
        own.add_custom(lambda g, x: g.op("Neg", x), 13)
        try:
            class Detaches(nn.Module):
                def forward(self, x):
                    return x.detach()

            self.assertEqual(Module(Detaches())(torch.ones(2)).tolist(), [-1, -1])  # the program's own function
            self.assertTrue(symbolics._is_users("aten::detach"))
        finally:
            own.remove_custom(13)

    def test_averages_over_all_batches(self):
        self.expect_reason(nn.BatchNorm1d(3, momentum=None), "momentum is None", torch.randn(4, 3))

    def test_errors_are_those_of_the_module(self):
        wrapped = Module(nn.Linear(3, 2))
        wrapped(torch.randn(2, 3))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with self.assertRaisesRegex(RuntimeError, "shapes cannot be multiplied"):
                wrapped(torch.randn(2, 4))
        self.assertEqual(wrapped(torch.randn(2, 3)).shape, (2, 2))

    def test_no_module(self):
        with self.assertRaises(TypeError):
            Module(torch.relu)


class Kept(Compared):
    def test_names_copies_and_files(self):
        module = convolutional()
        names = list(module.state_dict())
        wrapped = Module(module)
        self.assertEqual(list(wrapped.state_dict()), names)
        self.assertEqual([n for n, _ in wrapped.named_parameters()], [n for n, _ in module.named_parameters()])
        self.assertIs(wrapped.module[0], module[0])
        x = torch.randn(2, 3, 8, 8)
        wrapped.eval()
        self.assertFalse(module.training)
        out = wrapped(x)
        for other in (copy.deepcopy(wrapped), pickle.loads(pickle.dumps(wrapped))):
            self.assertTrue(torch.allclose(out, other(x), atol=1e-6))
            self.assertIsNot(other.module[0].weight, wrapped.module[0].weight)


if __name__ == "__main__":
    unittest.main()
