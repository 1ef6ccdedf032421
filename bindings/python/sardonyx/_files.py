"""Files that appear whole or not at all."""

from __future__ import annotations

import os
from typing import Any, BinaryIO, Callable


def write_whole(path: str, write: Callable[[BinaryIO], Any]) -> None:
    temporary = f"{path}.{os.getpid()}.new"
    try:
        with open(temporary, "wb") as file:
            write(file)
        os.replace(temporary, path)
    except BaseException:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise
