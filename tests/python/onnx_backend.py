"""ONNX's own backend tests (onnx.backend.test.BackendTest), unchanged: onnx_backend.py [--ignore FILE]... [-k PATTERN] [options]

Every test of the installed onnx package runs, hardware variants (_cuda) apart. Prints what failed, then passed, failed and skipped.
Exit code 1 when a test fails or is skipped that no ignore file lists ("name reason", one a line), or one passes that is listed,
unless its reason is "rounding: ...": which way one unit falls depends on the instruction set.

--backend onnxruntime runs the same tests on ONNX Runtime, for comparison; nothing is ignored there.
"""

import argparse
import io
import logging
import os
import sys
import unittest
import warnings


def read_ignored(paths):
    ignored = {}
    for path in paths:
        with open(path, encoding="utf-8") as lines:
            for line in lines:
                line = line.strip()
                if line and not line.startswith("#"):
                    name, _, reason = line.partition(" ")
                    ignored[name] = reason
    return ignored


def load_backend(options):
    """(module, keyword arguments of its prepare)"""
    if options.backend == "onnxruntime":
        os.environ["ALLOW_RELEASED_ONNX_OPSET_ONLY"] = "0"  # else it skips what it has not declared released
        import onnxruntime.backend as backend
    else:
        import sardonyx.backend as backend
    settings = {}
    if options.threads:
        settings["intra_op_num_threads"] = options.threads
    if options.no_optimize:
        import importlib

        settings["graph_optimization_level"] = importlib.import_module(options.backend).GraphOptimizationLevel.ORT_DISABLE_ALL
    return backend, settings


class Tally(unittest.TestResult):
    def __init__(self):
        super().__init__()
        self.passed = []
        self.problems = {}

    def addSuccess(self, test):
        self.passed.append(short_name(test))

    def addError(self, test, error):
        self.problems[short_name(test)] = error[1]

    addFailure = addError


def short_name(test):
    return test.id().rsplit(".", 1)[1].removesuffix("_cpu")


def run_tests(options):
    import onnx.backend.test

    backend, settings = load_backend(options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy's, about the tests' own constants
        tests = onnx.backend.test.BackendTest(backend, __name__, test_kwargs=settings)
        if settings or options.ir_version:  # the runner hands its keywords to nobody
            prepare = backend.prepare

            def configured(model, device="CPU", **kwargs):
                if options.ir_version and hasattr(model, "ir_version"):
                    model.ir_version = min(model.ir_version, options.ir_version)
                return prepare(model, device, **settings, **kwargs)

            kept = [n for n in ("supports_device", "run_model", "is_compatible") if hasattr(backend, n)]
            tests.backend = type("Configured", (), {n: staticmethod(getattr(backend, n)) for n in kept})
            tests.backend.prepare = staticmethod(configured)
        tests.exclude("_cuda$")
        if options.k:
            tests.include(options.k)
        tally = Tally()
        tests.test_suite.run(tally)
    return tally


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", choices=["sardonyx", "onnxruntime"], default="sardonyx")
    parser.add_argument("--ignore", action="append", default=[], metavar="FILE", help="tests that may fail; may be repeated")
    parser.add_argument("-k", metavar="PATTERN", help="only tests whose names match this regular expression")
    parser.add_argument("--threads", type=int, default=0, metavar="N", help="threads of each session")
    parser.add_argument("--no-optimize", action="store_true", help="without graph passes")
    parser.add_argument("--ir-version", type=int, default=0, metavar="N", help="lower the models' format version to N, for engines that know no newer")
    parser.add_argument("-v", action="store_true", help="the full message of each failure")
    options = parser.parse_args()

    import onnx

    logging.disable(logging.CRITICAL)
    ignored = read_ignored(options.ignore) if options.backend == "sardonyx" else {}
    tally = run_tests(options)
    skipped = [t for t, reason in tally.skipped if not short_name(t).endswith("_cuda") and "include pattern" not in reason]
    unexpected = sorted(set(tally.problems) - set(ignored))
    # The runner skips what is_compatible refuses: a model that no longer loads would otherwise go unnoticed.
    lost = sorted({short_name(t) for t in skipped} - set(ignored))
    recovered = sorted(n for n in set(tally.passed) & set(ignored) if not ignored[n].startswith("rounding:"))
    for name in unexpected:
        text = str(tally.problems[name]).strip() or type(tally.problems[name]).__name__
        lines = text.splitlines()
        print(f"FAIL {name}: " + (text if options.v else " / ".join(line.strip() for line in lines[:4])[:400]))
    for name in recovered:
        print(f"PASS {name}, which is listed as failing: {ignored[name]}")
    for test in skipped:
        print(f"skip {short_name(test)}" + (", which is not listed" if short_name(test) in lost else ""))
    total = len(tally.passed) + len(tally.problems) + len(skipped)
    share = 100 * len(tally.passed) / total if total else 0
    print(f"onnx {onnx.__version__}, {options.backend}: {len(tally.passed)} passed, {len(tally.problems)} failed "
          f"({len(tally.problems) - len(unexpected)} of them listed), {len(skipped)} skipped; {share:.2f} % of {total}")
    return 1 if unexpected or recovered or lost or not total else 0


if __name__ == "__main__":
    sys.stdout.reconfigure(line_buffering=True)
    sys.exit(main())
