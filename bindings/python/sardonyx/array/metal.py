"""Apple's GPUs: not on this machine. The names are those that programs ask before they use one."""

from __future__ import annotations

from ._core import core
from ._memory import set_memory_limit as set_memory_limit
from ._memory import set_wired_limit as set_wired_limit


def is_available() -> bool:
    return False


_MEMORY = ("get_active_memory", "get_peak_memory", "reset_peak_memory", "get_cache_memory", "set_cache_limit", "clear_cache")
globals().update({name: getattr(core, name) for name in _MEMORY if hasattr(core, name)})


def start_capture(path: str) -> None:
    raise RuntimeError("[metal::start_capture] Metal is not available on this machine.")


def stop_capture() -> None:
    raise RuntimeError("[metal::stop_capture] Metal is not available on this machine.")


def device_info() -> dict[str, str | int]:
    raise RuntimeError("[metal::device_info] Cannot get device info without Metal.")
