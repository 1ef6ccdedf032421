"""Training with the names of `onnxruntime.training.api`. docs/training.md says what differs."""

from .checkpoint import CheckpointState
from .step import LinearLRScheduler, Module, Optimizer, Trainer

__all__ = ["CheckpointState", "LinearLRScheduler", "Module", "Optimizer", "Trainer"]
