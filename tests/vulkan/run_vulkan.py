"""The provider vulkan on a software driver: run_vulkan.py SDX WHAT. Without such a driver, tests are skipped (exit code 77).

networks  small networks run whole in one part, and answer as cpu does
shapes    many sizes in turn, through one session's plans
options   devices are chosen by type, number and name; wrong options say what is wrong
bounds    indices that are data
kept      compiled pipelines are kept for later processes; damaged ones are replaced
mixed     what has no shader runs on cpu, with the reason
"""

import json
import os
import random
import struct
import subprocess
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent.parent / part) for part in ("cli", "support")]
from scratch import scratch  # noqa: E402
from model_files import SKIPPED  # noqa: E402
from tiny_models import FLOAT, INT64, data, model, number, tensor, value_info, varint  # noqa: E402

LIMIT_S = 300
TOLERANCE = 1e-4
EXIT_FAILED = 1


class Failure(Exception):
    pass


def expect(condition, said):
    if not condition:
        raise Failure(said)


class Sdx:
    def __init__(self, program, folder):
        self.program, self.folder = program, Path(folder)
        self.environment = {**os.environ, "SDX_CACHE_DIR": str(self.folder / "cache"), "SDX_LOG": "warning"}
        self.environment.pop("SDX_VULKAN_DEVICE", None)

    def __call__(self, *words, code=0):
        done = subprocess.run([self.program, *map(str, words)], capture_output=True, text=True, timeout=LIMIT_S, env=self.environment,
                              cwd=self.folder)
        expect(done.returncode == code, f"{' '.join(map(str, words))}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}")
        return done.stdout + done.stderr

    def all_devices(self):
        found = {p["name"]: p for p in json.loads(self("providers", "--json"))["providers"]}
        expect("vulkan" in found, "sdx providers does not list vulkan")
        return found["vulkan"]["devices"]

    def cpu_devices(self):
        return [d for d in self.all_devices() if d.startswith("CPU: ")]


# --- models ------------------------------------------------------------------------------------------------------------------------


def attribute(name, value):
    head = data(1, name)
    if isinstance(value, float):
        return head + varint(2 << 3 | 5) + struct.pack("<f", value) + number(20, 1)
    if isinstance(value, str):
        return head + data(4, value) + number(20, 3)
    if isinstance(value, int):
        return head + number(3, value) + number(20, 2)
    return head + b"".join(number(8, v) for v in value) + number(20, 7)


def node(op, inputs, outputs, **attributes):
    out = b"".join(data(1, i) for i in inputs) + b"".join(data(2, o) for o in outputs) + data(3, outputs[0]) + data(4, op)
    return out + b"".join(data(5, attribute(k, v)) for k, v in attributes.items())


class Network:
    """Nodes in a row, each with a name for its result; weights are pseudo-random."""

    def __init__(self, shape, seed=1):
        self.random = random.Random(seed)
        self.nodes, self.tensors, self.inputs = [], [], [value_info("x", FLOAT, shape)]
        self.count = 0

    def weights(self, *shape, scale=0.2):
        size = 1
        for d in shape:
            size *= d
        self.count += 1
        name = f"w{self.count}"
        self.tensors.append(tensor(name, FLOAT, shape, struct.pack(f"<{size}f", *(self.random.uniform(-scale, scale) for _ in range(size)))))
        return name

    def floats(self, *values):
        self.count += 1
        name = f"f{self.count}"
        self.tensors.append(tensor(name, FLOAT, [len(values)], struct.pack(f"<{len(values)}f", *values)))
        return name

    def ints(self, *values):
        self.count += 1
        name = f"i{self.count}"
        self.tensors.append(tensor(name, INT64, [len(values)], struct.pack(f"<{len(values)}q", *values)))
        return name

    def add(self, op, *inputs, outputs=None, **attributes):
        self.count += 1
        names = outputs or [f"v{self.count}"]
        self.nodes.append(node(op, inputs, names, **attributes))
        return names[0] if outputs is None else names

    def bytes(self, result):
        self.nodes.append(node("Identity", [result], ["y"]))
        return model(self.nodes, self.inputs, [data(1, "y") + data(2, data(1, number(1, FLOAT)))], self.tensors)


