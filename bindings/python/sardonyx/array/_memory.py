"""Memory that arrays use, in bytes."""

from __future__ import annotations

from typing import Any

from ._core import array, core


def get_memory_limit() -> int:
    """The most memory that may be in use; 0: no limit."""
    limit: int = core._set_memory_limit(0)
    core._set_memory_limit(limit)
    return limit


def set_memory_limit(limit: int) -> int:
    """Returns the limit before."""
    before: int = core._set_memory_limit(limit)
    return before


def set_wired_limit(limit: int) -> int:
    """For GPUs on macOS: here nothing is wired. Returns 0, the limit before."""
    if limit < 0:
        raise ValueError(f"[set_wired_limit] expected a number of bytes, received {limit}")
    return 0


def get_array_buffer_size(*args: Any) -> int:
    """Bytes of all arrays in the trees, each counted once."""
    seen: list[array] = []
    for a in core._leaves(args):
        if not any(core._is_same(a, b) for b in seen):
            seen.append(a)
    return sum(a.nbytes for a in seen)
