"""_sardonyx.pyi says what the compiled module has, and annotations of options what they hold."""

import ast
import inspect
import runpy
from pathlib import Path

import pytest
import sardonyx
from sardonyx import _engine_options, _sardonyx

STUB = ast.parse(Path(sardonyx.__file__).with_name("_sardonyx.pyi").read_text())


def public(thing):
    return {n: getattr(thing, n) for n in dir(thing) if not n.startswith("__")}


def in_stub(body):
    return {n.name: n for n in body if isinstance(n, (ast.FunctionDef, ast.ClassDef))}


def same_signatures(actual, declared):
    assert set(actual) == set(declared)
    for name, node in declared.items():
        if isinstance(node, ast.ClassDef):
            same_signatures(public(actual[name]), in_stub(node.body))
            continue
        arguments = node.args.posonlyargs + node.args.args
        assert list(inspect.signature(actual[name]).parameters) == [a.arg for a in arguments], name
        assert node.returns is not None and all(a.annotation is not None for a in arguments if a.arg != "self"), name


def test_the_stub_is_the_module():
    same_signatures(public(_sardonyx), in_stub(STUB.body))


def test_every_option_is_annotated():
    for options in (sardonyx.SessionOptions, sardonyx.RunOptions):
        annotated = {n for c in options.__mro__ for n in inspect.get_annotations(c) if not n.startswith("_")}
        assert annotated == set(options._defaults)
    assert set(inspect.get_annotations(_engine_options.EngineOptions)) == set(_engine_options.DEFAULTS)


def test_every_option_reaches_the_engine():
    options = sardonyx.SessionOptions()
    passed = options._to_engine()
    assert set(_engine_options.DEFAULTS) <= set(passed)
    with pytest.raises(sardonyx.Error, match="no bytes") as said:
        _sardonyx.from_bytes(b"", passed, "", None)
    assert "no option" not in str(said.value)
    with pytest.raises(sardonyx.InvalidArgument, match="no option 'treads', did you mean 'threads'"):
        _sardonyx.from_bytes(b"", {"treads": 1}, "", None)


@pytest.mark.parametrize("name, value, message", [
    ("provider_timeout", -1.0, "provider_timeout: expected a time of at least 0"),
    ("provider_retry", float("nan"), "provider_retry: expected a time"),
    ("memory_limit", -1, "memory_limit: expected a size"),
    ("plan_cache_size", -1, "plan_cache_size: expected an integer of at least 0, found -1"),
    ("intra_op_num_threads", 4097, "intra_op_num_threads: expected an integer from 0 to 4096, found 4097"),
    ("runtime", "nativ", "runtime: expected one of auto, native, ort, found 'nativ'; did you mean 'native'?"),
    ("select", "mesured", "did you mean 'measured'?"),
    ("start_on", "cup", "start_on: unknown provider 'cup'.*did you mean 'cpu'?"),
])
def test_values_out_of_range(name, value, message):
    options = sardonyx.SessionOptions()
    setattr(options, name, value)
    with pytest.raises(sardonyx.InvalidArgument, match=message.replace("?", r"\?")):
        sardonyx.InferenceSession(b"", options, providers=["cpu"])


def test_fewer_threads_than_none_are_all():
    options = sardonyx.SessionOptions()
    options.intra_op_num_threads = -1
    assert options._to_engine()["threads"] == 0


def test_the_stubs_of_arrays_are_what_is_there():
    tool = Path(__file__).resolve().parents[2] / "tools" / "array_stubs.py"
    made = runpy.run_path(str(tool))["stubs"]()
    folder = Path(sardonyx.__file__).parent / "array"
    assert {n: (folder / n).read_text() for n in made} == made
    for name, text in made.items():
        ast.parse(text, name)
