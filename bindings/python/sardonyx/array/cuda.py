"""NVIDIA's GPUs."""


def is_available() -> bool:
    return False
