"""What a program needs to run on Sardonyx in place of ONNX Runtime: this folder before the real package on the path."""

import sardonyx
from sardonyx import *  # noqa: F401, F403

__version__ = sardonyx.__version__
