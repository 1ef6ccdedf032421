"""Models that are wrong: draws models as run.py does, spoils attributes, shapes, types, constants and wiring, and runs them.

Whatever comes out is fine but a crash, a hang, or an error that does not say where. Exit code 1 on one of these; 77: a package is missing.

With sanitizers (GCC's run-time library can be loaded before Python): see docs/conformance.md.
"""

import argparse
import collections
import importlib.util
import os
import re
import subprocess
import sys
import time

for package in ("numpy", "onnx"):
    if importlib.util.find_spec(package) is None:
        print(f"skipped: no package {package}")
        sys.exit(77)

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import numpy as np  # noqa: E402
import onnx  # noqa: E402
from engines import Engine  # noqa: E402
from generate import draw_model, recipe_weights  # noqa: E402
from onnx import AttributeProto, TensorProto, numpy_helper  # noqa: E402

INTS = [-1, 0, 1, 2, 3, -2, 7, 64, 2**31 - 1, -(2**31), 2**31, 2**62, 2**63 - 1, -(2**63), -(2**63) + 1, 10**6]
FLOATS = [0.0, -0.0, -1.0, float("nan"), float("inf"), float("-inf"), 3e38, 1e-45, 2.0**63, 0.5, -1e30]
STRINGS = [b"", b"x", b"linear", b"SAME_UPPER", b"\xff\xfe", b"bidirectional", b"ab,bc->ac", b"...", b"a" * 3000, b"(", b"none", b"add"]
TYPES = [TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.INT64, TensorProto.INT32, TensorProto.UINT8, TensorProto.BOOL,
         TensorProto.INT8, TensorProto.UINT64]


