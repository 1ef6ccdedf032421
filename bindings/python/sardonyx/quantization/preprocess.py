"""python -m sardonyx.quantization.preprocess --input MODEL --output MODEL"""

from __future__ import annotations

import argparse

from .shape_inference import quant_pre_process


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Prepares a model for quantising: types are inferred, constants folded.")
    parser.add_argument("--input", required=True, help="the model")
    parser.add_argument("--output", required=True, help="the new model")
    parser.add_argument("--skip_optimization", type=bool, default=False, help="fold neither constants nor BatchNormalization")
    parser.add_argument("--save_as_external_data", action="store_true", help="keep weights in a file beside the model")
    parser.add_argument("--external_data_size_threshold", type=int, default=1024)
    parser.add_argument("--external_data_location")
    parser.add_argument("--int_max", type=int, default=2**31 - 1)
    parser.add_argument("--verbose", type=int, default=0)
    for flag in ("--skip_onnx_shape", "--skip_symbolic_shape"):
        parser.add_argument(flag, type=bool, default=False)
    for flag in ("--auto_merge", "--guess_output_rank", "--all_tensors_to_one_file"):
        parser.add_argument(flag, action="store_true")
    return parser.parse_args()


def main() -> None:
    settings = vars(parse_arguments())
    quant_pre_process(settings.pop("input"), settings.pop("output"), **settings)


if __name__ == "__main__":
    main()
