"""Files with the parameters of adapters (LoRA), and adapters for runs: the format is ONNX Runtime's, a flatbuffer with the mark TORT."""

from __future__ import annotations

import os
import struct
from typing import Any, Mapping

import numpy as np

from ._errors import InvalidArgument, InvalidProtobuf
from ._files import write_whole
from ._types import engine_name, numpy_type, onnx_number
from ._values import OrtValue

_MARK = b"TORT"
_FORMAT = 1


class _Reader:
    """Tables of a flatbuffer, every offset checked."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def number(self, code: str, at: int) -> int:
        size = struct.calcsize(code)
        if at < 0 or at + size > len(self._data):
            raise InvalidProtobuf(f"the adapter's bytes end at {len(self._data)}, and {size} at {at} are wanted")
        found: int = struct.unpack_from(code, self._data, at)[0]
        return found

    def follow(self, at: int) -> int:
        return at + self.number("<I", at)

    def place(self, table: int, slot: int) -> int:
        """Where the table's field is; 0 where it has none."""
        layout = table - self.number("<i", table)
        entry = 4 + 2 * slot
        if entry + 2 > self.number("<H", layout):
            return 0
        offset = self.number("<H", layout + entry)
        return table + offset if offset else 0

    def integer(self, table: int, slot: int) -> int:
        at = self.place(table, slot)
        return self.number("<i", at) if at else 0

    def vector(self, table: int, slot: int, width: int) -> tuple[int, int]:
        """Where the elements start, and how many there are."""
        at = self.place(table, slot)
        if not at:
            return 0, 0
        start = self.follow(at)
        count = self.number("<I", start)
        if start + 4 + count * width > len(self._data):
            raise InvalidProtobuf(f"the adapter's bytes end within a list of {count}")
        return start + 4, count

    def bytes(self, table: int, slot: int) -> bytes:
        start, count = self.vector(table, slot, 1)
        return self._data[start : start + count]


def _parameter(reader: _Reader, table: int) -> tuple[str, np.ndarray]:
    name = reader.bytes(table, 0).decode("utf-8", "replace")
    start, count = reader.vector(table, 1, 8)
    shape = [reader.number("<q", start + 8 * i) for i in range(count)]
    number = reader.integer(table, 2)
    if number == 8 or any(d < 0 for d in shape):
        raise InvalidProtobuf(f"adapter parameter '{name}': type {number} and shape {shape} are none that a parameter can have")
    try:
        dtype = numpy_type(number)
    except (TypeError, AttributeError):
        raise InvalidProtobuf(f"adapter parameter '{name}': there is no type {number}") from None
    raw = reader.bytes(table, 3)
    size = dtype.itemsize
    for d in shape:
        size *= d
    if size != len(raw):
        raise InvalidProtobuf(f"adapter parameter '{name}': shape {shape} needs {size} bytes, the file has {len(raw)}")
    return name, np.frombuffer(bytearray(raw), dtype).reshape(shape)


def _parse(data: bytes) -> tuple[int, int, int, dict[str, np.ndarray]]:
    if data[4:8] != _MARK:
        raise InvalidProtobuf(f"not an adapter: bytes 4 to 7 are {data[4:8]!r}, expected {_MARK!r}")
    reader = _Reader(data)
    root = reader.follow(0)
    version = reader.integer(root, 0)
    if version != _FORMAT:
        raise InvalidProtobuf(f"the adapter has format version {version}; version {_FORMAT} can be read")
    start, count = reader.vector(root, 3, 4)
    parameters = dict(_parameter(reader, reader.follow(start + 4 * i)) for i in range(count))
    return version, reader.integer(root, 1), reader.integer(root, 2), parameters