class Spoiler:
    """Makes one or a few changes to a model and its inputs."""

    def __init__(self, seed):
        self.rng = np.random.default_rng([seed, 7])

    def pick(self, items):
        return items[int(self.rng.integers(len(items)))]

    def spoil(self, model, feeds):
        ways = [self.attribute, self.attribute, self.attribute, self.input_shape, self.input_shape, self.input_type, self.input_values, self.constant,
                self.constant, self.constant_shape, self.wiring, self.wiring, self.operator, self.opset, self.outputs, self.drop_attribute]
        for _ in range(int(self.rng.integers(1, 4))):
            self.pick(ways)(model, feeds)
        return model, feeds

    def node(self, model):
        return self.pick(list(model.graph.node))

    def number(self):
        return int(self.pick(INTS)) if self.rng.random() < 0.8 else int(self.rng.integers(-10, 11))

    def attribute(self, model, feeds):
        node = self.node(model)
        if not node.attribute:
            return
        a = self.pick(list(node.attribute))
        if a.type == AttributeProto.INT:
            a.i = self.number()
        elif a.type == AttributeProto.FLOAT:
            a.f = self.pick(FLOATS)
        elif a.type == AttributeProto.STRING:
            a.s = self.pick(STRINGS)
        elif a.type == AttributeProto.INTS:
            self.change_list(a.ints, self.number)
        elif a.type == AttributeProto.FLOATS:
            self.change_list(a.floats, lambda: self.pick(FLOATS))
        elif a.type == AttributeProto.STRINGS:
            self.change_list(a.strings, lambda: self.pick(STRINGS))
        elif a.type == AttributeProto.GRAPH and a.g.node:
            inner = onnx.ModelProto()
            inner.graph.CopyFrom(a.g)
            self.pick([self.attribute, self.wiring, self.operator, self.constant])(inner, feeds)
            a.g.CopyFrom(inner.graph)

    def change_list(self, items, make):
        how = self.rng.random()
        if how < 0.5 and len(items):
            items[int(self.rng.integers(len(items)))] = make()
        elif how < 0.7:
            items.append(make())
        elif how < 0.9 and len(items):
            del items[int(self.rng.integers(len(items)))]
        else:
            del items[:]

    def drop_attribute(self, model, feeds):
        node = self.node(model)
        if node.attribute:
            del node.attribute[int(self.rng.integers(len(node.attribute)))]

    def other_shape(self, shape):
        shape = list(shape)
        how = self.rng.random()
        if how < 0.3:
            shape.insert(int(self.rng.integers(len(shape) + 1)), self.pick([0, 1, 2, 3]))
        elif how < 0.6 and shape:
            del shape[int(self.rng.integers(len(shape)))]
        elif shape:
            shape[int(self.rng.integers(len(shape)))] = self.pick([0, 1, 2, 5, 17, 1000])
        return shape[:9]

    def input_shape(self, model, feeds):
        if not feeds:
            return
        name = self.pick(sorted(feeds))
        shape = self.other_shape(feeds[name].shape)
        if np.prod(shape, dtype=np.float64) > 2e6:
            return
        feeds[name] = np.resize(feeds[name], shape) if feeds[name].size else np.zeros(shape, feeds[name].dtype)
        if feeds[name].dtype == object:
            feeds[name] = np.full(shape, "x", dtype=object)
        self.declare(model, name, None if self.rng.random() < 0.5 else shape)

    def declare(self, model, name, shape, dtype=None):
        for info in model.graph.input:
            if info.name == name:
                dtype = dtype or info.type.tensor_type.elem_type
                info.CopyFrom(onnx.helper.make_tensor_value_info(name, dtype, shape))

    def input_type(self, model, feeds):
        numeric = [n for n in sorted(feeds) if feeds[n].dtype != object]
        if not numeric:
            return
        name, dtype = self.pick(numeric), self.pick(TYPES)
        with np.errstate(all="ignore"):
            feeds[name] = feeds[name].astype(onnx.helper.tensor_dtype_to_np_dtype(dtype))
        self.declare(model, name, None if self.rng.random() < 0.5 else list(feeds[name].shape), dtype)

    def wild(self, array):
        array = array.copy()
        flat = array.reshape(-1)
        for i in self.rng.integers(0, max(1, array.size), min(array.size, 3)):
            if array.dtype == object:
                flat[i] = self.pick(STRINGS).decode(errors="replace")
            elif array.dtype.kind == "f":
                with np.errstate(over="ignore"):
                    flat[i] = self.pick(FLOATS)
            elif array.dtype.kind in "iu":
                flat[i] = np.asarray(self.number() & 0xFFFFFFFFFFFFFFFF, np.uint64).astype(array.dtype)
        return array

    def input_values(self, model, feeds):
        if feeds:
            name = self.pick(sorted(feeds))
            feeds[name] = self.wild(feeds[name])

    def constant(self, model, feeds):
        if model.graph.initializer:
            t = self.pick(list(model.graph.initializer))
            if t.data_type in TYPES:
                t.CopyFrom(numpy_helper.from_array(self.wild(numpy_helper.to_array(t)), t.name))

    def constant_shape(self, model, feeds):
        if model.graph.initializer:
            t = self.pick(list(model.graph.initializer))
            if t.data_type in TYPES:
                array = numpy_helper.to_array(t)
                shape = self.other_shape(array.shape)
                if np.prod(shape, dtype=np.float64) < 1e6:
                    t.CopyFrom(numpy_helper.from_array(np.resize(array, shape) if array.size else np.zeros(shape, array.dtype), t.name))

    def wiring(self, model, feeds):
        node = self.node(model)
        names = [i.name for i in model.graph.input] + [t.name for t in model.graph.initializer] + [o for n in model.graph.node for o in n.output]
        how = self.rng.random()
        if how < 0.4 and node.input and names:
            node.input[int(self.rng.integers(len(node.input)))] = self.pick(names)
        elif how < 0.6 and node.input:
            node.input[int(self.rng.integers(len(node.input)))] = ""
        elif how < 0.8 and node.input:
            del node.input[int(self.rng.integers(len(node.input)))]
        elif names:
            node.input.append(self.pick(names))

    def operator(self, model, feeds):
        node = self.node(model)
        schema = self.pick(SCHEMAS)
        node.op_type, node.domain = schema.name, schema.domain
        if schema.domain and not any(o.domain == schema.domain for o in model.opset_import):
            model.opset_import.append(onnx.helper.make_opsetid(schema.domain, schema.since_version))

    def opset(self, model, feeds):
        if model.opset_import:
            model.opset_import[0].version = int(self.rng.integers(1, 29))

    def outputs(self, model, feeds):
        node = self.node(model)
        if self.rng.random() < 0.5:
            node.output.append(f"more{len(node.output)}")
        elif len(node.output):
            model.graph.output.append(onnx.ValueInfoProto(name=self.pick(list(node.output)) or "none"))


