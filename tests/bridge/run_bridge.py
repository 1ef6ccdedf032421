"""Vendors' libraries behind sdx: run_bridge.py SDX SOURCE_DIR WHAT [RUNTIME].

The libraries are those of tools/runtimes.sh in SOURCE_DIR/build/runtimes; where one is missing its test is skipped (exit code 77).

answers RUNTIME   every *.case.json in the folder of models (as for tests/models), or a small model where there are none, verifies
options RUNTIME   options reach the library; misspelt and wrong ones are errors that say what is wrong
cache RUNTIME     what the library compiles is kept, used again, kept apart, and rebuilt when damaged
devices RUNTIME   sdx providers tells version and devices
sessions RUNTIME  opening a hundred sessions is flat in memory; many threads at once; deadlines
binding RUNTIME   runs bound to memory (OrtIoBinding) give the same answers
reasons           what is unavailable says why
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent.parent / part) for part in ("cli", "support")]
from scratch import scratch  # noqa: E402
import tiny_models  # noqa: E402
from model_files import SKIPPED, find_models  # noqa: E402

LIMIT_S = 300

# Folder of the library, its name, the variable that names it to sdx, and the provider.
RUNTIMES = {
    "ort-newest": ("onnxruntime/capi", "libonnxruntime.so*", "SDX_ORT_LIB", "ort:cpu"),
    "ort-oldest": ("sherpa_onnx/lib", "libonnxruntime.so*", "SDX_ORT_LIB", "ort:cpu"),
    "ort-openvino": ("onnxruntime/capi", "libonnxruntime.so*", "SDX_ORT_LIB", "ort:openvino"),
    "openvino": ("openvino/libs", "libopenvino_c.so*", "SDX_OPENVINO_LIB", "openvino"),
}


class Failure(Exception):
    pass


class Sdx:
    """The command with one runtime alone."""

    def __init__(self, program, source, runtime, folder):
        self.program, self.source, self.runtime, self.folder = program, source, runtime, Path(folder)
        self.environment = {**os.environ, "SDX_CACHE_DIR": str(self.folder / "cache"), "SDX_LOG": "warning"}
        for name in ("SDX_ORT_LIB", "SDX_OPENVINO_LIB", "VIRTUAL_ENV", "CONDA_PREFIX"):
            self.environment.pop(name, None)
        self.library = self.provider = None
        if runtime is not None:
            where, pattern, variable, self.provider = RUNTIMES[runtime]
            found = sorted((source / "build" / "runtimes" / runtime / where).glob(pattern))
            if found:
                self.library = found[-1]
                self.environment[variable] = str(self.library)

    def run(self, *arguments, expect=0, limit=LIMIT_S, **environment):
        """Standard output and error of a call that must end with exit code `expect`, or one of several."""
        done = subprocess.run([self.program, *map(str, arguments)], capture_output=True, text=True, errors="replace", timeout=limit,
                              env={**self.environment, **environment}, cwd=self.folder)
        if done.returncode not in (expect if isinstance(expect, tuple) else (expect,)):
            raise Failure(f"sdx {' '.join(map(str, arguments))}: exit code {done.returncode} instead of {expect}\n"
                          f"{done.stdout[-2000:]}{done.stderr[-2000:]}")
        return done.stdout, done.stderr

    def project(self, model, options, **runtime):
        """A project file with options for the provider."""
        path = self.folder / "bridge.yml"
        settings = {"providers": [self.provider], "fallback": "strict", "provider_options": {self.provider: options}, **runtime}
        path.write_text(json.dumps({"name": "bridge", "model": {"source": str(model)}, "runtime": settings}))
        return path

    def providers(self):
        return {p["name"]: p for p in json.loads(self.run("providers", "--json")[0])["providers"]}


def want(pattern, text, what):
    if not re.search(pattern, text):
        raise Failure(f"{what}: '{pattern}' is not in\n{text}")


def ignored(source, runtime):
    lines = (source / "tests" / "bridge" / "ignore.txt").read_text().splitlines()
    parts = [line.split(None, 2) for line in lines if line.strip() and not line.startswith("#")]
    return {case for name, case, _ in parts if name == runtime}


def answers(sdx, *more):
    models = find_models()
    tiny_models.write_all(sdx.folder / "tiny")
    cases = [(sdx.folder / "tiny" / "good.case.json", "good.case.json")]
    if models is not None:
        cases += [(c, str(c.relative_to(models))) for c in sorted(models.rglob("*.case.json"))]
    may_differ = ignored(sdx.source, sdx.runtime)
    failures = []
    for case, name in cases:
        try:
            # What the library turns down runs on cpu; that the library itself runs something is looked at below.
            out, _ = sdx.run("verify", "-q", case, "-p", sdx.provider, *more, expect=(0, 1) if name in may_differ else 0)
            if "FAIL" in out:
                want("^FAIL .* max abs", out, "may be off, but not break")
        except (Failure, subprocess.TimeoutExpired) as e:
            failures.append(f"{name}: {e}")
    out, _ = sdx.run("run", sdx.folder / "tiny" / "add.onnx", "-i", "A=[1,2]", "-i", "B=[3,4]", "-p", sdx.provider, "--fallback", "strict",
                     "--json")
    result = json.loads(out)
    if result["outputs"]["C"]["data"] != [4, 6] or result["report"]["providers"] != [sdx.provider]:
        failures.append(out)
    print(f"{sdx.runtime}: {len(cases)} cases, {len(failures)} failures")
    if failures:
        raise Failure("\n".join(failures))


def options(sdx):
    tiny_models.write_all(sdx.folder / "tiny")
    model = sdx.folder / "tiny" / "add.onnx"
    inputs = ("-i", "A=[1,2]", "-i", "B=[3,4]")
    good, wrong, message, typo, near = {
        "ort:cpu": ({"session.intra_op.allow_spinning": 0}, {"session.intra_op_thread_affinities": "x"}, "ffinit", None, None),
        "ort:openvino": ({"device_type": "CPU", "precision": "FP32", "num_of_threads": 1}, {"device_type": "XPU9"}, "XPU9", "device_typ",
                         "device_type"),
        "openvino": ({"device_type": "CPU", "precision": "FP32", "num_of_threads": 1, "ENABLE_CPU_PINNING": "NO"},
                     {"NO_SUCH_PROPERTY": "1"}, "NO_SUCH_PROPERTY", "device_typ", "device_type"),
    }[sdx.provider]
    out, _ = sdx.run("run", sdx.project(model, good), *inputs)
    want(r"\{4, 6\}", out, "options that hold")
    _, err = sdx.run("run", sdx.project(model, wrong, threads=2), *inputs, expect=1)
    want(message, err, "a value that cannot be")
    if typo:
        _, err = sdx.run("run", sdx.project(model, {typo: "CPU"}), *inputs, expect=1)
        want(f"did you mean '{near}'", err, "a misspelt option")


def devices(sdx):
    found = sdx.providers()[sdx.provider.removeprefix("ort:")] if sdx.provider != "ort:cpu" else None
    if found is None:  # `cpu` is our own engine: what the bridge says is in the report of a run
        tiny_models.write_all(sdx.folder / "tiny")
        out, _ = sdx.run("run", sdx.folder / "tiny" / "add.onnx", "-i", "A=[1,2]", "-i", "B=[3,4]", "-p", "ort:cpu", "--json")
        want(r'"provider": ?"ort:cpu"|"ort:cpu"', out, "the provider in the report")
        # A plugin that cannot be loaded: its reason, behind that of the hardware where that is missing.
        plugin = sdx.folder / "libonnxruntime_providers_cuda.so"
        plugin.write_text("not a library")
        sdx.environment["SDX_ORT_EP_LIBS"] = str(plugin)
        cuda = sdx.providers()["cuda"]
        want("plugin '.*libonnxruntime_providers_cuda.so': .*not a usable shared library", cuda["reason"], "the plugin's reason")
        if not Path("/dev/nvidiactl").exists():
            want("^no NVIDIA GPU", cuda["reason"], "the hardware's reason")
            want("NVIDIA GPU", cuda["hint"], "the hardware's hint")
        return
    if not found["available"] or not found["version"] or not found["devices"]:
        raise Failure(f"not available, or without version or devices: {found}")
    if not Path("/dev/dri").exists() and not Path("/dev/accel").exists() and not all(d.startswith("CPU") for d in found["devices"]):
        raise Failure(f"devices that this machine does not have: {found['devices']}")
    if sdx.runtime == "openvino" and not Path("/dev/dri").exists():
        tiny_models.write_all(sdx.folder / "tiny")
        project = sdx.project(sdx.folder / "tiny" / "add.onnx", {"device_type": "GPU"})
        _, err = sdx.run("run", project, "-i", "A=[1,2]", "-i", "B=[3,4]", expect=1)
        want("OpenVINO has no device GPU here: no Intel GPU", err, "a device that is not there")


def sessions(sdx):
    tests = Path(sdx.program).parent / "sdx_engine_tests"
    done = subprocess.run([tests, "--gtest_filter=VendorLibraries.*", "--gtest_brief=1"], capture_output=True, text=True, timeout=LIMIT_S,
                          env={**sdx.environment, "SDX_VENDOR_PROVIDER": sdx.provider})
    want(r"PASSED +. 4 tests", done.stdout, f"exit code {done.returncode}\n{done.stdout}{done.stderr}")


def binding(sdx):
    """The path of devices with memory of their own, in the memory that every machine has."""
    tests = Path(sdx.program).parent / "sdx_engine_tests"
    done = subprocess.run([tests, "--gtest_filter=VendorBinding.*", "--gtest_brief=1"], capture_output=True, text=True, timeout=LIMIT_S,
                          env={**sdx.environment, "SDX_VENDOR_PROVIDER": sdx.provider})
    want(r"PASSED +. 2 tests", done.stdout, f"exit code {done.returncode}\n{done.stdout}{done.stderr}")
    answers(sdx, "--provider-option", f"{sdx.provider}.io_binding=1")
    out, _ = sdx.run("explain", sdx.folder / "tiny" / "add.onnx", "-p", sdx.provider, "--provider-option", f"{sdx.provider}.io_binding=1")
    want("inputs and outputs bound to Cpu memory", out, "what explain says")
    _, err = sdx.run("explain", sdx.folder / "tiny" / "add.onnx", "-p", sdx.provider, "--provider-option", f"{sdx.provider}.io_binding=2",
                     expect=1)
    want("'io_binding' of provider .* must be 0 or 1", err, "a value that cannot be")


def cached_files(sdx):
    return sorted(p for p in (sdx.folder / "cache").rglob("*.blob"))


def cache(sdx):
    tiny_models.write_all(sdx.folder / "tiny")
    call = ("run", sdx.folder / "tiny" / "add.onnx", "-i", "A=[1,2]", "-i", "B=[3,4]", "-p", sdx.provider, "--fallback", "strict")
    sdx.run(*call, "--no-cache")
    if cached_files(sdx):
        raise Failure("--no-cache kept something")
    sdx.run(*call)
    first = cached_files(sdx)
    if len(first) != 1:
        raise Failure(f"kept: {first}")
    size, made = first[0].stat().st_size, first[0].stat().st_mtime_ns
    sdx.run(*call)
    if sdx.runtime == "openvino" and first[0].stat().st_mtime_ns != made:
        raise Failure("what was kept was not used again")
    for damage in (b"", b"no blob at all" * 100, first[0].read_bytes()[:-100]):
        os.chmod(first[0], 0o644)
        first[0].write_bytes(damage)
        out, _ = sdx.run(*call)
        want(r"\{4, 6\}", out, "a run after the damage")
        if first[0].stat().st_size != size:
            raise Failure("what was damaged was not made again")
    entries = json.loads(sdx.run("cache", "ls", "--json")[0])["entries"]
    if [(e["provider"], e["model"], e["bytes"]) for e in entries] != [("openvino", "add.onnx", size)]:
        raise Failure(f"listed: {entries}")
    sdx.run("cache", "clear", "tensorrt")
    if cached_files(sdx) != first:
        raise Failure("another provider's entries were removed")
    want("removed .* in 1 entry", sdx.run("cache", "clear", entries[0]["key"][:6])[0], "clearing")
    if cached_files(sdx):
        raise Failure("nothing was removed")


# Patterns of the reasons on a machine without the hardware; the first that is true of the machine counts.
def reasons(sdx):
    sdx.environment["SDX_ORT_LIB"] = "/nonexistent/libonnxruntime.so"
    found = sdx.providers()
    nvidia = Path("/dev/nvidiactl").exists()
    expected = {
        "directml": ("exists on Windows only", "sdx providers"),
        "coreml": ("exists on macOS only", "sdx providers"),
        "vitisai": ("exists on Windows only", "sdx providers"),
        "nnapi": ("exists on Android only", "sdx providers"),
        "cuda": ("/nonexistent/libonnxruntime.so" if nvidia else "no NVIDIA GPU", "onnxruntime-gpu" if nvidia else "NVIDIA GPU"),
        "tensorrt": ("/nonexistent/libonnxruntime.so" if nvidia else "no NVIDIA GPU", "onnxruntime-gpu" if nvidia else "NVIDIA GPU"),
        "xnnpack": ("ONNX Runtime's library is not found: '/nonexistent/libonnxruntime.so'", "SDX_ORT_LIB"),
    }
    if not Path("/dev/kfd").exists():
        expected["rocm"] = expected["migraphx"] = ("no AMD GPU", "AMD GPU")
    for name, (reason, hint) in expected.items():
        p = found[name]
        if p["available"]:
            raise Failure(f"{name} is said to be available")
        want(re.escape(reason), p["reason"], f"reason of {name}")
        want(re.escape(hint), p["hint"], f"hint of {name}")
    # Asked for all the same, each is replaced by cpu with that reason, or with `strict` an error.
    tiny_models.write_all(sdx.folder / "tiny")
    call = ("run", sdx.folder / "tiny" / "add.onnx", "-i", "A=[1,2]", "-i", "B=[3,4]")
    for name, (reason, _) in expected.items():
        out, err = sdx.run(*call, "-p", name)
        want(r"\{4, 6\}", out, f"{name} replaced by cpu")
        want(re.escape(reason), err, f"warning of {name}")
        _, err = sdx.run(*call, "-p", name, "--fallback", "strict", expect=1)
        want(re.escape(reason), err, f"error of {name}")


TESTS = {"answers": answers, "options": options, "devices": devices, "cache": cache, "sessions": sessions, "binding": binding, "reasons": reasons}


def main():
    program, source, what = str(Path(sys.argv[1]).resolve()), Path(sys.argv[2]).resolve(), sys.argv[3]
    runtime = sys.argv[4] if len(sys.argv) > 4 else None
    with scratch() as folder:
        (folder / "tiny").mkdir()
        sdx = Sdx(program, source, runtime, folder)
        if runtime is not None and sdx.library is None:
            print(f"skipped: tools/runtimes.sh has not installed {runtime}")
            return SKIPPED
        try:
            TESTS[what](sdx)
        except Failure as e:
            print(f"FAIL {what} {runtime or ''}: {e}")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
