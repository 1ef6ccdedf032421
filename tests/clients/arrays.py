"""arrays.py mlx|standard [PYTHON] [TEST…]: runs other projects' tests of arrays, unchanged, on sardonyx.array.

mlx       MLX_CHECKOUT names a checkout of ml-explore/mlx (its python/tests), on `python -m sardonyx.as_mlx`; PYTHON has mlx's Python
          packages and NumPy.
standard  ARRAY_API_TESTS names a checkout of data-apis/array-api-tests with data-apis/array-api unpacked in its array-api/; PYTHON has
          pytest, pytest-reportlog, hypothesis and ndindex.

The package is found by PYTHONPATH. What is known to fail, with the reasons, is in arrays_mlx.txt and arrays_standard.txt: a line
"TEST: REASON" each. Anything else that fails is an error, and so is a test that is listed and passes, unless the reason begins with
"sometimes". Exit code 77 without a checkout."""

import json
import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from scratch import scratch  # noqa: E402

SKIPPED = 77
SECONDS = 600  # for one file
HERE = Path(__file__).resolve().parent

# Runs in a process of its own for each file, so that a crash or an endless loop costs only that file.
RUNNER = """
import json, os, sys, unittest
folder, name, out = sys.argv[1:4]
sys.path.insert(0, folder)
os.chdir(folder)
found = {}
class Result(unittest.TextTestResult):
    def startTest(self, test):
        super().startTest(test)
        found[test.id()] = "crashed"
        with open(out, "w") as f:
            json.dump(found, f)
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
        found[test.id()] = self.said[:300]
unittest.TextTestRunner(resultclass=Result, verbosity=0).run(unittest.defaultTestLoader.loadTestsFromName(name))
with open(out, "w") as f:
    json.dump(found, f)
"""


def known(path):
    lines = [line.split(": ", 1) for line in path.read_text().splitlines() if line and not line.startswith("#")]
    return {name: reason for name, reason in lines}


def run_file(python, folder, name, work):
    runner, out = scratch / "runner.py", scratch / f"{name}.json"
    runner.write_text(RUNNER)
    command = [python, "-B", "-m", "sardonyx.as_mlx", str(runner), str(folder), name, str(out)]
    env = {**os.environ, "DEVICE": "cpu"}
    try:
        done = subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=SECONDS)
        said = done.stdout.decode(errors="replace")[-500:]
    except subprocess.TimeoutExpired:
        said = f"no end after {SECONDS} s"
    if not out.exists():
        return {name: said or "crashed before the first test"}
    return json.loads(out.read_text())


def mlx(python, only):
    folder = Path(os.environ["MLX_CHECKOUT"]) / "python" / "tests"
    names = only or sorted(p.stem for p in folder.glob("test_*.py"))
    found = {}
    with scratch() as work:
        for name in names:
            found.update(run_file(python, folder, name, work))
    return found, {k: v for k, v in known(HERE / "arrays_mlx.txt").items() if not only or k.split(".")[0] in only}


def standard(python, only):
    folder = Path(os.environ["ARRAY_API_TESTS"])
    with scratch() as work:
        out = work / "report.json"
        tests = [f"array_api_tests/{name}.py" for name in only] or ["array_api_tests"]
        command = [python, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--disable-warnings", f"--report-log={out}", *tests,
                   "--max-examples", "40", "--hypothesis-disable-deadline"]
        env = {**os.environ, "ARRAY_API_TESTS_MODULE": "sardonyx.array"}
        subprocess.run(command, cwd=folder, env=env, stdout=subprocess.DEVNULL, timeout=7200)
        if not out.exists():
            sys.exit("pytest made no report: are pytest, pytest-reportlog, hypothesis and ndindex installed?")
        lines = [json.loads(line) for line in out.read_text().splitlines()]
    found = {}
    for line in lines:
        if line.get("$report_type") != "TestReport":
            continue
        name = line["nodeid"].split("/", 1)[1]
        if line["outcome"] == "failed":
            found[name] = str(line.get("longrepr", ""))[-300:] or "failed"
        elif line["when"] == "call" or line["outcome"] == "skipped":
            found.setdefault(name, line["outcome"])
    return found, {k: v for k, v in known(HERE / "arrays_standard.txt").items() if not only or k.split(".")[0] in only}


def main():
    which, *rest = sys.argv[1:] or [""]
    suites = {"mlx": (mlx, "MLX_CHECKOUT"), "standard": (standard, "ARRAY_API_TESTS")}
    if which not in suites:
        print(__doc__)
        return 2
    suite, variable = suites[which]
    if variable not in os.environ:
        print(f"{variable} names no checkout")
        return SKIPPED
    # The tests run in folders of their own.
    os.environ["PYTHONPATH"] = os.pathsep.join(os.path.abspath(p) for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p)
    python = rest[0] if rest else sys.executable
    found, expected = suite(python, rest[1:])
    failed = {k: v for k, v in found.items() if v not in ("passed", "skipped")}
    passed = sum(v == "passed" for v in found.values())
    new = {k: v for k, v in failed.items() if k not in expected}
    mended = [k for k, reason in expected.items() if found.get(k) == "passed" and not reason.startswith("sometimes")]
    for name, said in sorted(new.items()):
        print(f"FAILED {name}: {' '.join(said.split())[:300]}")
    for name in mended:
        print(f"PASSED {name}, which is listed as failing: {expected[name]}")
    print(f"{which}: {passed} passed, {len(failed)} failed, of which {len(failed) - len(new)} are known; {len(found) - passed - len(failed)} skipped")
    return 1 if new or mended or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
