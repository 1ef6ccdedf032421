"""The compiled half, made when arrays are first used."""

from .. import _sardonyx

core = _sardonyx.arrays()
array = core.array
Dtype = core.Dtype
