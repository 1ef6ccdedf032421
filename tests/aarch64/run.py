#!/usr/bin/env python3
"""Runs the tests of a build for 64-bit Arm under QEMU's user emulation: run.py BUILD SYSROOT [--quick | --only REGEX]; run.py --targets
lists what has to be built.

Everything runs on a processor with all extensions. The kernels' tests, those of the engine, and conformance also run on processors that lack
some, so that each way to multiply is tested. Tests that an emulator cannot run are listed in ignore.txt, with reasons. The last line counts
tests and conformance cases. The exit code is 1 if a test fails, or if conformance differs from that of this machine's own build.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent

# QEMU's name of a processor, and what it tests.
PROCESSORS = {
    "max": "dot products, I8MM, BF16, SVE",
    "max,sve=off": "dot products, I8MM, BF16",
    "neoverse-n1": "dot products",
    "a64fx": "SVE",
    "cortex-a53": "NEON alone",
}
UNIT_TESTS = ("base", "kernels", "operators", "engine", "tools", "text", "vision", "array", "train", "quantize", "serve", "dropin", "conformance")
ON_EVERY_PROCESSOR = ("kernels", "byte")
ON_TWO_PROCESSORS = ("engine",)  # with and without all extensions
OTHERS = ("sdx_cli", "sdx_conformance", "sdx_op_tests", "sdx_pass_tests", "sdx_pass_special_values", "sdx_gradient_tests", "sdx_dropin_library", "sdx_python")
DATA = [
    ROOT / "build/python-venv/onnx-data/onnx/backend/test/data",  # tools/python_env.sh
    Path("/usr/lib/python3/dist-packages/onnx/backend/test/data"),  # libonnx-testdata
]
KINDS = ("node", "simple", "light", "pytorch-operator", "pytorch-converted")
# Convolutions that the tests sum in the simple way, which takes minutes under QEMU; the quick run has products, which use the same kernels.
LONG = [f"KernelsQuantNhwc.{name}" for name in ("ConvolutionIsExact", "LowActivationsAreExact", "ManyRowsAreExact", "ThreadCountsAgree", "ProductsOfSmallWeightsAreExact")]
LIMIT = 3600  # seconds a program
JOBS = int(os.environ.get("JOBS") or len(os.sched_getaffinity(0)))  # programs at once


@dataclass
class Count:
    passed: int = 0
    failed: list[str] = field(default_factory=list)
    skipped: int = 0


class Runner:
    def __init__(self, build, sysroot):
        self.build, self.sysroot, self.count, self.lock = build, sysroot, Count(), threading.Lock()
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("SDX_")}
        self.environment["MALLOC_PERTURB_"] = "137"

    def emulated(self, processor, program, *arguments):
        command = ["qemu-aarch64", "-L", str(self.sysroot), "-cpu", processor, str(program), *map(str, arguments)]
        try:
            return subprocess.run(command, env=self.environment, capture_output=True, text=True, errors="replace", timeout=LIMIT)
        except subprocess.TimeoutExpired as late:
            return subprocess.CompletedProcess(command, 124, late.stdout or "", f"not done after {LIMIT} s")

    def note(self, name, processor, ok, detail=""):
        with self.lock:
            if ok:
                self.count.passed += 1
                return
            self.count.failed.append(f"{name} on {processor}")
            print(f"FAILED {name} on {processor}\n{detail[-4000:]}", flush=True)

    def gtests(self, program, processor, ignored):
        """Counts single tests; a program that ends early fails as a whole."""
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            report = Path(folder) / "report.json"
            without = [f"--gtest_filter=-{':'.join(ignored)}"] if ignored else []
            result = self.emulated(processor, program, "--gtest_brief=1", f"--gtest_output=json:{report}", *without)
            suites = json.loads(report.read_text())["testsuites"] if report.exists() else []
        found = [(f"{suite['name']}.{test['name']}", test) for suite in suites for test in suite["testsuite"]]
        for name, test in found:
            if test["result"] == "SKIPPED":
                with self.lock:
                    self.count.skipped += 1
            elif test["status"] == "RUN":
                self.note(name, processor, "failures" not in test, "".join(f["failure"] for f in test.get("failures", [])))
        if not found or (result.returncode != 0 and not any("failures" in test for _, test in found)):
            self.note(program.name, processor, False, f"exit {result.returncode}\n{result.stdout}{result.stderr}")
        print(f"{program.name} on {processor}: {len(found)} tests, {time.monotonic() - began:.0f} s", flush=True)

    def case(self, name, processor, program, *arguments):
        result = self.emulated(processor, program, *arguments)
        self.note(name, processor, result.returncode == 0, result.stdout + result.stderr)

    def conformance(self, program, processor=None):
        """(cases that pass, all cases, output, exit code) for ONNX's data; without a processor, of this machine's own build."""
        data = next((folder for folder in DATA if (folder / "node").is_dir()), None)
        if data is None or not program.exists():
            return None
        release = "wheel" if data == DATA[0] else "debian"
        folders = [str(data / kind) for kind in KINDS if (data / kind).is_dir()]
        arguments = ["--release", release, "--timeout", "900", *folders]
        if processor is None:
            result = subprocess.run([program, *arguments], env=self.environment, capture_output=True, text=True)
        else:
            result = self.emulated(processor, program, *arguments)
        text = result.stdout + result.stderr
        counted = re.search(r"(\d+) passed, (\d+) failed, (\d+) skipped", text)
        counts = [int(n) for n in counted.groups()] if counted else [0]
        return counts[0], sum(counts), text, result.returncode


def ignored_tests(program):
    """Names for gtest from ignore.txt: `program name reason`."""
    lines = (line.split(maxsplit=2) for line in (HERE / "ignore.txt").read_text().splitlines() if line and not line.startswith("#"))
    return [name for of, name, _ in lines if of == program]


def processors_of(name, quick):
    if quick:
        return ["max,sve=off", "neoverse-n1", "cortex-a53"]
    if name in ON_EVERY_PROCESSOR:
        return list(PROCESSORS)
    return ["max", "cortex-a53"] if name in ON_TWO_PROCESSORS else ["max"]


def run_all(function, arguments):
    with ThreadPoolExecutor(JOBS) as pool:
        for done in [pool.submit(function, *each) for each in arguments]:
            done.result()


def run_programs(runner, names, quick, only):
    programs = {name: runner.build / "bin" / f"sdx_{name}_tests" for name in names}
    chosen = [name for name, program in programs.items() if not only or re.search(only, program.name)]
    run_all(runner.gtests, [(programs[name], processor, ignored_tests(name) + (LONG if quick else [])) for name in chosen for processor in processors_of(name, quick)])


def run_cases(runner, only):
    ignored = set(ignored_tests("case"))
    programs = {"ops": ["sdx_op_tests"], "passes": ["sdx_pass_tests", "sdx_pass_special_values"]}
    files = [(name, file) for folder, names in programs.items() for name in names for file in sorted((ROOT / "tests" / folder).glob("*.txt"))]
    chosen = [(name, file) for name, file in files if f"{name}/{file.stem}" not in ignored and (not only or re.search(only, f"{name}/{file.stem}"))]
    run_all(runner.case, [(f"{name} {file.name}", processor, runner.build / "bin" / name, file) for name, file in chosen for processor in ("max", "cortex-a53")])
    if not only or re.search(only, "sdx_gradient_tests"):
        gradients = [ROOT / "tests/gradients" / f"{name}.txt" for name in ("cases", "flow", "recurrent")]
        runner.case("sdx_gradient_tests", "max", runner.build / "bin/sdx_gradient_tests", *gradients)


def run_command(runner, only):
    """The command's own cases: a script in place of the program starts it under QEMU."""
    ignored = set(ignored_tests("cli"))
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "sdx"
        script.write_text(f'#!/bin/sh\nexec qemu-aarch64 -L "{runner.sysroot.resolve()}" -cpu max "{(runner.build / "bin/sdx").resolve()}" "$@"\n')
        script.chmod(0o755)
        for file in sorted((ROOT / "tests/cli").glob("*.txt")):
            if file.stem in ignored or (only and not re.search(only, f"cli/{file.stem}")):
                continue
            result = subprocess.run([sys.executable, "-B", ROOT / "tests/cli/run_cases.py", script, file], env=runner.environment, capture_output=True, text=True)
            runner.note(f"cli {file.name}", "max", result.returncode == 0, result.stdout + result.stderr)


