"""Vendors' libraries behind sdx: run_bridge.py SDX SOURCE_DIR WHAT [RUNTIME].

The libraries are those of tools/runtimes.sh in SOURCE_DIR/build/runtimes; where one is missing its test is skipped (exit code 77).

answers RUNTIME   every *.case.json in the folder of models (as for tests/models), or a small model where there are none, verifies
options RUNTIME   options reach the library; misspelt and wrong ones are errors that say what is wrong
cache RUNTIME     what the library compiles is kept, used again, kept apart, and rebuilt when damaged
devices RUNTIME   sdx providers tells version and devices
sessions RUNTIME  opening a hundred sessions is flat in memory; many threads at once; deadlines
binding RUNTIME   runs bound to memory (OrtIoBinding) give the same answers
software RUNTIME  WebGPU's plugin on a software driver of Vulkan, found in a virtual environment whose lib64 leads to lib
simulator RUNTIME Qualcomm's plugin on its simulator of the NPU
reasons           what is unavailable says why
"""

import json
import os
import platform
import re
import struct
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
    # Plugins: no variable names them, they are found as Python packages of a virtual environment.
    "ort-webgpu": ("onnxruntime_ep_webgpu", "libonnxruntime_providers_webgpu.so", None, "webgpu"),
    "ort-qnn": ("onnxruntime_qnn", "libonnxruntime_providers_qnn.so", None, "qnn"),
}


class Failure(Exception):
    pass


class Sdx:
    """The command with one runtime alone."""

    def __init__(self, program, source, runtime, folder):
        self.program, self.source, self.runtime, self.folder = program, source, runtime, Path(folder)
        self.environment = {**os.environ, "SDX_CACHE_DIR": str(self.folder / "cache"), "SDX_LOG": "warning"}
        for name in ("SDX_ORT_LIB", "SDX_ORT_EP_LIBS", "SDX_OPENVINO_LIB", "VIRTUAL_ENV", "CONDA_PREFIX"):
            self.environment.pop(name, None)
        self.library = self.provider = self.skipped = None
        if runtime is None:
            return
        where, pattern, variable, self.provider = RUNTIMES[runtime]
        packages = source / "build" / "runtimes" / runtime
        found = sorted((packages / where).glob(pattern))
        if not found:
            self.skipped = f"tools/runtimes.sh has not installed {runtime}"
            return
        self.library = found[-1]
        if variable is not None:
            self.environment[variable] = str(self.library)
        else:
            self.environment["VIRTUAL_ENV"] = str(self.virtual_environment(packages))
        if runtime == "ort-webgpu":
            self.use_lavapipe(source / "build" / "lavapipe")
        elif runtime == "ort-qnn" and platform.machine() != "x86_64":
            self.skipped = "Qualcomm's simulator runs on x86-64 only"

    def virtual_environment(self, packages):
        """As `python3 -m venv` makes them on Debian and Fedora: lib64 is a link to lib."""
        prefix = self.folder / "venv"
        python = prefix / "lib" / "python3.11"
        python.mkdir(parents=True)
        (python / "site-packages").symlink_to(packages)
        (prefix / "lib64").symlink_to("lib")
        return prefix

    def use_lavapipe(self, lavapipe):
        drivers = sorted(lavapipe.glob("usr/lib/**/libvulkan_lvp.so"))
        if not drivers:
            self.skipped = "tools/lavapipe.sh has not unpacked a software driver of Vulkan"
            return
        self.environment["VK_DRIVER_FILES"] = self.environment["VK_ICD_FILENAMES"] = str(lavapipe / "driver.json")
        self.environment["LD_LIBRARY_PATH"] = ":".join(filter(None, [str(drivers[0].parent), os.environ.get("LD_LIBRARY_PATH")]))
        self.environment["ORT_WEBGPU_EP_ALLOW_SOFTWARE_ADAPTER"] = "1"

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


ADD = ("-i", "A=[1,2]", "-i", "B=[3,4]")


def write_convolution(path):
    """Conv and Relu, of float32: x[1,2,6,6] -> y[1,3,4,4]."""
    weights = [((7 * i) % 11 - 5) / 16 for i in range(54)]
    path.write_bytes(tiny_models.model(
        [tiny_models.node("Conv", ["x", "w"], ["a"]), tiny_models.node("Relu", ["a"], ["y"])],
        [tiny_models.value_info("x", tiny_models.FLOAT, [1, 2, 6, 6])], [tiny_models.value_info("y", tiny_models.FLOAT, [1, 3, 4, 4])],
        [tiny_models.tensor("w", tiny_models.FLOAT, [3, 2, 3, 3], tiny_models.floats(*weights))]))


def write_partial(path):
    """Hardmax, which WebGPU's plugin leaves to ONNX Runtime's CPU kernels, between two nodes that it takes."""
    path.write_bytes(tiny_models.model(
        [tiny_models.node("Relu", ["x"], ["a"]), tiny_models.node("Hardmax", ["a"], ["b"]), tiny_models.node("Neg", ["b"], ["y"])],
        [tiny_models.value_info("x", tiny_models.FLOAT, [4, 6])], [tiny_models.value_info("y", tiny_models.FLOAT, [4, 6])]))


