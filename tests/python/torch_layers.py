"""Every layer and loss of torch.nn through sardonyx.torch.Module, beside plain PyTorch: torch_layers.py [--all] [NAME…]

In train() and in eval(), before and after a step, results and the gradients of parameters and arguments must be PyTorch's; so must
buffers. What Module leaves to PyTorch is right too, and is listed. Without --all: a share, chosen by a fixed number, and the cases
that once were wrong. Run with an interpreter that has PyTorch; exits with 77 where there is none.
"""

import copy
import sys
import warnings

try:
    import torch
except ImportError:
    print("skipped: no PyTorch")
    sys.exit(77)

from torch import nn

from sardonyx.torch import Module

F = nn.functional
CASES = []  # name, make() -> module, arguments, whether it belongs to the quick share, tolerance


def case(name, make, *inputs, quick=False, tolerance=1e-4, grads=None):
    """`grads`: how many of the arguments have gradients; None: all floats."""
    count = len(inputs) if grads is None else grads
    given = [a.clone().requires_grad_(a.is_floating_point() and i < count) for i, a in enumerate(inputs)]
    CASES.append((name, make, given, quick, tolerance))


def r(*shape, seed=1, scale=1.0):
    """Floats, some of which are where functions have their corners."""
    x = torch.randn(*shape, generator=torch.Generator().manual_seed(seed)) * scale
    flat = x.view(-1)
    for i, corner in enumerate((0.0, 1.0, -1.0, 3.0, -3.0, 6.0, 0.5, -0.5)):
        if 11 * i < flat.numel() and flat.numel() > 8:
            flat[11 * i] = corner
    return x


def smooth(*shape, seed=1):
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed)) * 0.8 + 0.1


def ids(high, *shape, seed=2):
    return torch.randint(0, high, shape, generator=torch.Generator().manual_seed(seed))


def signs(*shape, seed=3):
    return ids(2, *shape, seed=seed).float() * 2 - 1


class Of(nn.Module):
    """A function as a module, behind a parameter, so that gradients pass through it."""

    def __init__(self, function, *shape):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(shape or (1,)))
        self.function = function

    def forward(self, x, *rest):
        return self.function(x * self.scale, *rest)


