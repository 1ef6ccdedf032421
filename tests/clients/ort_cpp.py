"""ort_cpp.py CHECKOUT OURS REAL [--build FOLDER] [--include FOLDER] [--ours] [--filter PATTERN]: builds ONNX Runtime's own C++ tests of its
shared library, unchanged, from CHECKOUT (its repository, or its folders include, onnxruntime/core and onnxruntime/test), and runs them with two
libraries: OURS and REAL, files libonnxruntime.so.1.N.P. They need GoogleTest with GoogleMock, and the headers of Microsoft's GSL and of date.h (Debian:
libgmock-dev, libmsgsl-dev,
libhowardhinnant-date-dev; or --include FOLDER with gsl/). FOLDER keeps what was compiled (build/ort-cpp unless told). --ours: without the run on
the real one. PATTERN: a filter of GoogleTest for the names of tests.

A test that passes on the real one and not on ours is a failure, unless ort_cpp.txt lists it: lines "TEST: REASON"; and so is a test that is
listed and passes. Exit code 77 without a checkout, compiler or library."""

import argparse
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from arrays import known

SKIPPED = 77
SECONDS = 900  # for one run of a program
HERE = Path(__file__).resolve().parent

# The program's environment as ONNX Runtime's tests have it: one pool of threads for all sessions. Its own main() hands over an internal structure.
CONFIG = "onnxruntime_config.h"  # ONNX Runtime's build writes it; the tests include it and need nothing of it
MAIN = """
#include <memory>
#include <gtest/gtest.h>
#include "core/session/onnxruntime_cxx_api.h"
std::unique_ptr<Ort::Env> ort_env;
int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  Ort::ThreadingOptions options;
  ort_env = std::make_unique<Ort::Env>(options, ORT_LOGGING_LEVEL_WARNING, "Default");
  const int status = RUN_ALL_TESTS();
  ort_env.reset();
  return status;
}
"""

# What the headers of its errors call, from inside its library.
SUPPORT = """
#include <string>
#include <vector>
namespace onnxruntime {
std::vector<std::string> GetStackTrace() { return {}; }
}  // namespace onnxruntime
"""
# Programs: their sources, and libraries of operators beside them that they are linked with.
PROGRAMS = {
    "shared_lib": (["main.cc", "support.cc", "util/test_allocator.cc", "shared_lib/*.cc"], []),
    "custom_op_registration": (["main.cc", "support.cc", "custom_op_registration/*.cc"], ["custom_op_library"]),
    "global_thread_pools": (["support.cc", "util/test_allocator.cc", "global_thread_pools/*.cc"], []),
}
# A program of its own, and a test over models that are not in the repository.
LEFT_OUT = ("dlopen_main.cc", "test_io_types.cc")
# Libraries of operators that tests open in the current folder.
LIBRARIES = {
    "custom_op_library": ["*.cc", "cpu/*.cc"],
    "custom_op_invalid_library": ["*.cc"],
    "custom_op_get_const_input_test_library": ["*.cc"],
    "custom_op_local_function": ["*.cc"],
}


class Build:
    """Objects, libraries and programs under `folder`; what is newer than its source stays."""

    def __init__(self, checkout, folder, include, version):
        self.tests = checkout / "onnxruntime" / "test"
        self.folder = folder
        headers = checkout / "include" / "onnxruntime"
        (folder / "include").mkdir(parents=True, exist_ok=True)
        for name, text in (("include/" + CONFIG, ""), ("main.cc", MAIN), ("support.cc", SUPPORT)):
            if not (folder / name).exists() or (folder / name).read_text() != text:
                (folder / name).write_text(text)
        places = [folder / "include", *include, headers, headers / "core" / "session", checkout / "onnxruntime", self.tests / "util" / "include",
                  self.tests / "shared_lib", checkout / "include", headers / "core", headers / "core" / "common"]  # fmt: skip
        self.compiler = ["c++", "-std=c++20", "-O0", "-w", "-fPIC", "-DUSE_ONNXRUNTIME_DLL", f'-DORT_VERSION="{version}"', *(f"-I{p}" for p in places)]
        if shutil.which("ccache"):
            self.compiler.insert(0, "ccache")

    def sources(self, patterns, base):
        places = [self.folder if pattern in ("main.cc", "support.cc") and base == self.tests else base for pattern in patterns]
        return [s for place, pattern in zip(places, patterns) for s in sorted(place.glob(pattern)) if s.name not in LEFT_OUT]

    def object(self, source):
        made = self.folder / "objects" / (str(source).replace("/", "_") + ".o")
        if not made.exists() or made.stat().st_mtime < source.stat().st_mtime:
            made.parent.mkdir(exist_ok=True)
            command(*self.compiler, f"-I{source.parent}", "-c", source, "-o", made)
        return made

    def objects(self, sources):
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            return list(pool.map(self.object, sources))

    def library(self, name, place):
        files = self.objects(self.sources(LIBRARIES[name], self.tests / "testdata" / name))
        # The functions that it exports by name, so that equal names of two libraries do not meet.
        script = next((self.tests / "testdata" / name).glob("*.lds"), None)
        command("c++", "-shared", *files, *([f"-Wl,--version-script={script}"] if script else []), "-o", place / f"lib{name}.so")

    def program(self, name, place, library):
        patterns, beside = PROGRAMS[name]
        files = self.objects(self.sources(patterns, self.tests))
        command("c++", *files, "-o", place / name, f"-L{place}", *(f"-l{b}" for b in beside), library, "-lgmock", "-lgtest", "-lpthread", "-ldl",
                f"-Wl,-rpath,{place}")  # fmt: skip


