"""Settings of single tensors (TensorQuantOverrides) with the look-ups that scripts use."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, MutableMapping
from dataclasses import dataclass
from typing import Any

from .quant_utils import QuantType, normalize_axis

Entries = list[dict[str, Any]]


@dataclass(eq=False)
class QuantTypeInfo:
    """A tensor's type. What is None is not specified, and equals anything."""

    quant_type: QuantType | None
    symmetric: bool | None = None
    axis: int | None = None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, QuantTypeInfo):
            return NotImplemented
        pairs = ((self.symmetric, other.symmetric), (self.axis, other.axis))
        return self.quant_type == other.quant_type and all(None in pair or pair[0] == pair[1] for pair in pairs)

    __hash__ = None  # type: ignore[assignment]

    @staticmethod
    def load_from_dict(
        raw_dict: dict[str, Any],
        default_qtype: QuantType | None = None,
        default_symmetric: bool | None = None,
        default_axis: int | None = None,
    ) -> QuantTypeInfo:
        return QuantTypeInfo(
            raw_dict.get("quant_type", default_qtype), raw_dict.get("symmetric", default_symmetric), raw_dict.get("axis", default_axis)
        )

    def save_to_dict(self, raw_dict: dict[str, Any]) -> None:
        raw_dict.update({name: value for name, value in vars(self).items() if value is not None})


def _wrong_entry(tensor: str, entry: dict[str, Any]) -> str | None:
    if ("scale" in entry) != ("zero_point" in entry):
        return f"Must provide both 'scale' and 'zero_point' if one of the overrides is provided, for tensor '{tensor}'"
    other = [name for name in ("symmetric", "reduce_range", "rmax", "rmin") if name in entry]
    if "scale" in entry and other:
        return f"Tensor override option(s) [{', '.join(other)}] are invalid with 'scale' and 'zero_point', for '{tensor}'"
    return None


def check_entry(tensor: str, entry: dict[str, Any]) -> None:
    """Raises ValueError for settings that contradict each other."""
    if wrong := _wrong_entry(tensor, entry):
        raise ValueError(wrong)


