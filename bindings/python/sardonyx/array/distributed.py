"""Communication between processes. There is one process: a group of size 1, in which every reduction is the array itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ._core import Dtype, array, core

_BACKENDS = ("any", "mpi", "ring", "nccl", "jaccl")


class Group:
    def rank(self) -> int:
        return 0

    def size(self) -> int:
        return 1

    def split(self, color: int, key: int = -1) -> Group:
        raise RuntimeError("[distributed] Cannot split the distributed group: it has one process.")


_group = Group()


def is_available(backend: str = "any") -> bool:
    """Whether several processes could work together: never."""
    if backend not in _BACKENDS:
        raise ValueError(f"[distributed] unknown backend {backend!r}; expected one of {', '.join(_BACKENDS)}")
    return False


def init(strict: bool = False, backend: str = "any", *, all_gather_factory: Callable[..., Any] | None = None) -> Group:
    is_available(backend)
    if strict:
        raise RuntimeError(f"[distributed] Couldn't initialize the distributed backend {backend!r}: there is none in this build.")
    return _group


def all_sum(x: array, *, group: Group | None = None, stream: Any = None) -> array:
    return core.array(x)


all_max = all_min = all_gather = sum_scatter = all_sum


def _alone(what: str) -> RuntimeError:
    return RuntimeError(f"[distributed] Cannot {what} with a group of one process.")


def send(x: array, dst: int, *, group: Group | None = None, stream: Any = None) -> array:
    raise _alone("send")


def recv(shape: Sequence[int], dtype: Dtype, src: int, *, group: Group | None = None, stream: Any = None) -> array:
    raise _alone("receive")


def recv_like(x: array, src: int, *, group: Group | None = None, stream: Any = None) -> array:
    raise _alone("receive")
