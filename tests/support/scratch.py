"""A folder for what a test writes."""

import contextlib
import tempfile
from pathlib import Path


@contextlib.contextmanager
def scratch(within=None):
    """The path of a new folder, which is gone afterwards. within: where it is made; by default where the system has temporary files."""
    with tempfile.TemporaryDirectory(prefix="sdx-test-", dir=within) as name:
        yield Path(name).resolve()