def wide(*shape):
    """Of every magnitude that exponentials meet."""
    values = torch.tensor([0, 1e-3, -1e-3, 1, -1, 5, -5, 16, -16, 18, -18, 50, -50, 90, -90, 104, -104, 200.0, -200, 1e4, -1e4])
    count = 1
    for n in shape:
        count *= n
    return values.repeat(count // len(values) + 1)[:count].view(*shape)


def add_activations():
    plain = "ELU Hardshrink Hardsigmoid Hardtanh Hardswish LeakyReLU LogSigmoid ReLU ReLU6 SELU CELU GELU Sigmoid SiLU Mish Softplus"
    plain += " Softshrink Softsign Tanh Tanhshrink Identity"
    for name in plain.split():
        quick = name in ("LogSigmoid", "Hardshrink")
        case(name, lambda kind=getattr(nn, name): Of(kind()), r(4, 24), quick=quick)
        case(f"{name} of large numbers", lambda kind=getattr(nn, name): Of(kind()), wide(3, 21), quick=quick)
    case("PReLU", lambda: nn.PReLU(), r(4, 24))
    case("PReLU by channel", lambda: nn.PReLU(3), r(2, 3, 5))
    case("Threshold", lambda: Of(nn.Threshold(0.1, 20)), r(4, 24))
    case("GELU tanh", lambda: Of(nn.GELU(approximate="tanh")), r(4, 24))
    case("GLU", lambda: Of(nn.GLU()), r(4, 24))
    case("Softplus with a threshold", lambda: Of(nn.Softplus(2.0, 3.0)), r(4, 24, scale=4), quick=True)
    case("ELU of another slope", lambda: Of(nn.ELU(0.7)), r(4, 24))
    case("Hardtanh of other bounds", lambda: Of(nn.Hardtanh(-0.5, 0.5)), r(4, 24))
    case("Softmin", lambda: Of(nn.Softmin(1)), r(4, 24))
    case("Softmax", lambda: Of(nn.Softmax(1)), r(4, 24))
    case("Softmax2d", lambda: Of(nn.Softmax2d()), r(2, 4, 3, 3))
    case("LogSoftmax", lambda: Of(nn.LogSoftmax(1)), wide(3, 21))
    case("RReLU", lambda: Of(nn.RReLU(0.2, 0.2)), r(4, 24))
    case("MultiheadAttention", lambda: nn.MultiheadAttention(8, 2, batch_first=True), r(2, 5, 8), r(2, 5, 8, seed=4), r(2, 5, 8, seed=5))
    case("Threshold in place", lambda: nn.Sequential(nn.Linear(8, 8), nn.ReLU(inplace=True), nn.Linear(8, 4)), r(4, 8))


def add_convolutions():
    for d in (1, 2, 3):
        shape = (2, 4) + (7, 6, 5)[:d]
        conv, back = getattr(nn, f"Conv{d}d"), getattr(nn, f"ConvTranspose{d}d")
        case(f"Conv{d}d", lambda k=conv: k(4, 6, 3), r(*shape))
        case(f"Conv{d}d strided", lambda k=conv: k(4, 6, 3, stride=2, padding=1, dilation=1, groups=2), r(*shape))
        case(f"Conv{d}d same", lambda k=conv: k(4, 6, 3, padding="same", dilation=2), r(*shape))
        for mode in ("zeros", "reflect", "replicate", "circular"):
            case(f"Conv{d}d {mode}", lambda k=conv, m=mode: k(4, 6, 3, padding=2, padding_mode=m), r(*shape), quick=mode == "circular" and d < 3)
        case(f"ConvTranspose{d}d", lambda k=back: k(4, 6, 3, stride=2, padding=1, output_padding=1), r(*shape))
        case(f"ConvTranspose{d}d groups", lambda k=back: k(4, 6, 3, groups=2, dilation=2, bias=False), r(*shape))
    case("Unfold", lambda: Of(nn.Unfold(3, padding=1)), r(2, 4, 6, 5))
    case("Fold", lambda: Of(nn.Fold((4, 5), 2)), r(2, 12, 12))


def add_pools_and_paddings():
    for d in (1, 2, 3):
        shape = (2, 4) + (8, 6, 7)[:d]
        for name in ("MaxPool", "AvgPool"):
            kind = getattr(nn, f"{name}{d}d")
            case(f"{name}{d}d", lambda k=kind: Of(k(2)), r(*shape))
            case(f"{name}{d}d padded", lambda k=kind: Of(k(3, stride=2, padding=1, ceil_mode=True)), r(*shape), quick=d == 2)
        case(f"AvgPool{d}d without padding", lambda k=getattr(nn, f"AvgPool{d}d"): Of(k(3, 2, 1, count_include_pad=False)), r(*shape))
        case(f"AdaptiveAvgPool{d}d", lambda k=getattr(nn, f"AdaptiveAvgPool{d}d"): Of(k(2)), r(*((2, 4) + (8, 6, 4)[:d])))
        case(f"AdaptiveMaxPool{d}d", lambda k=getattr(nn, f"AdaptiveMaxPool{d}d"): Of(k(1)), r(*shape))
        for name in ("ReflectionPad", "ReplicationPad", "ConstantPad", "ZeroPad", "CircularPad"):
            kind = getattr(nn, f"{name}{d}d", None)
            if kind is None:
                continue
            sizes = (1, 2, 2, 1, 0, 1)[: 2 * d]
            extra = (0.5,) if name == "ConstantPad" else ()
            case(f"{name}{d}d", lambda k=kind, s=sizes, e=extra: Of(k(s, *e)), r(*shape), quick=name == "CircularPad")
        cropped = (2, -1, -2, 1, 1, 0)[: 2 * d]
        case(f"pad circular {d}d with negative sizes", lambda s=cropped: Of(lambda x: F.pad(x, s, mode="circular")), r(*shape), quick=True)
        case(f"pad constant {d}d with negative sizes", lambda s=cropped: Of(lambda x: F.pad(x, s, value=0.5)), r(*shape))
    case("LPPool1d", lambda: Of(nn.LPPool1d(2, 3)), smooth(2, 4, 9))
    case("LPPool2d", lambda: Of(nn.LPPool2d(2, 3)), smooth(2, 4, 9, 6))
    case("MaxPool1d with ties", lambda: Of(nn.MaxPool1d(3, 1)), ids(3, 2, 4, 9).float())
    case("MaxUnpool2d", lambda: Of(lambda x: nn.MaxUnpool2d(2)(*nn.MaxPool2d(2, return_indices=True)(x))), r(2, 4, 6, 6))
    case("Upsample nearest", lambda: Of(nn.Upsample(scale_factor=2)), r(2, 4, 5, 6))
    case("Upsample bilinear", lambda: Of(nn.Upsample(scale_factor=2, mode="bilinear")), r(2, 4, 5, 6))
    case("Upsample bilinear, corners", lambda: Of(nn.Upsample(size=(7, 9), mode="bilinear", align_corners=True)), r(2, 4, 5, 6))
    case("Upsample bicubic", lambda: Of(nn.Upsample(scale_factor=2, mode="bicubic")), r(2, 4, 5, 6))
    case("Upsample linear", lambda: Of(nn.Upsample(scale_factor=3, mode="linear")), r(2, 4, 5))
    case("Upsample trilinear", lambda: Of(nn.Upsample(scale_factor=2, mode="trilinear")), r(2, 4, 3, 4, 5))
    case("PixelShuffle", lambda: Of(nn.PixelShuffle(2)), r(2, 8, 3, 4))
    case("PixelUnshuffle", lambda: Of(nn.PixelUnshuffle(2)), r(2, 3, 6, 4))
    case("ChannelShuffle", lambda: Of(nn.ChannelShuffle(2)), r(2, 8, 3, 4))
    case("Flatten", lambda: Of(nn.Flatten()), r(2, 3, 4))
    case("Unflatten", lambda: Of(nn.Unflatten(1, (2, 3))), r(2, 6, 4))


def add_normalisations():
    for d in (1, 2, 3):
        shape = (3, 4) + (6, 5, 3)[:d]
        for options in ({}, {"affine": False}, {"track_running_stats": False}, {"momentum": 0.3, "eps": 1e-2}):
            named = f"BatchNorm{d}d {options or ''}"
            case(named, lambda k=getattr(nn, f"BatchNorm{d}d"), o=options: k(4, **o), r(*shape), tolerance=1e-3, quick=d == 1)
        for options in ({}, {"affine": True}, {"affine": True, "track_running_stats": True}):
            named = f"InstanceNorm{d}d {options or ''}"
            case(named, lambda k=getattr(nn, f"InstanceNorm{d}d"), o=options: k(4, **o), r(*shape), tolerance=1e-3, quick=d == 1)
    case("BatchNorm1d of rows", lambda: nn.BatchNorm1d(6), r(5, 6), tolerance=1e-3)
    case("GroupNorm", lambda: nn.GroupNorm(2, 4), r(3, 4, 5), tolerance=1e-3)
    case("GroupNorm of pictures", lambda: nn.GroupNorm(4, 4, affine=False), r(3, 4, 5, 6), tolerance=1e-3)
    case("LayerNorm", lambda: nn.LayerNorm(6), r(3, 4, 6), tolerance=1e-3)
    case("LayerNorm of two axes", lambda: nn.LayerNorm((4, 6), eps=1e-3), r(3, 4, 6), tolerance=1e-3)
    case("LayerNorm without weights", lambda: Of(nn.LayerNorm(6, elementwise_affine=False)), r(3, 4, 6), tolerance=1e-3)
    case("LocalResponseNorm", lambda: Of(nn.LocalResponseNorm(3)), r(3, 4, 5, 6))
    if hasattr(nn, "RMSNorm"):
        case("RMSNorm", lambda: nn.RMSNorm(6), r(3, 4, 6), tolerance=1e-3)
    case("CrossMapLRN2d", lambda: Of(nn.CrossMapLRN2d(3)), r(3, 4, 5, 6))


class First(nn.Module):
    """The first of what a recurrent layer gives."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, *arguments):
        return self.layer(*arguments)[0]


class Cell(nn.Module):
    def __init__(self, cell):
        super().__init__()
        self.cell = cell

    def forward(self, x):
        h = self.cell(x)
        return self.cell(x, h) if isinstance(h, torch.Tensor) else self.cell(x, h)[0]


def add_recurrent():
    for name in ("RNN", "LSTM", "GRU"):
        kind = getattr(nn, name)
        case(name, lambda k=kind: k(4, 5), r(6, 3, 4), quick=name == "LSTM")
        case(f"{name} both ways", lambda k=kind: k(4, 5, 2, batch_first=True, bidirectional=True), r(3, 6, 4))
        case(f"{name} without biases", lambda k=kind: First(k(4, 5, bias=False)), r(6, 3, 4))
        case(f"{name}Cell", lambda k=getattr(nn, f"{name}Cell"): Cell(k(4, 5)), r(3, 4), quick=True)
    case("RNN relu", lambda: nn.RNN(4, 5, nonlinearity="relu"), r(6, 3, 4))
    case("LSTM projected", lambda: nn.LSTM(4, 5, proj_size=3), r(6, 3, 4))


def add_linear_and_sparse():
    case("Linear", lambda: nn.Linear(6, 4), r(3, 6), quick=True)
    case("Linear without bias", lambda: nn.Linear(6, 4, bias=False), r(2, 3, 6))
    case("Bilinear", lambda: nn.Bilinear(4, 5, 3), r(6, 4), r(6, 5, seed=4))
    case("Embedding", lambda: nn.Embedding(10, 4), ids(10, 3, 5))
    for padding in (0, 3, -1):
        case(f"Embedding padding_idx={padding}", lambda p=padding: nn.Embedding(10, 4, padding_idx=p), ids(10, 8, 9), quick=True)
    case("Embedding max_norm", lambda: nn.Embedding(10, 4, max_norm=1.0), ids(10, 3, 5), quick=True)
    case("Embedding by frequency", lambda: nn.Embedding(10, 4, scale_grad_by_freq=True), ids(4, 3, 5), quick=True)
    for mode in ("sum", "mean", "max"):
        case(f"EmbeddingBag {mode}", lambda m=mode: nn.EmbeddingBag(10, 4, mode=m), ids(10, 3, 5))
    case("EmbeddingBag with offsets", lambda: nn.EmbeddingBag(10, 4), ids(10, 12), torch.tensor([0, 3, 3, 7]))
    case("EmbeddingBag padding_idx", lambda: nn.EmbeddingBag(10, 4, padding_idx=2), ids(10, 6, 7), quick=True)
    case("CosineSimilarity", lambda: Of(nn.CosineSimilarity()), r(4, 6), r(4, 6, seed=4))
    case("PairwiseDistance", lambda: Of(nn.PairwiseDistance()), r(4, 6), r(4, 6, seed=4))
    case("TransformerEncoderLayer", lambda: nn.TransformerEncoderLayer(8, 2, 12, dropout=0.0, batch_first=True), r(2, 5, 8), quick=True)
    case("TransformerEncoder", lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 12, 0.0, "gelu"), 2), r(5, 2, 8))
    case("TransformerDecoderLayer", lambda: nn.TransformerDecoderLayer(8, 2, 12, 0.0), r(5, 2, 8), r(4, 2, 8, seed=4))
    case("Transformer", lambda: nn.Transformer(8, 2, 1, 1, 12, 0.0), r(5, 2, 8), r(4, 2, 8, seed=4))
    for name in ("Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout", "FeatureAlphaDropout"):
        if hasattr(nn, name):
            case(f"{name} of nothing", lambda k=getattr(nn, name): Of(k(0.0)), r(2, 3, 4, 5, 6) if "3d" in name else r(2, 3, 4, 5))


def add_losses():
    classes, target = r(6, 5), ids(5, 6)
    for reduction in ("mean", "sum", "none"):
        o = {"reduction": reduction}
        quick = reduction == "mean"

        def loss(name, *inputs, quick=False, o=o, **more):
            named = f"{name} {reduction} {' '.join(f'{k}={v}' for k, v in more.items() if not isinstance(v, torch.Tensor))}"
            case(named, lambda: Of(getattr(nn, name)(**o, **more)), *inputs, quick=quick, grads=3 if "Triplet" in name else 1)

        loss("L1Loss", classes, r(6, 5, seed=4))
        loss("MSELoss", classes, r(6, 5, seed=4))
        loss("SmoothL1Loss", classes, r(6, 5, seed=4), beta=0.7)
        loss("HuberLoss", classes, r(6, 5, seed=4), delta=0.7)
        loss("CrossEntropyLoss", classes, target, quick=quick)
        loss("CrossEntropyLoss", classes, target, label_smoothing=0.2, quick=quick)
        loss("CrossEntropyLoss", classes, torch.where(target == 2, -100, target), quick=quick)
        loss("CrossEntropyLoss", classes, target, weight=smooth(5))
        loss("CrossEntropyLoss", classes, torch.softmax(r(6, 5, seed=4), 1))
        loss("CrossEntropyLoss", r(6, 5, 3), ids(5, 6, 3), ignore_index=2)
        loss("NLLLoss", torch.log_softmax(classes, 1), target)
        loss("NLLLoss", torch.log_softmax(classes, 1), target, weight=smooth(5), ignore_index=1)
        loss("NLLLoss", torch.log_softmax(r(2, 5, 3, 4), 1), ids(5, 2, 3, 4))
        loss("BCELoss", smooth(6, 5), smooth(6, 5, seed=4))
        loss("BCELoss", smooth(6, 5), smooth(6, 5, seed=4), weight=smooth(5))
        loss("BCEWithLogitsLoss", wide(6, 7), smooth(6, 7, seed=4), quick=True)
        loss("BCEWithLogitsLoss", wide(6, 7), ids(2, 6, 7).float(), weight=smooth(7), pos_weight=smooth(7, seed=5) * 3, quick=quick)
        loss("KLDivLoss", torch.log_softmax(classes, 1), torch.softmax(r(6, 5, seed=4), 1))
        loss("KLDivLoss", torch.log_softmax(classes, 1), torch.log_softmax(r(6, 5, seed=4), 1), log_target=True)
        loss("PoissonNLLLoss", classes, smooth(6, 5) * 4)
        loss("PoissonNLLLoss", smooth(6, 5), smooth(6, 5) * 4, log_input=False, full=True)
        loss("GaussianNLLLoss", classes, r(6, 5, seed=4), smooth(6, 5))
        loss("HingeEmbeddingLoss", classes, signs(6, 5))
        loss("SoftMarginLoss", wide(6, 7), signs(6, 7), quick=quick)
        loss("MultiLabelSoftMarginLoss", wide(6, 7), ids(2, 6, 7).float(), quick=quick)
        loss("MultiLabelMarginLoss", classes, torch.tensor([[0, 3, -1, 0, 0]] * 6))
        loss("MultiMarginLoss", classes, target)
        loss("CosineEmbeddingLoss", r(6, 5), r(6, 5, seed=4), signs(6), margin=0.1)
        loss("MarginRankingLoss", r(6), r(6, seed=4), signs(6), margin=0.1)
        loss("TripletMarginLoss", r(6, 5), r(6, 5, seed=4), r(6, 5, seed=5))
        loss("TripletMarginWithDistanceLoss", r(6, 5), r(6, 5, seed=4), r(6, 5, seed=5))
        loss("CTCLoss", torch.log_softmax(r(8, 3, 5), 2), ids(4, 3, 4) + 1, torch.tensor([8, 7, 8]), torch.tensor([4, 2, 3]))
    case("AdaptiveLogSoftmaxWithLoss", lambda: nn.AdaptiveLogSoftmaxWithLoss(8, 20, [5, 10]), r(6, 8), ids(20, 6))


class Detaches(nn.Module):
    """Cuts gradients off in every way that there is."""

    def __init__(self, how):
        super().__init__()
        self.a, self.b, self.how = nn.Linear(4, 4), nn.Linear(4, 4), how

    def forward(self, x):
        h = self.a(x)
        if self.how == "detach":
            cut = h.detach()
        elif self.how == "data":
            cut = h.data
        elif self.how == "no_grad":
            with torch.no_grad():
                cut = torch.tanh(h) * 2
        else:
            cut = h.clone().detach_()
        return self.b(h * cut) + cut


class Counts(nn.Module):
    """Changes a buffer of its own."""

    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 4)
        self.register_buffer("mean", torch.zeros(4))

    def forward(self, x):
        h = self.a(x)
        if self.training:
            with torch.no_grad():
                self.mean.mul_(0.9).add_(h.mean(0), alpha=0.1)
        return h - self.mean


class StraightThrough(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, gradient):
        return gradient


class Rounds(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 4)

    def forward(self, x):
        return StraightThrough.apply(self.a(x))


class Twins(nn.Module):
    """Parameters whose values and gradients are equal, and a parameter that has two names."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Parameter(torch.zeros(4)), nn.Parameter(torch.zeros(4))
        self.c = nn.LayerNorm(4)
        self.d = nn.LayerNorm(4)
        self.norm = nn.BatchNorm1d(4)
        self.norm.eval()
        self.one, self.two = nn.Linear(4, 4), nn.Linear(4, 4)
        self.two.weight = self.one.weight

    def forward(self, x):
        return self.d(self.two(self.norm(self.c(self.one(x) + self.a + self.b))))


def add_modules():
    for how in ("detach", "data", "no_grad", "detach_"):
        case(f"Detaches {how}", lambda h=how: Detaches(h), r(3, 4), quick=True)
    case("Counts", Counts, r(3, 4), quick=True)
    case("Rounds", Rounds, r(3, 4), quick=True)
    case("Twins", Twins, r(3, 4), quick=True, tolerance=1e-3)
    case("equal gradients", lambda: Sum(), r(3, 4), quick=True)


class Sum(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Parameter(torch.ones(4)), nn.Parameter(torch.ones(4))

    def forward(self, x):
        return x + self.a + self.b


def corners(*more):
    """Where functions of one element have their corners, often enough to fill vectors."""
    return torch.tensor([*more, 0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 2.0, -2.0, 3.0, -3.0, 6.0, 0.3, -0.7, 1.4, -4.0, 7.0][:16]).repeat(8).view(8, 16)


def add_functions():
    """Functions with corners, ties, and places without a finite slope."""
    x, y, ties = corners(), r(8, 16, seed=5), ids(3, 8, 16).float()
    elements = {
        "relu": torch.relu, "relu6": F.relu6, "leaky_relu": F.leaky_relu, "leaky_relu below zero": lambda x: F.leaky_relu(x, -0.2),
        "elu": lambda x: F.elu(x, 0.7), "celu": lambda x: F.celu(x, 0.7), "selu": torch.selu,
        "prelu": lambda x: F.prelu(x, torch.tensor([0.25])),
        "hardtanh": lambda x: F.hardtanh(x, -2.0, 0.5), "hardtanh_": lambda x: F.hardtanh_(x * 1),
        "relu6 in place": lambda x: F.relu6(x * 1, True),
        "hardswish": F.hardswish, "hardsigmoid": F.hardsigmoid, "hardshrink": lambda x: F.hardshrink(x, 0.5),
        "softshrink": lambda x: F.softshrink(x, 0.5), "threshold": lambda x: F.threshold(x, 0.5, 0.0), "clamp": lambda x: x.clamp(-1, 2),
        "clamp of floats": lambda x: torch.clamp(x, -0.5, 0.5), "clamp_min": lambda x: x.clamp_min(0.5),
        "clamp_max": lambda x: x.clamp(max=1),
        "clamp min of two": lambda x: x.clamp(min=-1.0), "clamp without room": lambda x: x.clamp(2, -1),
        "clamp_": lambda x: (x * 1).clamp_(-1, 1),
        "clamp of equal bounds": lambda x: x.clamp(1, 1), "abs": torch.abs, "sign": torch.sign, "floor": torch.floor, "ceil": torch.ceil,
        "round": torch.round, "trunc": torch.trunc, "frac": torch.frac, "fmod": lambda x: torch.fmod(x, 2.0),
        "remainder": lambda x: torch.remainder(x, 2.0), "square root": lambda x: torch.sqrt(torch.relu(x)), "x ** 0": lambda x: x**0,
        "x ** 1": lambda x: x**1, "x ** 2": lambda x: x**2, "x ** 3": lambda x: x**3, "x ** 0.5": lambda x: x.abs() ** 0.5,
        "reciprocal": lambda x: 1 / x, "rsqrt": lambda x: torch.rsqrt(x.abs()), "log": lambda x: torch.log(x.abs()),
        "log1p": lambda x: torch.log1p(x.abs()),
        "expm1": torch.expm1, "erf": torch.erf, "sinh": torch.sinh, "atan": torch.atan, "asinh": torch.asinh,
        "where": lambda x: torch.where(x > 0, x, x * 2), "masked_fill": lambda x: x.masked_fill(x == 0, 1.0),
        "nan_to_num": torch.nan_to_num,
        "xlogy": lambda x: torch.special.xlogy(x.abs(), x.abs()), "logit": lambda x: torch.logit(x.abs() / 8, 1e-6),
        "sigmoid": torch.sigmoid,
        "logsigmoid": F.logsigmoid, "softplus": F.softplus, "gelu": F.gelu, "mish": F.mish, "silu": F.silu,
    }  # fmt: skip
    for name, function in elements.items():
        case(f"function {name}", lambda f=function: Of(f), x, quick=name in ("clamp", "hardtanh", "hardswish", "prelu"))
    pairs = {
        "maximum": torch.maximum, "minimum": torch.minimum, "fmax": torch.fmax, "fmin": torch.fmin, "atan2": torch.atan2,
        "clamp by tensors": lambda a, b: torch.clamp(a, b, b + 1), "clamp by tensors from above": lambda a, b: torch.clamp(a, b - 1, b),
        "clamp_min by a tensor": lambda a, b: torch.clamp_min(a, b), "clamp_max by a tensor": lambda a, b: torch.clamp_max(a, b),
        "pow": lambda a, b: torch.pow(a.abs(), b), "hypot": torch.hypot, "mul": torch.mul, "div": torch.div,
        "lerp": lambda a, b: torch.lerp(a, b, 0.3),
        "cosine": lambda a, b: F.cosine_similarity(a, b), "cdist": lambda a, b: torch.cdist(a, b), "dist": lambda a, b: torch.dist(a, b),
        "cdist with itself": lambda a, b: torch.cdist(a, a + b * 0),
        "distance of equals": lambda a, b: F.pairwise_distance(a, a + b * 0, eps=0.0),
        "cosine of zeros": lambda a, b: F.cosine_similarity(a * 0, b),
    }  # fmt: skip
    for name, function in pairs.items():
        case(f"function {name}", lambda f=function: Of(f), x, torch.where(y > 0, x, y))
    reduced = {
        "max": torch.max, "min": torch.min, "max of rows": lambda x: torch.max(x, 1)[0], "min of rows": lambda x: torch.min(x, 1)[0],
        "amax": lambda x: torch.amax(x, 1), "amin": lambda x: torch.amin(x, 1), "norm": torch.norm, "norm 1": lambda x: x.norm(1, dim=1),
        "norm of infinity": lambda x: x.norm(float("inf"), dim=1), "norm of zeros": lambda x: (x * 0).norm(dim=1),
        "norm 3": lambda x: x.norm(3, dim=1), "norm 3 of zeros": lambda x: (x * 0).norm(3, dim=1, keepdim=True),
        "norm of all": lambda x: (x * 0).norm(),
        "vector_norm": lambda x: torch.linalg.vector_norm(x, 1.5, dim=1), "linalg norm of zeros": lambda x: torch.linalg.norm(x * 0, dim=1),
        "linalg norm of all": lambda x: torch.linalg.norm(x * 0), "matrix norm": lambda x: torch.linalg.norm(x, dim=(0, 1)),
        "norm 0": lambda x: x.norm(0, dim=1),
        "norm of -infinity": lambda x: torch.linalg.vector_norm(x, float("-inf"), dim=1), "norm 0.5": lambda x: (x + 1).norm(0.5, dim=1),
        "std_mean of equals": lambda x: torch.std_mean(x * 0, 1)[0], "std of all": lambda x: (x * 0).std(),
        "max with indices": lambda x: sum(torch.max(x, 0, keepdim=True)), "prod": lambda x: x.prod(1),
        "std": lambda x: x.std(1), "std of equals": lambda x: (x * 0).std(1), "var": lambda x: x.var(1, unbiased=False),
        "logsumexp": lambda x: torch.logsumexp(x, 1),
        "softmax": lambda x: torch.softmax(x, 1), "cumsum": lambda x: torch.cumsum(x, 1),
        "sort": lambda x: torch.sort(x + torch.arange(16.0) * 1e-3, 1)[0],
        "topk": lambda x: torch.topk(x + torch.arange(16.0) * 1e-3, 3, 1)[0], "median": lambda x: x.median(1)[0],
        "normalize": lambda x: F.normalize(x, dim=1),
        "normalize of zeros": lambda x: F.normalize(x * 0, dim=1), "max_pool": lambda x: F.max_pool1d(x[None], 3, 2), "mean": torch.mean,
        "std_mean": lambda x: torch.std_mean(x, 1)[0], "kthvalue": lambda x: torch.kthvalue(x + torch.arange(16.0) * 1e-3, 3, 1)[0],
        "cummax": lambda x: torch.cummax(x, 1)[0], "adaptive_max_pool": lambda x: F.adaptive_max_pool1d(x[None], 1),
        "adaptive_max_pool2d": lambda x: F.adaptive_max_pool2d(x.view(2, 4, 4, 4), 1),
        "logcumsumexp": lambda x: torch.logcumsumexp(x, 1), "cumprod": lambda x: torch.cumprod(x, 1),
        "nansum": lambda x: torch.nansum(x, 1),
    }  # fmt: skip
    for name, function in reduced.items():
        case(f"function {name}", lambda f=function: Of(f), ties, quick=name in ("max", "amax"))


for add in (add_activations, add_convolutions, add_pools_and_paddings, add_normalisations, add_recurrent, add_linear_and_sparse,
            add_losses, add_modules, add_functions):
    add()


def tensors_of(value):
    if isinstance(value, torch.Tensor):
        return [value]
    return [t for item in value for t in tensors_of(item)] if isinstance(value, (tuple, list)) else []


def outcome(module, arguments):
    """Results, gradients of arguments; those of parameters are added to what they have."""
    given = [a.detach().clone().requires_grad_(a.requires_grad) for a in arguments]
    try:
        found = tensors_of(module(*given))
        total = sum((t * torch.linspace(0.5, 1.5, max(t.numel(), 1)).view(t.shape)).sum() for t in found if t.requires_grad)
        if isinstance(total, torch.Tensor):
            total.backward()
    except Exception as e:  # of the module itself: both must raise
        return type(e).__name__, [], []
    return None, [t.detach() for t in found], [a.grad for a in given]


def near(wanted, found, tolerance):
    if wanted is None or found is None:
        # PyTorch leaves out what it knows to be 0, and so do we; not always the same.
        return all(t is None or not t.any() for t in (wanted, found))
    if wanted.shape != found.shape or wanted.dtype != found.dtype:
        return False
    if not wanted.is_floating_point():
        return torch.equal(wanted, found)
    scale = max(1.0, wanted[wanted.isfinite()].abs().max().item() if wanted.isfinite().any() else 1.0)
    return torch.allclose(wanted, found, rtol=tolerance, atol=tolerance * scale if scale < 100 else tolerance, equal_nan=True)


def compared(plain, wrapped, arguments, tolerance, when):
    wrong = []
    first, second = outcome(plain, arguments), outcome(wrapped, arguments)
    if first[0] != second[0]:
        return [f"{when}: PyTorch raises {first[0]}, this {second[0]}"]
    for what, wanted, found in (("result", first[1], second[1]), ("gradient of argument", first[2], second[2])):
        if len(wanted) != len(found):
            wrong.append(f"{when}: {len(found)} {what}s for {len(wanted)}")
        wrong += [f"{when}: {what} {i}" for i, (a, b) in enumerate(zip(wanted, found)) if not near(a, b, tolerance)]
    for (name, p), (_, q) in zip(plain.named_parameters(), wrapped.named_parameters()):
        if not near(p.grad, q.grad, tolerance):
            wrong.append(f"{when}: gradient of '{name}'")
    for (name, p), (_, q) in zip(plain.named_buffers(), wrapped.named_buffers()):
        if not near(p, q, tolerance):
            wrong.append(f"{when}: buffer '{name}'")
    places = [p.grad.data_ptr() for p in wrapped.parameters() if p.grad is not None and p.grad.numel()]
    if len(set(places)) < len(places):
        wrong.append(f"{when}: two gradients share memory")
    return wrong


def step(module):
    with torch.no_grad():
        for p in module.parameters():
            if p.grad is not None:
                p -= 0.05 * p.grad.clamp(-1, 1)
                p.grad = None


def check(make, arguments, tolerance):
    """What is wrong, and why PyTorch computes it where it does."""
    wrong, reasons = [], set()
    for order in (("eval", "train"), ("train", "eval")):
        torch.manual_seed(0)
        plain = make()
        wrapped = Module(copy.deepcopy(plain))
        for mode in order:
            for module in (plain, wrapped):
                module.train(mode == "train")
                if isinstance(plain, Twins):
                    module.norm.eval()
            wrong += compared(plain, wrapped, arguments, tolerance, f"{mode}, before a step")
            wrong += compared(plain, wrapped, arguments, tolerance, f"{mode}, gradients added up")
            step(plain)
            step(wrapped)
            wrong += compared(plain, wrapped, arguments, tolerance, f"{mode}, after a step")
            step(plain)
            step(wrapped)
        reasons.update(wrapped.sardonyx_status()["reasons"])
    return wrong, reasons


def random_layers():
    """Layers that draw numbers: in eval() as PyTorch, in train() by what they draw, whose gradients are of the same draw."""
    x = torch.randn(64, 512, generator=torch.Generator().manual_seed(6))
    x[0, :4] = 0
    wrong = []
    for name, layer, share, between in (("Dropout", nn.Dropout(0.3), 0.3, None), ("RReLU", nn.RReLU(0.1, 0.3), None, (0.1, 0.3))):
        wrapped, given = Module(layer), x.clone().requires_grad_()
        layer.eval()
        wrapped.eval()
        if not torch.allclose(wrapped(x), layer(x), atol=1e-6):
            wrong.append(f"{name} in eval()")
        wrapped.train()
        first, second = wrapped(given), wrapped(x)
        first.sum().backward()
        if wrapped.sardonyx_status()["reasons"]:
            continue
        if not torch.allclose(given.grad * x, first, atol=1e-5) or torch.equal(first, second):
            wrong.append(f"{name}: the gradient is of another draw, or nothing is drawn")
        slopes = given.grad[x != 0] if share is not None else given.grad[x < 0]
        zeros = (slopes == 0).float().mean().item()
        if share is not None and (abs(zeros - share) > 0.02 or not torch.allclose(slopes[slopes != 0], torch.tensor(1 / (1 - share)))):
            wrong.append(f"{name}: {zeros} of the elements are zero, the others times {slopes.max().item()}")
        if between is not None:
            low, high, mean = slopes.min().item(), slopes.max().item(), slopes.mean().item()
            ends = between[0] <= low < between[0] + 0.01 and between[1] - 0.01 < high <= between[1]
            if not ends or abs(mean - sum(between) / 2) > 0.005:
                wrong.append(f"{name}: slopes from {low} to {high}, {mean} on average")
    return wrong


def main(arguments):
    every = "--all" in arguments
    asked = [a for a in arguments if not a.startswith("--")]
    failed, left = [], {}
    count = 0
    for i, (name, make, inputs, quick, tolerance) in enumerate(CASES):
        if asked and not any(a in name for a in asked):
            continue
        if not (every or asked or quick or i % 16 == 5):
            continue
        count += 1
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            wrong, reasons = check(make, inputs, tolerance)
        if wrong:
            failed.append(name)
            print(f"{name}: {'; '.join(dict.fromkeys(wrong))}", flush=True)
        if reasons:
            left[name] = sorted(reasons)[0].splitlines()[0][:110]
    if not asked:
        drawn = random_layers()
        failed += drawn
        print("".join(f"{text}\n" for text in drawn), end="")
    if every or asked:
        for name, reason in left.items():
            print(f"  left to PyTorch: {name}: {reason}")
    print(f"PyTorch {torch.__version__}: {count} cases, {len(failed)} wrong, {len(left)} left to PyTorch")
    return 1 if failed or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
