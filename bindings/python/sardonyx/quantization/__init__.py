"""Quantised models: the names of `onnxruntime.quantization`, over the engine's own quantiser (`docs/quantization.md`).

    from sardonyx.quantization import CalibrationDataReader, quantize_dynamic, quantize_static

    quantize_dynamic("bert.onnx", "bert.int8.onnx")
    quantize_static("resnet50.onnx", "resnet50.int8.onnx", reader, extra_options={"MaxLoss": 0.01})

Models are files or `onnx.ModelProto`. The functions return a report of what they did and release the GIL.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._later import later

if TYPE_CHECKING:
    from .calibrate import (
        CalibraterBase,
        CalibrationDataReader,
        CalibrationMethod,
        DistributionCalibrater,
        EntropyCalibrater,
        HistogramCalibrater,
        MinMaxCalibrater,
        PercentileCalibrater,
        TensorData,
        TensorsData,
        create_calibrator,
        load_tensors_data,
        save_tensors_data,
    )
    from .onnx_quantizer import ONNXQuantizer
    from .qdq_quantizer import CudaQuantizer, QDQQuantizer
    from .quant_utils import QuantFormat, QuantizationMode, QuantType, write_calibration_table
    from .quantize import (
        DynamicQuantConfig,
        QuantConfig,
        StaticQuantConfig,
        compare_quantized,
        convert_to_half,
        get_qdq_config,
        quantize,
        quantize_dynamic,
        quantize_static,
    )
    from .shape_inference import quant_pre_process

__getattr__, __dir__ = later(
    __name__,
    {
        "calibrate": "CalibraterBase CalibrationDataReader CalibrationMethod DistributionCalibrater EntropyCalibrater HistogramCalibrater "
        "MinMaxCalibrater PercentileCalibrater TensorData TensorsData create_calibrator load_tensors_data save_tensors_data",
        "onnx_quantizer": "ONNXQuantizer",
        "qdq_quantizer": "CudaQuantizer QDQQuantizer",
        "quant_utils": "QuantFormat QuantType QuantizationMode write_calibration_table",
        "quantize": "DynamicQuantConfig QuantConfig StaticQuantConfig compare_quantized convert_to_half get_qdq_config quantize "
        "quantize_dynamic quantize_static",
        "shape_inference": "quant_pre_process",
    },
    "blocks calibrate float16 fusions matmul_bnb4_quantizer matmul_nbits_quantizer mixed_types onnx_model onnx_quantizer preprocess "
    "qdq_loss_debug qdq_quantizer qnn qnn_preprocess quant_utils registry shape_inference static_quantize_runner tensor_quant_overrides",
)

__all__ = [
    "CalibraterBase",
    "CalibrationDataReader",
    "CalibrationMethod",
    "CudaQuantizer",
    "DistributionCalibrater",
    "DynamicQuantConfig",
    "EntropyCalibrater",
    "HistogramCalibrater",
    "MinMaxCalibrater",
    "ONNXQuantizer",
    "PercentileCalibrater",
    "QDQQuantizer",
    "QuantConfig",
    "QuantFormat",
    "QuantType",
    "QuantizationMode",
    "StaticQuantConfig",
    "TensorData",
    "TensorsData",
    "compare_quantized",
    "convert_to_half",
    "create_calibrator",
    "get_qdq_config",
    "load_tensors_data",
    "quant_pre_process",
    "quantize",
    "quantize_dynamic",
    "quantize_static",
    "save_tensors_data",
    "write_calibration_table",
]
