"""A prepared model."""

from sardonyx.backend import SardonyxBackendRep as OnnxRuntimeBackendRep  # noqa: F401
