"""Training PyTorch models with Sardonyx: `Module` computes forward and backward passes, `Trainer` whole steps."""

from .module import Module
from .trainer import Trainer

__all__ = ["Module", "Trainer"]
