"""sardonyx.quantization.float16 by its name in ONNX Runtime."""

from __future__ import annotations

from sardonyx.quantization.float16 import convert_float_to_float16

from .. import _absent

__getattr__ = _absent.attributes(
    "transformers.float16",
    "DEFAULT_OP_BLOCK_LIST InitializerTracker convert_np_to_float16 convert_tensor_float_to_float16 float_to_float16_max_diff make_value_info_from_tensor",
)

__all__ = ["convert_float_to_float16"]
