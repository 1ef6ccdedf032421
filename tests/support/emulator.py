"""Starting programs of other systems."""

import os
from pathlib import Path

WINE = Path(__file__).resolve().parent.parent.parent / "tools" / "wine.sh"


def is_for_windows(program):
    return str(program).endswith(".exe")


def command_of(program):
    """The words that start a program: Windows' run under Wine elsewhere than on Windows."""
    return [str(WINE), str(program)] if is_for_windows(program) and os.name != "nt" else [str(program)]


def with_slashes(text):
    """Windows' paths as those of POSIX, also within JSON, where a backslash is two."""
    return text.replace("\\\\", "/").replace("\\", "/")