def command(*words):
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(str(w) for w in words)}:\n{done.stderr[:3000]}")


def laid_out(build, place, library):
    """A folder as ONNX Runtime's build makes it: the programs, the libraries of operators and `testdata`, the folder being the current one."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    shutil.copytree(build.tests / "testdata", place / "testdata")
    (place / "libonnxruntime.so.1").symlink_to(library)  # wheels have no link with the name that programs look for
    for name in LIBRARIES:
        build.library(name, place)
    for name in PROGRAMS:
        build.program(name, place, library)


def listed(place, program, env, filter_):
    said = subprocess.run([place / program, "--gtest_list_tests", f"--gtest_filter={filter_}"], cwd=place, env=env, capture_output=True, text=True)
    tests, suite = [], ""
    for line in said.stdout.splitlines():
        if re.match(r"[\w/]+\.( |$)", line):
            suite = line.split()[0]
        elif re.match(r"  [\w/]+( |$)", line) and suite:
            tests.append(suite + line.split()[0])
    return tests


def run_program(place, program, library, filter_):
    """What each test said. A crash costs the test that was running; those behind it run in another process."""
    env = {**os.environ, "LD_LIBRARY_PATH": f"{place}:{library.parent}:{library.parent.parent}"}
    left = listed(place, program, env, filter_)
    found = {}
    while left:
        out = place / "said.txt"
        with open(out, "w") as file:
            try:
                code = subprocess.run([place / program, f"--gtest_filter={':'.join(left)}", "--gtest_color=no"], cwd=place, env=env, stdout=file,
                                      stderr=subprocess.STDOUT, timeout=SECONDS).returncode  # fmt: skip
            except subprocess.TimeoutExpired:
                code = f"no end after {SECONDS} s"
        before = len(found)
        running, text = None, []
        for line in out.read_text(errors="replace").splitlines():
            if match := re.match(r".*\[ RUN      \] ([\w./]+)", line):
                running, text = match[1], []
            elif running and (match := re.search(r"\[( +OK| +FAILED| +SKIPPED) +\] " + re.escape(running), line)):
                found[running] = {"OK": "passed", "FAILED": "\n".join(text), "SKIPPED": "skipped"}[match[1].strip()]
                running = None
            else:
                text.append(line)
        if running:
            found[running] = f"crashed ({code}): " + "\n".join(text)
        elif len(found) == before:  # it ends before its first test
            found |= {test: f"not run ({code}): {out.read_text(errors='replace')[-500:]}" for test in left}
        left = [t for t in left if t not in found]
    return found


def report(name, real, ours, expected):
    """One program's counts, and what is wrong."""
    asked = [t for t, said in real.items() if said == "passed"] if real else list(ours)
    skipped = [t for t in asked if ours.get(t) == "skipped"]
    failed = {t: ours.get(t, "not run") for t in asked if ours.get(t, "not run") not in ("passed", "skipped")}
    passed = len(asked) - len(failed) - len(skipped)
    print(f"{name}: {passed} of {len(asked)} pass, {len(skipped)} skipped; {len(real) - len(asked) if real else 0} do not pass on ONNX Runtime")
    new = {t: said for t, said in failed.items() if t not in expected}
    for test, said in sorted(new.items()):
        print(f"FAILED {test}: {' '.join(said.split())[:900]}")
    mended = [t for t in expected if ours.get(t) == "passed"]
    for test in mended:
        print(f"PASSED {test}, which is listed as failing: {expected[test]}")
    for test, said in sorted(real.items()):
        if said not in ("passed", "skipped"):
            print(f"On ONNX Runtime {test} fails{', and passes here' if ours.get(test) == 'passed' else ''}: {' '.join(said.split())[:200]}")
    return passed, len(asked) - len(skipped), len(new) + len(mended)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("checkout", type=Path)
    parser.add_argument("ours_library", metavar="OURS", type=Path)
    parser.add_argument("real_library", metavar="REAL", type=Path)
    parser.add_argument("--build", type=Path, default=HERE.parent.parent / "build" / "ort-cpp")
    parser.add_argument("--include", type=Path, action="append", default=[])
    parser.add_argument("--filter", default="*")
    parser.add_argument("--ours", action="store_true")
    args = parser.parse_args()
    libraries = [p.resolve() for p in (args.ours_library, args.real_library)]
    for needed in (args.checkout / "onnxruntime" / "test" / "shared_lib", *libraries):
        if not needed.exists():
            print(f"{needed} is missing")
            return SKIPPED
    if not shutil.which("c++"):
        print("there is no C++ compiler")
        return SKIPPED
    runs = {}
    for which, library in zip(("ours", "real"), libraries):
        if which == "real" and args.ours:
            continue
        version = library.name.split(".so.")[-1]
        build = Build(args.checkout.resolve(), args.build.resolve() / version, [p.resolve() for p in args.include], version)
        place = args.build.resolve() / which
        laid_out(build, place, library)
        runs[which] = {name: run_program(place, name, library, args.filter) for name in PROGRAMS}
    expected = known(HERE / "ort_cpp.txt")
    total = [0, 0, 0]
    for name, ours in runs["ours"].items():
        real = runs["real"][name] if "real" in runs else {}
        mine = {t: reason for t, reason in expected.items() if t in ours}
        total = [a + b for a, b in zip(total, report(name, real, ours, mine))]
    print(f"{total[0]} of {total[1]} tests pass; {total[2]} are not as expected")
    return 1 if total[2] or not total[0] else 0


if __name__ == "__main__":
    sys.exit(main())
