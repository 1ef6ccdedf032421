"""python -m onnxruntime.quantization.preprocess"""

from sardonyx.quantization.preprocess import main, parse_arguments  # noqa: F401

if __name__ == "__main__":
    main()
