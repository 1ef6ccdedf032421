"""Matrices in blocks of few bits, as MatMulNBits and MatMulBnb4 read them, into arrays that the caller has. The names and arguments are
those of ONNX Runtime's compiled module."""

from __future__ import annotations

from typing import Any

import numpy as np

# The values of bitsandbytes' codes: signs and magnitudes (FP4), and quantiles of a normal distribution (NF4,
# arXiv:2305.14314).
_FP4 = np.array([0, 5.208333333e-03, 0.66666667, 1, 0.33333333, 0.5, 0.16666667, 0.25])
_NF4 = np.array(
    [-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334, -0.09105003625154495,
     0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941,
     0.7229568362236023, 1.0]
)  # fmt: skip
# The bounds between the magnitudes of FP4, with the digits that bitsandbytes uses.
_FP4_BOUNDS = np.array([0.00260417, 0.0859375, 0.20833333, 0.29166667, 0.4166667, 0.583333, 0.8333333], dtype=np.float32)
_NF4_BOUNDS = ((_NF4[:-1] + _NF4[1:]) / 2).astype(np.float32)
FP4, NF4 = 0, 1


def _nearest(values: Any, bounds: Any) -> Any:
    """The index of the code between whose bounds a value is; on a bound, of that below it."""
    return np.searchsorted(bounds, values, side="left").astype(np.uint8)


def _pairs(codes: Any, first_is_high: bool) -> Any:
    """Two codes of 4 bits to a byte, along the last axis."""
    a, b = codes[..., 0::2], codes[..., 1::2]
    return (a << 4 | b) if first_is_high else (a | b << 4)


def _blocks_of(flat: Any, block_size: int) -> Any:
    """Rows of blocks along the last axis, filled up with zeros."""
    missing = -flat.shape[-1] % block_size
    padded = np.pad(np.asarray(flat, dtype=np.float32), [(0, 0)] * (flat.ndim - 1) + [(0, missing)])
    return padded.reshape(*flat.shape[:-1], -1, block_size)


def quantize_matmul_bnb4(dst: Any, src: Any, absmax: Any, block_size: int, quant_type: int, N: int, K: int) -> None:  # noqa: N803
    """Elements of `src` in their order, in blocks that share their largest magnitude (`absmax`). quant_type: 0 is FP4, 1 is NF4."""
    if quant_type not in (FP4, NF4):
        raise ValueError(f"quant_type is 0 (FP4) or 1 (NF4), received {quant_type}")
    if block_size < 2 or block_size % 2:
        raise ValueError(f"blocks have an even number of elements, received {block_size}")
    blocks = _blocks_of(np.asarray(src).reshape(-1), block_size)
    largest = np.abs(blocks).max(axis=-1)
    absmax.reshape(-1)[:] = largest
    inverse = np.divide(np.float32(1), largest, out=np.zeros_like(largest), where=largest != 0)
    scaled = blocks * inverse[:, None]
    if quant_type == NF4:
        codes = _nearest(scaled, _NF4_BOUNDS)
    else:
        ascending = np.argsort(_FP4).astype(np.uint8)
        codes = ascending[_nearest(np.abs(scaled), _FP4_BOUNDS)] + (scaled < 0).astype(np.uint8) * 8
    dst.reshape(-1)[:] = _pairs(codes.reshape(-1), True)[: dst.size]


def _scales_of(blocks: Any, bits: int, symmetric: bool) -> tuple[Any, Any]:
    """Scales and zero points for the last axis."""
    steps = (1 << bits) - 1
    if symmetric:
        at = np.abs(blocks).argmax(axis=-1)[..., None]
        scale = np.take_along_axis(blocks, at, axis=-1)[..., 0] / np.float32(-(1 << bits - 1))
        return scale, np.full(scale.shape, 1 << bits - 1, dtype=np.uint8)
    low, high = np.minimum(blocks.min(axis=-1), 0), np.maximum(blocks.max(axis=-1), 0)
    scale = (high - low) / np.float32(steps)
    zero = np.divide(-low, scale, out=np.zeros_like(scale), where=scale != 0)
    return scale, np.clip(np.round(zero), 0, steps).astype(np.uint8)


def _pack(codes: Any, bits: int) -> Any:
    """Codes along the last axis, the first in the low bits."""
    count = 8 // bits
    codes = np.pad(codes, [(0, 0)] * (codes.ndim - 1) + [(0, -codes.shape[-1] % count)])
    out = np.zeros((*codes.shape[:-1], codes.shape[-1] // count), dtype=np.uint8)
    for i in range(count):
        out |= codes[..., i::count] << np.uint8(bits * i)
    return out


def _quantize_matmul(bits: int, dst: Any, src: Any, scale: Any, zero: Any, block_size: int, N: int, K: int, symmetric: bool) -> None:  # noqa: N803
    matrix = np.asarray(src).reshape(K, N)
    blocks = _blocks_of(matrix.T, block_size)
    scales, zeros = _scales_of(blocks, bits, symmetric)
    inverse = np.divide(np.float32(1), scales, out=np.zeros_like(scales), where=scales != 0)
    codes = np.round(blocks * inverse[..., None] + zeros[..., None].astype(np.float32))
    dst[...] = _pack(np.clip(codes, 0, (1 << bits) - 1).astype(np.uint8), bits).reshape(dst.shape)
    scale[...] = scales.reshape(scale.shape)
    if zero is None or zero.size == 0:
        return
    # Blocks that only fill a byte up have the middle as their zero point.
    missing = -zeros.shape[-1] % (8 // bits)
    zeros = np.pad(zeros, ((0, 0), (0, missing)), constant_values=1 << bits - 1)
    zero[...] = _pack(zeros, bits).reshape(zero.shape)


def quantize_matmul_2bits(dst: Any, src: Any, scale: Any, zero_points: Any, block_size: int, N: int, K: int, is_symmetric: bool) -> None:  # noqa: N803
    """`src` [K, N] in blocks along K: `dst` [N, blocks, bytes], `scale` [N, blocks], `zero_points` [N, bytes]."""
    _quantize_matmul(2, dst, src, scale, zero_points, block_size, N, K, is_symmetric)


def quantize_matmul_4bits(dst: Any, src: Any, scale: Any, zero_points: Any, block_size: int, N: int, K: int, is_symmetric: bool) -> None:  # noqa: N803
    """As quantize_matmul_2bits()."""
    _quantize_matmul(4, dst, src, scale, zero_points, block_size, N, K, is_symmetric)


def quantize_matmul_8bits(dst: Any, src: Any, scale: Any, zero_points: Any, block_size: int, N: int, K: int, is_symmetric: bool) -> None:  # noqa: N803
    """As quantize_matmul_2bits()."""
    _quantize_matmul(8, dst, src, scale, zero_points, block_size, N, K, is_symmetric)


__all__ = ["FP4", "NF4", "quantize_matmul_2bits", "quantize_matmul_4bits", "quantize_matmul_8bits", "quantize_matmul_bnb4"]
