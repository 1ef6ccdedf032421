"""Sparse tensors as ONNX Runtime's package has them. Models compute with dense ones: a session takes and gives what these stand for."""

from __future__ import annotations

import enum
from typing import Any, Sequence

import numpy as np

from ._errors import Error, InvalidArgument
from ._types import engine_name, ort_type


class OrtSparseFormat(enum.IntEnum):
    ORT_SPARSE_UNDEFINED = 0
    ORT_SPARSE_COO = 1
    ORT_SPARSE_CSRC = 2
    ORT_SPARSE_BLOCK_SPARSE = 4


def _fixed(array: np.ndarray) -> np.ndarray:
    view = array.view()
    view.flags.writeable = False
    return view


class SparseCooView:
    def __init__(self, indices: np.ndarray) -> None:
        self._indices = indices

    def indices(self) -> np.ndarray:
        return _fixed(self._indices)


class SparseBlockSparseView(SparseCooView):
    pass


class SparseCsrView:
    def __init__(self, inner: np.ndarray, outer: np.ndarray) -> None:
        self._inner = inner
        self._outer = outer

    def inner(self) -> np.ndarray:
        return _fixed(self._inner)

    def outer(self) -> np.ndarray:
        return _fixed(self._outer)


class SparseTensor:
    """Values, where they are, and the shape of the whole."""

    _shape: list[int]
    _values: np.ndarray
    _kind: OrtSparseFormat
    _indices: tuple[np.ndarray, ...]

    def __init__(self, other: SparseTensor) -> None:
        self.__dict__.update(other.__dict__)

    @classmethod
    def _made(cls, shape: Sequence[int], values: np.ndarray, kind: OrtSparseFormat, indices: tuple[np.ndarray, ...]) -> SparseTensor:
        self = cls.__new__(cls)
        self._shape = [int(d) for d in shape]
        if any(d < 0 for d in self._shape):
            raise InvalidArgument(f"a shape has no negative extents, received {self._shape}")
        self._values = np.ascontiguousarray(values)
        self._kind = kind
        self._indices = indices
        return self

    @classmethod
    def sparse_coo_from_numpy(cls, dense_shape: Sequence[int], values: np.ndarray, coo_indices: np.ndarray, ort_device: Any = None) -> SparseTensor:
        """coo_indices: one number for each value (its place in the flattened whole), or as many as the shape has extents."""
        indices = np.ascontiguousarray(coo_indices, np.int64)
        shape = [int(d) for d in dense_shape]
        count = int(np.size(values))
        if indices.shape not in ((count,), (count, len(shape))) and not (indices.ndim == 1 and indices.size == count * len(shape)):
            raise InvalidArgument(f"{count} values need {count} indices, or {count} times {len(shape)}, received an array of shape {indices.shape}")
        if indices.ndim == 1 and indices.size != count:
            indices = indices.reshape(count, len(shape))
        limits = np.asarray(shape if indices.ndim == 2 else [int(np.prod(shape, dtype=np.int64))])
        if indices.size and (indices.min() < 0 or (indices.reshape(count, -1) >= limits).any()):
            raise InvalidArgument(f"an index is outside the shape {shape}")
        return cls._made(shape, np.asarray(values).reshape(-1), OrtSparseFormat.ORT_SPARSE_COO, (indices,))

    @classmethod
    def sparse_csr_from_numpy(
        cls, dense_shape: Sequence[int], values: np.ndarray, inner_indices: np.ndarray, outer_indices: np.ndarray, ort_device: Any = None
    ) -> SparseTensor:
        """inner_indices: the column of each value; outer_indices: where each row starts among the values, and their number last."""
        inner, outer = np.ascontiguousarray(inner_indices, np.int64), np.ascontiguousarray(outer_indices, np.int64)
        if len(dense_shape) != 2:
            raise InvalidArgument(f"rows and columns make a shape of two extents, received {list(dense_shape)}")
        count = int(np.size(values))
        if inner.shape != (count,) or outer.shape != (int(dense_shape[0]) + 1,):
            raise InvalidArgument(f"{count} values in {dense_shape[0]} rows need {count} inner and {dense_shape[0] + 1} outer indices, "
                                  f"received {inner.size} and {outer.size}")  # fmt: skip
        if (np.diff(outer) < 0).any() or outer[0] != 0 or outer[-1] != count:
            raise InvalidArgument("the outer indices must rise from 0 to the number of values")
        if count and (inner.min() < 0 or inner.max() >= dense_shape[1]):
            raise InvalidArgument(f"an inner index is outside the {dense_shape[1]} columns")
        return cls._made(dense_shape, np.asarray(values).reshape(-1), OrtSparseFormat.ORT_SPARSE_CSRC, (inner, outer))

    @classmethod
    def blocksparse_from_numpy(cls, dense_shape: Sequence[int], values: np.ndarray, indices: np.ndarray, ort_device: Any = None) -> SparseTensor:
        """values: blocks, [number, …block]; indices: the rows of blocks and the columns of blocks, [2, number]."""
        blocks = np.ascontiguousarray(values)
        places = np.ascontiguousarray(indices, np.int32)
        return cls._made(dense_shape, blocks, OrtSparseFormat.ORT_SPARSE_BLOCK_SPARSE, (places,))

    @classmethod
    def from_dense(cls, array: np.ndarray) -> SparseTensor:
        """The elements that are not zero, each with its place in the flattened whole."""
        flat = np.ascontiguousarray(array).reshape(-1)
        places = np.flatnonzero(flat != "") if flat.dtype.kind == "O" else np.flatnonzero(flat)
        return cls._made(array.shape, flat[places], OrtSparseFormat.ORT_SPARSE_COO, (places.astype(np.int64),))

    def to_dense(self) -> np.ndarray:
        """What this stands for, as an array. Not in ONNX Runtime."""
        text = self._values.dtype.kind in "OUS"
        whole = np.full(self._shape, "", object) if text else np.zeros(self._shape, self._values.dtype)
        if self._kind == OrtSparseFormat.ORT_SPARSE_CSRC:
            inner, outer = self._indices
            whole[np.repeat(np.arange(self._shape[0]), np.diff(outer)), inner] = self._values
        elif self._kind == OrtSparseFormat.ORT_SPARSE_COO:
            (indices,) = self._indices
            if indices.ndim == 1:
                whole.reshape(-1)[indices] = self._values
            else:
                whole[tuple(indices.T)] = self._values
        else:
            raise InvalidArgument("sparse blocks cannot be given to a model: make coordinates of them (sparse_coo_from_numpy)")
        return whole

    def _get_c_tensor(self) -> SparseTensor:
        return self

    def values(self) -> np.ndarray:
        """Numbers may not be changed; texts are a copy."""
        return self._values.astype(object) if self._values.dtype.kind in "OUS" else _fixed(self._values)

    def as_coo_view(self) -> SparseCooView:
        return SparseCooView(*self._as(OrtSparseFormat.ORT_SPARSE_COO))

    def as_csrc_view(self) -> SparseCsrView:
        return SparseCsrView(*self._as(OrtSparseFormat.ORT_SPARSE_CSRC))

    def as_blocksparse_view(self) -> SparseBlockSparseView:
        return SparseBlockSparseView(*self._as(OrtSparseFormat.ORT_SPARSE_BLOCK_SPARSE))

    get_coo_data = as_coo_view
    get_csrc_data = as_csrc_view
    get_blocksparse_data = as_blocksparse_view

    def _as(self, kind: OrtSparseFormat) -> tuple[np.ndarray, ...]:
        if self._kind != kind:
            raise InvalidArgument(f"this sparse tensor has the format {self._kind.name}, not {kind.name}")
        return self._indices

    def to_cuda(self, ort_device: Any) -> SparseTensor:
        raise Error("values live in the CPU's memory; device 'cuda' is not available")

    def format(self) -> OrtSparseFormat:
        return self._kind

    def dense_shape(self) -> list[int]:
        return list(self._shape)

    def data_type(self) -> str:
        return f"sparse_{ort_type(engine_name(self._values))}"

    def device_name(self) -> str:
        return "cpu"
