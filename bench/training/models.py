"""The models that are trained, as PyTorch modules, and as ONNX files with their batches: models.py FOLDER [CASE]...

Each case's folder gets model.onnx (weights from a fixed seed), batch.npz (the inputs and the labels of a step) and training.txt: the
optimiser, and beginnings of the names of what is frozen.
"""

from __future__ import annotations

import pathlib
import sys
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import nn


class Cnn(nn.Sequential):
    def __init__(self) -> None:
        super().__init__(
            nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Flatten(), nn.Linear(16 * 7 * 7, 10),
        )  # fmt: skip


class Residual(nn.Module):
    def __init__(self, channels: int, out: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, out, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(out)
        self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(out)
        same = stride == 1 and channels == out
        self.short = nn.Identity() if same else nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(self.norm1(self.conv1(x)))
        return torch.relu(self.norm2(self.conv2(y)) + self.short(x))


class ResNet18(nn.Sequential):
    """For pictures of 32 x 32: He and others 2016, whose first layer does not shrink them."""

    def __init__(self) -> None:
        layers: list[nn.Module] = [nn.Conv2d(3, 64, 3, padding=1, bias=False), nn.BatchNorm2d(64), nn.ReLU()]
        channels = 64
        for out, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
            layers += [Residual(channels, out, stride), Residual(out, out, 1)]
            channels = out
        super().__init__(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))


class Inverted(nn.Module):
    def __init__(self, channels: int, out: int, stride: int, factor: int) -> None:
        super().__init__()
        wide = channels * factor
        layers: list[nn.Module] = []
        if factor != 1:
            layers += [nn.Conv2d(channels, wide, 1, bias=False), nn.BatchNorm2d(wide), nn.ReLU6()]
        layers += [nn.Conv2d(wide, wide, 3, stride, 1, groups=wide, bias=False), nn.BatchNorm2d(wide), nn.ReLU6()]
        layers += [nn.Conv2d(wide, out, 1, bias=False), nn.BatchNorm2d(out)]
        self.body = nn.Sequential(*layers)
        self.same = stride == 1 and channels == out

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.body(x) if self.same else self.body(x)


MOBILENET = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))


class Transfer(nn.Module):
    """MobileNetV2 (Sandler and others 2018), of which the last layer alone is trained."""

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = [nn.Conv2d(3, 32, 3, 2, 1, bias=False), nn.BatchNorm2d(32), nn.ReLU6()]
        channels = 32
        for factor, out, count, stride in MOBILENET:
            for i in range(count):
                layers.append(Inverted(channels, out, stride if i == 0 else 1, factor))
                channels = out
        layers += [nn.Conv2d(channels, 1280, 1, bias=False), nn.BatchNorm2d(1280), nn.ReLU6()]
        self.features = nn.Sequential(*layers)
        self.head = nn.Linear(1280, 10)
        for parameter in self.features.parameters():
            parameter.requires_grad_(False)

    def train(self, mode: bool = True) -> Transfer:
        super().train(mode)
        self.features.eval()
        return self

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.features(x).mean((2, 3)))


class Layer(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n, t, w = x.shape
        y = self.norm1(x)
        q, k, v = (f(y).reshape(n, t, self.heads, w // self.heads).transpose(1, 2) for f in (self.query, self.key, self.value))
        p = torch.softmax(q @ k.transpose(2, 3) * (w // self.heads) ** -0.5, -1)
        x = x + self.out((p @ v).transpose(1, 2).reshape(n, t, w))
        return x + self.down(torch.relu(self.up(self.norm2(x))))


class Transformer(nn.Module):
    def __init__(self, words: int, tokens: int, width: int, layers: int, heads: int) -> None:
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.places = nn.Parameter(torch.randn(tokens, width) * 0.02)
        self.layers = nn.Sequential(*(Layer(width, heads) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, words)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.head(self.norm(self.layers(self.words(x) + self.places)))
        return y.reshape(-1, y.shape[-1])


def mlp(*widths: int) -> nn.Module:
    layers: list[nn.Module] = []
    for a, b in zip(widths, widths[1:]):
        layers += [nn.Linear(a, b), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def pictures(*shape: int) -> Callable[[np.random.Generator], tuple[np.ndarray, np.ndarray]]:
    return lambda r: (r.standard_normal(shape, dtype=np.float32), r.integers(0, 10, shape[0]))


def texts(batch: int, tokens: int, words: int) -> Callable[[np.random.Generator], tuple[np.ndarray, np.ndarray]]:
    return lambda r: (r.integers(0, words, (batch, tokens)), r.integers(0, words, batch * tokens))


@dataclass(frozen=True)
class Case:
    about: str
    make: Callable[[], nn.Module]
    batch: Callable[[np.random.Generator], tuple[np.ndarray, np.ndarray]]
    optimizer: str
    frozen: tuple[str, ...] = field(default=())  # beginnings of names


CASES = {
    "mlp": Case("784-128-10, batch 64", lambda: mlp(784, 128, 10), pictures(64, 784), "adamw"),
    "mlp_large": Case("1024-1024-1024-10, batch 128", lambda: mlp(1024, 1024, 1024, 10), pictures(128, 1024), "adamw"),
    "cnn": Case("8 and 16 channels, 28 x 28, batch 64", Cnn, pictures(64, 1, 28, 28), "sgd"),
    "resnet18": Case("64 to 512 channels, 32 x 32, batch 32", ResNet18, pictures(32, 3, 32, 32), "sgd"),
    "mobilenet_head": Case("last layer of MobileNetV2, 128 x 128, batch 16", Transfer, pictures(16, 3, 128, 128), "adamw",
                           ("features.",)),
    "transformer": Case("width 32, 2 layers, 64 x 16 tokens", lambda: Transformer(128, 16, 32, 2, 4), texts(64, 16, 128), "adamw"),
    "transformer_large": Case("width 256, 4 layers, 8 heads, 8 x 128 tokens", lambda: Transformer(512, 128, 256, 4, 8),
                              texts(8, 128, 512), "adamw"),
}  # fmt: skip


def made(case: str) -> nn.Module:
    torch.manual_seed(1)
    return CASES[case].make().train()


def batch(case: str) -> tuple[np.ndarray, np.ndarray]:
    return CASES[case].batch(np.random.default_rng(0))


def export(case: str, folder: pathlib.Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    module = made(case)
    x, labels = batch(case)
    mode = torch.onnx.TrainingMode.EVAL if CASES[case].frozen else torch.onnx.TrainingMode.TRAINING
    torch.onnx.export(module, torch.from_numpy(x), str(folder / "model.onnx"), training=mode, do_constant_folding=False, opset_version=17,
                      input_names=["x"], output_names=["scores"])  # fmt: skip
    np.savez(folder / "batch.npz", x=x, labels=labels)
    (folder / "training.txt").write_text(" ".join((CASES[case].optimizer, *CASES[case].frozen)) + "\n")


if __name__ == "__main__":
    for name in sys.argv[2:] or CASES:
        export(name, pathlib.Path(sys.argv[1]) / name)
