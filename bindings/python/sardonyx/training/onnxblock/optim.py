"""Optimizers as blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional

from ._base import new_name
from ._training import ForwardBlock
from .blocks import Block

__all__ = ["SGD", "AdamW", "AdamWOptimizer", "ClipGradNorm", "SGDOptimizer"]


class ClipGradNorm(Block):
    """Scales gradients so that the norm of all of them together is at most `max_norm`."""

    def __init__(self, max_norm: float) -> None:
        super().__init__()
        self._max_norm = max_norm

    def build(self, gradients_name: str) -> str:
        out = new_name("clip_grad_norm_output")
        return self._node("InplaceClipGradNorm", [gradients_name], out, "com.microsoft", max_norm=float(self._max_norm))


class SGDOptimizer(Block):
    def build(self, learning_rate_name: str, params_name: str, gradients_name: str) -> str:
        out = new_name("update_completed")
        return self._node("SGDOptimizerV2", [learning_rate_name, params_name, gradients_name], out, "com.microsoft")


class AdamWOptimizer(Block):
    def __init__(
        self,
        bias_correction: Optional[bool] = True,
        betas: Sequence[float] = (0.9, 0.999),
        eps: Optional[float] = 1e-6,
        weight_decay: Optional[float] = 0.0,
    ) -> None:
        super().__init__()
        self._bias_correction, self._betas, self._eps, self._weight_decay = bias_correction, betas, eps, weight_decay

    def build(self, learning_rate_name: str, step_name: str, params: str, gradients: str, first: str, second: str) -> str:
        return self._node(
            "AdamWOptimizer",
            [learning_rate_name, step_name, params, gradients, first, second],
            new_name("adamw.updated_flag"),
            "com.microsoft",
            alpha=float(self._betas[0]),
            beta=float(self._betas[1]),
            epsilon=float(self._eps or 0),
            weight_decay=float(self._weight_decay or 0),
            correct_bias=int(bool(self._bias_correction)),
            adam_mode=1,
        )


class _Optimizer(ForwardBlock):
    """Called with (trained parameters, frozen ones), as TrainingBlock.parameters() gives them."""

    _moments = ["first_order_moments"]

    def __init__(self, clip_grad: Any = None) -> None:
        super().__init__()
        self._clip_grad = clip_grad

    def build(self, parameters: Any) -> str:
        import onnx

        make = onnx.helper.make_tensor_value_info
        graph = self.base.graph
        graph.input.extend([make("learning_rate", onnx.TensorProto.FLOAT, [1]), make("step", onnx.TensorProto.INT64, [1])])
        for name in ["params", "gradients", *self._moments]:
            graph.input.append(onnx.helper.make_tensor_sequence_value_info(name, parameters[0][0].data_type, None))
        gradients = "gradients" if self._clip_grad is None else self._clip_grad("gradients")
        flag = self._update(gradients)
        graph.output.append(make(flag, onnx.TensorProto.BOOL, [1]))
        return flag

    def _update(self, gradients: str) -> str:
        raise NotImplementedError


class AdamW(_Optimizer):
    _moments = ["first_order_moments", "second_order_moments"]

    def __init__(
        self,
        bias_correction: bool = True,
        betas: Sequence[float] = (0.9, 0.999),
        eps: float = 1e-6,
        weight_decay: float = 0.0,
        clip_grad: Any = None,
    ) -> None:
        super().__init__(clip_grad)
        self._adamw = AdamWOptimizer(bias_correction, betas, eps, weight_decay)

    def _update(self, gradients: str) -> str:
        found: str = self._adamw("learning_rate", "step", "params", gradients, *self._moments)
        return found


class SGD(_Optimizer):
    def __init__(self, clip_grad: Any = None) -> None:
        super().__init__(clip_grad)
        self._sgd = SGDOptimizer()

    def _update(self, gradients: str) -> str:
        found: str = self._sgd("learning_rate", "params", gradients)
        return found


def settings(block: Block) -> Optional[dict[str, Any]]:
    """What the block says, for one of those above as it is; None: it has to be built."""
    clip = getattr(block, "_clip_grad", None)
    if type(block) not in (AdamW, SGD) or (clip is not None and type(clip) is not ClipGradNorm):
        return None
    made: dict[str, Any] = {"clip_norm": float(clip._max_norm)} if clip is not None else {}
    if isinstance(block, SGD):
        return {"kind": "sgd", **made}
    a = block._adamw  # type: ignore[attr-defined]
    made.update(beta1=float(a._betas[0]), beta2=float(a._betas[1]), epsilon=float(a._eps or 0))
    return {"kind": "adamw", **made, "weight_decay": float(a._weight_decay or 0), "correct_bias": bool(a._bias_correction)}