def named(op, inputs, output):
    """A node with a name of its own, that of its output."""
    return tiny_models.node(op, inputs, [output]).replace(tiny_models.data(3, f"{op}_0"), tiny_models.data(3, output))


OUTPUT_STEP = 0.0625  # of the quantisation of the following model's output


def write_quantized(path):
    """The convolution between QuantizeLinear and DequantizeLinear, as quantising tools write them."""
    weights = struct.pack("54b", *[(37 * i) % 255 - 127 for i in range(54)])
    one = {"x": 1 / 32, "w": 1 / 256, "y": OUTPUT_STEP}
    scales = [tiny_models.tensor(f"{k}_scale", tiny_models.FLOAT, [], tiny_models.floats(v)) for k, v in one.items()]
    zeros = [tiny_models.tensor("x_zero", tiny_models.UINT8, [], bytes([128])), tiny_models.tensor("y_zero", tiny_models.UINT8, [], bytes([120])),
             tiny_models.tensor("w_zero", 3, [], bytes([0]))]  # 3: int8
    path.write_bytes(tiny_models.model(
        [named("QuantizeLinear", ["x", "x_scale", "x_zero"], "xq"), named("DequantizeLinear", ["xq", "x_scale", "x_zero"], "xd"),
         named("DequantizeLinear", ["w", "w_scale", "w_zero"], "wd"), named("Conv", ["xd", "wd"], "c"),
         named("QuantizeLinear", ["c", "y_scale", "y_zero"], "yq"), named("DequantizeLinear", ["yq", "y_scale", "y_zero"], "y")],
        [tiny_models.value_info("x", tiny_models.FLOAT, [1, 2, 6, 6])], [tiny_models.value_info("y", tiny_models.FLOAT, [1, 3, 4, 4])],
        [tiny_models.tensor("w", 3, [3, 2, 3, 3], weights), *scales, *zeros]))


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
    # A software driver takes as long for this one as for all others.
    chosen, count = ("VendorLibraries.*-*DeadlinesOfManyThreads*", 3) if sdx.provider == "webgpu" else ("VendorLibraries.*", 4)
    done = subprocess.run([tests, f"--gtest_filter={chosen}", "--gtest_brief=1"], capture_output=True, text=True, timeout=LIMIT_S,
                          env={**sdx.environment, "SDX_VENDOR_PROVIDER": sdx.provider})
    want(rf"PASSED +. {count} tests", done.stdout, f"exit code {done.returncode}\n{done.stdout}{done.stderr}")


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
    return sorted((sdx.folder / "cache").rglob("*_qnn.bin" if sdx.provider == "qnn" else "*.blob"))


def cache(sdx):
    tiny_models.write_all(sdx.folder / "tiny")
    model, inputs, result = sdx.folder / "tiny" / "add.onnx", ADD, r"\{4, 6\}"
    if sdx.provider == "qnn":
        model, inputs, result = sdx.folder / "quantized.onnx", ("--random",), "^y: "
        write_quantized(model)
    call = ("run", model, *inputs, "-p", sdx.provider, "--fallback", "strict")
    sdx.run(*call, "--no-cache")
    if cached_files(sdx):
        raise Failure("--no-cache kept something")
    expected, _ = sdx.run(*call)
    first = cached_files(sdx)
    if len(first) != 1:
        raise Failure(f"kept: {first}")
    size, made = first[0].stat().st_size, first[0].stat().st_mtime_ns
    if sdx.run(*call)[0] != expected:
        raise Failure("what was kept gives other results")
    # QNN refuses to write a model that is there already, so that compiling it again would take a new file.
    if sdx.runtime in ("openvino", "ort-qnn") and first[0].stat().st_mtime_ns != made:
        raise Failure("what was kept was not used again")
    for damage in (b"", b"no blob at all" * 100, first[0].read_bytes()[:-100]):
        os.chmod(first[0], 0o644)
        first[0].write_bytes(damage)
        out, _ = sdx.run(*call)
        want(result, out, "a run after the damage")
        if first[0].stat().st_size != size:
            raise Failure("what was damaged was not made again")
    entries = json.loads(sdx.run("cache", "ls", "--json")[0])["entries"]
    kept = sum(p.stat().st_size for p in first[0].parent.iterdir() if not p.name.startswith("."))
    if [(e["provider"], e["model"], e["bytes"]) for e in entries] != [(sdx.provider.removeprefix("ort:"), model.name, kept)]:
        raise Failure(f"listed: {entries}")
    sdx.run("cache", "clear", "tensorrt")
    if cached_files(sdx) != first:
        raise Failure("another provider's entries were removed")
    want("removed .* in 1 entry", sdx.run("cache", "clear", entries[0]["key"][:6])[0], "clearing")
    if cached_files(sdx):
        raise Failure("nothing was removed")


