"""What to do to a model before it is quantised for Qualcomm's QNN provider."""

from __future__ import annotations

import logging
import os
from typing import Any, Sequence

from .. import _sardonyx
from ._models import ModelInput, as_file, new_file
from ._models import load as load_model
from .fusions import FusionGelu, FusionLayerNormalization, FusionLpNormalization, FusionSpaceToDepth
from .onnx_model import ONNXModel, replace_all, subgraphs
from .quant_utils import get_opset_version

_native = _sardonyx.quantize()
_log = logging.getLogger(__name__)
_LAYER_NORMALIZATION = 17  # the opset that brought it


def qnn_preprocess_model(
    model_input: ModelInput,
    model_output: str | os.PathLike[str],
    exclude_initializer_from_input: bool = False,
    fuse_layernorm: bool = False,
    save_as_external_data: bool = False,
    all_tensors_to_one_file: bool = False,
    external_data_location: str | None = None,
    external_data_size_threshold: int = 1024,
    external_data_convert_attribute: bool = False,
    inputs_to_make_channel_last: Sequence[str] | None = None,
    outputs_to_make_channel_last: Sequence[str] | None = None,
    dynamic_input_shapes: Sequence[tuple[str, str]] | None = None,
) -> bool:
    """Folds constants, and fuses what QNN has as one operator: Gelu, LpNormalization, SpaceToDepth, and if asked LayerNormalization.
    dynamic_input_shapes fixes shapes of inputs: [("input", "1,3,256,256")]. Inputs and outputs made channel-last, from (N, C, …) to
    (N, …, C), get a Transpose. Writes the model, and returns True, only where any of this changed it."""
    import onnx

    with as_file(model_input) as source, new_file() as folded:
        _native.preprocess(source, folded, {})
        model = ONNXModel(load_model(folded))
    changed = False
    if dynamic_input_shapes:
        for name, text in dynamic_input_shapes:
            _fix_shape(model, name, [int(extent) for extent in text.split(",")])
        model.model = onnx.shape_inference.infer_shapes(model.model)
        changed = True
    if exclude_initializer_from_input:
        changed |= _only_real_inputs(model)
    fusions = [FusionGelu(model), FusionLpNormalization(model), FusionSpaceToDepth(model)]
    if fuse_layernorm and get_opset_version(model.model) >= _LAYER_NORMALIZATION:
        fusions.append(FusionLayerNormalization(model))
    elif fuse_layernorm:
        _log.warning("the model has opset %d; LayerNormalization needs 17", get_opset_version(model.model))
    for fusion in fusions:
        changed |= fusion.apply()
    for names, is_input in ((inputs_to_make_channel_last, True), (outputs_to_make_channel_last, False)):
        for name in names or ():
            _make_channel_last(model, name, is_input)
            changed = True
    if not changed:
        return False
    model.topological_sort()
    onnx.save_model(
        model.model,
        os.fspath(model_output),
        save_as_external_data=save_as_external_data,
        all_tensors_to_one_file=all_tensors_to_one_file,
        location=external_data_location,
        size_threshold=external_data_size_threshold,
        convert_attribute=external_data_convert_attribute,
    )
    return True


def _fix_shape(model: ONNXModel, name: str, shape: list[int]) -> None:
    value = model.find_graph_input(name)
    if value is None:
        raise ValueError(f"dynamic_input_shapes: the model has no input '{name}'; its inputs: {_names(model.graph().input)}")
    if len(value.type.tensor_type.shape.dim) != len(shape):
        raise ValueError(f"dynamic_input_shapes: '{name}' has {len(value.type.tensor_type.shape.dim)} dimensions, received {shape}")
    for dim, extent in zip(value.type.tensor_type.shape.dim, shape):
        dim.dim_value = extent
    # Found anew for the fixed shapes.
    del model.graph().value_info[:]
    for output in model.graph().output:
        for dim in output.type.tensor_type.shape.dim:
            dim.ClearField("dim_param")


def _only_real_inputs(model: ONNXModel) -> bool:
    """Removes inputs that have a default value."""
    graph = model.graph()
    kept = [value for value in graph.input if value.name not in model.get_initializer_name_set()]
    if len(kept) == len(graph.input):
        return False
    replace_all(graph.input, kept)
    return True


def _names(values: Any) -> str:
    return ", ".join(value.name for value in values)


def _make_channel_last(model: ONNXModel, name: str, is_input: bool) -> None:
    import onnx

    graph = model.graph()
    what = "input" if is_input else "output"
    value = (model.find_graph_input if is_input else model.find_graph_output)(name)
    if value is None:
        raise ValueError(f"the model has no {what} '{name}'; its {what}s: {_names(graph.input if is_input else graph.output)}")
    dims = value.type.tensor_type.shape.dim
    rank = len(dims)
    if rank < 3:
        raise ValueError(f"Expected {what} '{name}' to be of rank >= 3, as (N, C, …), but it has {rank} dimensions")
    if is_input and model.is_graph_output(name) or not is_input and model.is_graph_input(name):
        raise ValueError(f"'{name}' is an input and an output of the model; its layout cannot change")
    taken = {n for node in graph.node for n in (*node.input, *node.output)} | {value.name for value in graph.input}
    inner = next(n for i in range(len(taken) + 1) if (n := f"{name}_channel_first{i or ''}") not in taken)
    _rename(graph, name, inner)
    last = [0, *range(2, rank), 1]
    info = graph.value_info.add()
    info.CopyFrom(value)
    info.name = inner
    replace_all(dims, [dims[i] for i in last])
    edge = (name, inner, [0, rank - 1, *range(1, rank - 1)]) if is_input else (inner, name, last)
    graph.node.append(onnx.helper.make_node("Transpose", [edge[0]], [edge[1]], name=f"{inner}_Transpose", perm=edge[2]))


def _rename(graph: Any, old: str, new: str) -> None:
    """A value, wherever nodes give or read it, in graphs inside them too."""
    for node in graph.node:
        for names in (node.input, node.output):
            for i, name in enumerate(names):
                if name == old:
                    names[i] = new
        for inside in subgraphs(node):
            _rename(inside, old, new)


__all__ = ["qnn_preprocess_model"]
