"""The operators that ONNX Runtime's tool quantises, by name: the keys. A value says what the operator becomes. Without
`op_types_to_quantize` the functions of this package take all of them; `sardonyx.quantization` chooses those that gain by it."""

from sardonyx.quantization.quant_utils import QuantFormat, QuantizationMode

_COMMON = ("EmbedLayerNormalization", "Gather", "Transpose")
_DYNAMIC = (*_COMMON, "Attention", "Conv", "LSTM", "MatMul")
# Operators of both formats of static quantisation, of QOperator only, and of QDQ only.
_BOTH = (
    "AveragePool", "Clip", "Conv", "Flatten", "Gather", "Gemm", "MatMul", "MaxPool", "Pad", "Relu", "Reshape", "Resize", "Split", "Squeeze",
    "Transpose", "Unsqueeze", "Where",
)  # fmt: skip
_INTEGER = ("Add", "ArgMax", "Concat", "EmbedLayerNormalization", "GlobalAveragePool", "LeakyRelu", "Mul", "Sigmoid", "Softmax")
_PAIRS = (
    "BatchNormalization", "ConvTranspose", "CumSum", "GatherElements", "InstanceNormalization", "LayerNormalization", "Slice", "TopK",
)  # fmt: skip

CommonOpsRegistry = {op: QuantizationMode.IntegerOps for op in _COMMON}
IntegerOpsRegistry = {op: QuantizationMode.IntegerOps for op in _DYNAMIC}
QLinearOpsRegistry = {op: QuantizationMode.QLinearOps for op in _BOTH + _INTEGER}
QDQRegistry = {op: QuantFormat.QDQ for op in _BOTH + _PAIRS}

__all__ = ["CommonOpsRegistry", "IntegerOpsRegistry", "QDQRegistry", "QLinearOpsRegistry"]
