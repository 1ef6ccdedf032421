"""ONNX Runtime's enumerations of session options. In a file of their own: making such classes takes as long as opening a small model."""

from __future__ import annotations

import enum


class GraphOptimizationLevel(enum.IntEnum):
    """The engine has two levels: DISABLE_ALL, and everything."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(enum.IntEnum):
    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(enum.IntEnum):
    DEFAULT = 0
    PRIORITY_BASED = 1
    MEMORY_EFFICIENT = 2
