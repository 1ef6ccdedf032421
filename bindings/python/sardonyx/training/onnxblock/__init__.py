"""Blocks that add nodes to an ONNX model, with the names of `onnxruntime.training.onnxblock`. They need the package onnx."""

from typing import TYPE_CHECKING

from ..._later import later

if TYPE_CHECKING:
    from . import blocks, loss, optim
    from ._base import base, custom_op_library, empty_base
    from ._training import ForwardBlock, TrainingBlock, built_optimizer, save_checkpoint, with_loss
    from .blocks import Block

__getattr__, __dir__ = later(
    __name__,
    {
        "_base": "base custom_op_library empty_base",
        "_training": "ForwardBlock TrainingBlock built_optimizer save_checkpoint with_loss",
        "blocks": "Block",
    },
    "blocks loss optim",
)

__all__ = [
    "Block",
    "ForwardBlock",
    "TrainingBlock",
    "base",
    "blocks",
    "built_optimizer",
    "custom_op_library",
    "empty_base",
    "loss",
    "optim",
    "save_checkpoint",
    "with_loss",
]