def runs_alone(sdx, model, *inputs):
    """A run in which the provider takes every node."""
    out, _ = sdx.run("run", model, *inputs, "-p", sdx.provider, "--fallback", "strict", "--json")
    result = json.loads(out)
    if result["report"]["providers"] != [sdx.provider]:
        raise Failure(out)
    return result


def chosen(sdx, names):
    out, _ = sdx.run("run", sdx.folder / "tiny" / "add.onnx", *ADD, "-p", names, "--json")
    return json.loads(out)["report"]["providers"]


def software(sdx):
    tiny_models.write_all(sdx.folder / "tiny")
    add = sdx.folder / "tiny" / "add.onnx"
    found = sdx.providers()["webgpu"]
    if not found["available"] or not found["version"]:
        raise Failure(f"not available: {found}")
    want(r"^CPU: .*\(a software driver\), by a plugin of ONNX Runtime", " ".join(found["devices"]), "the device")
    if runs_alone(sdx, add, *ADD)["outputs"]["C"]["data"] != [4, 6]:
        raise Failure("a wrong sum")
    # A device that is only software counts where its provider is named.
    for names, expected in (("vulkan", ["cpu"]), ("gpu", ["cpu"]), ("auto", ["cpu"])):
        if chosen(sdx, names) != expected:
            raise Failure(f"-p {names}: {chosen(sdx, names)}")
    write_convolution(sdx.folder / "conv.onnx")
    sdx.run("compare-outputs", "conv.onnx", "-b", "webgpu,cpu")
    write_partial(sdx.folder / "partial.onnx")
    _, err = sdx.run("compare-outputs", "partial.onnx", "-b", "webgpu,cpu", expect=1)
    want("would run some of the nodes on its CPU kernels instead of WebGpuExecutionProvider. --fallback warn compares", err, "what helps")
    sdx.run("compare-outputs", "partial.onnx", "-b", "webgpu,cpu", "--fallback", "warn")
    _, err = sdx.run("run", "partial.onnx", "--random", "-p", "webgpu", "--fallback", "strict", expect=1)
    want("instead of WebGpuExecutionProvider. Omit `strict`", err, "what helps a run")
    # Reasons.
    reasons = (("its plugin finds no supported device", {"ORT_WEBGPU_EP_ALLOW_SOFTWARE_ADAPTER": ""}),
               ("no GPU driver that WebGPU can use", {"VK_DRIVER_FILES": "/nonexistent.json", "VK_ICD_FILENAMES": "/nonexistent.json"}))
    for reason, environment in reasons:
        if "plugin" in reason and Path("/dev/dri").exists():
            continue  # there may be a GPU
        _, err = sdx.run("run", add, *ADD, "-p", "webgpu", **environment)
        want(f"requested webgpu, using cpu: {reason}", err, "the reason")
        sdx.run("run", add, *ADD, "-p", "webgpu", "--fallback", "strict", expect=1, **environment)
    # The plugin by another path, and by one that is relative, is the same.
    relative = os.path.relpath(sdx.library, sdx.folder)
    for path in (sdx.folder / "venv" / "lib64" / "python3.11" / "site-packages" / "onnxruntime_ep_webgpu" / sdx.library.name, relative):
        sdx.run("run", add, *ADD, "-p", "webgpu", "--fallback", "strict", SDX_ORT_EP_LIBS=str(path))


def simulator(sdx):
    tiny_models.write_all(sdx.folder / "tiny")
    found = sdx.providers()["qnn"]
    if not found["available"] or not found["version"]:
        raise Failure(f"not available: {found}")
    want(r"^CPU: .*\(a simulator of the NPU\), by a plugin of ONNX Runtime", " ".join(found["devices"]), "the device")
    if chosen(sdx, "npu") != ["cpu"]:
        raise Failure("a simulator was chosen that nobody named")
    write_convolution(sdx.folder / "conv.onnx")
    runs_alone(sdx, "conv.onnx", "--random")
    sdx.run("compare-outputs", "conv.onnx", "-b", "qnn,cpu", "--atol", "1e-3")
    write_quantized(sdx.folder / "quantized.onnx")
    runs_alone(sdx, "quantized.onnx", "--random")
    sdx.run("compare-outputs", "quantized.onnx", "-b", "qnn,cpu", "--atol", str(1.001 * OUTPUT_STEP))


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


TESTS = {"answers": answers, "options": options, "devices": devices, "cache": cache, "sessions": sessions, "binding": binding, "software": software,
         "simulator": simulator, "reasons": reasons}


def main():
    program, source, what = str(Path(sys.argv[1]).resolve()), Path(sys.argv[2]).resolve(), sys.argv[3]
    runtime = sys.argv[4] if len(sys.argv) > 4 else None
    with scratch() as folder:
        (folder / "tiny").mkdir()
        sdx = Sdx(program, source, runtime, folder)
        if sdx.skipped:
            print(f"skipped: {sdx.skipped}")
            return SKIPPED
        try:
            TESTS[what](sdx)
        except Failure as e:
            print(f"FAIL {what} {runtime or ''}: {e}")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
