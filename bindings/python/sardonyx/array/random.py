"""Random numbers: those of MLX for the same key."""

from __future__ import annotations

from ._core import core as _core

_functions = _core._random
globals().update({k: v for k, v in vars(_functions).items() if not k.startswith("_")})


class _RandomState:
    """Stands for the key that functions without one draw from, in trees of arrays: `compile(f, inputs=[random.state], …)`."""

    def __repr__(self) -> str:
        return f"_RandomState({_functions._read_state()})"

    def __getitem__(self, i: int):
        return [_functions._read_state()][i]

    def __setitem__(self, i: int, key) -> None:
        if i not in (0, -1):
            raise IndexError(i)
        _functions._write_state(key)

    def __len__(self) -> int:
        return 1


state = _RandomState()
_functions._set_state_object(state)
