"""Functions of functions: derivatives, batches, compiled functions. Arguments and results are trees of lists, tuples and dicts."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ._core import array, core

Function = Callable[..., Any]


def _name(o: Any) -> str:
    return type(o).__name__


def _argument_numbers(argnums: int | Sequence[int] | None, argnames: str | Sequence[str], tag: str) -> tuple[list[int], set[str]]:
    names = {argnames} if isinstance(argnames, str) else set(argnames)
    if argnums is None:
        numbers = [] if names else [0]
    else:
        numbers = sorted([argnums] if isinstance(argnums, int) else list(argnums))
    if not numbers and not names:
        raise ValueError(f"{tag} Gradient wrt no argument requested")
    if numbers and numbers[0] < 0:
        raise ValueError(f"{tag} Can't compute the gradient of negative argument index {numbers[0]}")
    if len(set(numbers)) != len(numbers):
        raise ValueError(f"{tag} Duplicate argument index {numbers[0]} is not allowed.")
    return numbers, names


def _check_called(numbers: list[int], names: set[str], args: tuple[Any, ...], kwargs: dict[str, Any], tag: str) -> None:
    if numbers and numbers[-1] >= len(args):
        raise ValueError(
            f"{tag} Can't compute the gradient of argument index {numbers[-1]} because the function is called with only "
            f"{len(args)} positional arguments."
        )
    for name in names:
        if name not in kwargs:
            raise ValueError(
                f"{tag} Can't compute the gradient of keyword argument '{name}' because the function is called with the following "
                f"keyword arguments {{{','.join(kwargs)}}}"
            )


def _check_value(value: Any, tag: str, scalar_only: bool) -> None:
    first = value if isinstance(value, array) else value[0] if isinstance(value, tuple) and value else None
    if isinstance(first, array) and first.ndim != 0:
        raise ValueError(f"{tag} The function must return a scalar array, but its value has the shape {first.shape}.")
    if isinstance(value, array):
        return
    start = f"{tag} The return value of the function whose gradient we want to compute should be "
    if scalar_only:
        raise ValueError(f"{start}a scalar array; but {_name(value)} was returned.")
    either = "either a scalar array or a tuple with the first value being a scalar array (Union[array, tuple[array, Any, ...]]); but "
    if not isinstance(value, tuple):
        raise ValueError(f"{start}{either}{_name(value)} was returned.")
    if not value:
        raise ValueError(f"{start}either a scalar array or a non-empty tuple. Instead, we got an empty tuple.")
    if not isinstance(value[0], array):
        raise ValueError(f"{start}{either}it was a tuple with the first value being of type {_name(value[0])} .")


class _Call:
    """Arguments of one call: where in the flat list the ones are whose gradient is asked for."""

    def __init__(self, numbers: list[int], names: set[str], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.objects: list[array] = []
        self.wanted: list[int] = []
        self.targets: list[Any] = []  # structures, in the order of the gradients
        for i, tree in enumerate(args):
            self._add(tree, i in numbers)
        for name, tree in kwargs.items():
            self._add(tree, name in names)

    def _add(self, tree: Any, wanted: bool) -> None:
        found = core._leaves(tree, wanted)
        if wanted:
            self.wanted += range(len(self.objects), len(self.objects) + len(found))
            self.targets.append((core._flatten(tree)[1], len(found)))
        self.objects += found

    def gradients(self, flat: list[array]) -> list[Any]:
        trees, at = [], 0
        for structure, count in self.targets:
            trees.append(core._unflatten(structure, flat[at : at + count]))
            at += count
        return trees


def _value_and_grad(fun: Function, argnums: Any, argnames: Any, tag: str, scalar_only: bool) -> Function:
    numbers, names = _argument_numbers(argnums, argnames, tag)

    @functools.wraps(fun, updated=())
    def wrapped(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        _check_called(numbers, names, args, kwargs, tag)
        call = _Call(numbers, names, args, kwargs)
        structure = None

        # Lists and dicts among the arguments are the caller's own: what the function puts into them stays.
        def flat(arrays: list[array]) -> list[array]:
            nonlocal structure
            tree: list[Any] = [args, kwargs]
            core._update(tree, arrays)
            try:
                value = fun(*tree[0], **tree[1])
            finally:
                core._restore(tree, arrays, call.objects)
            _check_value(value, tag, scalar_only)
            leaves: list[array]
            leaves, structure = core._flatten(value)
            return leaves

        values, gradients = core._value_and_grad(flat, call.objects, call.wanted)
        trees = call.gradients(gradients)
        positional = None if not numbers else trees[0] if len(numbers) == 1 else tuple(trees[: len(numbers)])
        if names:
            asked = [k for k in kwargs if k in names]
            return core._unflatten(structure, values), (positional, dict(zip(asked, trees[len(numbers) :])))
        return core._unflatten(structure, values), positional

    return wrapped


def value_and_grad(
    fun: Function, argnums: int | Sequence[int] | None = None, argnames: str | Sequence[str] = []  # noqa: B006, MLX's default
) -> Function:
    """A function that returns `fun`'s value and its gradients with respect to these arguments."""
    return _value_and_grad(fun, argnums, argnames, "[value_and_grad]", False)


