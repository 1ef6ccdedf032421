"""Constant matrices in 2, 4 or 8 bits, in blocks: MatMulNBits, GatherBlockQuantized, or DequantizeLinear."""

from __future__ import annotations

import json
import logging
import os
from typing import Any, Sequence

from .. import _sardonyx
from ._models import ModelInput, as_file, new_file
from ._models import load as load_model
from .onnx_model import ONNXModel
from .quant_utils import QuantFormat

_native = _sardonyx.quantize()
_log = logging.getLogger(__name__)


class WeightOnlyQuantConfig:
    """What the configurations of the methods have in common."""

    def __init__(
        self,
        algorithm: str,
        quant_format: QuantFormat,
        op_types_to_quantize: tuple[str, ...] | None = None,
        quant_axes: tuple[tuple[str, int], ...] | None = None,
        customized_weight_config: dict[str, Any] | None = None,
    ):
        self.algorithm = algorithm
        self.quant_format = quant_format
        self.op_types_to_quantize = set(op_types_to_quantize) if op_types_to_quantize else {"MatMul"}
        self.quant_axes = dict(quant_axes) if quant_axes else {"MatMul": 0, "Gather": 1}
        self.customized_weight_config = customized_weight_config


def _qoperator_alone(name: str, quant_format: QuantFormat) -> None:
    if quant_format != QuantFormat.QOperator:
        raise AssertionError(f"{name} has QuantFormat.QOperator alone")


class RTNWeightOnlyQuantConfig(WeightOnlyQuantConfig):
    """Rounding to the nearest."""

    def __init__(
        self,
        ratios: dict[str, float] | None = None,
        quant_format: QuantFormat = QuantFormat.QOperator,
        op_types_to_quantize: tuple[str, ...] | None = None,
        customized_weight_config: dict[str, Any] | None = None,
    ):
        _qoperator_alone("RTN", quant_format)
        super().__init__("RTN", quant_format, op_types_to_quantize, customized_weight_config=customized_weight_config)
        self.ratios = ratios or {}


class KQuantWeightOnlyQuantConfig(WeightOnlyQuantConfig):
    """Scales by search for the least squared error."""

    def __init__(
        self,
        ratios: dict[str, float] | None = None,
        quant_format: QuantFormat = QuantFormat.QOperator,
        op_types_to_quantize: tuple[str, ...] | None = None,
        customized_weight_config: dict[str, Any] | None = None,
    ):
        _qoperator_alone("k-quant", quant_format)
        super().__init__("k_quant", quant_format, op_types_to_quantize, customized_weight_config=customized_weight_config)
        self.ratios = ratios or {}


class GPTQWeightOnlyQuantConfig(WeightOnlyQuantConfig):
    """What rounding changes is made up for on real inputs."""

    def __init__(
        self,
        calibration_data_reader: Any | None = None,
        percdamp: float = 0.01,
        block_size: int = 128,
        actorder: bool = False,
        mse: bool = False,
        perchannel: bool = True,
        quant_format: QuantFormat = QuantFormat.QOperator,
        op_types_to_quantize: tuple[str, ...] | None = None,
    ):
        _qoperator_alone("GPTQ", quant_format)
        super().__init__("GPTQ", quant_format, op_types_to_quantize)
        self.calibration_data_reader = calibration_data_reader
        self.percdamp = percdamp
        self.block_size = block_size
        self.actorder = actorder
        self.mse = mse
        self.perchannel = perchannel


class HQQWeightOnlyQuantConfig(WeightOnlyQuantConfig):
    """Half-quadratic quantisation."""

    def __init__(
        self,
        block_size: int = 128,
        bits: int = 4,
        axis: int = 1,
        quant_format: QuantFormat = QuantFormat.QOperator,
        op_types_to_quantize: tuple[str, ...] | None = None,
        quant_axes: tuple[tuple[str, int], ...] | None = None,
    ):
        _qoperator_alone("HQQ", quant_format)
        super().__init__("HQQ", quant_format, op_types_to_quantize, quant_axes)
        self.block_size = block_size
        self.bits = bits
        self.axis = axis


class DefaultWeightOnlyQuantConfig(WeightOnlyQuantConfig):
    def __init__(
        self,
        block_size: int = 128,
        is_symmetric: bool = False,
        accuracy_level: int | None = None,
        quant_format: QuantFormat = QuantFormat.QOperator,
        op_types_to_quantize: tuple[str, ...] | None = None,
        quant_axes: tuple[tuple[str, int], ...] | None = None,
        bits: int = 4,
        channel_wised_quantize: bool = False,
    ):
        super().__init__("DEFAULT", quant_format, op_types_to_quantize, quant_axes)
        self.block_size = block_size
        self.is_symmetric = is_symmetric
        self.bits = bits
        self.accuracy_level = accuracy_level
        self.channel_wised_quantize = channel_wised_quantize
        if channel_wised_quantize:
            raise NotImplementedError("one scale for each channel of a matrix (channel_wised_quantize) is not implemented")


_METHODS = {"DEFAULT": "rtn", "RTN": "rtn", "k_quant": "search", "HQQ": "hqq", "GPTQ": "gptq"}


