"""Fourier transforms: MLX's functions, and those of the standard's extension."""

from __future__ import annotations

from typing import Any

from ._core import Dtype, array
from ._core import core as _core
from ._streams import _device

_functions = _core._fft
globals().update({k: v for k, v in vars(_functions).items() if not k.startswith("_")})

_TURNED = {"backward": "forward", "forward": "backward", "ortho": "ortho"}


def _turned(norm: str) -> str:
    if norm not in _TURNED:
        raise ValueError(f"[fft] expected the norm 'backward', 'forward' or 'ortho', received {norm!r}")
    return _TURNED[norm]


def hfft(x: array, /, n: int | None = None, axis: int = -1, norm: str = "backward", *, stream: Any = None) -> array:
    """The real spectrum of a signal of which one half is given, the other being its conjugate."""
    return _functions.irfft(_core.conjugate(x), n, axis, _turned(norm), stream=stream)


def ihfft(x: array, /, n: int | None = None, axis: int = -1, norm: str = "backward", *, stream: Any = None) -> array:
    return _core.conjugate(_functions.rfft(x, n, axis, _turned(norm), stream=stream))


def _frequencies(of: Any, n: int, d: float, dtype: Dtype | None, device: Any, stream: Any) -> array:
    if device is not None:
        _device(device)
    if n <= 0 or d == 0:
        raise ValueError(f"[fftfreq] expected n > 0 and a distance that is not 0, received n = {n} and d = {d}")
    found = of(n, d, stream=stream)
    return found if dtype is None else _core.astype(found, dtype)


def fftfreq(n: int, d: float = 1.0, *, dtype: Dtype | None = None, device: Any = None, stream: Any = None) -> array:
    return _frequencies(_functions.fftfreq, n, d, dtype, device, stream)


def rfftfreq(n: int, d: float = 1.0, *, dtype: Dtype | None = None, device: Any = None, stream: Any = None) -> array:
    return _frequencies(_functions.rfftfreq, n, d, dtype, device, stream)
