"""ort_python.py CHECKOUT PACKAGE MODULE [--python PYTHON] [--ours] [PATTERN…]: runs ONNX Runtime's own Python tests, unchanged, from CHECKOUT
(its repository, or its folders onnxruntime/test/python, onnxruntime/test/testdata and include), on the real package and on ours. PACKAGE: the
folder with our package `onnxruntime`; MODULE: the one with `sardonyx`; PYTHON: an interpreter with ONNX, NumPy and the real package;
--ours: without the run on the real one, whose word is needed to tell a failure from a test that cannot pass here. PATTERN: files in
onnxruntime/test/python ("onnxruntime_test_python*.py" unless told; "quantization/test_*.py").

A test that passes on the real one and not on ours is a failure, unless ort_python.txt lists it: lines "TEST: REASON"; and so is a test that
is listed and passes. Exit code 77 without a checkout or that interpreter."""

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from arrays import known

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from scratch import scratch  # noqa: E402

SKIPPED = 77
SECONDS = 600  # for one file
HERE = Path(__file__).resolve().parent
PATTERN = "onnxruntime_test_python*.py"
# What needs another provider's machine, or is not a test of the package.
OTHERS = ("azure", "cudagraph", "dmlgraph", "nv_tensorrt_rtx_ep_tests")

# Runs in a process of its own for each file: a crash costs the tests after it in that file, and is seen as that test's.
RUNNER = """
import json, sys, unittest
sys.path.insert(0, ".")
name, out = sys.argv[1:3]
found = {}
def keep():
    with open(out, "w") as f:
        json.dump(found, f)
class Result(unittest.TextTestResult):
    def startTest(self, test):
        super().startTest(test)
        found[test.id()] = "crashed"
        keep()
        self.said = "passed"
    def addError(self, test, error):
        super().addError(test, error)
        self.said = f"{error[0].__name__}: {error[1]}"
    addFailure = addError
    def addSubTest(self, test, subtest, error):
        super().addSubTest(test, subtest, error)
        if error is not None:
            self.said = f"{error[0].__name__}: {error[1]}"
    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.said = "skipped"
    def stopTest(self, test):
        super().stopTest(test)
        found[test.id()] = self.said[:2000]
        keep()
unittest.TextTestRunner(resultclass=Result, verbosity=0).run(unittest.defaultTestLoader.loadTestsFromName(name))
keep()
"""


def custom_operators(checkout, into):
    """The library of operators that one of the tests registers, where there is a compiler."""
    place = checkout / "onnxruntime" / "test" / "testdata" / "custom_op_library"
    headers = checkout / "include" / "onnxruntime"
    sources = [str(p) for p in (place / "custom_op_library.cc", place / "cpu" / "cpu_ops.cc")]
    compiler = shutil.which("c++")
    if compiler is None or not headers.exists():
        print("without ONNX Runtime's headers and a compiler the tests of custom operators fail on both")
        return
    command = [compiler, "-std=c++20", "-O1", "-shared", "-fPIC", "-w", f"-I{headers / 'core' / 'session'}", f"-I{headers}", f"-I{place}",
               f"-I{checkout / 'onnxruntime'}", f"-I{checkout / 'include' / 'onnxruntime' / 'core'}", *sources,
               "-o", str(into / "libcustom_op_library.so")]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        print(f"the library of custom operators does not compile: {done.stderr[:500]}")


def laid_out(checkout, scratch):
    """The files as ONNX Runtime's build puts them: tests beside each other, `testdata` with them, the folder being the current one."""
    tests = checkout / "onnxruntime" / "test"
    for source in (*(tests / "python").glob("*.py"), *(tests / "python" / "quantization").glob("*.py")):
        shutil.copy(source, scratch)
    shutil.copytree(tests / "testdata", scratch / "testdata")
    (scratch / "runner.py").write_text(RUNNER)
    custom_operators(checkout, scratch)


def run_file(python, path, scratch, name):
    env = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    env["PYTHONPATH"] = os.pathsep.join(path)
    out = scratch / "found.json"
    out.unlink(missing_ok=True)
    command = [python, "-B", "runner.py", name, str(out)]
    try:
        done = subprocess.run(command, cwd=scratch, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=SECONDS)
        said = done.stdout.decode(errors="replace")[-1000:]
    except subprocess.TimeoutExpired:
        said = f"no end after {SECONDS} s"
    return json.loads(out.read_text()) if out.exists() else {name: said or "crashed before the first test"}


def report(name, real, ours, expected):
    """One file's counts, and what is wrong."""
    asked = [t for t, said in real.items() if said == "passed"] if real else list(ours)
    failed = {t: ours.get(t, "not run") for t in asked if ours.get(t, "not run") not in ("passed", "skipped")}
    skipped = sum(ours.get(t) == "skipped" for t in asked)
    passed = len(asked) - len(failed) - skipped
    print(f"{name}: {passed} of {len(asked)} pass, {skipped} skipped; {len(real) - len(asked) if real else 0} do not pass on ONNX Runtime", flush=True)
    new = {t: said for t, said in failed.items() if t not in expected}
    for test, said in sorted(new.items()):
        print(f"FAILED {test}: {' '.join(said.split())[:600]}")
    mended = [t for t in expected if ours.get(t) == "passed"]
    for test in mended:
        print(f"PASSED {test}, which is listed as failing: {expected[test]}")
    return passed, len(asked) - skipped, len(new) + len(mended)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("checkout", type=Path)
    parser.add_argument("package", type=Path)
    parser.add_argument("module", type=Path)
    parser.add_argument("patterns", nargs="*", default=[PATTERN])
    parser.add_argument("--python", default=str(HERE.parent.parent / "build" / "python-venv" / "bin" / "python"))
    parser.add_argument("--ours", action="store_true")
    args = parser.parse_intermixed_args()
    tests = args.checkout / "onnxruntime" / "test" / "python"
    for needed in (tests, Path(args.python)):
        if not needed.exists():
            print(f"{needed} is missing")
            return SKIPPED
    names = [p.stem for pattern in args.patterns for p in sorted(tests.glob(pattern)) if not p.stem.endswith(OTHERS)]
    expected = known(HERE / "ort_python.txt")
    path = [str(args.package.resolve()), str(args.module.resolve())]
    total = [0, 0, 0]
    with scratch() as folder:
        laid_out(args.checkout, folder)
        for name in names:
            real = {} if args.ours else run_file(args.python, [], folder, name)
            ours = run_file(args.python, path, folder, name)
            mine = {t: reason for t, reason in expected.items() if t.split(".")[0] == name}
            total = [a + b for a, b in zip(total, report(name, real, ours, mine))]
    print(f"{total[0]} of {total[1]} tests pass; {total[2]} are not as expected")
    return 1 if total[2] or not total[0] else 0


if __name__ == "__main__":
    sys.exit(main())
