"""Training artifacts with the names and arguments of `onnxruntime.training.artifacts` 1.19.

docs/training/artifacts.md says what differs.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional, Union

from .. import _sardonyx
from . import onnxblock

if TYPE_CHECKING:
    import onnx

__all__ = ["LossType", "OptimType", "generate_artifacts"]

_training = _sardonyx.training()


class LossType(Enum):
    MSELoss = 1
    CrossEntropyLoss = 2
    BCEWithLogitsLoss = 3
    L1Loss = 4


class OptimType(Enum):
    AdamW = 1
    SGD = 2


_LOSSES = {
    LossType.MSELoss: "mse",
    LossType.CrossEntropyLoss: "cross-entropy",
    LossType.BCEWithLogitsLoss: "bce-with-logits",
    LossType.L1Loss: "l1",
}
_OPTIMIZERS = {OptimType.AdamW: "adamw", OptimType.SGD: "sgd"}


def _member(kind: type[Enum], value: Any) -> Any:
    """A member, or its name as a plain text."""
    if isinstance(value, str):
        if value in kind.__members__:
            return kind[value]
        raise RuntimeError(f"Unknown {kind.__name__} '{value}'. Expected one of {', '.join(kind.__members__)}.")
    return value


def _names(value: Optional[Sequence[str]], what: str) -> list[str]:
    if value is None:
        return []
    if isinstance(value, str) or not all(isinstance(name, str) for name in value):
        raise RuntimeError(f"Unknown type provided for {what}: {type(value)}. Expected a list of strings.")
    return list(value)


def _source(model: Any) -> Union[str, bytes]:
    if isinstance(model, (str, os.PathLike)):
        return os.fspath(model)
    if isinstance(model, (bytes, bytearray, memoryview)):
        return bytes(model)
    if hasattr(model, "SerializeToString"):
        found: Union[str, bytes] = model.SerializeToString()
        return found
    raise RuntimeError("Please pass in either a string, bytes or an ONNX ModelProto for the model.")


def _optimizer(optimizer: Any) -> Optional[dict[str, Any]]:
    """Settings of an optimizer that the engine knows; None: a block that is to be built."""
    optimizer = _member(OptimType, optimizer)
    if isinstance(optimizer, OptimType):
        return {"kind": _OPTIMIZERS[optimizer]}
    if isinstance(optimizer, dict):  # ours: {"kind": "sgd", "momentum": 0.9}
        return dict(optimizer)
    if isinstance(optimizer, onnxblock.Block):
        return onnxblock.optim.settings(optimizer)
    raise TypeError(
        f"Unknown optimizer provided {type(optimizer)}. Expected optimizer to be either one of "
        "sardonyx.training.artifacts.OptimType or sardonyx.training.onnxblock.Block."
    )


def generate_artifacts(
    model: Union[onnx.ModelProto, str, os.PathLike[str], bytes],
    requires_grad: Optional[Sequence[str]] = None,
    frozen_params: Optional[Sequence[str]] = None,
    loss: Optional[Union[LossType, onnxblock.Block, str]] = None,
    optimizer: Optional[Union[OptimType, onnxblock.Block, str, dict[str, Any]]] = None,
    artifact_directory: Optional[Union[str, bytes, os.PathLike[str]]] = None,
    prefix: str = "",
    ort_format: bool = False,
    custom_op_library: Optional[Union[str, bytes, os.PathLike[str]]] = None,
    additional_output_names: Optional[Sequence[str]] = None,
    nominal_checkpoint: bool = False,
    loss_input_names: Optional[Sequence[str]] = None,
    *,
    head_classes: Optional[int] = None,
    lora: Optional[dict[str, Any]] = None,
    recompute: Optional[Sequence[str]] = None,
    train_batch_norm: bool = True,
    seed: int = 0,
) -> None:
    """Writes training_model.onnx, eval_model.onnx, optimizer_model.onnx and checkpoint into `artifact_directory`.

    The arguments up to `loss_input_names` are ONNX Runtime's; names may be globs, and `loss` and `optimizer` names of their
    enums' members. `requires_grad=None` trains all float32 initializers that are not frozen. `optimizer` may be a dict
    of settings: {"kind": "sgd", "momentum": 0.9, "clip_norm": 1}. `lora`: {"rank": 8, "alpha": 16, "targets": ["*query*"]}.
    """
    if ort_format:
        raise RuntimeError("ort_format: Sardonyx does not write ONNX Runtime's own format; it trains from the .onnx files")
    both = set(requires_grad or ()) & set(frozen_params or ())
    if both:
        raise RuntimeError(f"A parameter cannot be frozen and require gradient computation at the same time {both}")
    if requires_grad is not None and not list(requires_grad) and head_classes is None and lora is None:
        raise RuntimeError("requires_grad is empty: there is nothing to train")
    if artifact_directory is None:
        artifact_directory = os.getcwd()
    options: dict[str, Any] = {
        "requires_grad": _names(requires_grad, "requires_grad"),
        "frozen": _names(frozen_params, "frozen_params"),
        "additional_outputs": _names(additional_output_names, "additional output names"),
        "prefix": prefix,
        "nominal_checkpoint": nominal_checkpoint,
        "recompute": _names(recompute, "recompute"),
        "train_batch_norm": train_batch_norm,
        "seed": seed,
        "optimizer": None,
    }
    if head_classes is not None:
        options["head_classes"] = head_classes
    if lora is not None:
        options["lora"] = dict(lora)
    if custom_op_library is not None:
        options["custom_ops"] = [os.fsdecode(custom_op_library)]
    names = _names(loss_input_names, "loss_input_names")
    loss = _member(LossType, loss)
    source: Union[str, bytes]
    if loss is None or isinstance(loss, LossType):
        options["loss"] = _LOSSES[loss] if loss is not None else "none"
        options["loss_input_names"] = names
        source = _source(model)
    elif isinstance(loss, onnxblock.Block):
        source, options["additional_outputs"] = onnxblock.with_loss(model, loss, names, options["additional_outputs"])
        options["loss"] = "none"
    else:
        raise RuntimeError(
            f"Unknown loss provided {type(loss)}. Expected loss to be either one of "
            "sardonyx.training.artifacts.LossType or sardonyx.training.onnxblock.Block."
        )
    if optimizer is not None:
        options["optimizer"] = _optimizer(optimizer)
    # Blocks whose settings the engine knows need no building.
    block = optimizer if isinstance(optimizer, onnxblock.Block) and options["optimizer"] is None else None
    _write(source, os.fsdecode(artifact_directory), options, block)


def _write(source: Union[str, bytes], directory: str, options: dict[str, Any], optimizer: Optional[onnxblock.Block]) -> None:
    if optimizer is None:
        _training.generate_artifacts(source, directory, options)
        return
    # The block sees the parameters, so all is made beside and moved when it is whole.
    Path(directory).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=directory, prefix=".artifacts-") as beside:
        files = [f for f in _training.generate_artifacts(source, beside, options) if f]
        made = Path(beside) / f"{options['prefix']}optimizer_model.onnx"
        made.write_bytes(onnxblock.built_optimizer(optimizer, files[0], files[2]))
        for file in [*files, str(made)]:
            os.replace(file, os.path.join(directory, os.path.basename(file)))
