"""Ranges of values from data."""

from __future__ import annotations

import abc
import json
import os
import tempfile
from collections import deque
from enum import Enum
from pathlib import Path
from typing import Any, ClassVar, Iterable, Iterator, Mapping, Sequence

import numpy as np

from .. import _sardonyx

_native = _sardonyx.quantize()


def rel_entr(pk: Any, qk: Any) -> Any:
    """p log(p / q) of each pair: 0 where p is, infinite where only q is or one is negative."""
    p, q = np.broadcast_arrays(np.asarray(pk), np.asarray(qk))
    out = np.full(p.shape, np.inf, dtype=np.result_type(p, np.float32))
    both = (p > 0) & (q > 0)
    out[both] = p[both] * np.log(p[both] / q[both])
    out[(p == 0) & (q >= 0)] = 0
    return out


def entropy(pk: Any, qk: Any, base: float | None = None, axis: int = 0) -> Any:
    """The Kullback-Leibler divergence of two distributions, each scaled to a sum of 1."""
    if base is not None and base <= 0:
        raise ValueError(f"the logarithm's base is {base}; expected more than 0")
    p, q = (np.asarray(k) / np.sum(k, axis=axis, keepdims=True) for k in (pk, qk))
    divergence = np.sum(rel_entr(p, q), axis=axis)
    return divergence if base is None else divergence / np.log(base)


class CalibrationMethod(Enum):
    MinMax = 0
    Entropy = 1
    Percentile = 2
    Distribution = 3
    MSE = 4  # the least mean squared error; ONNX Runtime's tool does not have it


class CalibrationDataReader(metaclass=abc.ABCMeta):
    """Gives a model's inputs, batch after batch: a dict of arrays by name, and None at the end."""

    @classmethod
    def __subclasshook__(cls, subclass: type) -> Any:
        return callable(getattr(subclass, "get_next", None)) or NotImplemented

    @abc.abstractmethod
    def get_next(self) -> dict[str, Any] | None:
        raise NotImplementedError

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return self

    def __next__(self) -> dict[str, Any]:
        batch = self.get_next()
        if batch is None:
            raise StopIteration
        return batch

    def __len__(self) -> int:
        raise NotImplementedError

    def set_range(self, start_index: int, end_index: int) -> None:
        raise NotImplementedError


class Batches(CalibrationDataReader):
    """A reader of batches that are there already."""

    def __init__(self, batches: Iterable[dict[str, Any]]):
        self._batches = deque(batches)

    def get_next(self) -> dict[str, Any] | None:
        return self._batches.popleft() if self._batches else None


class TensorData:
    """What is known of a tensor's values."""

    _allowed: ClassVar = frozenset(["avg", "std", "lowest", "highest", "hist", "hist_edges", "bins"])
    _floats: ClassVar = frozenset(["avg", "std", "lowest", "highest", "hist_edges"])

    def __init__(self, **kwargs: Any):
        for name, value in kwargs.items():
            if name not in self._allowed:
                raise ValueError(f"no such entry {name!r}; expected some of {', '.join(sorted(self._allowed))}")
            if name in self._floats:
                if not hasattr(value, "dtype"):
                    raise ValueError(f"{name!r} is a {type(value).__name__}; expected an array")
                if value.dtype not in (np.float16, np.float32):
                    raise ValueError(f"{name!r} has dtype {value.dtype}; expected float32 or float16")
            setattr(self, name, value)
        self._attrs = list(kwargs)

    @property
    def range_value(self) -> tuple[Any, Any]:
        return self._pair("lowest", "highest")

    @property
    def avg_std(self) -> tuple[Any, Any]:
        return self._pair("avg", "std")

    def _pair(self, first: str, second: str) -> tuple[Any, Any]:
        if not (hasattr(self, first) and hasattr(self, second)):
            raise AttributeError(f"the tensor's {first!r} and {second!r} are not known; known: {', '.join(self._attrs)}")
        return getattr(self, first), getattr(self, second)

    def to_dict(self) -> dict[str, Any]:
        return {**{name: getattr(self, name) for name in self._attrs}, "CLS": type(self).__name__}

    @classmethod
    def from_dict(cls, d: Mapping[str, Any]) -> TensorData:
        entries = {}
        for name, value in d.items():
            if name == "CLS":
                continue
            if isinstance(value, Mapping) and value.get("CLS") == "numpy.array":
                value = np.array(value["data"], dtype=np.dtype(value["dtype"]))
            elif name in cls._floats and isinstance(value, (int, float)):
                value = np.array(value, dtype=np.float32)
            entries[name] = value
        return cls(**entries)