SCHEMAS = [s for s in onnx.defs.get_all_schemas() if s.domain in ("", "ai.onnx.ml", "ai.onnx.preview.training")]


def sanitized_environment(build):
    def library(name):
        return subprocess.run(["gcc", f"-print-file-name={name}"], capture_output=True, text=True, check=True).stdout.strip()

    # With the C++ library: without it the sanitizer finds no function behind its own __cxa_throw, and ends at the first exception.
    return {"LD_PRELOAD": f"{library('libasan.so')} {library('libstdc++.so.6')}", "PYTHONPATH": os.path.join(build, "python"),
            "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1:max_allocation_size_mb=4096", "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1"}


def says_where(message, model):
    """An error names the operator, a node, or what of the model it is about."""
    ops = {n.op_type for n in model.graph.node} | {n.op_type for g in model.graph.node for a in g.attribute for n in a.g.node}
    return any(op in message for op in ops) or re.search(r"input '|output '|opset|initializer|value '|name '|constant '|tensor '|domain|node", message)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--only", help="recipes, separated by commas")
    parser.add_argument("--replay", type=int, metavar="SEED")
    parser.add_argument("--sanitized", metavar="BUILD", help="a build with address and undefined-behaviour sanitizers")
    parser.add_argument("--save", default="differences", metavar="FOLDER")
    parser.add_argument("--messages", action="store_true", help="how often each kind of error came")
    options = parser.parse_args()
    names, weights = recipe_weights(options.only)
    environment = sanitized_environment(os.path.abspath(options.sanitized)) if options.sanitized else {}
    engine = Engine("sardonyx", seconds=120, memory=0 if options.sanitized else 4 << 30, environment=environment)
    outcomes, messages, bad = collections.Counter(), collections.Counter(), 0
    started = time.time()
    first, count = (options.replay, 1) if options.replay is not None else (options.seed, options.graphs)
    for seed in range(first, first + count):
        d = draw_model(seed, names, weights, options.nodes)
        if not d.nodes:
            continue
        try:
            model, feeds = Spoiler(seed).spoil(d.model(), dict(d.feeds))
            data = model.SerializeToString()
        except (ValueError, OverflowError, UnicodeEncodeError):
            outcomes["cannot be written"] += 1
            continue
        answer = engine.run(data, feeds, optimize=seed % 2 == 0, threads=1 + seed % 3, memory_limit=256 << 20)
        outcomes[answer[0]] += 1
        complaint = ""
        if answer[0] in ("crash", "hang"):
            complaint = f"{answer[0]}: {answer[1]}"
        elif answer[0] == "error":
            messages[re.sub(r"'[^']*'|\d+", "#", answer[2])[:150]] += 1
            if not says_where(answer[2], model):
                complaint = f"an error that does not say where: {answer[2]}"
        if complaint:
            bad += 1
            print(f"seed {seed}: {', '.join(n.op_type for n in model.graph.node)}: {complaint}", flush=True)
            os.makedirs(options.save, exist_ok=True)
            with open(os.path.join(options.save, f"hostile_{seed}.onnx"), "wb") as f:
                f.write(data)
        if options.replay is not None:
            print(onnx.printer.to_text(model), feeds, answer, sep="\n")
    engine.stop()
    if options.messages:
        for text, n in messages.most_common():
            print(n, text)
    print(f"{sum(outcomes.values())} models in {time.time() - started:.0f} s: " + ", ".join(f"{n} {o}" for o, n in outcomes.most_common()) + f"; {bad} complaints")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.stdout.reconfigure(line_buffering=True)
    sys.exit(main())