def grad(fun: Function, argnums: int | Sequence[int] | None = None, argnames: str | Sequence[str] = []) -> Function:  # noqa: B006
    """A function that returns the gradients of `fun` with respect to these arguments."""
    both = _value_and_grad(fun, argnums, argnames, "[grad]", True)

    @functools.wraps(fun, updated=())
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return both(*args, **kwargs)[1]

    return wrapped


def _listed(value: Any) -> list[array]:
    return [value] if isinstance(value, array) else list(value)


def vjp(fun: Function, primals: list[array], cotangents: list[array]) -> tuple[list[array], list[array]]:
    """`fun`'s results at `primals`, and the cotangents times its Jacobian."""
    results: tuple[list[array], list[array]] = core._vjp(lambda arrays: _listed(fun(*arrays)), list(primals), list(cotangents))
    return results


def jvp(fun: Function, primals: list[array], tangents: list[array]) -> tuple[list[array], list[array]]:
    """`fun`'s results at `primals`, and its Jacobian times the tangents."""
    results: tuple[list[array], list[array]] = core._jvp(lambda arrays: _listed(fun(*arrays)), list(primals), list(tangents))
    return results


def _flat_axes(tree: Any, axes: Any, what: str, output: bool) -> list[int | None]:
    if isinstance(tree, array):
        if axes is not None and not isinstance(axes, int):
            raise ValueError(f"[vmap] {what} must be int or None.")
        if axes is None:
            return [None]
        rank = tree.ndim + (1 if output else 0)
        if not -rank <= axes < rank:
            raise ValueError(f"[vmap] An invalid vmap axis was given: {axes} for an array of {tree.ndim} dimensions")
        return [axes % rank]
    if isinstance(tree, dict):
        if isinstance(axes, dict) and any(k not in axes for k in tree):
            raise ValueError(f"[vmap] The tree of {what} is not a prefix of the tree of arrays.")
        return [x for k, v in tree.items() for x in _flat_axes(v, axes[k] if isinstance(axes, dict) else axes, what, output)]
    if isinstance(tree, (list, tuple)):
        if isinstance(axes, (list, tuple)):
            if len(axes) != len(tree):
                raise ValueError(f"[vmap] The tree of {what} is not a prefix of the tree of arrays.")
            return [x for v, a in zip(tree, axes) for x in _flat_axes(v, a, what, output)]
        if isinstance(axes, dict):
            raise ValueError(f"[vmap] The tree of {what} is not a prefix of the tree of arrays.")
        return [x for v in tree for x in _flat_axes(v, axes, what, output)]
    raise ValueError("[vmap] The arguments should contain only arrays")


def _argument_axes(args: tuple[Any, ...], in_axes: Any) -> list[int | None]:
    """The axes of one argument may come with or without a tuple around them."""
    if len(args) != 1:
        return _flat_axes(args, in_axes, "in_axes", False)
    try:
        return _flat_axes(args[0], in_axes, "in_axes", False)
    except ValueError:
        if not isinstance(in_axes, (list, tuple)) or len(in_axes) != 1:
            raise
    return _flat_axes(args, in_axes, "in_axes", False)


def vmap(fun: Function, in_axes: Any = 0, out_axes: Any = 0) -> Function:
    """`fun` for all elements along an axis of its arguments at once."""

    @functools.wraps(fun, updated=())
    def wrapped(*args: Any) -> Any:
        leaves, structure = core._flatten(args, True)
        axes = _argument_axes(args, in_axes)
        result: Any = None
        asked: list[int | None] = []

        def flat(arrays: list[array]) -> list[array]:
            nonlocal result
            out = fun(*core._unflatten(structure, arrays))
            found: list[array]
            found, result = core._flatten(out, True)
            # One result needs no tuple around its axis.
            one = isinstance(out, array) and isinstance(out_axes, (list, tuple)) and len(out_axes) == 1
            asked[:] = _flat_axes(out, out_axes[0] if one else out_axes, "out_axes", True)
            return found

        # The axes of the results are known only when the function was called: batches come first, and are moved then.
        found = core._vmap(flat, leaves, axes, [])
        moved = [a if axis == 0 else a[0] if axis is None else core.moveaxis(a, 0, axis) for a, axis in zip(found, asked)]
        return core._unflatten(result, moved)

    return wrapped


