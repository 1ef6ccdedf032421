"""The package's modules and those of its drop-ins, imported in any order, twice, in threads and in subinterpreters.

`make imports` takes all pairs of modules, some minutes long, and 500 groups of threads; the tests a share of both. An interpreter
that has PyTorch takes the modules for it too.
"""

import ast
import graphlib
import importlib.util
import itertools
import os
import re
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import pytest
import sardonyx

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))
from tiny_checkpoints import checkpoint  # noqa: E402

ROOT = Path(sardonyx.__file__).absolute().parent
CACHE = tempfile.TemporaryDirectory()  # of compiled modules, which children would make again otherwise
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT.parent), "PYTHONPYCACHEPREFIX": CACHE.name, "PYTHONDONTWRITEBYTECODE": ""}
NEEDS = {"ray": "ray", "torch": "torch"}  # by the first part of a module's name: the package that it is for
PROGRAMS = ["sardonyx.as_mlx", "sardonyx.as_onnxruntime"]  # which put other modules into the place of ours


def names_below(folder, first):
    for path in sorted(Path(inside) / f for inside, _, files in os.walk(folder, followlinks=True) for f in files if f.endswith(".py")):
        parts = path.relative_to(folder).parts  # folders are links in the build tree
        yield [first, *parts[:-1], *([] if path.stem == "__init__" else [path.stem])]


def modules():
    """Of the package itself, then of what answers for ONNX Runtime."""
    names = []
    for parts in names_below(ROOT, "sardonyx"):
        needed = NEEDS.get(parts[1]) if len(parts) > 1 else None
        if parts[1:2] != ["_onnxruntime"] and (needed is None or importlib.util.find_spec(needed) is not None):
            names.append(".".join(parts))
    sources = next(f for f in (ROOT / "_onnxruntime", ROOT.resolve().parent, Path(__file__).resolve().parents[2] / "bindings/python") if
                   (f / "onnxruntime").is_dir())
    return names + [".".join(parts) for parts in names_below(sources / "onnxruntime", "onnxruntime")]


def imported(parts):
    """What a module imports at its own level, for type checkers too. What functions import is imported later."""
    folder = ROOT.joinpath(*parts[1:])
    file = folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")
    package = parts if folder.is_dir() else parts[:-1]
    left = ast.parse(file.read_text()).body
    while left:
        node = left.pop()
        if isinstance(node, (ast.If, ast.Try)):
            left += ast.iter_child_nodes(node)
        elif isinstance(node, ast.ImportFrom) and node.level:
            base = ".".join([*package[:len(package) - node.level + 1], *filter(None, [node.module])])
            yield from ({base} if node.module else {f"{base}.{alias.name}" for alias in node.names})


def test_modules_import_one_another_in_one_direction():
    modules = {".".join(parts): parts for parts in names_below(ROOT, "sardonyx") if "_onnxruntime" not in parts}
    graphlib.TopologicalSorter({name: {n for n in imported(parts) if n in modules} for name, parts in modules.items()}).prepare()


def public(names):
    return [n for n in names if not any(part.startswith("_") for part in n.split("."))]


