"""What ONNX Runtime's package asks about itself when it is imported."""

from __future__ import annotations


def check_distro_info() -> None:
    """Every system that the package can be installed on will do."""


def get_package_name_and_version_info() -> tuple[str, str, str]:
    """The package, its version, and the version of CUDA that it was built for: none."""
    from .build_and_package_info import __version__, package_name

    return package_name, __version__, ""


def check_training_module() -> tuple[bool, str, str, str]:
    """Whether the package can train as ONNX Runtime's training package does; here sardonyx.training can."""
    return (False, *get_package_name_and_version_info())
