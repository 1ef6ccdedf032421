"""python -m onnxruntime.quantization.static_quantize_runner"""

from sardonyx.quantization.static_quantize_runner import *  # noqa: F403
from sardonyx.quantization.static_quantize_runner import main as _main

from .quantize import quantize


def main():
    _main(quantize)


if __name__ == "__main__":
    main()
