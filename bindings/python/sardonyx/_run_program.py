"""The commands that run a program whose imports Sardonyx answers."""

from __future__ import annotations

import os
import runpy
import sys
from typing import Callable


def run_program(usage: str, install: Callable[[], object]) -> None:
    """Runs the script or module that the command line names, after `install`."""
    arguments = sys.argv[1:]
    as_module = arguments[:1] == ["-m"]
    if as_module:
        arguments = arguments[1:]
    if not arguments or arguments[0] in ("-h", "--help"):
        print(usage if arguments else f"{usage}\nerror: no program is named", file=sys.stdout if arguments else sys.stderr)
        sys.exit(0 if arguments else 2)
    install()
    sys.argv = arguments
    if as_module:
        runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = os.path.dirname(os.path.abspath(arguments[0]))
        runpy.run_path(arguments[0], run_name="__main__")