class TensorsData:
    """TensorData by name, and the method that they come from."""

    def __init__(self, calibration_method: CalibrationMethod, data: Mapping[str, Any]):
        self.calibration_method = calibration_method
        self.data: dict[str, TensorData] = {}
        for name, value in data.items():
            if not isinstance(name, str):
                raise TypeError(f"names of tensors are text, received {type(name).__name__}")
            if isinstance(value, tuple):
                if calibration_method == CalibrationMethod.MinMax and len(value) == 2:
                    value = TensorData(lowest=value[0], highest=value[1])
                elif len(value) == 4:
                    value = TensorData(lowest=value[0], highest=value[1], hist=value[2], bins=value[3])
                else:
                    raise TypeError(f"a tuple of {len(value)} for {name!r}; expected 2 (lowest, highest) or 4 (also hist, bins)")
            if not isinstance(value, TensorData):
                raise TypeError(f"the data of {name!r} are {type(value).__name__}; expected TensorData")
            self.data[name] = value

    def __iter__(self) -> Iterator[str]:
        return iter(self.data)

    def __contains__(self, key: object) -> bool:
        return key in self.data

    def __getitem__(self, key: str) -> TensorData:
        return self.data[key]

    def __setitem__(self, key: str, value: TensorData) -> None:
        if key not in self.data:
            raise RuntimeError(f"there is no tensor {key!r} to change")
        self.data[key] = value

    def keys(self) -> Any:
        return self.data.keys()

    def values(self) -> Any:
        return self.data.values()

    def items(self) -> Any:
        return self.data.items()

    def to_dict(self) -> dict[str, Any]:
        return {"CLS": type(self).__name__, "data": self.data, "calibration_method": self.calibration_method}

    @classmethod
    def from_dict(cls, d: Mapping[str, Any]) -> TensorsData:
        method = d["calibration_method"]
        if isinstance(method, Mapping):
            method = CalibrationMethod[str(method["value"]).rsplit(".", 1)[-1]]
        return cls(method, {name: TensorData.from_dict(entry) for name, entry in d["data"].items()})

    def ranges(self) -> dict[str, tuple[float, float, float | None]]:
        """As the engine takes them. A tensor with ranges for each channel counts with the widest."""
        out = {}
        for name, entry in self.data.items():
            deviation = float(np.max(entry.std)) if hasattr(entry, "std") else None
            if hasattr(entry, "lowest") and hasattr(entry, "highest"):
                out[name] = (float(np.min(entry.lowest)), float(np.max(entry.highest)), deviation)
            elif deviation is not None:
                out[name] = (-5 * deviation, 5 * deviation, deviation)
        return out


class CalibrationCacheEncoder(json.JSONEncoder):
    """JSON of what calibration finds."""

    def default(self, o: Any) -> Any:
        if isinstance(o, (TensorData, TensorsData)):
            return o.to_dict()
        if isinstance(o, np.ndarray):
            return {"data": o.tolist(), "dtype": str(o.dtype), "CLS": "numpy.array"}
        if isinstance(o, CalibrationMethod):
            return {"CLS": type(o).__name__, "value": str(o)}
        if isinstance(o, np.generic):
            return o.item()
        return super().default(o)


