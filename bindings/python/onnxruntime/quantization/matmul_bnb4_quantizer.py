"""python -m onnxruntime.quantization.matmul_bnb4_quantizer"""

from sardonyx.quantization.matmul_bnb4_quantizer import *  # noqa: F403
from sardonyx.quantization.matmul_bnb4_quantizer import main

if __name__ == "__main__":
    main()
