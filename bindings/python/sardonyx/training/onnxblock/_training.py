"""Blocks of whole models: with a loss, and with a backward part."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Union

from ... import _sardonyx
from ._base import base, current, empty_base, libraries
from .blocks import Block, exists

_training = _sardonyx.training()
Parameters = tuple[list[Any], list[Any]]


def _tuple(output: Any) -> tuple[str, ...]:
    return (output,) if isinstance(output, str) else tuple(output)


def _set_outputs(model: Any, names: Sequence[str]) -> None:
    """The engine infers types, so a name will do where the model says no more."""
    import onnx

    known = {info.name: info for info in [*model.graph.value_info, *model.graph.output]}
    made = []
    for name in names:
        if not exists(model, name):
            raise LookupError(f"The provided name {name} is not a graph value info or a graph output.")
        made.append(known.get(name) or onnx.ValueInfoProto(name=name))
    made = [onnx.ValueInfoProto.FromString(info.SerializeToString()) for info in made]
    del model.graph.output[:]
    model.graph.output.extend(made)


class ForwardBlock(Block):
    """Its build() returns the names of the model's outputs."""

    def __init__(self) -> None:
        super().__init__()
        self._model: Any = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        output = super().__call__(*args, **kwargs)
        _set_outputs(self.base, _tuple(output))
        self._model = self.base
        return output

    def build(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    def to_model_proto(self) -> Any:
        if self._model is None:
            raise RuntimeError("Please build the forward models first before trying to retrieve it.")
        return self._model


class TrainingBlock(Block):
    """Its build() returns the name of the loss, and those of further outputs."""

    def __init__(self) -> None:
        super().__init__()
        self._requires_grad: list[str] = []
        self._frozen_params: list[str] = []
        self._made: Any = None

    def build(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    def requires_grad(self, argument_name: str, value: bool = True) -> None:
        to, other = (self._requires_grad, self._frozen_params) if value else (self._frozen_params, self._requires_grad)
        if argument_name in other:
            other.remove(argument_name)
        if argument_name not in to:
            to.append(argument_name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        import onnx

        output = super().__call__(*args, **kwargs)
        names = _tuple(output)
        _set_outputs(self.base, names)
        options = {
            "requires_grad": self._requires_grad,
            "frozen": self._frozen_params,
            "additional_outputs": list(names[1:]),
            "loss": "none",
            "optimizer": None,
            "custom_ops": libraries(),
        }
        initializers = {i.name: i for i in self.base.graph.initializer}
        with tempfile.TemporaryDirectory() as folder:
            files = _training.generate_artifacts(_serialised(self.base, folder), folder, options)
            models = onnx.load(files[0]), onnx.load(files[1])
            state = _training.load(files[3])
            parameters: Parameters = ([], [])
            for name, _, _, trained in state.parameters():
                known = initializers.get(name)
                tensor = known if known is not None else onnx.numpy_helper.from_array(state.get(name), name)
                parameters[0 if trained else 1].append(tensor)
        self._made = models, parameters
        current().model = models[0]
        return output

    def parameters(self) -> Parameters:
        """Trained ones and frozen ones, as TensorProtos."""
        if self._made is None:
            raise RuntimeError("Please build the training model first before trying to retrieve the parameters.")
        found: Parameters = self._made[1]
        return found

    def to_model_proto(self) -> Any:
        """The training model and the eval model."""
        if self._made is None:
            raise RuntimeError("Please build the training and eval models first before trying to retrieve them.")
        return self._made[0]


def _serialised(model: Any, folder: str) -> Union[str, bytes]:
    """Beyond 2 GiB only a file will do, with the tensors beside it."""
    import onnx

    if model.ByteSize() < 2**31 - 1:
        found: Union[str, bytes] = model.SerializeToString()
        return found
    path = os.path.join(folder, "forward.onnx")
    onnx.save(model, path, save_as_external_data=True, all_tensors_to_one_file=True, location="forward.data")
    return path


def with_loss(model: Any, loss: Block, inputs: Sequence[str], additional: Sequence[str]) -> tuple[bytes, list[str]]:
    """The model with the block's loss as its first output, serialised, and the names of its other outputs."""
    import onnx

    if isinstance(model, (str, os.PathLike)):
        proto = onnx.load(os.fspath(model))
    elif hasattr(model, "SerializeToString"):
        proto = model
    else:
        proto = onnx.load_model_from_string(bytes(model))
    with base(proto) as held:
        made = _tuple(loss(*(inputs or [output.name for output in proto.graph.output])))
        names = [*made, *additional]
        _set_outputs(held.model, names)
        return held.model.SerializeToString(), names[1:]


def built_optimizer(block: Block, training_model: str, checkpoint: str) -> bytes:
    """The model that an optimizer's block builds for the parameters of a checkpoint, serialised."""
    import onnx

    opset = next(o.version for o in onnx.load(training_model).opset_import if o.domain in ("", "ai.onnx"))
    state = _training.load(checkpoint)
    parameters: Parameters = ([], [])
    for name, _, _, trained in state.parameters():
        parameters[0 if trained else 1].append(onnx.numpy_helper.from_array(state.get(name), name))
    with empty_base(opset) as held:
        block(parameters)
        model = block.to_model_proto() if hasattr(block, "to_model_proto") else held.model
        found: bytes = model.SerializeToString()
        return found


def save_checkpoint(
    parameters: Parameters, path_to_checkpoint: Union[str, os.PathLike[str]], nominal_checkpoint: bool = False
) -> None:
    """Writes what TrainingBlock.parameters() gave."""
    import onnx

    if parameters is None:
        raise RuntimeError("No checkpoint parameters provided.")
    trained, frozen = parameters
    listed = [(t.name, onnx.numpy_helper.to_array(t), kind) for kind, part in ((True, trained), (False, frozen)) for t in part]
    _training.write_checkpoint(listed, os.fspath(Path(path_to_checkpoint)), nominal_checkpoint)
