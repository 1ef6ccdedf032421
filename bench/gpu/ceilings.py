"""What PyTorch reaches on this device, as one line of JSON: GB/s of a copy, TFLOP/s of products in float32 and float16, and milliseconds of
ResNet-50 and BERT-like layers where torchvision is there."""

import json
import sys
import time

import torch


def seconds_of(work, repeat=20):
    for _ in range(3):
        work()
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(repeat):
        work()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / repeat


def main():
    if not torch.cuda.is_available():
        print("PyTorch has no device here")
        return 1
    found = {"device": torch.cuda.get_device_name(0), "torch": torch.__version__}
    source = torch.empty(1 << 28, device="cuda")
    target = torch.empty_like(source)
    found["copy_gb_s"] = 2 * source.numel() * 4 / seconds_of(lambda: target.copy_(source)) / 1e9
    for kind in (torch.float32, torch.float16):
        a = torch.randn(4096, 4096, device="cuda", dtype=kind)
        found[f"product_{str(kind).removeprefix('torch.')}_tflop_s"] = 2 * 4096**3 / seconds_of(lambda a=a: a @ a) / 1e12
    layer = torch.nn.TransformerEncoderLayer(768, 12, 3072, batch_first=True, activation="gelu").cuda().eval()
    x = torch.randn(1, 128, 768, device="cuda")
    with torch.no_grad():
        found["bert_base_128_layers_ms"] = 12e3 * seconds_of(lambda: layer(x))
        half, y = layer.half(), x.half()
        found["bert_base_128_layers_float16_ms"] = 12e3 * seconds_of(lambda: half(y))
        try:
            from torchvision.models import resnet50
        except ImportError:
            resnet50 = None
        if resnet50 is not None:
            net, picture = resnet50().cuda().eval(), torch.randn(1, 3, 224, 224, device="cuda")
            found["resnet50_ms"] = 1e3 * seconds_of(lambda: net(picture))
            net, picture = net.half(), picture.half()
            found["resnet50_float16_ms"] = 1e3 * seconds_of(lambda: net(picture))
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