def save_tensors_data(tensors_data: TensorsData, path: str | os.PathLike[str], *, smooth_quant: bool = False) -> None:
    """Writes a JSON file, which appears whole or not at all."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({**tensors_data.to_dict(), "smooth_quant": smooth_quant}, cls=CalibrationCacheEncoder)
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=".calibration_", suffix=".tmp")
    try:
        with os.fdopen(handle, "w") as file:
            file.write(text)
        os.replace(temporary, target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def load_tensors_data(path: str | os.PathLike[str]) -> TensorsData:
    source = Path(path)
    if not source.exists():
        raise FileNotFoundError(f"there is no calibration cache '{source}'")
    if not source.is_file():
        raise ValueError(f"the calibration cache '{source}' is not a file")
    return TensorsData.from_dict(json.loads(source.read_text()))


def tensors_data_of(found: Mapping[str, tuple[float, float, float | None]], method: CalibrationMethod) -> TensorsData:
    def entry(low: float, high: float, deviation: float | None) -> TensorData:
        values = {"lowest": np.array(low, np.float32), "highest": np.array(high, np.float32)}
        if deviation is not None:
            values |= {"avg": np.array(0, np.float32), "std": np.array(deviation, np.float32)}
        return TensorData(**values)

    return TensorsData(method, {name: entry(*range_) for name, range_ in found.items()})


class CalibraterBase:
    """Collects data for a model and computes the ranges of its values. The engine runs the model in compute_data()."""

    method = CalibrationMethod.MinMax

    def __init__(
        self,
        model_path: str | os.PathLike[str],
        op_types_to_calibrate: Sequence[str] | None = None,
        augmented_model_path: str | os.PathLike[str] = "augmented_model.onnx",
        symmetric: bool = False,
        use_external_data_format: bool = False,
        per_channel: bool = False,
        **settings: Any,
    ):
        if not isinstance(model_path, (str, os.PathLike)):
            raise ValueError(f"the model is a path, received {type(model_path).__name__}")
        if per_channel:
            raise NotImplementedError("ranges of activations for each channel are not implemented")
        self.model_path = os.fspath(model_path)
        self.op_types_to_calibrate = op_types_to_calibrate
        self.augmented_model_path = augmented_model_path
        self.symmetric = symmetric
        self.use_external_data_format = use_external_data_format
        self.per_channel = per_channel
        self.execution_providers = ["CPUExecutionProvider"]
        self.settings = {name: value for name, value in settings.items() if value is not None}
        self._batches: list[dict[str, Any]] = []

    @property
    def model(self) -> Any:
        """The model, with inferred types."""
        if not hasattr(self, "_model"):
            from .quant_utils import load_model_with_shape_infer

            self._model = load_model_with_shape_infer(Path(self.model_path))
        return self._model

    def set_execution_providers(self, execution_providers: Sequence[str] = ("CPUExecutionProvider",)) -> None:
        self.execution_providers = list(execution_providers)

    def create_inference_session(self) -> None:
        """Nothing: the engine opens the model in compute_data()."""

    def augment_graph(self) -> None:
        """Nothing: the engine observes values without a model of its own for it."""

    def get_augment_model(self) -> Any:
        return self.model

    def select_tensors_to_calibrate(self, model: Any) -> tuple[set[str], dict[str, Any]]:
        """(names of the float values that nodes of the chosen operators read and give, all known types by name)."""
        import onnx

        graph = model.graph
        infos = {v.name: v for values in (graph.value_info, graph.output, graph.input) for v in values}
        constants = {t.name for t in graph.initializer}
        floats = (onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16)
        names = {
            name
            for node in graph.node
            if not self.op_types_to_calibrate or node.op_type in self.op_types_to_calibrate
            for name in (*node.input, *node.output)
            if name in infos and name not in constants and infos[name].type.tensor_type.elem_type in floats
        }
        return names, infos

    def collect_data(self, data_reader: Any) -> None:
        """Takes all batches of the reader; may be called several times."""
        before = len(self._batches)
        while (batch := data_reader.get_next()) is not None:
            self._batches.append(batch)
        if len(self._batches) == before:
            raise ValueError("no data was collected: the reader returned no batch")

    def clear_collected_data(self) -> None:
        self._batches = []

    def compute_data(self) -> TensorsData:
        options = {
            "op_types_to_quantize": list(self.op_types_to_calibrate or []),
            "ignore_unknown": True,
            "calibrate_method": self.method.name,
            "preprocess": False,
            "extra": {"CalibTensorRangeSymmetric": bool(self.symmetric), **self.settings},
        }
        found = _native.ranges(self.model_path, Batches(self._batches), options, True)
        return tensors_data_of(found, self.method)


class MinMaxCalibrater(CalibraterBase):
    def __init__(
        self,
        model_path: str | os.PathLike[str],
        op_types_to_calibrate: Sequence[str] | None = None,
        augmented_model_path: str | os.PathLike[str] = "augmented_model.onnx",
        symmetric: bool = False,
        use_external_data_format: bool = False,
        moving_average: bool = False,
        averaging_constant: float = 0.01,
        max_intermediate_outputs: int | None = None,
        per_channel: bool = False,
    ):
        if moving_average and not 0 <= averaging_constant <= 1:
            raise ValueError(f"averaging_constant is {averaging_constant}; expected 0 to 1")
        super().__init__(
            model_path,
            op_types_to_calibrate,
            augmented_model_path,
            symmetric,
            use_external_data_format,
            per_channel,
            CalibMovingAverage=moving_average,
            CalibMovingAverageConstant=averaging_constant,
        )


class HistogramCalibrater(CalibraterBase):
    def __init__(
        self,
        model_path: str | os.PathLike[str],
        op_types_to_calibrate: Sequence[str] | None = None,
        augmented_model_path: str | os.PathLike[str] = "augmented_model.onnx",
        use_external_data_format: bool = False,
        method: str = "percentile",
        symmetric: bool = False,
        num_bins: int = 128,
        num_quantized_bins: int = 2048,
        percentile: float = 99.999,
        scenario: str = "same",
    ):
        methods = {m.name.lower(): m for m in CalibrationMethod if m is not CalibrationMethod.MinMax}
        if method not in methods:
            raise ValueError(f"unknown method {method!r}; known: {', '.join(methods)}")
        super().__init__(
            model_path,
            op_types_to_calibrate,
            augmented_model_path,
            symmetric,
            use_external_data_format,
            CalibPercentile=percentile,
            # At least as many bins on each side of 0 as there are codes.
            CalibNumBins=max(num_bins, 2048),
            CalibNumQuantizedBins=min(num_quantized_bins, 2048),
        )
        self.method = methods[method]
        self.scenario = scenario


class EntropyCalibrater(HistogramCalibrater):
    def __init__(
        self,
        model_path: str | os.PathLike[str],
        op_types_to_calibrate: Sequence[str] | None = None,
        augmented_model_path: str | os.PathLike[str] = "augmented_model.onnx",
        use_external_data_format: bool = False,
        method: str = "entropy",
        symmetric: bool = False,
        num_bins: int = 128,
        num_quantized_bins: int = 128,
    ):
        super().__init__(
            model_path,
            op_types_to_calibrate,
            augmented_model_path,
            use_external_data_format,
            method,
            symmetric,
            num_bins,
            num_quantized_bins,
        )


class PercentileCalibrater(HistogramCalibrater):
    def __init__(
        self,
        model_path: str | os.PathLike[str],
        op_types_to_calibrate: Sequence[str] | None = None,
        augmented_model_path: str | os.PathLike[str] = "augmented_model.onnx",
        use_external_data_format: bool = False,
        method: str = "percentile",
        symmetric: bool = False,
        num_bins: int = 2048,
        percentile: float = 99.999,
    ):
        super().__init__(
            model_path,
            op_types_to_calibrate,
            augmented_model_path,
            use_external_data_format,
            method,
            symmetric,
            num_bins,
            percentile=percentile,
        )


class DistributionCalibrater(HistogramCalibrater):
    def __init__(
        self,
        model_path: str | os.PathLike[str],
        op_types_to_calibrate: Sequence[str] | None = None,
        augmented_model_path: str | os.PathLike[str] = "augmented_model.onnx",
        use_external_data_format: bool = False,
        method: str = "distribution",
        num_bins: int = 128,
        scenario: str = "same",
    ):
        super().__init__(
            model_path,
            op_types_to_calibrate,
            augmented_model_path,
            use_external_data_format,
            method,
            num_bins=num_bins,
            scenario=scenario,
        )


def create_calibrator(
    model: str | os.PathLike[str],
    op_types_to_calibrate: Sequence[str] | None = None,
    augmented_model_path: str | os.PathLike[str] = "augmented_model.onnx",
    calibrate_method: CalibrationMethod = CalibrationMethod.MinMax,
    use_external_data_format: bool = False,
    providers: Sequence[str] | None = None,
    extra_options: Mapping[str, Any] = {},  # noqa: B006, the default is only read
) -> CalibraterBase:
    """The calibrator of a method, ready for collect_data()."""
    taken = {
        CalibrationMethod.MinMax: (
            MinMaxCalibrater,
            ("symmetric", "moving_average", "averaging_constant", "max_intermediate_outputs", "per_channel"),
        ),
        CalibrationMethod.Entropy: (EntropyCalibrater, ("symmetric", "num_bins", "num_quantized_bins")),
        CalibrationMethod.Percentile: (PercentileCalibrater, ("symmetric", "num_bins", "percentile")),
        CalibrationMethod.Distribution: (DistributionCalibrater, ("num_bins", "scenario")),
        CalibrationMethod.MSE: (HistogramCalibrater, ("symmetric", "num_bins")),
    }
    if calibrate_method not in taken:
        raise ValueError(f"unknown calibration method {calibrate_method}")
    kind, names = taken[calibrate_method]
    settings: dict[str, Any] = {name: extra_options[name] for name in names if name in extra_options}
    if calibrate_method is CalibrationMethod.Percentile:
        settings.setdefault("symmetric", True)
    if calibrate_method is CalibrationMethod.MSE:
        settings["method"] = "mse"
    calibrator = kind(
        model,
        op_types_to_calibrate,
        augmented_model_path,
        use_external_data_format=use_external_data_format,
        **settings,
    )
    if providers:
        calibrator.set_execution_providers(providers)
    found: CalibraterBase = calibrator
    return found
