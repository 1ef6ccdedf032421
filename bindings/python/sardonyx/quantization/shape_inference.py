"""What is done before quantising."""

from __future__ import annotations

import os
from typing import Any

from .. import _sardonyx
from ._models import ModelInput, as_file

_native = _sardonyx.quantize()


def quant_pre_process(
    input_model: ModelInput | None = None,
    output_model_path: str | os.PathLike[str] | None = None,
    skip_optimization: bool = False,
    skip_onnx_shape: bool = False,
    skip_symbolic_shape: bool = False,
    auto_merge: bool = False,
    int_max: int = 2**31 - 1,
    guess_output_rank: bool = False,
    verbose: int = 0,
    save_as_external_data: bool = False,
    all_tensors_to_one_file: bool = False,
    external_data_location: str | None = None,
    external_data_size_threshold: int = 1024,
    **deprecated_kwargs: Any,
) -> None:
    """Writes the model with types inferred and, unless skip_optimization, constants and BatchNormalization folded. quantize_static() and
    quantize_dynamic() do the same by themselves. The settings of symbolic inference have no effect: types are always inferred, symbolic
    extents with them. External data come as one file beside the model, named after it."""
    if input_model is None:
        input_model = deprecated_kwargs.pop("input_model_path", None)
    if input_model is None or output_model_path is None:
        raise AssertionError("quant_pre_process needs input_model and output_model_path")
    options = {"preprocess": not skip_optimization, "external_above": 0 if save_as_external_data else None}
    with as_file(input_model) as model:
        _native.preprocess(model, os.fspath(output_model_path), options)
