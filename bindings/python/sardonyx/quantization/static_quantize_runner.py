"""python -m sardonyx.quantization.static_quantize_runner -i MODEL -o MODEL: quantises with the data beside the model, in the folders
test_data_set_N: input_0.pb, input_1.pb and so on, each a serialised TensorProto, in the order of the model's inputs."""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import Any, Callable

from .calibrate import Batches, CalibrationMethod
from .quant_utils import QuantFormat, QuantType
from .quantize import StaticQuantConfig, quantize

_TYPES = {t.name.lower(): t for t in QuantType}
_METHODS = {m.name.lower(): m for m in CalibrationMethod}
_FORMATS = {f.name.lower(): f for f in QuantFormat}
# Flags, and the entries of extra_options that they set.
_FLAGS = {
    "--enable_subgraph": ("EnableSubgraph", "quantise what If and Loop contain too"),
    "--force_quantize_no_input_check": ("ForceQuantizeNoInputCheck", "quantise MaxPool, Transpose and the like even after float values"),
    "--matmul_const_b_only": ("MatMulConstBOnly", "only products with constant weights"),
    "--add_qdq_pair_to_weight": ("AddQDQPairToWeight", "keep weights as floats, with a pair of nodes behind them"),
    "--dedicated_qdq_pair": ("DedicatedQDQPair", "a pair of nodes for each reader"),
    "--calib_tensor_range_symmetric": ("CalibTensorRangeSymmetric", "ranges with 0 in their middle"),
    "--calib_moving_average": ("CalibMovingAverage", "average the ends of ranges over the batches"),
    "--use_qdq_contrib_ops": ("UseQDQContribOps", "QuantizeLinear and DequantizeLinear of com.microsoft"),
    "--qdq_keep_removable_activations": ("QDQKeepRemovableActivations", "keep Relu and Clip that the codes make needless"),
    "--qdq_disable_weight_adjust_for_int32_bias": (
        "QDQDisableWeightAdjustForInt32Bias",
        "let biases overflow rather than change the scales of weights",
    ),
}


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Quantises a model statically, with the data in the folders test_data_set_N beside it.")
    parser.add_argument("-i", "--input_model_path", required=True, help="the model")
    parser.add_argument("-o", "--output_quantized_model_path", required=True, help="the new model")
    parser.add_argument("--activation_type", choices=sorted(_TYPES), default="quint8")
    parser.add_argument("--weight_type", choices=sorted(_TYPES), default="qint8")
    parser.add_argument("--calibration_method", choices=sorted(_METHODS), default="minmax")
    parser.add_argument("--quant_format", choices=sorted(_FORMATS), default="qdq")
    for flag, (_, help_) in _FLAGS.items():
        parser.add_argument(flag, action="store_true", help=help_)
    parser.add_argument("--disable_quantize_bias", action="store_true", help="keep biases as floats")
    parser.add_argument("--op_types_to_exclude_output_quantization", nargs="+", default=[], metavar="OP")
    parser.add_argument("--minimum_real_range", type=float, default=1e-4, help="the least width of a range")
    parser.add_argument("--per_channel", action="store_true", help="scales for each output channel of weights")
    parser.add_argument("--op_per_channel_axis", nargs=2, action="append", default=[], metavar=("OP", "AXIS"))
    parser.add_argument("--nodes_to_quantize", nargs="+", metavar="NODE", help="only these nodes")
    parser.add_argument("--nodes_to_exclude", nargs="+", metavar="NODE")
    parser.add_argument("--tensor_quant_overrides", metavar="FILE", help="JSON: TensorQuantOverrides of extra_options")
    return parser.parse_args()


class OnnxModelCalibrationDataReader(Batches):
    """The data in the folders test_data_set_N beside a model."""

    def __init__(self, model_path: str):
        import onnx

        from .. import InferenceSession

        names = [i.name for i in InferenceSession(model_path).get_inputs()]
        folders = [f for f in Path(model_path).parent.glob("test_data_set_*") if f.is_dir()]
        folders.sort(key=lambda f: [int(digits) for digits in re.findall(r"\d+$", f.name)])
        if not folders:
            raise ValueError(f"there is no folder test_data_set_0 beside '{model_path}'")

        def read(file: Path) -> Any:
            return onnx.numpy_helper.to_array(onnx.TensorProto.FromString(file.read_bytes()))

        super().__init__([{name: read(f / f"input_{i}.pb") for i, name in enumerate(names)} for f in folders])


def main(run: Callable[..., Any] = quantize) -> None:
    """run: what writes the model, with quantize()'s arguments."""
    args = parse_arguments()
    extra: dict[str, Any] = {entry: getattr(args, flag[2:]) for flag, (entry, _) in _FLAGS.items()}
    extra["QuantizeBias"] = not args.disable_quantize_bias
    extra["MinimumRealRange"] = args.minimum_real_range
    extra["OpTypesToExcludeOutputQuantization"] = args.op_types_to_exclude_output_quantization
    extra["QDQOpTypePerChannelSupportToAxis"] = {op: int(axis) for op, axis in args.op_per_channel_axis}
    if args.tensor_quant_overrides:
        extra["TensorQuantOverrides"] = json.loads(Path(args.tensor_quant_overrides).read_text())
    config = StaticQuantConfig(
        OnnxModelCalibrationDataReader(args.input_model_path),
        calibrate_method=_METHODS[args.calibration_method],
        quant_format=_FORMATS[args.quant_format],
        activation_type=_TYPES[args.activation_type],
        weight_type=_TYPES[args.weight_type],
        nodes_to_quantize=args.nodes_to_quantize,
        nodes_to_exclude=args.nodes_to_exclude,
        per_channel=args.per_channel,
        extra_options=extra,
    )
    run(args.input_model_path, args.output_quantized_model_path, config)


__all__ = ["OnnxModelCalibrationDataReader", "main", "parse_arguments"]

if __name__ == "__main__":
    main()
