"""python -m onnxruntime.quantization.static_quantize_runner"""

from sardonyx.quantization.static_quantize_runner import *  # noqa: F403
from sardonyx.quantization.static_quantize_runner import main

if __name__ == "__main__":
    main()