class TensorQuantOverridesHelper(MutableMapping[str, Entries]):
    """The dict of TensorQuantOverrides: for each tensor a list with one dict, or with one for each channel."""

    def __init__(self, raw_overrides: dict[str, Entries] | None):
        self.overrides = raw_overrides or {}

    def __getitem__(self, key: str) -> Entries:
        return self.overrides[key]

    def __setitem__(self, key: str, value: Entries) -> None:
        self.overrides[key] = value

    def __delitem__(self, key: str) -> None:
        del self.overrides[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.overrides)

    def __len__(self) -> int:
        return len(self.overrides)

    def __str__(self) -> str:
        return str(self.overrides)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.overrides!r})"

    def empty(self) -> bool:
        return not self.overrides

    def get_dict(self) -> dict[str, Entries]:
        return self.overrides

    def pprint_str(self, indent: int | None = None) -> str:
        return json.dumps(self.overrides, default=str, indent=indent)

    def _first(self, tensor_name: str) -> dict[str, Any]:
        entries = self.overrides.get(tensor_name)
        return entries[0] if entries else {}

    def has_per_channel_overrides(self, tensor_name: str) -> bool:
        return "axis" in self._first(tensor_name) or len(self.overrides.get(tensor_name, [])) > 1

    def has_per_tensor_overrides(self, tensor_name: str) -> bool:
        return bool(self.overrides.get(tensor_name)) and not self.has_per_channel_overrides(tensor_name)

    def overrides_scale_zp(self, tensor_name: str) -> bool:
        return {"scale", "zero_point"} <= self._first(tensor_name).keys()

    def get_per_tensor_overrides(self, tensor_name: str, default_val: dict[str, Any] | None = None) -> dict[str, Any] | None:
        if self.has_per_channel_overrides(tensor_name):
            raise ValueError(f"the overrides of '{tensor_name}' are for its channels, not for the whole tensor")
        return self.overrides[tensor_name][0] if self.overrides.get(tensor_name) else default_val

    def get_per_channel_overrides(self, tensor_name: str, default_val: Entries | None = None) -> Entries | None:
        if self.has_per_tensor_overrides(tensor_name):
            raise ValueError(f"the overrides of '{tensor_name}' are for the whole tensor, not for its channels")
        return self.overrides.get(tensor_name) or default_val

    def get_quant_types(self) -> set[QuantType]:
        entries = [e for all_of_one in self.overrides.values() for e in all_of_one]
        entries += [e["convert"] for e in entries if "convert" in e]
        return {e["quant_type"] for e in entries if "quant_type" in e}

    def update_tensor_overrides(
        self, tensor_name: str, new_vals: dict[str, Any], channels: list[int] | None = None, overwrite: bool = True
    ) -> bool:
        """Sets entries of the tensor, or of some of its channels. Without `overwrite`, where one of them has another value, changes nothing
        and returns False."""
        entries = self.overrides.get(tensor_name) or [{}]
        if channels is not None and max(channels, default=0) >= len(entries):
            raise ValueError(f"'{tensor_name}' has overrides of {len(entries)} channels; {max(channels)} is none of them")
        chosen = [entries[i] for i in channels] if channels is not None else entries
        if not overwrite and any(name in e and e[name] != value for e in chosen for name, value in new_vals.items()):
            return False
        for entry in chosen:
            entry.update(new_vals)
        self.overrides[tensor_name] = entries
        return True

    def get_node_output_qtype_info(
        self, output_name: str, default_qtype: QuantType | None, default_symmetric: bool | None = None
    ) -> QuantTypeInfo:
        """The type that the node which gives the tensor has for it."""
        return QuantTypeInfo.load_from_dict(self._first(output_name), default_qtype, default_symmetric)

    def get_node_input_qtype_info(
        self,
        input_name: str,
        node_name: str,
        default_qtype: QuantType | None,
        default_symmetric: bool | None = None,
        default_axis: int | None = None,
    ) -> QuantTypeInfo:
        """The type that a node which reads the tensor gets: the second one, where the node receives it."""
        entry = self._first(input_name)
        second = entry.get("convert")
        if second is not None and ("recv_nodes" not in second or node_name in second["recv_nodes"]):
            entry = second
        return QuantTypeInfo.load_from_dict(entry, default_qtype, default_symmetric, default_axis)

    def is_valid(
        self, initializers: dict[str, Any], activation_names: Collection[str], default_activation_qtype: QuantType
    ) -> tuple[bool, str | None]:
        """(True, None), or False and what is wrong."""
        for tensor, entries in self.overrides.items():
            wrong = self._wrong(tensor, entries, initializers, activation_names, default_activation_qtype)
            if wrong is not None:
                return False, wrong
        return True, None

    def _wrong(
        self, tensor: str, entries: Entries, initializers: dict[str, Any], activations: Collection[str], default: QuantType
    ) -> str | None:
        if tensor not in initializers and tensor not in activations:
            return f"Tensor '{tensor}' in TensorQuantOverrides is not present in the model"
        for entry in entries:
            if wrong := _wrong_entry(tensor, entry):
                return wrong
        first = self._first(tensor)
        if self.has_per_channel_overrides(tensor):
            if tensor not in initializers:
                return f"'{tensor}' is an activation, whose channels cannot have scales of their own"
            shape = tuple(initializers[tensor].dims)
            inside, axis = normalize_axis(first.get("axis", len(shape)), len(shape))
            if not inside:
                return f"the overrides of channels of '{tensor}' need an 'axis' of its shape {shape}, received {first.get('axis')}"
            if len(entries) not in (1, shape[axis]):
                return f"'{tensor}' has {shape[axis]} channels along axis {first['axis']}, and overrides of {len(entries)}"
        second = first.get("convert")
        if second is None:
            return None
        if tensor in initializers:
            return f"'{tensor}' is a constant: 'convert' is for activations"
        if "quant_type" not in second:
            return f"'convert' of '{tensor}' has no 'quant_type'"
        if second["quant_type"] == first.get("quant_type", default):
            return f"'convert' of '{tensor}' is to the type that it has, {second['quant_type']}"
        return _wrong_entry(tensor, second)


__all__ = ["QuantTypeInfo", "TensorQuantOverridesHelper"]
