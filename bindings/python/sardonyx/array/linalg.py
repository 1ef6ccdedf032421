"""Linear algebra: MLX's functions, and those of the standard's extension."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

from ._core import array
from ._core import core as _core
from ._dtypes import isdtype

_functions = _core._linalg
globals().update({k: v for k, v in vars(_functions).items() if not k.startswith("_")})
matmul = _core.matmul
matrix_transpose = _core.matrix_transpose
outer = _core.outer
tensordot = _core.tensordot
vecdot = _core.vecdot

QRResult = namedtuple("QRResult", ["Q", "R"])
SlogdetResult = namedtuple("SlogdetResult", ["sign", "logabsdet"])
EighResult = namedtuple("EighResult", ["eigenvalues", "eigenvectors"])
EigResult = namedtuple("EigResult", ["eigenvalues", "eigenvectors"])
SVDResult = namedtuple("SVDResult", ["U", "S", "Vh"])


def _check_inexact(x: array, what: str) -> None:
    if not isdtype(x.dtype, ("real floating", "complex floating")):
        raise ValueError(f"[linalg::{what}] expected floating numbers, received {x.dtype.name}")


def lu(x: array, /, *, stream: Any = None) -> tuple[array, array, array]:
    """P (as positions of rows), L and U."""
    _check_inexact(x, "lu")
    return _functions.lu(x, stream=stream)


def qr(x: array, /, mode: str = "reduced", *, stream: Any = None) -> QRResult:
    """Q and R with x = QR: of the least size, or with a square Q (`mode` "complete")."""
    if mode not in ("reduced", "complete"):
        raise ValueError(f"[linalg::qr] expected the mode 'reduced' or 'complete', received {mode!r}")
    if x.ndim < 2:
        raise ValueError(f"[linalg::qr] expected matrices, received an array of shape {x.shape}")
    _check_inexact(x, "qr")
    rows, columns = x.shape[-2:]
    if mode == "reduced" or rows <= columns:
        return QRResult(*_functions.qr(x, stream=stream))
    # For [x, identity], the first columns of Q are those of x's decomposition, and the others complete them
    # to a basis.
    eye = _core.broadcast_to(_core.eye(rows, dtype=x.dtype), (*x.shape[:-2], rows, rows))
    q, r = _functions.qr(_core.concatenate([x, eye], -1), stream=stream)
    return QRResult(q, r[..., :columns])


def slogdet(x: array, /, *, stream: Any = None) -> SlogdetResult:
    return SlogdetResult(*_functions.slogdet(x, stream=stream))


def eigh(x: array, /, UPLO: str = "L", *, stream: Any = None) -> EighResult:
    return EighResult(*_functions.eigh(x, UPLO, stream=stream))


def eig(x: array, /, *, stream: Any = None) -> EigResult:
    return EigResult(*_functions.eig(x, stream=stream))


def svd(x: array, /, compute_uv: bool = True, *, full_matrices: bool = True, stream: Any = None) -> Any:
    """U, S and Vh with x = U diag(S) Vh; S alone without `compute_uv`."""
    if not compute_uv:
        return _functions.svdvals(x, stream=stream)
    u, s, vh = _functions.svd(x, stream=stream)
    if not full_matrices:
        k = s.shape[-1]
        u, vh = u[..., :, :k], vh[..., :k, :]
    return SVDResult(u, s, vh)