class MatMulNBitsQuantizer:
    """process() puts the quantised model into `.model` (an ONNXModel, which needs the package `onnx`); process_to(path) writes it without
    that package. Branches and loops are left as they are."""

    def __init__(
        self,
        model: ModelInput,
        bits: int = 4,
        block_size: int = 128,
        is_symmetric: bool = False,
        accuracy_level: int | None = None,
        nodes_to_exclude: Sequence[str] | None = None,
        nodes_to_include: list[str] | None = None,
        quant_format: QuantFormat = QuantFormat.QOperator,
        op_types_to_quantize: tuple[str, ...] | None = None,
        quant_axes: tuple[tuple[str, int], ...] | None = None,
        channel_wised_quantize: bool = False,
        algo_config: WeightOnlyQuantConfig | None = None,
    ):
        in_memory = hasattr(model, "SerializeToString")
        self.model_path: Any = None if in_memory else os.fspath(model)
        self._model = ONNXModel(model) if in_memory else None
        self.bits = bits
        self.block_size = block_size
        self.is_symmetric = is_symmetric
        self.accuracy_level = accuracy_level
        self.nodes_to_exclude = set(nodes_to_exclude or [])
        self.nodes_to_include = set(nodes_to_include) if nodes_to_include else None
        if algo_config is None:
            algo_config = DefaultWeightOnlyQuantConfig(
                block_size=block_size,
                is_symmetric=is_symmetric,
                accuracy_level=accuracy_level,
                quant_format=quant_format,
                op_types_to_quantize=op_types_to_quantize,
                quant_axes=quant_axes,
                bits=bits,
                channel_wised_quantize=channel_wised_quantize,
            )
        if algo_config.algorithm not in _METHODS:
            raise NotImplementedError(f"the method {algo_config.algorithm!r} is not implemented; there are {', '.join(_METHODS)}")
        if getattr(algo_config, "bits", bits) not in (2, 4, 8):
            raise AssertionError(f"weights must have 2, 4 or 8 bits, received {getattr(algo_config, 'bits', bits)}")
        self.algo_config = algo_config

    @property
    def model(self) -> ONNXModel:
        if self._model is None:
            self._model = ONNXModel(load_model(self.model_path))
        return self._model

    @model.setter
    def model(self, model: ONNXModel) -> None:
        self._model = model

    def _options(self) -> dict[str, Any]:
        config: Any = self.algo_config
        gptq = config.algorithm == "GPTQ"
        # ONNX Runtime takes the width and the block of these two methods from the quantiser, not from their configurations.
        own = config.algorithm in ("DEFAULT", "HQQ")
        options: dict[str, Any] = {
            "method": _METHODS[config.algorithm],
            "qdq": config.quant_format == QuantFormat.QDQ,
            "bits": getattr(config, "bits", self.bits) if own else self.bits,
            "block_size": getattr(config, "block_size", self.block_size) if own else self.block_size,
            "symmetric": getattr(config, "is_symmetric", self.is_symmetric) and config.algorithm != "HQQ",
            "accuracy_level": getattr(config, "accuracy_level", None) or self.accuracy_level,
            "ops": sorted(config.op_types_to_quantize),
            "nodes": sorted(self.nodes_to_include) if self.nodes_to_include else None,
            "exclude": sorted(self.nodes_to_exclude),
        }
        formats = {}
        for node, settings in (config.customized_weight_config or {}).items():
            named = {"bits": settings.get("bits"), "block_size": settings.get("group_size")}
            if "scheme" in settings:
                named["symmetric"] = settings["scheme"] == "sym"
            formats[node] = named
        if formats:
            options["node_formats"] = formats
        if gptq:
            options |= {"damp": config.percdamp, "act_order": config.actorder, "search_scales": config.mse}
        return options

    def process_to(
        self,
        path: str | os.PathLike[str],
        calibration_data_reader: Any | None = None,
        max_loss: float | None = None,
    ) -> dict[str, Any]:
        """Writes the quantised model to a file; returns which nodes were quantised and which were kept, and why. With a reader it also says
        how near the result is to the float model ("accuracy"), and max_loss keeps the layers that lose most until that loss is met."""
        source = self._model.model if self._model is not None else self.model_path
        reader = getattr(self.algo_config, "calibration_data_reader", None)
        if reader is None:
            reader = calibration_data_reader
        options = {**self._options(), "max_loss": max_loss, "measure_accuracy": calibration_data_reader is not None}
        with as_file(source) as model:
            done, kept, warnings, summary = _native.weights(model, os.fspath(path), options, reader)
        names = ("node", "op", "bits", "k", "n", "block_size", "error")
        return {
            "quantized": [dict(zip(names, entry)) for entry in done],
            "kept": [dict(zip(("node", "op", "why"), entry)) for entry in kept],
            "warnings": warnings,
            "accuracy": json.loads(summary)["accuracy"],
        }

    def process(self) -> dict[str, Any]:
        with new_file() as path:
            report = self.process_to(path)
            self._model = ONNXModel(load_model(path))
        return report