def compile(fun: Function, inputs: Any = None, outputs: Any = None, shapeless: bool = False) -> Function:
    """`fun`, whose operations are built once for each combination of shapes and constants."""
    made: Any = core._Compiled(fun, inputs, outputs, shapeless)
    for name in ("__module__", "__name__", "__qualname__", "__doc__"):
        if hasattr(fun, name):
            setattr(made, name, getattr(fun, name))
    made.__wrapped__ = fun
    compiled: Function = made
    return compiled


def checkpoint(fun: Function) -> Function:
    """`fun`, whose intermediate results are computed again for its gradient instead of being kept."""

    @functools.wraps(fun, updated=())
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        leaves, structure = core._flatten((args, kwargs))
        result = None

        def flat(arrays: list[array]) -> list[array]:
            nonlocal result
            call_args, call_kwargs = core._unflatten(structure, arrays)
            found: list[array]
            found, result = core._flatten(fun(*call_args, **call_kwargs))
            return found

        values = core._checkpoint(flat, leaves)
        return core._unflatten(result, values)

    return wrapped


class custom_function:
    """A function with derivatives, or a rule for batches, of its own:

    @custom_function
    def f(x, y): …

    @f.vjp
    def f_vjp(primals, cotangent, output): …
    """

    def __init__(self, f: Function) -> None:
        functools.update_wrapper(self, f)
        self._function = f
        self._vjp: Function | None = None
        self._jvp: Function | None = None
        self._vmap: Function | None = None

    def vjp(self, f: Function) -> custom_function:
        self._vjp = f
        return self

    def jvp(self, f: Function) -> custom_function:
        self._jvp = f
        return self

    def vmap(self, f: Function) -> custom_function:
        self._vmap = f
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._vjp is None and self._jvp is None and self._vmap is None:
            return self._function(*args, **kwargs)
        leaves, structure = core._flatten((args, kwargs))
        results: list[Any] = []

        def primals_of(arrays: list[array]) -> Any:
            call_args, _ = core._unflatten(structure, arrays)
            return call_args[0] if len(call_args) == 1 else call_args

        def flat(arrays: list[array]) -> list[array]:
            call_args, call_kwargs = core._unflatten(structure, arrays)
            found: list[array]
            found, result = core._flatten(self._function(*call_args, **call_kwargs))
            results[:] = [result]
            return found

        rules = [self._flat_vjp(args, leaves, primals_of, results), self._flat_jvp(flat, primals_of), self._flat_vmap(args, primals_of)]
        values = core._custom(flat, *rules, leaves)
        return core._unflatten(results[0], values)

    def _flat_vjp(self, args: tuple[Any, ...], leaves: list[array], primals_of: Function, results: list[Any]) -> Function | None:
        rule = self._vjp
        if rule is None:
            return None

        def flat(primals: list[array], cotangents: list[array], outputs: list[array]) -> list[array]:
            given = rule(primals_of(primals), core._unflatten(results[0], cotangents), core._unflatten(results[0], outputs))
            found: list[array] = core._leaves(given)
            wanted: list[array] = core._leaves(args)
            if len(found) != len(wanted):
                raise ValueError(f"[custom vjp] expected {len(wanted)} gradients, one for each array of the arguments; received {len(found)}")
            return found + [core.zeros_like(p) for p in primals[len(found) :]]

        return flat

    def _flat_jvp(self, function: Function, primals_of: Function) -> Function | None:
        rule = self._jvp
        if rule is not None:
            return lambda primals, tangents: core._leaves(rule(primals_of(primals), primals_of(tangents)))
        # The rule for gradients says nothing of the forward derivative: that is the function's own.
        return None if self._vjp is None else lambda primals, tangents: core._jvp(function, primals, tangents)[1]

    def _flat_vmap(self, args: tuple[Any, ...], primals_of: Function) -> Function | None:
        rule = self._vmap
        if rule is None:
            return None

        def axes_tree(tree: Any, axes: list[int | None]) -> Any:
            if isinstance(tree, array):
                return axes.pop(0)
            if isinstance(tree, dict):
                return {k: axes_tree(v, axes) for k, v in tree.items()}
            if isinstance(tree, (list, tuple)):
                return type(tree)(axes_tree(v, axes) for v in tree)
            return None

        def flat(inputs: list[array], axes: list[int | None]) -> tuple[list[array], list[int | None]]:
            tree = axes_tree(args, list(axes))
            out, out_axes = rule(primals_of(inputs), tree[0] if len(tree) == 1 else tree)
            return core._leaves(out), _axis_ends(out, out_axes)

        return flat


def _axis_ends(tree: Any, axes: Any) -> list[int | None]:
    return _flat_axes(tree, axes, "out_axes", False)