def run(text, *arguments):
    """Skips the test where the program ends with 77."""
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(text), *arguments], env=ENVIRONMENT, capture_output=True, text=True,
                          timeout=3600)
    if done.returncode == 77:
        pytest.skip(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr


# What each part of the compiled half must still do, whatever was imported before.
USE = f"data = {checkpoint({'w': [1, 2]})!r}" + """
def use():
    import numpy as np
    import sardonyx
    from sardonyx import array as mx, quantization, text
    from sardonyx.training import api, artifacts
    from sardonyx import _sardonyx
    names = ["faces", "arrays", "text", "quantize", "training"]
    for name in names:
        first, second = getattr(_sardonyx, name)(), getattr(_sardonyx, name)()
        for member in dir(first):
            if isinstance(getattr(first, member), type):
                assert getattr(first, member) is getattr(second, member), (name, member)
    assert (mx.array([1, 2]) + mx.array([3, 4])).tolist() == [4, 6]
    assert mx.array([1.5]).dtype == mx.float32 and mx.float32 is sardonyx.array.float32
    state = api.CheckpointState.from_bytes(data)
    assert state.parameters["w"].data.tolist() == [1, 2]
    assert api.CheckpointState.average([state, state]).parameters["w"].data.tolist() == [1, 2]
    assert callable(quantization.quantize) and callable(quantization.quantize_dynamic)
    try:
        sardonyx.InferenceSession(b"nothing")
    except sardonyx.Error:
        pass
    else:
        raise AssertionError("no error")
"""


LOAD = """
import importlib
import numpy  # packages of others come first: their imports are theirs
for package in ("onnx", "torch", "ray"):
    try:
        importlib.import_module(package)
    except ImportError:
        pass
def load(name):
    if name.startswith("onnxruntime"):
        importlib.import_module("sardonyx.as_onnxruntime").install()
    module = importlib.import_module(name)
    if name in ("sardonyx.as_mlx", "sardonyx.as_onnxruntime"):
        module.install()
        return module
    for each in getattr(module, "__all__", ()):
        getattr(module, each)
    return module
"""


# A child for each first module, and in this one a child for each second: a start of Python for each pair would take too long.
PAIRS = USE + LOAD + """
import os, sys
firsts, names = sys.argv[1].split(), sys.argv[2].split()
def inside(work, what):
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        except BaseException as e:
            print(what, repr(e), flush=True)
        os._exit(code)
    return os.waitpid(child, 0)[1] == 0
def with_each(first):
    load(first)
    def again(second):
        load(second)
        load(first)
        use()
    fine = [inside(lambda: again(second), (first, second)) for second in names]
    assert all(fine), fine.count(False)
fine = [inside(lambda: with_each(first), first) for first in firsts]
assert all(fine), fine.count(False)
"""


def check_pairs(firsts, names):
    run(PAIRS, " ".join(firsts), " ".join(names))


def sharing(name):
    """Whether a module makes a part of the compiled half when it is imported: such pairs can disturb each other."""
    if not name.startswith("sardonyx."):
        return False
    file = ROOT.parent / Path(*name.split("."))
    source = (file.with_suffix(".py") if file.with_suffix(".py").exists() else file / "__init__.py").read_text()
    return re.search(r"^\S.* = _sardonyx\.\w+\(\)", source, re.M) is not None


def test_pairs():
    names = [n for n in modules() if sharing(n)] + PROGRAMS + ["onnxruntime.quantization"]
    assert {"sardonyx.array._core", "sardonyx.training.checkpoint", "sardonyx.training.artifacts"} < set(names)
    check_pairs(names, names)


def test_each_alone_and_again():
    run(LOAD + """
import os, sys
failed = []
for name in sys.argv[1].split():
    child = os.fork()
    if child == 0:
        code = 1
        try:
            module = load(name)
            before = {k: v for k, v in vars(module).items() if isinstance(v, type)}
            assert load(name) is module
            assert {k: v for k, v in vars(module).items() if isinstance(v, type)} == before
            code = 0
        except BaseException as e:
            print(name, repr(e), flush=True)
        os._exit(code)
    if os.waitpid(child, 0)[1] != 0:
        failed.append(name)
assert not failed, failed
""", " ".join(modules()))


def test_modules_that_are_loaded_again():
    run(USE + """
import sys
use()
for _ in range(3):
    for name in [n for n in sys.modules if n.startswith("sardonyx.") and n != "sardonyx._sardonyx"]:
        del sys.modules[name]
    del sys.modules["sardonyx"]
    use()
for name in [n for n in sys.modules if n.startswith("sardonyx")]:
    del sys.modules[name]
use()
""")


def check_threads(names, groups):
    """Groups of modules, each module in a thread of its own, all at once: all of them, a few, or a package and one of its modules. In a
    child each, because a module is imported but once."""
    run(USE + LOAD + """
import os, random, sys, threading, traceback
names = sys.argv[1].split()
packages = [p for p in names if any(n.startswith(p + ".") for n in names)]
def group(number):
    chosen = random.Random(number)
    if number % 3 == 0:
        return chosen.sample(names, len(names))
    if number % 3 == 1:
        return chosen.sample(names, 2 + number % 5)
    package = chosen.choice(packages)
    return [package, chosen.choice([n for n in names if n.startswith(package + ".")])]
def together(names):
    barrier, failed = threading.Barrier(len(names)), []
    def each(name):
        barrier.wait()
        try:
            load(name)
            use()
        except BaseException:
            failed.append((name, traceback.format_exc()))
    sys.setswitchinterval(1e-6)
    threads = [threading.Thread(target=each, args=(n,)) for n in names]
    for t in threads: t.start()
    for t in threads: t.join()
    return failed
wrong = 0
for number in range(int(sys.argv[2])):
    child = os.fork()
    if child == 0:
        failed = together(group(number))
        for name, text in failed[:1]:
            print(number, name, text, flush=True)
        os._exit(bool(failed))
    wrong += os.waitpid(child, 0)[1] != 0
assert not wrong, wrong
""", " ".join(names), str(groups))


def test_threads():
    """A package that imports its own modules while it is imported makes Python end one of two such imports with an error."""
    check_threads(public(modules()), 18)


def test_no_package_waits_for_its_modules():
    """The same without chance: packages import nothing of their own that is public when they are imported themselves."""
    run(LOAD + """
import os, sys
names = sys.argv[1].split()
failed = []
for package in (n for n in names if any(m.startswith(n + ".") for m in names)):
    child = os.fork()
    if child == 0:
        load("sardonyx")
        importlib.import_module("sardonyx.as_onnxruntime").install()
        before = set(sys.modules)
        importlib.import_module(package)
        found = [n for n in names if n.startswith(package + ".") and n in set(sys.modules) - before]
        if found:
            print(package, "imports", found, flush=True)
        os._exit(bool(found))
    if os.waitpid(child, 0)[1] != 0:
        failed.append(package)
assert not failed, failed
""", " ".join(public(modules())))


def test_a_function_with_the_name_of_its_module():
    run("""
import sardonyx.as_onnxruntime
sardonyx.as_onnxruntime.install()
import importlib
for first in ("sardonyx.quantization.quantize", "onnxruntime.quantization.quantize", "onnxruntime.quantization.static_quantize_runner"):
    importlib.import_module(first)
from sardonyx.quantization import quantize
from onnxruntime.quantization import quantize as second
assert callable(quantize) and callable(second) and quantize is not second
assert importlib.import_module("sardonyx.quantization.quantize").quantize is quantize
assert importlib.import_module("onnxruntime.quantization.quantize").quantize is second
""")


USE_INSIDE = """
import importlib, sys
import sardonyx
sys.modules.setdefault("onnx", None)  # it can hang in a second interpreter
for name in names:
    try:
        importlib.import_module(name)
    except ImportError as e:
        if not (e.name or "").startswith("onnx"):
            raise
from sardonyx import array as mx, text
from sardonyx.training import api
from sardonyx.training import artifacts
state = api.CheckpointState.from_bytes(data)
assert state.parameters.keys() == ["w"] and api.CheckpointState.average([state, state]).to_bytes() == state.to_bytes()
assert (mx.array([1, 2]) + mx.array([3, 4])).tolist() == [4, 6] and mx.array([1.5]).dtype == mx.float32
try:
    sardonyx.InferenceSession(b"nothing")
except sardonyx.Error:
    pass
else:
    raise AssertionError("no error")
"""


@pytest.mark.parametrize("first", ["alone", "main", "other"])
def test_subinterpreters(first, tmp_path):
    """Of the kind that shares the interpreter's lock; with locks of their own Python refuses modules such as this one. NumPy, which the
    package needs, can be imported in one interpreter of a process alone: where it says so, several are skipped."""
    data = checkpoint({"w": [1, 2]})
    names = [n for n in public(modules()) if n.startswith("sardonyx") and n.split(".")[1:2] not in ([p] for p in NEEDS) and n not in PROGRAMS]
    run(f"first = {first!r}\nprogram = {f'data = {data!r}; names = {names!r}' + USE_INSIDE!r}\n" + """
import sys
try:
    import _xxsubinterpreters as interpreters
except ImportError:
    try:
        import _interpreters as interpreters
    except ImportError:
        sys.exit(0)
def create():
    for arguments, named in (((), {"isolated": False}), (("legacy",), {}), ((), {})):
        try:
            return interpreters.create(*arguments, **named)
        except (TypeError, ValueError):
            continue
    sys.exit(0)
def inside(text=program):
    other = create()
    failure = interpreters.run_string(other, text)
    assert failure is None, failure
    interpreters.destroy(other)
import os
if first == "alone":
    inside()
    sys.exit(0)
child = os.fork()
if child == 0:
    try:
        inside("import numpy")
        inside("import numpy")
    except BaseException:
        os._exit(77)
    os._exit(0)
if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 77:
    print("NumPy refuses subinterpreters")
    sys.exit(77)
def here():
    exec(program, {})
order = [here, inside, inside, here] if first == "main" else [inside, here, inside, here]
for each in order:
    each()
""")


def main(asked):
    names = modules()
    for first in (n for n in names if not asked or n in asked):
        check_pairs([first], names)
        print(f"{first} and each of {len(names)} modules", flush=True)
    if not asked:
        check_threads(public(names), 500)
        print("500 groups of threads")


if __name__ == "__main__":
    main(sys.argv[1:])
