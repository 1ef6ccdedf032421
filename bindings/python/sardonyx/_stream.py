"""Results that are read while they are computed."""

from __future__ import annotations

from collections.abc import Iterator
from queue import SimpleQueue
from threading import Event, Thread
from typing import Any, Callable


def pieces(work: Callable[[Callable[[Any], bool]], Any]) -> Iterator[Any]:
    """What work(put) puts, in order; work runs in a thread. put(piece) answers whether somebody still reads. What work raises is raised here."""
    parts: SimpleQueue[Any] = SimpleQueue()
    left = Event()

    def put(piece: Any) -> bool:
        parts.put((piece, None))
        return not left.is_set()

    def run() -> None:
        try:
            work(put)
            parts.put(None)
        except BaseException as e:  # noqa: BLE001, raised where the pieces are read
            parts.put((None, e))

    thread = Thread(target=run, daemon=True)
    thread.start()
    try:
        while (part := parts.get()) is not None:
            piece, error = part
            if error is not None:
                raise error
            yield piece
    finally:
        left.set()
        thread.join()
