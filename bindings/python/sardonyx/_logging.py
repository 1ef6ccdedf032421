"""set_default_logger_callback: log messages for a function of the program's."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from typing import Callable, Optional

from ._errors import InvalidArgument
from ._sardonyx import call_back, queue_log, take_log
from ._session import set_default_logger_severity

Callback = Callable[[int, str, str, str, str], object]


class _Delivery(threading.Thread):
    """Calls the function, message after message, on a thread of its own: those that compute must not wait for Python."""

    def __init__(self, callback: Callback) -> None:
        super().__init__(name="sardonyx-log", daemon=True)
        self.callback = callback

    def run(self) -> None:
        while (message := take_log()) is not None:
            severity, text = message
            if not call_back(self.callback, severity, text):
                print(f"sdx: {text}", file=sys.stderr)


_lock = threading.Lock()
_delivery: Optional[_Delivery] = None


def set_default_logger_callback(callback: Callback | None, severity: int = 2) -> None:
    """Log messages of the whole process from this severity on go to `callback(severity, category, logid, code_location, message)`, in their
    order, on a thread of its own, shortly after they were written. None: to standard error again, after all earlier messages were delivered;
    the severity stays. What the function itself causes, and messages in a process that was forked since, go to standard error."""
    global _delivery
    if callback is not None and not callable(callback):
        raise InvalidArgument(f"the callback must be callable or None, received {type(callback).__name__}")
    if not 0 <= severity <= 4:
        raise InvalidArgument(f"severities are 0 (verbose) to 4 (fatal), received {severity}")
    with _lock:
        if callback is None:
            _stop()
            return
        set_default_logger_severity(severity)
        if _delivery is not None and _delivery.is_alive():
            _delivery.callback = callback
            return
        _delivery = _Delivery(callback)
        queue_log(True)
        _delivery.start()


def _stop() -> None:
    global _delivery
    ended, _delivery = _delivery, None
    if ended is None:
        return
    queue_log(False)
    if ended is not threading.current_thread():
        ended.join(5)  # a function that hangs does not hold up the program for good


def _forget() -> None:
    global _delivery, _lock
    _delivery, _lock = None, threading.Lock()


atexit.register(_stop)
os.register_at_fork(after_in_child=_forget)
