"""Arrays as text, as MLX prints them."""

from __future__ import annotations

from typing import Any

from ._core import array, core

_SHOWN = 3  # at each end of a long axis


class PrintOptions:
    """`precision`: decimals of floating point numbers; -1: six significant digits."""

    def __init__(self, precision: int = -1) -> None:
        self.precision = precision


_options = PrintOptions()


def set_printoptions(precision: int = -1) -> None:
    _options.precision = precision


def get_printoptions() -> PrintOptions:
    return PrintOptions(_options.precision)


class _PrintOptionsContext:
    def __init__(self, options: PrintOptions, /) -> None:
        self._options = options

    def __enter__(self) -> _PrintOptionsContext:
        self._before = _options.precision
        set_printoptions(self._options.precision)
        return self

    def __exit__(self, *args: Any) -> None:
        set_printoptions(self._before)


def printoptions(precision: int = -1) -> _PrintOptionsContext:
    return _PrintOptionsContext(PrintOptions(precision))


def _real(v: float) -> str:
    if _options.precision == -1:
        return f"{v:g}"
    return f"{v:.{_options.precision}f}"


def _number(v: Any) -> str:
    if isinstance(v, float):
        return _real(v)
    if isinstance(v, complex):
        return f"{_real(v.real)}{'-' if v.imag < 0 else '+'}{_real(abs(v.imag))}j"
    return str(v)


# Only the elements that are shown become Python's numbers.
def _ends(a: array) -> array:
    for axis, extent in enumerate(a.shape):
        if extent > 2 * _SHOWN:
            key = (slice(None),) * axis
            a = core.concatenate([a[(*key, slice(None, _SHOWN))], a[(*key, slice(-_SHOWN, None))]], axis)
    return a


def _lines(values: list[Any], shape: tuple[int, ...], depth: int) -> str:
    last = depth == len(shape) - 1
    parts = [_number(v) if last else _lines(v, shape, depth + 1) for v in values]
    if shape[depth] > 2 * _SHOWN:
        parts.insert(_SHOWN, "...")
    return "[" + (", " if last else ",\n" + " " * (7 + depth)).join(parts) + "]"


def text(a: array) -> str:
    shown = _ends(a).tolist()
    return f"array({_number(shown) if a.ndim == 0 else _lines(shown, a.shape, 0)}, dtype={a.dtype.name})"


def export_to_dot(file: Any, *args: Any, **kwargs: Any) -> None:
    """Writes what is still to be computed for the arrays as a graph in Graphviz's language. Keywords name arrays."""
    arrays = core._leaves((args, kwargs))
    steps, asked = core._graph(arrays)
    names: dict[str, str] = {}
    for name, a in kwargs.items():
        if isinstance(a, array):
            names[asked[[x is a for x in arrays].index(True)]] = name

    def name_of(result: str) -> str:
        return names.setdefault(result, f"v{len(names)}")

    lines = ["digraph {"]
    for i, (operation, inputs, results) in enumerate(steps):
        lines.append(f'  op{i} [label ="{operation}", shape=rectangle];')
        lines += [f'  "{name_of(x)}" -> op{i};' for x in inputs] + [f'  op{i} -> "{name_of(x)}";' for x in results]
    lines += [f'  "{name_of(x)}";' for x in asked] + ["}"]
    text_of_it = "\n".join(lines) + "\n"
    if hasattr(file, "write"):
        file.write(text_of_it)
    else:
        with open(file, "w", encoding="utf-8") as f:
            f.write(text_of_it)
