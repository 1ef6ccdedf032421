"""INT8 by onnxruntime's quantiser. Static: QDQ form, per-channel symmetric weights, asymmetric uint8 activations, calibrated on random pictures.
Dynamic: activations are quantised in each run."""

import os
import tempfile

import numpy as np
import onnx
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_dynamic, quantize_static


class _Pictures(CalibrationDataReader):
    def __init__(self, model, count=4):
        info = model.graph.input[0]
        shape = [d.dim_value for d in info.type.tensor_type.shape.dim]
        random = np.random.default_rng(7)
        self.items = iter([{info.name: random.standard_normal(shape, np.float32)} for _ in range(count)])

    def get_next(self):
        return next(self.items, None)


def _folded(path):
    """Batch normalisation folded into convolutions, as every exporter does before quantising: by onnxruntime's basic optimisations."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.optimized_model_filepath = path + ".folded"
    options.log_severity_level = 3
    ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return options.optimized_model_filepath


def quantized(model):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "float.onnx")
        # Per-channel quantisation needs opset 13.
        onnx.save(onnx.version_converter.convert_version(model, 13) if model.opset_import[0].version < 13 else model, path)
        out = os.path.join(folder, "int8.onnx")
        quantize_static(_folded(path), out, _Pictures(model), quant_format=QuantFormat.QDQ, per_channel=True, weight_type=QuantType.QInt8,
                        activation_type=QuantType.QUInt8)
        return onnx.load(out)


def dynamic(model):
    """MatMulInteger of weights in int8 and of what DynamicQuantizeLinear makes of activations; embeddings are bytes."""
    with tempfile.TemporaryDirectory() as folder:
        path, out = os.path.join(folder, "float.onnx"), os.path.join(folder, "int8.onnx")
        onnx.save(model, path)
        quantize_dynamic(path, out, weight_type=QuantType.QInt8, op_types_to_quantize=["MatMul", "Gather"])
        return onnx.load(out)
