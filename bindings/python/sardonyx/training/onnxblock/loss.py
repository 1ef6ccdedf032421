"""Losses as blocks."""

from __future__ import annotations

from typing import Any, Optional

import numpy as np

from ._base import new_name
from .blocks import Block, InputLike, exists, value_info

__all__ = ["BCEWithLogitsLoss", "CrossEntropyLoss", "L1Loss", "MSELoss"]


class _Loss(Block):
    def __init__(self, reduction: str) -> None:
        super().__init__()
        if reduction not in ("mean", "sum", "none"):
            raise RuntimeError(f"Reduction {reduction} not supported.")
        self._reduction = reduction

    def _target(self, like: str, name: str) -> str:
        return name if exists(self.base, name) else InputLike(like)(name)

    def _reduce(self, value: str) -> str:
        if self._reduction == "none":
            return value
        return self._node("ReduceMean" if self._reduction == "mean" else "ReduceSum", [value], keepdims=0)


class MSELoss(_Loss):
    def __init__(self, reduction: str = "mean") -> None:
        super().__init__(reduction)

    def build(self, loss_input_name: str, target_name: str = "target") -> str:
        error = self._node("Sub", [loss_input_name, self._target(loss_input_name, target_name)])
        return self._reduce(self._node("Mul", [error, error]))


class L1Loss(_Loss):
    def __init__(self, reduction: str = "mean") -> None:
        super().__init__(reduction)

    def build(self, loss_input_name: str, target_name: str = "target") -> str:
        error = self._node("Sub", [loss_input_name, self._target(loss_input_name, target_name)])
        return self._reduce(self._node("Abs", [error]))


class CrossEntropyLoss(_Loss):
    """`weight`: one for each class."""

    def __init__(self, weight: Any = None, reduction: str = "mean", ignore_index: Optional[int] = None) -> None:
        super().__init__(reduction)
        self._weight, self._ignore_index = weight, ignore_index

    def build(self, scores_input_name: str, labels_name: str = "labels") -> str:
        import onnx

        if not exists(self.base, labels_name):
            labels = self.base.graph.input.add()
            labels.CopyFrom(value_info(self.base, scores_input_name))
            labels.name = labels_name
            labels.type.tensor_type.elem_type = onnx.TensorProto.INT64
            del labels.type.tensor_type.shape.dim[1]  # the classes'
        inputs = [scores_input_name, labels_name]
        if self._weight is not None:
            inputs.append(self._constant("celoss.weight", np.asarray(self._weight, np.float32)))
        outputs = [new_name("loss"), new_name("log_prob")]
        return self._node("SoftmaxCrossEntropyLoss", inputs, outputs, reduction=self._reduction, ignore_index=self._ignore_index)


class BCEWithLogitsLoss(_Loss):
    """`weight`: of each element; `pos_weight`: of positive ones."""

    def __init__(self, weight: Any = None, reduction: str = "mean", pos_weight: Any = None) -> None:
        super().__init__(reduction)
        self._weight, self._pos_weight = weight, pos_weight

    def build(self, loss_input_name: str, target_name: str = "target") -> str:
        target = self._target(loss_input_name, target_name)
        one = self._constant("bceloss.sub_ones", np.array([1], np.float32))
        missed = self._node("Mul", [target, self._node("Softplus", [self._node("Neg", [loss_input_name])])])
        if self._pos_weight is not None:
            missed = self._node("Mul", [missed, self._constant("bceloss.pos_weight", np.asarray(self._pos_weight, np.float32))])
        wrong = self._node("Mul", [self._node("Sub", [one, target]), self._node("Softplus", [loss_input_name])])
        loss = self._node("Add", [missed, wrong])
        if self._weight is not None:
            loss = self._node("Mul", [loss, self._constant("bceloss.weight", np.asarray(self._weight, np.float32))])
        return self._reduce(loss)
