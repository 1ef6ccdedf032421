"""Networks of kinds that timm, torchvision and transformers lack, with random weights."""

import torch
from torch import nn
from torch.nn import functional as F


def conv_block(conv, norm, inputs, outputs):
    """Two convolutions of 3 with normalisation, as in U-Nets for medical images."""
    layers = []
    for channels in (inputs, outputs):
        layers += [conv(channels, outputs, 3, padding=1), norm(outputs, affine=True), nn.LeakyReLU(0.01)]
    return nn.Sequential(*layers)


class UNet(nn.Module):
    def __init__(self, axes, c):
        super().__init__()
        conv, norm, up = ((nn.Conv2d, nn.InstanceNorm2d, nn.ConvTranspose2d), (nn.Conv3d, nn.InstanceNorm3d, nn.ConvTranspose3d))[axes - 2]
        self.pool = (F.max_pool2d, F.max_pool3d)[axes - 2]
        self.down1, self.down2, self.down3 = (conv_block(conv, norm, i, o) for i, o in ((1, c), (c, 2 * c), (2 * c, 4 * c)))
        self.up2, self.up1 = up(4 * c, 2 * c, 2, 2), up(2 * c, c, 2, 2)
        self.join2, self.join1 = conv_block(conv, norm, 4 * c, 2 * c), conv_block(conv, norm, 2 * c, c)
        self.last = conv(c, 4, 1)

    def forward(self, x):
        a = self.down1(x)
        b = self.down2(self.pool(a, 2))
        x = self.down3(self.pool(b, 2))
        x = self.join2(torch.cat([self.up2(x), b], 1))
        return self.last(self.join1(torch.cat([self.up1(x), a], 1)))


class Step(nn.Module):
    """A residual block of a diffusion model, with the time step's embedding t."""

    def __init__(self, inputs, outputs, width):
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(32, inputs), nn.Conv2d(inputs, outputs, 3, padding=1)
        self.time = nn.Linear(width, outputs)
        self.norm2, self.conv2 = nn.GroupNorm(32, outputs), nn.Conv2d(outputs, outputs, 3, padding=1)
        self.skip = nn.Conv2d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, x, t):
        h = self.conv1(F.silu(self.norm1(x))) + self.time(F.silu(t))[:, :, None, None]
        return self.conv2(F.silu(self.norm2(h))) + self.skip(x)