def mlp():
    n = Network(["batch", 37])
    x = "x"
    for rows, columns, function in ((37, 130, "Relu"), (130, 64, "Tanh"), (64, 33, "Sigmoid")):
        x = n.add("Add", n.add("MatMul", x, n.weights(rows, columns)), n.weights(columns))
        x = n.add(function, x)
    x = n.add("Gemm", x, n.weights(10, 33), n.weights(10), transB=1, alpha=0.5)
    return n.bytes(n.add("Softmax", x, axis=-1))


def convolutions():
    n = Network([2, 3, 29, 31], seed=2)
    x = n.add("Conv", "x", n.weights(16, 3, 3, 3), n.weights(16), strides=[2, 2], pads=[1, 1, 1, 1])
    x = n.add("Relu", x)
    skip = x
    x = n.add("Relu", n.add("Conv", x, n.weights(16, 1, 3, 3), n.weights(16), group=16, pads=[1, 1, 1, 1]))
    x = n.add("Conv", x, n.weights(16, 16, 1, 1), n.weights(16))
    x = n.add("Relu", n.add("Add", x, skip))
    x = n.add("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    x = n.add("Conv", x, n.weights(24, 8, 3, 3), n.weights(24), group=2, dilations=[2, 2], pads=[2, 2, 2, 2])
    x = n.add("AveragePool", n.add("Sigmoid", x), kernel_shape=[2, 2], ceil_mode=0, count_include_pad=1, pads=[1, 1, 0, 0])
    x = n.add("Flatten", n.add("GlobalAveragePool", x))
    return n.bytes(n.add("Gemm", x, n.weights(24, 11), n.weights(11)))


def encoder():
    """A layer of a transformer, of single operators."""
    heads, width, size = 4, 32, 8
    n = Network([2, 13, width], seed=3)

    def norm(x):
        return n.add("LayerNormalization", x, n.weights(width, scale=1), n.weights(width), axis=-1)

    def linear(x, rows, columns):
        return n.add("Add", n.add("MatMul", x, n.weights(rows, columns)), n.weights(columns))

    def split(x):
        return n.add("Transpose", n.add("Reshape", x, n.ints(0, 0, heads, size)), perm=[0, 2, 1, 3])

    inner = norm("x")
    q, k, v = (split(linear(inner, width, width)) for _ in range(3))
    scores = n.add("Softmax", n.add("Mul", n.add("MatMul", q, n.add("Transpose", k, perm=[0, 1, 3, 2])), n.weights(1)), axis=-1)
    seen = n.add("Reshape", n.add("Transpose", n.add("MatMul", scores, v), perm=[0, 2, 1, 3]), n.ints(0, 0, width))
    x = n.add("Add", "x", linear(seen, width, width))
    inner = linear(norm(x), width, 4 * width)
    inner = n.add("Mul", inner, n.add("Sigmoid", inner))
    return n.bytes(n.add("Add", x, linear(inner, 4 * width, width)))


def moved():
    """Everything that moves elements, and reductions over axes that are no neighbours."""
    n = Network([3, 4, 5, 6], seed=4)
    a, b, c = n.add("Split", "x", n.ints(1, 2, 1), outputs=["a", "b", "c"], axis=1)
    x = n.add("Concat", c, b, a, axis=1)
    x = n.add("Slice", x, n.ints(-1, 0), n.ints(-100, 5), n.ints(3, 0), n.ints(-2, 2))
    x = n.add("Transpose", x, perm=[3, 1, 0, 2])
    x = n.add("Gather", x, n.ints(2, -1, 0), axis=1)
    x = n.add("Expand", n.add("Unsqueeze", x, n.ints(0)), n.ints(2, 1, 1, 1, 1))
    x = n.add("ReduceSum", x, n.ints(0, 2), keepdims=0)
    x = n.add("Max", x, n.add("ReduceMean", x, axes=[1], keepdims=1), n.add("ReduceMax", x, axes=[0, 2], keepdims=1))
    return n.bytes(n.add("Div", n.add("Sub", x, n.weights(1)), n.add("Pow", n.add("Abs", n.weights(5, scale=3)), n.weights(1))))


def pictures():
    """What changes the size of pictures."""
    n = Network([2, 6, 9, 7], seed=6)
    x = n.add("Resize", "x", "", n.floats(1, 1, 2, 3), mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    x = n.add("Resize", x, "", "", n.ints(2, 6, 11, 13), mode="linear")
    x = n.add("ConvTranspose", x, n.weights(6, 4, 3, 3), n.weights(8), group=2, strides=[2, 2], pads=[1, 0, 1, 1], output_padding=[1, 0])
    x = n.add("BatchNormalization", x, n.weights(8), n.weights(8), n.weights(8), n.floats(*range(1, 9)))
    x = n.add("DepthToSpace", n.add("Tile", x, n.ints(1, 1, 2, 1)), blocksize=2, mode="CRD")
    x = n.add("SpaceToDepth", n.add("Pad", x, n.ints(0, 0, 1, -1, 0, 0, 1, 3), n.floats(0.5)), blocksize=2)
    return n.bytes(n.add("InstanceNormalization", x, n.weights(8), n.weights(8)))


def logic():
    """Truth values, numbers of other types, indices that are data."""
    n = Network([5, 7], seed=7)
    less = n.add("Less", "x", n.floats(0.5))
    both = n.add("And", less, n.add("Not", n.add("Equal", n.add("Cast", n.add("Mul", "x", n.floats(3)), to=INT64), n.ints(1))))
    x = n.add("Where", both, "x", n.weights(7))
    picked = n.add("Cast", n.add("ReduceSum", n.add("Cast", both, to=FLOAT), n.ints(1), keepdims=0), to=INT64)
    return n.bytes(n.add("Add", n.add("Gather", n.weights(8, 7), picked), x))


NETWORKS = {"mlp": (mlp, ["--shape", "x=7x37"]), "convolutions": (convolutions, []), "encoder": (encoder, []), "moved": (moved, []), "pictures": (pictures, []),
            "logic": (logic, [])}
CPU = ["--provider-option", "vulkan.device_type=CPU"]


def write(folder, name):
    path = Path(folder) / f"{name}.onnx"
    path.write_bytes(NETWORKS[name][0]())
    return path


# --- tests -------------------------------------------------------------------------------------------------------------------------


def networks(sdx):
    for name, (_, words) in NETWORKS.items():
        path = write(sdx.folder, name)
        told = sdx("explain", path, "-p", "vulkan", "--fallback", "strict", *CPU)
        expect(told.count("Region") == 1, f"{name} is not one part:\n{told}")
        compare(sdx, path, words)


def compare(sdx, path, words):
    sdx("compare-outputs", path, "-b", "cpu", "-b", "vulkan", "--atol", TOLERANCE, "--rtol", TOLERANCE, *words, *CPU)


def shapes(sdx):
    path = write(sdx.folder, "mlp")
    for rows in (1, 2, 16, 17, 64, 65, 129):
        compare(sdx, path, ["--shape", f"x={rows}x37"])


def options(sdx):
    path = write(sdx.folder, "mlp")
    run = ["run", path, "--random", "--shape", "x=2x37", "-p", "vulkan", "--fallback", "strict"]
    name = sdx.cpu_devices()[0].removeprefix("CPU: ").split(" ")[0]
    sdx(*run, *CPU)
    sdx(*run, "--provider-option", f"vulkan.device_id={name.upper()}")
    sdx(*run, *CPU, "--provider-option", "vulkan.device_id=0")
    said = sdx(*run, *CPU, "--provider-option", "vulkan.device_id=77", code=EXIT_FAILED)
    expect("there is no device 77" in said, said)
    said = sdx(*run, "--provider-option", "vulkan.device_id=voodoo", code=EXIT_FAILED)
    expect("no device is named 'voodoo'" in said, said)
    said = sdx(*run, "--provider-option", "vulkan.device_ids=0", code=EXIT_FAILED)
    expect("did you mean 'device_id'?" in said, said)
    said = sdx(*run, "--provider-option", "vulkan.device_type=TPU", code=EXIT_FAILED)
    expect("must be GPU or CPU" in said, said)
    said = sdx(*run, *CPU, "--provider-option", "vulkan.gpu_mem_limit=much", code=EXIT_FAILED)
    expect("must be a number of bytes" in said, said)
    sdx(*run, *CPU, "--provider-option", "vulkan.gpu_mem_limit=64MB")
    said = sdx(*run, *CPU, "--provider-option", "vulkan.gpu_mem_limit=4KiB", code=EXIT_FAILED)
    expect("would exceed gpu_mem_limit, 4096 bytes" in said, said)
    sdx("run", path, "--random", "--shape", "x=2x37", "-p", "vulkan,cpu", *CPU, "--provider-option", "vulkan.gpu_mem_limit=4KiB")
    # The software driver is taken only by those who ask for it.
    if all(d.startswith("CPU: ") for d in sdx.all_devices()):
        said = sdx(*run, code=EXIT_FAILED)
        expect("computes on the CPU" in said, said)


def mixed(sdx):
    n = Network([4, 6], seed=5)
    x = n.add("Relu", n.add("MatMul", "x", n.weights(6, 6)))
    x = n.add("CumSum", x, n.ints(1))
    path = Path(sdx.folder) / "mixed.onnx"
    path.write_bytes(n.bytes(n.add("Sigmoid", n.add("MatMul", x, n.weights(6, 3)))))
    told = sdx("explain", path, "-p", "vulkan", *CPU)
    expect("vulkan has no shader for CumSum" in told, told)
    expect(told.count("Region") == 2, told)
    compare(sdx, path, [])


def bounds(sdx):
    """Indices that are data and outside of their axis are an error, not a read beyond the buffer."""
    n = Network([3], seed=8)
    path = Path(sdx.folder) / "bounds.onnx"
    path.write_bytes(n.bytes(n.add("Gather", n.weights(4, 2), n.add("Cast", "x", to=INT64))))
    run = ["run", path, "-p", "vulkan", "--fallback", "strict", *CPU]
    sdx(*run, "-i", "x=[0,-4,3]")
    for wrong in ("4", "-5", "1e9", "-1e9", "1e19"):
        said = sdx(*run, "-i", f"x=[0,{wrong},3]", code=EXIT_FAILED)
        expect("an index of Gather is outside of the axis, which has 4 elements" in said, said)


def kept(sdx):
    run = ["run", write(sdx.folder, "mlp"), "--random", "--shape", "x=2x37", "-p", "vulkan", "--fallback", "strict", *CPU]
    sdx(*run)
    files = list((sdx.folder / "cache" / "vulkan").glob("*/pipelines"))
    if not files:
        return  # a driver that keeps nothing
    listed = [e for e in json.loads(sdx("cache", "ls", "--json"))["entries"] if e["provider"] == "vulkan"]
    expect(len(files) == 1 and len(listed) == 1 and not listed[0]["in_use"], f"{files} {listed}")
    whole = files[0].read_bytes()
    sdx(*run)
    expect(files[0].read_bytes() == whole, "the second run wrote another file")
    for damaged in (b"", whole[:-1], b"\x7f" * len(whole)):
        files[0].write_bytes(damaged)
        sdx(*run)
        expect(files[0].read_bytes() == whole, f"a file of {len(damaged)} bytes was not replaced")
    sdx(*run, "--no-cache")


def main():
    program, what = sys.argv[1:]
    with scratch() as folder:
        sdx = Sdx(Path(program).resolve(), folder)
        if not sdx.cpu_devices():
            print("no software driver for Vulkan is installed (Debian: mesa-vulkan-drivers)")
            return SKIPPED
        try:
            {"networks": networks, "shapes": shapes, "options": options, "mixed": mixed, "bounds": bounds, "kept": kept}[what](sdx)
        except Failure as failure:
            print(failure)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
