"""Where a quantised model (QDQ) loses accuracy: its values beside those of the float model."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any, Callable, Sequence, Union

import numpy as np

from .calibrate import CalibraterBase
from .quant_utils import (
    DEQUANT_OP_NAME,
    DEQUANT_OUTPUT_SUFFIX,
    QUANT_INPUT_SUFFIX,
    TENSOR_NAME_QUANT_SUFFIX,
    load_model_with_shape_infer,
)

_SAVED = "_ReshapedSavedOutput"
Arrays = Union[Sequence[Any], Any]


def modify_model_output_intermediate_tensors(
    input_model_path: str | os.PathLike[str],
    output_model_path: str | os.PathLike[str],
    op_types_for_saving: Sequence[str] | None = None,
    save_as_external_data: bool = False,
) -> None:
    """Writes a model that also gives the float values that nodes of these operators (default: all) read and give, flattened."""
    import onnx

    chosen = CalibraterBase(input_model_path, op_types_for_saving)
    model = chosen.model
    names, infos = chosen.select_tensors_to_calibrate(model)
    flat = "sardonyx_flat_shape"
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.array([-1], dtype=np.int64), flat))
    for name in sorted(names):
        model.graph.node.append(onnx.helper.make_node("Reshape", [name, flat], [name + _SAVED], name=name + _SAVED))
        kind = infos[name].type.tensor_type.elem_type
        model.graph.output.append(onnx.helper.make_tensor_value_info(name + _SAVED, kind, [-1]))
    onnx.save_model(model, os.fspath(output_model_path), save_as_external_data=save_as_external_data)


def collect_activations(
    augmented_model: str,
    input_reader: Any,
    session_options: Any = None,
    execution_providers: Sequence[str] | None = None,
) -> dict[str, list[Any]]:
    """Values by name, an array for each batch, of a model that modify_model_output_intermediate_tensors() wrote."""
    from .. import GraphOptimizationLevel, InferenceSession, SessionOptions

    if session_options is None:
        session_options = SessionOptions()
        session_options.graph_optimization_level = GraphOptimizationLevel.ORT_DISABLE_ALL
    session = InferenceSession(augmented_model, session_options, providers=list(execution_providers or ["CPUExecutionProvider"]))
    saved = [o.name for o in session.get_outputs() if o.name.endswith(_SAVED)]
    out: dict[str, list[Any]] = {}
    batches = 0
    while (batch := input_reader.get_next()) is not None:
        batches += 1
        for name, value in zip(saved, session.run(saved, batch)):
            out.setdefault(name[: -len(_SAVED)], []).append(value)
    if not batches:
        raise RuntimeError("no data was collected: the reader returned no batch")
    return out


def create_activation_matching(
    qdq_activations: dict[str, Sequence[Any]], float_activations: dict[str, Sequence[Any]] | None = None
) -> dict[str, dict[str, Sequence[Any]]]:
    """By name of the value: "pre_qdq" and "post_qdq" of the quantised model and, where the float model has it, "float"."""
    out: dict[str, dict[str, Sequence[Any]]] = {}
    before: Sequence[Any] | None
    after: Sequence[Any] | None
    for name, values in qdq_activations.items():
        if name.endswith(QUANT_INPUT_SUFFIX):
            plain = name[: -len(QUANT_INPUT_SUFFIX)]
            before, after = values, qdq_activations.get(plain)
        else:
            ending = next((e for e in (DEQUANT_OUTPUT_SUFFIX, DEQUANT_OUTPUT_SUFFIX + "_1") if name.endswith(e)), None)
            if ending is None:
                continue
            plain = name[: -len(ending)]
            before, after = qdq_activations.get(plain), values
        if before is not None and after is not None:
            out[plain] = {"pre_qdq": before, "post_qdq": after}
    for name, match in out.items():
        if float_activations and name in float_activations:
            match["float"] = float_activations[name]
    return out


def create_weight_matching(float_model_path: str, qdq_model_path: str) -> dict[str, dict[str, Any]]:
    """By name of the weights: "float" and "dequantized" arrays."""
    import onnx

    def constants(path: str) -> tuple[Any, dict[str, Any]]:
        model = load_model_with_shape_infer(Path(path))
        return model, {t.name: t for t in model.graph.initializer}

    _, floats = constants(float_model_path)
    model, codes = constants(qdq_model_path)
    out: dict[str, dict[str, Any]] = {}
    for node in model.graph.node:
        name = node.input[0][: -len(TENSOR_NAME_QUANT_SUFFIX)] if node.op_type == DEQUANT_OP_NAME else ""
        if node.op_type != DEQUANT_OP_NAME or node.input[0] not in codes or name not in floats:
            continue
        weights, scale = (onnx.numpy_helper.to_array(codes[i]).astype(np.float32) for i in node.input[:2])
        zero = onnx.numpy_helper.to_array(codes[node.input[2]]).astype(np.float32) if len(node.input) > 2 else np.zeros_like(scale)
        axis = next((a.i for a in node.attribute if a.name == "axis"), 1)
        spread = [1] * weights.ndim
        if scale.size > 1:
            spread[axis] = scale.size
        dequantized = (weights - zero.reshape(spread)) * scale.reshape(spread)
        out[name] = {"float": onnx.numpy_helper.to_array(floats[name]), "dequantized": dequantized}
    return out


def compute_signal_to_quantization_noice_ratio(x: Arrays, y: Arrays) -> float:
    """Decibels."""
    left = [x] if isinstance(x, np.ndarray) else list(x)
    right = [y] if isinstance(y, np.ndarray) else list(y)
    if len(left) != len(right):
        raise RuntimeError(f"{len(left)} tensors are to be compared with {len(right)}")
    a, b = (np.concatenate([np.ravel(v) for v in values]) for values in (left, right))
    least = float(np.finfo(float).eps)
    return 20 * math.log10(max(float(np.linalg.norm(a)), least) / max(float(np.linalg.norm(a - b)), least))


def compute_weight_error(
    weights_match: dict[str, dict[str, Any]],
    err_func: Callable[[Any, Any], float] = compute_signal_to_quantization_noice_ratio,
) -> dict[str, float]:
    return {name: err_func(match["float"], match["dequantized"]) for name, match in weights_match.items()}


def compute_activation_error(
    activations_match: dict[str, dict[str, Sequence[Any]]],
    err_func: Callable[[Any, Any], float] = compute_signal_to_quantization_noice_ratio,
) -> dict[str, dict[str, float]]:
    """"qdq_err": what quantising this value costs; "xmodel_err": against the float model."""
    out = {}
    for name, match in activations_match.items():
        out[name] = {"qdq_err": err_func(match["pre_qdq"], match["post_qdq"])}
        if match.get("float"):
            out[name]["xmodel_err"] = err_func(match["float"], match["post_qdq"])
    return out