class Look(nn.Module):
    """Attention over the pixels and a gated layer behind it."""

    def __init__(self, c):
        super().__init__()
        self.norm, self.qkv, self.out = nn.GroupNorm(32, c), nn.Linear(c, 3 * c), nn.Linear(c, c)
        self.layer_norm, self.wide, self.narrow = nn.LayerNorm(c), nn.Linear(c, 8 * c), nn.Linear(4 * c, c)

    def forward(self, x):
        b, c, h, w = x.shape
        y = self.norm(x).reshape(b, c, h * w).transpose(1, 2)
        q, k, v = self.qkv(y).reshape(b, h * w, 3, 8, c // 8).permute(2, 0, 3, 1, 4)
        a = torch.softmax(q @ k.transpose(-1, -2) * (c // 8) ** -0.5, -1) @ v
        y = y + self.out(a.transpose(1, 2).reshape(b, h * w, c))
        u, g = self.wide(self.layer_norm(y)).chunk(2, -1)
        return x + (y + self.narrow(u * F.gelu(g))).transpose(1, 2).reshape(b, c, h, w)


class Diffusion(nn.Module):
    def __init__(self, c=128, width=512):
        super().__init__()
        self.first, self.step1 = nn.Conv2d(4, c, 3, padding=1), Step(c, c, width)
        self.down1, self.step2, self.look2 = nn.Conv2d(c, c, 3, 2, 1), Step(c, 2 * c, width), Look(2 * c)
        self.down2, self.middle, self.look = nn.Conv2d(2 * c, 2 * c, 3, 2, 1), Step(2 * c, 2 * c, width), Look(2 * c)
        self.back2, self.look3, self.up1 = Step(4 * c, 2 * c, width), Look(2 * c), nn.Conv2d(2 * c, 2 * c, 3, padding=1)
        self.back1, self.norm, self.last = Step(3 * c, c, width), nn.GroupNorm(32, c), nn.Conv2d(c, 4, 3, padding=1)

    def forward(self, x, t):
        a = self.step1(self.first(x), t)
        b = self.look2(self.step2(self.down1(a), t))
        x = F.interpolate(self.look(self.middle(self.down2(b), t)), scale_factor=2.0)
        x = self.look3(self.back2(torch.cat([x, b], 1), t))
        x = self.back1(torch.cat([self.up1(F.interpolate(x, scale_factor=2.0)), a], 1), t)
        return self.last(F.silu(self.norm(x)))


class Dense(nn.Module):
    """ESRGAN's residual block of dense convolutions."""

    def __init__(self, c=64, growth=32):
        super().__init__()
        self.convs = nn.ModuleList([nn.Conv2d(c + i * growth, growth if i < 4 else c, 3, padding=1) for i in range(5)])

    def forward(self, x):
        found = [x]
        for conv in self.convs[:-1]:
            found.append(F.leaky_relu(conv(torch.cat(found, 1)), 0.2))
        return x + self.convs[-1](torch.cat(found, 1)) * 0.2


class SuperResolution(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.body = nn.Conv2d(3, 64, 3, padding=1), nn.Sequential(*[Dense() for _ in range(4)])
        self.up, self.last = nn.Conv2d(64, 256, 3, padding=1), nn.Conv2d(64, 3, 3, padding=1)

    def forward(self, x):
        h = self.first(x)
        return self.last(F.leaky_relu(F.pixel_shuffle(self.up(h + self.body(h)), 2), 0.2))


class Style(nn.Module):
    """Style transfer: padding by reflection, instance normalisation, nearest pixels."""

    def __init__(self):
        super().__init__()

        def conv(inputs, outputs, kernel, stride=1):
            return [nn.ReflectionPad2d(kernel // 2), nn.Conv2d(inputs, outputs, kernel, stride), nn.InstanceNorm2d(outputs, affine=True)]

        self.down = nn.Sequential(*conv(3, 32, 9), nn.ReLU(), *conv(32, 64, 3, 2), nn.ReLU(), *conv(64, 128, 3, 2), nn.ReLU())
        self.body = nn.ModuleList([nn.Sequential(*conv(128, 128, 3), nn.ReLU(), *conv(128, 128, 3)) for _ in range(5)])
        self.up = nn.Sequential(nn.Upsample(scale_factor=2), *conv(128, 64, 3), nn.ReLU(), nn.Upsample(scale_factor=2), *conv(64, 32, 3),
                                nn.ReLU(), nn.ReflectionPad2d(4), nn.Conv2d(32, 3, 9))

    def forward(self, x):
        x = self.down(x)
        for block in self.body:
            x = x + block(x)
        return self.up(x)


class Separator(nn.Module):
    """Conv-TasNet: depthwise dilated convolutions over 2,000 frames of sound."""

    def __init__(self, narrow=128, wide=256):
        super().__init__()
        self.encode, self.norm, self.first = nn.Conv1d(1, 256, 16, 8, bias=False), nn.GroupNorm(1, 256), nn.Conv1d(256, narrow, 1)
        self.blocks = nn.ModuleList([self.block(narrow, wide, 2**i) for i in range(8)])
        self.masks, self.decode = nn.Conv1d(narrow, 512, 1), nn.ConvTranspose1d(256, 1, 16, 8, bias=False)

    @staticmethod
    def block(narrow, wide, dilation):
        depthwise = nn.Conv1d(wide, wide, 3, padding=dilation, dilation=dilation, groups=wide)
        return nn.Sequential(nn.Conv1d(narrow, wide, 1), nn.PReLU(), nn.GroupNorm(1, wide), depthwise, nn.PReLU(), nn.GroupNorm(1, wide),
                             nn.Conv1d(wide, narrow, 1))

    def forward(self, x):
        e = self.encode(x)
        h = self.first(self.norm(e))
        for block in self.blocks:
            h = h + block(h)
        masks = torch.sigmoid(self.masks(h)).reshape(1, 2, 256, -1)
        return self.decode((masks * e[:, None]).reshape(2, 256, -1))


class WaveNet(nn.Module):
    def __init__(self, c=64, layers=16):
        super().__init__()
        self.first, self.last = nn.Conv1d(1, c, 1), nn.Conv1d(c, 256, 1)
        self.dilated = nn.ModuleList([nn.Conv1d(c, 2 * c, 3, padding=2 ** (i % 8), dilation=2 ** (i % 8)) for i in range(layers)])
        self.mixed = nn.ModuleList([nn.Conv1d(c, 2 * c, 1) for _ in range(layers)])

    def forward(self, x):
        h, skipped = self.first(x), 0
        for dilated, mixed in zip(self.dilated, self.mixed):
            a, b = dilated(h).chunk(2, 1)
            u, v = mixed(torch.tanh(a) * torch.sigmoid(b)).chunk(2, 1)
            h, skipped = (h + u) * 0.7, skipped + v
        return self.last(F.relu(skipped))


class Tagger(nn.Module):
    """Two layers in both directions over embedded words; `kind`: LSTM or GRU."""

    def __init__(self, kind):
        super().__init__()
        self.words, self.last = nn.Embedding(1000, 128), nn.Linear(512, 20)
        self.layers = getattr(nn, kind)(128, 256, 2, bidirectional=True, batch_first=True)

    def forward(self, x):
        return self.last(self.layers(self.words(x))[0])


class TextReader(nn.Module):
    """CRNN: convolutions over a line of text, then LSTMs along it."""

    def __init__(self):
        super().__init__()
        layers, inputs = [], 1
        for outputs, pool in ((64, (2, 2)), (128, (2, 2)), (256, None), (256, (2, 1)), (512, None), (512, (2, 1))):
            layers += [nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU()]
            layers += [nn.MaxPool2d(pool)] if pool else []
            inputs = outputs
        self.convs, self.steps, self.last = nn.Sequential(*layers), nn.LSTM(1024, 256, 2, bidirectional=True), nn.Linear(512, 97)

    def forward(self, x):
        return self.last(self.steps(self.convs(x).flatten(1, 2).permute(2, 0, 1))[0])


class Points(nn.Module):
    """PointNet without its spatial transformers."""

    def __init__(self):
        super().__init__()
        layers = [(nn.Conv1d(i, o, 1), nn.BatchNorm1d(o), nn.ReLU()) for i, o in ((3, 64), (64, 128), (128, 1024))]
        self.each = nn.Sequential(*[part for layer in layers for part in layer])
        self.all = nn.Sequential(nn.Linear(1024, 512), nn.ReLU(), nn.Linear(512, 40))

    def forward(self, x):
        return self.all(self.each(x).max(2)[0])


class Recommender(nn.Module):
    """DLRM: embedded categories, and the products of all pairs of them."""

    def __init__(self):
        super().__init__()
        self.tables = nn.ModuleList([nn.Embedding(1000, 16) for _ in range(26)])
        self.bottom = nn.Sequential(nn.Linear(13, 512), nn.ReLU(), nn.Linear(512, 16))
        self.top = nn.Sequential(nn.Linear(16 + 351, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 1), nn.Sigmoid())
        self.register_buffer("pairs", torch.triu_indices(27, 27, 1))

    def forward(self, dense, categories):
        x = self.bottom(dense)
        v = torch.stack([x] + [table(categories[:, i]) for i, table in enumerate(self.tables)], 1)
        return self.top(torch.cat([x, (v @ v.transpose(1, 2))[:, self.pairs[0], self.pairs[1]]], 1))


def generator():
    """DCGAN's generator."""
    layers = []
    for inputs, outputs, stride, pad in ((100, 512, 1, 0), (512, 256, 2, 1), (256, 128, 2, 1), (128, 64, 2, 1)):
        layers += [nn.ConvTranspose2d(inputs, outputs, 4, stride, pad, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()]
    return nn.Sequential(*layers, nn.ConvTranspose2d(64, 3, 4, 2, 1), nn.Tanh())


def words(batch, length):
    return torch.randint(0, 1000, (batch, length))


# name: network, inputs
NETWORKS = {
    "diffusion": (Diffusion, lambda: (torch.randn(1, 4, 32, 32), torch.randn(1, 512))),
    "esrgan": (SuperResolution, lambda: (torch.randn(1, 3, 96, 96),)),
    "unet": (lambda: UNet(2, 32), lambda: (torch.randn(1, 1, 192, 192),)),
    "unet3d": (lambda: UNet(3, 16), lambda: (torch.randn(1, 1, 32, 32, 32),)),
    "conv_tasnet": (Separator, lambda: (torch.randn(1, 1, 16000),)),
    "wavenet": (WaveNet, lambda: (torch.randn(1, 1, 4000),)),
    "bilstm": (lambda: Tagger("LSTM"), lambda: (words(1, 64),)),
    "bilstm_batch_16": (lambda: Tagger("LSTM"), lambda: (words(16, 64),)),
    "bigru": (lambda: Tagger("GRU"), lambda: (words(1, 64),)),
    "crnn": (TextReader, lambda: (torch.randn(1, 1, 32, 256),)),
    "pointnet": (Points, lambda: (torch.randn(1, 3, 1024),)),
    "dlrm": (Recommender, lambda: (torch.randn(64, 13), torch.randint(0, 1000, (64, 26)))),
    "dcgan": (generator, lambda: (torch.randn(1, 100, 1, 1),)),
    "style": (Style, lambda: (torch.randn(1, 3, 224, 224),)),
}
