"""Models in memory that compute in 16 bits, by the names of the usual converters."""

from __future__ import annotations

from typing import Any, Sequence

from ._models import ModelInput, new_file
from ._models import load as load_model
from .quantize import convert_to_half


def _converted(model: ModelInput, to: str, keep_io: bool, ops: Sequence[str] | None, nodes: Sequence[str] | None) -> Any:
    with new_file() as path:
        convert_to_half(model, path, to, keep_io, ops, nodes)
        return load_model(path)


def convert_float_to_float16(
    model: ModelInput,
    min_positive_val: float | None = None,
    max_finite_val: float | None = None,
    keep_io_types: bool = False,
    disable_shape_infer: bool = False,
    op_block_list: Sequence[str] | None = None,
    node_block_list: Sequence[str] | None = None,
    **settings: Any,
) -> Any:
    """The ModelProto in float16. Weights beyond its range become its largest number, those too small its smallest; types are always
    inferred. Other settings of converters have no effect."""
    return _converted(model, "float16", keep_io_types, op_block_list, node_block_list)


def convert_float_to_bfloat16(
    model: ModelInput,
    keep_io_types: bool = False,
    op_block_list: Sequence[str] | None = None,
    node_block_list: Sequence[str] | None = None,
) -> Any:
    """The ModelProto in bfloat16."""
    return _converted(model, "bfloat16", keep_io_types, op_block_list, node_block_list)


__all__ = ["convert_float_to_bfloat16", "convert_float_to_float16"]