class _Writer:
    """A flatbuffer from front to back: what is pointed to comes after what points to it."""

    def __init__(self) -> None:
        self.data = bytearray()

    def align(self, width: int, ahead: int = 0) -> None:
        while (len(self.data) + ahead) % width:
            self.data.append(0)

    def point(self, at: int) -> None:
        """The offset at `at` leads here."""
        struct.pack_into("<I", self.data, at, len(self.data) - at)

    def table(self, count: int) -> tuple[int, int]:
        """The layout of a table of four-byte fields; where it is, and where the table itself starts."""
        self.align(4, 4 + 2 * count)
        start = len(self.data)
        self.data += struct.pack(f"<{2 + count}H", 4 + 2 * count, 4 + 4 * count, *(4 + 4 * i for i in range(count)))
        return start, len(self.data)


def _serialize(adapter: int, model: int, parameters: Mapping[str, np.ndarray]) -> bytes:
    w = _Writer()
    w.data += b"\0\0\0\0" + _MARK
    layout, at = w.table(4)
    w.point(0)
    w.data += struct.pack("<iiiiI", at - layout, _FORMAT, adapter, model, 0)
    w.align(4)
    w.point(at + 16)
    w.data += struct.pack("<I", len(parameters))
    first = len(w.data)
    w.data += bytes(4 * len(parameters))
    for i, (name, array) in enumerate(parameters.items()):
        layout, at = w.table(4)
        w.point(first + 4 * i)
        w.data += struct.pack("<iIIiI", at - layout, 0, 0, onnx_number(array), 0)
        text = name.encode("utf-8", "surrogateescape")
        for place, content, count, width in (
            (at + 4, text + b"\0", len(text), 1),
            (at + 8, struct.pack(f"<{array.ndim}q", *array.shape), array.ndim, 8),
            (at + 16, np.ascontiguousarray(array).tobytes(), array.nbytes, 8),
        ):
            w.align(max(4, width), 4)
            w.point(place)
            w.data += struct.pack("<I", count) + content
    w.align(8)
    return bytes(w.data)


def _array(name: str, value: Any) -> np.ndarray:
    array = value.numpy() if isinstance(value, OrtValue) else np.asarray(value)
    if not isinstance(array, np.ndarray) or engine_name(array) == "string" or not onnx_number(array):
        raise InvalidArgument(f"adapter parameter '{name}' is not a tensor of numbers")
    return array


class AdapterFormat:
    """Reads and writes adapters."""

    def __init__(self, adapter: AdapterFormat | None = None) -> None:
        self._format = _FORMAT
        self._adapter: int = adapter._adapter if adapter else 0
        self._model: int = adapter._model if adapter else 0
        self._parameters: dict[str, OrtValue] = dict(adapter._parameters) if adapter else {}

    @staticmethod
    def read_adapter(file_path: str | os.PathLike[str]) -> AdapterFormat:
        made = AdapterFormat()
        with open(file_path, "rb") as file:
            made._format, made._adapter, made._model, parameters = _parse(file.read())
        made._parameters = {name: OrtValue(array) for name, array in parameters.items()}
        return made

    def export_adapter(self, file_path: str | os.PathLike[str]) -> None:
        """Written under another name first: a reader never sees half a file."""
        data = _serialize(self._adapter, self._model, {name: _array(name, v) for name, v in self._parameters.items()})
        write_whole(os.fspath(file_path), lambda file: file.write(data))

    def get_format_version(self) -> int:
        return self._format

    def set_adapter_version(self, adapter_version: int) -> None:
        self._adapter = adapter_version

    def get_adapter_version(self) -> int:
        return self._adapter

    def set_model_version(self, model_version: int) -> None:
        self._model = model_version

    def get_model_version(self) -> int:
        return self._model

    def set_parameters(self, params: Mapping[str, OrtValue]) -> None:
        self._parameters = dict(params)

    def get_parameters(self) -> dict[str, OrtValue]:
        return dict(self._parameters)


class LoraAdapter:
    """An adapter that runs can use (RunOptions.add_active_adapter): its parameters are inputs of the model with a default."""

    def __init__(self) -> None:
        self.parameters: dict[str, np.ndarray] = {}

    def Load(self, file_path: str | os.PathLike[str]) -> None:  # noqa: N802, ONNX Runtime's name
        with open(file_path, "rb") as file:
            self.parameters = _parse(file.read())[3]