def run_python(runner, only):
    """The module in Arm's Python: imports it and runs a model."""
    if only and not re.search(only, "python"):
        return
    runner.environment["PYTHONPATH"] = str(runner.build.resolve() / "python")
    runner.case("python", "max", next((runner.sysroot / "usr/bin").glob("python3.[0-9]*")), "-B", HERE / "module.py")


def run_conformance(runner, only):
    if only and not re.search(only, "conformance"):
        return ""
    own = runner.conformance(ROOT / "build/release/bin/sdx_conformance")
    texts = []
    for processor in ("max", "cortex-a53"):
        got = runner.conformance(runner.build / "bin/sdx_conformance", processor)
        if got is None:
            return "; conformance: no data"
        passed, total, text, code = got
        runner.note("sdx_conformance", processor, code == 0 and total > 0, text)
        if own is not None:
            runner.note("conformance as on this machine", processor, own[:2] == (passed, total), f"{passed} of {total}, here {own[0]} of {own[1]}")
        texts.append(f"{passed} of {total}")
    beside = f"; this machine's own build: {own[0]} of {own[1]}" if own else ""
    return "; conformance " + (texts[0] if len(set(texts)) == 1 else " and ".join(texts)) + beside


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path, nargs="?")
    parser.add_argument("sysroot", type=Path, nargs="?")
    parser.add_argument("--targets", action="store_true", help="print what has to be built, and end")
    parser.add_argument("--quick", action="store_true", help="products of bytes alone")
    parser.add_argument("--only", help="a regular expression for names of programs and cases")
    args = parser.parse_args()
    if args.targets:
        print(*(f"sdx_{name}_tests" for name in UNIT_TESTS), *OTHERS)
        return 0
    if args.sysroot is None:
        parser.error("BUILD and SYSROOT are missing")
    runner = Runner(args.build, args.sysroot)
    conformance = ""
    if args.quick:
        run_programs(runner, ["byte"], True, args.only)
    else:
        run_programs(runner, UNIT_TESTS, False, args.only)
        run_cases(runner, args.only)
        run_command(runner, args.only)
        run_python(runner, args.only)
        conformance = run_conformance(runner, args.only)
    count = runner.count
    for name in count.failed:
        print(f"failed: {name}")
    print(f"aarch64: {count.passed} passed, {len(count.failed)} failed, {count.skipped} skipped{conformance}")
    return 1 if count.failed or not count.passed else 0


if __name__ == "__main__":
    sys.exit(main())
