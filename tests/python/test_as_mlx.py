"""python -m sardonyx.as_mlx: programs that import mlx.core."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
import sardonyx

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(sardonyx.__file__).absolute().parent.parent)}
HAS_MLX = importlib.util.find_spec("mlx") is not None


def run(tmp_path, text, *arguments, as_module=False):
    script = tmp_path / "program.py"
    script.write_text(text)
    command = ["-m", "program"] if as_module else [str(script)]
    done = subprocess.run([sys.executable, "-B", "-m", "sardonyx.as_mlx", *command, *arguments], cwd=tmp_path, env=ENVIRONMENT,
                          capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.parametrize("as_module", [False, True])
def test_a_program_finds_mlx(tmp_path, as_module):
    text = (
        "import sys, mlx.core as mx\nfrom mlx.core import random, fft\n"
        "print(__name__, sys.argv[1], repr(mx.float32), mx.array([1, 2]).sum().item(), mx.argmax(mx.array([1, 2])).dtype.name)\n"
        "print(mx.random is random, mx.array(1).__array_namespace__() is mx, mx.metal.is_available(), 'nothing' in sys.modules)\n"
    )
    assert run(tmp_path, text, "argument", as_module=as_module) == [
        "__main__", "argument", "mlx.core.float32", "3", "uint32", "True", "True", "False", "False"]


def test_usage():
    done = subprocess.run([sys.executable, "-B", "-m", "sardonyx.as_mlx"], capture_output=True, text=True)
    assert done.returncode == 2 and "no program is named" in done.stderr
    assert subprocess.run([sys.executable, "-B", "-m", "sardonyx.as_mlx", "--help"], capture_output=True, text=True).returncode == 0


@pytest.mark.skipif(not HAS_MLX, reason="the mlx package is not installed")
def test_mlx_nn_trains(tmp_path):
    text = """
import functools, sys
import mlx.core as mx, mlx.nn as nn, mlx.optimizers as optim
mx.random.seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.relu, nn.LayerNorm(16), nn.Linear(16, 3))
optimizer = optim.AdamW(learning_rate=1e-2)
x = mx.random.normal((32, 8)); y = mx.argmax(x[:, :3], axis=1)
grad = nn.value_and_grad(model, lambda m, x, y: nn.losses.cross_entropy(m(x), y, reduction="mean"))
state = [model.state, optimizer.state]
@functools.partial(mx.compile, inputs=state, outputs=state)
def step(x, y):
    loss, grads = grad(model, x, y)
    optimizer.update(model, grads)
    return loss
losses = [step(x, y).item() for _ in range(60)]
print(losses[-1] < 0.2 * losses[0], "mlx.core" in sys.modules, sys.modules["mlx.core"].__spec__.origin)
"""
    assert run(tmp_path, text) == ["True", "True", "None"]
