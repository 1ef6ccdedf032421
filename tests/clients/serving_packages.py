"""Where the published clients of `sdx serve` are: the environment that tools/clients_env.sh makes."""

import os
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent.parent
SKIPPED = 77


def run_again_with_packages(missing):
    """Starts the program again with the environment's Python; exit code 77 where it lacks the packages as well."""
    python = PROJECT / "build" / "serving-venv" / "bin" / "python"
    if python.exists() and Path(sys.prefix) != python.parent.parent:
        os.execv(python, [str(python), "-B", *sys.argv])
    print(f"{missing}: tools/clients_env.sh makes build/serving-venv")
    sys.exit(SKIPPED)
