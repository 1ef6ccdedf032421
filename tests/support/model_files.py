"""Models that tests read and the repository does not have: docs/environment.md."""

import os
from pathlib import Path

SKIPPED = 77  # exit code of a test without what it needs


def find_models():
    """The folder that SDX_TEST_MODELS names; None where it names none."""
    name = os.environ.get("SDX_TEST_MODELS", "")
    return Path(name).resolve() if name and Path(name).is_dir() else None
