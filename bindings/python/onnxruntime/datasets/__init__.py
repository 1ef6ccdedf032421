"""Small models for examples: mul_1.onnx (products with constants), sigmoid.onnx, logreg_iris.onnx (a classifier of two features)."""

from __future__ import annotations

import os


def get_example(name: str) -> str:
    """An example's path."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), name)
    if os.path.basename(name) != name or not os.path.exists(path):
        raise FileNotFoundError(f"Unable to find example '{name}'")
    return path
