"""Training PyTorch models with Sardonyx: `Module` computes forward and backward passes, `Trainer` whole steps."""

from typing import TYPE_CHECKING

from .._later import later

if TYPE_CHECKING:
    from .module import Module
    from .trainer import Trainer

_MODULES = "corners export exporter extremes module structure symbolics trace trainer"
__getattr__, __dir__ = later(__name__, {"module": "Module", "trainer": "Trainer"}, _MODULES)

__all__ = ["Module", "Trainer"]
