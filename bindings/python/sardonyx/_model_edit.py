"""Changes to a model's bytes before it is opened: values of initializers, extents of inputs by denotation. Fields are those of onnx.proto;
everything else is copied as it stands."""

from __future__ import annotations

import os
from typing import Any, BinaryIO, Callable, Iterator, Mapping

from ._errors import InvalidArgument, InvalidProtobuf

_VARINT, _BYTES = 0, 2
# ModelProto, GraphProto
_GRAPH, _METADATA, _INITIALIZER, _INPUT = 7, 14, 5, 11
# TensorProto
_DIMS, _TYPE, _STRINGS, _NAME, _RAW, _EXTERNAL, _LOCATION = 1, 2, 6, 8, 9, 13, 14


def _read_varint(data: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise InvalidProtobuf("the model's bytes end within a number")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def fields(data: memoryview) -> Iterator[tuple[int, int, Any, memoryview]]:
    """Number, wire type, value (an integer or bytes) and the whole field as it stands."""
    at = 0
    while at < len(data):
        start = at
        key, at = _read_varint(data, at)
        wire = key & 7
        value: Any
        if wire == _VARINT:
            value, at = _read_varint(data, at)
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
            value, at = data[at : at + size], at + size
        elif wire == _BYTES:
            size, at = _read_varint(data, at)
            value, at = data[at : at + size], at + size
        else:
            raise InvalidProtobuf(f"the model's bytes have a field of unknown kind {wire}")
        if at > len(data):
            raise InvalidProtobuf("the model's bytes end within a field")
        yield key >> 3, wire, value, data[start:at]


def field(number: int, value: int | bytes) -> bytes:
    if isinstance(value, int):
        return _varint(number << 3 | _VARINT) + _varint(value)
    return _varint(number << 3 | _BYTES) + _varint(len(value)) + value


def _mapped(message: memoryview, number: int, change: Callable[[memoryview], bytes | None]) -> bytes:
    """The message with change(field) in place of each field `number`; None leaves it."""
    parts: list[bytes | memoryview] = []
    for n, wire, value, whole in fields(message):
        changed = change(value) if n == number and wire == _BYTES else None
        parts.append(whole if changed is None else field(number, changed))
    return b"".join(parts)


def _text(value: memoryview) -> str:
    return bytes(value).decode("utf-8", "surrogateescape")


def _dims_and_type(tensor: memoryview) -> tuple[list[int], int]:
    dims: list[int] = []
    dtype = 0
    for n, wire, v, _ in fields(tensor):
        if n == _DIMS and wire == _VARINT:
            dims.append(v)
        elif n == _DIMS:
            at = 0
            while at < len(v):
                extent, at = _read_varint(v, at)
                dims.append(extent)
        elif n == _TYPE:
            dtype = v
    return dims, dtype


def _tensor(name: str, value: Any, declared: memoryview) -> bytes:
    """A TensorProto of the value, which must be what the model declares."""
    from . import _types

    dims, dtype = _dims_and_type(declared)
    number = _types.onnx_number(value)
    if list(value.shape) != dims or number != dtype:
        raise InvalidArgument(f"initializer '{name}': the model has type {dtype} (ONNX's number) and shape {dims}, "
                              f"received type {number} and shape {list(value.shape)}")  # fmt: skip
    head = b"".join(field(_DIMS, d) for d in dims) + field(_TYPE, dtype) + field(_NAME, name.encode("utf-8", "surrogateescape"))
    if value.dtype.kind in "OUST":
        texts = (t if isinstance(t, bytes) else str(t).encode("utf-8", "surrogateescape") for t in value.reshape(-1).tolist())
        return head + b"".join(field(_STRINGS, t) for t in texts)
    return head + field(_RAW, _packed(value, dtype))


def _packed(value: Any, dtype: int) -> bytes:
    """Raw data: elements of four bits two to a byte, of two bits four, the first lowest."""
    import numpy as np

    bits = {21: 4, 22: 4, 23: 4, 25: 2, 26: 2}.get(dtype)
    if bits is None:
        return np.ascontiguousarray(value).tobytes()
    flat = np.ascontiguousarray(value).view(np.uint8).reshape(-1) & ((1 << bits) - 1)
    per_byte = 8 // bits
    flat = np.concatenate([flat, np.zeros(-len(flat) % per_byte, np.uint8)]).reshape(-1, per_byte)
    out = np.zeros(len(flat), np.uint8)
    for i in range(per_byte):
        out |= flat[:, i] << (bits * i)
    return out.tobytes()


def _name_and_place(tensor: memoryview) -> tuple[str, dict[str, str], bool]:
    name, entries, external = "", {}, False
    for n, _, v, _ in fields(tensor):
        if n == _NAME:
            name = _text(v)
        elif n == _LOCATION:
            external = v == 1
        elif n == _EXTERNAL:
            pair = {number: _text(text) for number, _, text, _ in fields(v)}
            entries[pair.get(1, "")] = pair.get(2, "")
    return name, entries, external


def with_initializers(model: bytes, values: Mapping[str, Any], external: Mapping[str, Any], files: Mapping[str, bytes]) -> bytes:
    """values: arrays by name, for initializers of the model, where it has them. external: the same for those whose data are in another
    file, which it must have. files: contents of such files by name."""
    missing = dict.fromkeys(external)

    def change(tensor: memoryview) -> bytes | None:
        name, entries, is_external = _name_and_place(tensor)
        if name in external:
            if not is_external:
                raise InvalidArgument(f"initializer '{name}' has its data in the model, not in another file")
            missing.pop(name, None)
            return _tensor(name, external[name], tensor)
        if name in values:
            return _tensor(name, values[name], tensor)
        if is_external and entries.get("location") in files:
            content = files[entries["location"]]
            start = int(entries.get("offset", "0") or 0)
            size = int(entries["length"]) if entries.get("length") else len(content) - start
            if start < 0 or size < 0 or start + size > len(content):
                raise InvalidArgument(f"initializer '{name}': bytes {start} to {start + size} are wanted of '{entries['location']}', "
                                      f"which has {len(content)}")  # fmt: skip
            kept = b"".join(whole for n, _, _, whole in fields(tensor) if n not in (_RAW, _EXTERNAL, _LOCATION))
            return kept + field(_RAW, content[start : start + size])
        return None

    edited = _mapped(memoryview(model), _GRAPH, lambda graph: _mapped(graph, _INITIALIZER, change))
    if missing:
        raise InvalidArgument(f"the model has no initializer '{next(iter(missing))}' with data in another file")
    return edited


def with_extents(model: bytes, denotations: Mapping[str, int]) -> bytes:
    """Fixes the extents of inputs that carry one of the denotations ("DATA_BATCH") and no number."""

    def dim(d: memoryview) -> bytes | None:
        found = {n: v for n, _, v, _ in fields(d)}
        meaning = _text(found[3]) if 3 in found else ""
        if meaning not in denotations or 1 in found:
            return None
        return field(1, denotations[meaning]) + field(3, meaning.encode())

    def spec(value: memoryview) -> bytes:  # type (2), tensor_type (1), shape (2), dim (1)
        return _mapped(value, 2, lambda t: _mapped(t, 1, lambda tensor: _mapped(tensor, 2, lambda shape: _mapped(shape, 1, dim))))

    return _mapped(memoryview(model), _GRAPH, lambda graph: _mapped(graph, _INPUT, spec))


def read(model: str | bytes) -> tuple[bytes, str]:
    """A model's bytes, and the folder that its other files are in."""
    if isinstance(model, bytes):
        return model, ""
    with open(model, "rb") as file:
        return file.read(), os.path.dirname(os.path.abspath(model))


def metadata(model: bytes) -> dict[str, str]:
    """A model's own texts by key."""
    pairs = ({n: _text(v) for n, _, v, _ in fields(value)} for number, _, value, _ in fields(memoryview(model)) if number == _METADATA)
    return {pair.get(1, ""): pair.get(2, "") for pair in pairs}


def place_initializers(model: bytes, place: Callable[[str, memoryview, bool], tuple[str, int, int] | None]) -> bytes:
    """place(name, TensorProto, whether its data are in another file) tells location, offset and length of where its data are from now
    on; None leaves them."""

    def change(tensor: memoryview) -> bytes | None:
        name, _, is_external = _name_and_place(tensor)
        found = place(name, tensor, is_external)
        if found is None:
            return None
        kept = b"".join(whole for n, _, _, whole in fields(tensor) if n not in (_RAW, _EXTERNAL, _LOCATION))
        entries = zip(("location", "offset", "length"), (str(v).encode() for v in found))
        return kept + b"".join(field(_EXTERNAL, field(1, k.encode()) + field(2, v)) for k, v in entries) + field(_LOCATION, 1)

    return _mapped(memoryview(model), _GRAPH, lambda graph: _mapped(graph, _INITIALIZER, change))


def raw_data(tensor: memoryview) -> memoryview | None:
    """A TensorProto's raw data."""
    return next((v for n, wire, v, _ in fields(tensor) if n == _RAW and wire == _BYTES), None)


def write_whole(path: str, write: Callable[[BinaryIO], Any]) -> None:
    """A file that appears whole or not at all."""
    temporary = f"{path}.{os.getpid()}.new"
    try:
        with open(temporary, "wb") as file:
            write(file)
        os.replace(temporary, path)
    except BaseException:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise


def move_initializers(path: str, data_file: str, least: int) -> None:
    """Moves raw data of `least` bytes and more from the model at `path` into a file beside it."""
    if os.path.dirname(data_file):
        raise InvalidArgument(f"the file for initializers lies beside the model: '{data_file}' must be a name without a folder")
    model, folder = read(path)
    end = 0
    chunks: list[memoryview] = []

    def place(name: str, tensor: memoryview, is_external: bool) -> tuple[str, int, int] | None:
        nonlocal end
        data = None if is_external else raw_data(tensor)
        if data is None or len(data) < least:
            return None
        chunks.append(memoryview(bytes(-end % 64)))
        start = end + len(chunks[-1])
        chunks.append(data)
        end = start + len(data)
        return data_file, start, len(data)

    edited = place_initializers(model, place)
    write_whole(os.path.join(folder, data_file), lambda file: file.writelines(chunks))
    write_whole(path, lambda file: file.write(edited))


def to_array(tensor: memoryview) -> Any:
    """A TensorProto with raw data of whole bytes as an array; None for others."""
    import numpy as np

    from . import _types

    data = raw_data(tensor)
    dims, dtype = _dims_and_type(tensor)
    if data is None or dtype in (8, 21, 22, 23, 25, 26):
        return None
    return np.frombuffer(bytearray(data), _types.numpy_type(dtype)).reshape(dims)
