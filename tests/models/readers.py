"""Recorded models with further readers behind each of their outputs: readers.py

The models are no part of the repository: see run_models.py; without them the test is skipped (exit code 77). Views (Reshape, Unsqueeze), an
Identity, a copying reader, one that may compute in place, and a subgraph's capture must all see what the output holds, and that must be
what the model without them gives: with its outputs kept, and with the readers' outputs alone.
"""

import json
import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper, numpy_helper
from run_models import SKIPPED, find_models

sys.path.insert(0, str(Path(__file__).parent.parent / "differential"))
import sardonyx  # noqa: E402

LARGEST = 64 << 20  # bytes of a model file: what larger ones do, smaller ones of the same kind do too
OPTIONS = sardonyx.SessionOptions()


class Readers:
    """The model's outputs with readers: `expected` says how each new output comes from which of the old ones."""

    def __init__(self, model, keep):
        self.model = onnx.ModelProto()
        self.model.CopyFrom(model)
        self.graph = self.model.graph
        self.opset = next((o.version for o in self.model.opset_import if o.domain in ("", "ai.onnx")), 0)
        self.expected = {}
        self.count = 0
        outputs = [o for o in self.graph.output if o.type.WhichOneof("value") == "tensor_type" and o.type.tensor_type.elem_type]
        if not keep:
            del self.graph.output[:]
        if not self.opset:
            self.opset = 17
            self.model.opset_import.append(helper.make_opsetid("", self.opset))
        if outputs:
            self.graph.input.append(helper.make_tensor_value_info("reader_condition", T.BOOL, ()))
        for o in outputs:
            self.read(o.name, o.type.tensor_type.elem_type)

    def constant(self, numbers):
        self.count += 1
        name = f"reader_constant_{self.count}"
        self.graph.initializer.append(numpy_helper.from_array(np.array(numbers, np.int64), name))
        return name

    def add(self, op, inputs, of, dtype, change=lambda y: y, shown=True, **attributes):
        self.count += 1
        out = f"reader_{self.count}_{op}"
        self.graph.node.append(helper.make_node(op, inputs, [out], **attributes))
        if shown:
            self.graph.output.append(helper.make_tensor_value_info(out, dtype, None))
            self.expected[out] = (of, change)
        return out

    def branch(self, name, of, dtype, change=lambda y: y):
        bodies = {}
        for which in ("then_branch", "else_branch"):
            self.count += 1
            out = f"reader_handed_{self.count}"
            bodies[which] = helper.make_graph([helper.make_node("Identity", [name], [out])], which, [], [helper.make_tensor_value_info(out, dtype, None)])
        self.add("If", ["reader_condition"], of, dtype, change, **bodies)

    def read(self, name, dtype):
        self.branch(name, name, dtype)
        self.add("Identity", [name], name, dtype)
        if self.opset >= 5:
            flat = self.add("Reshape", [name, self.constant([-1])], name, dtype)
            self.add("Concat", [flat, flat], name, dtype, lambda y: np.concatenate([y.reshape(-1)] * 2), axis=0)
        if self.opset >= 13:
            self.add("Unsqueeze", [name, self.constant([0])], name, dtype)
        else:
            self.add("Unsqueeze", [name], name, dtype, axes=[0])
        if dtype == T.FLOAT:
            negative = self.add("Neg", [name], name, dtype, shown=False)
            self.branch(negative, name, dtype, lambda y: -y)
            self.add("Neg", [negative], name, dtype)


def run(model, feeds):
    """Outputs by name, of a second run: it finds what the first one left."""
    session = sardonyx.InferenceSession(model.SerializeToString(), OPTIONS, providers=["CPUExecutionProvider"])
    session.run(None, feeds)
    return dict(zip([o.name for o in session.get_outputs()], session.run(None, feeds)))


def same(a, b):
    a, b = np.asarray(a).reshape(-1), np.asarray(b).reshape(-1)
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    return a.tobytes() == b.tobytes() if a.dtype.kind not in "OU" else list(a) == list(b)


def close(a, b):
    """Layouts and fusions may differ where an output is read once more."""
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype.kind not in "fV" or a.dtype.itemsize < 4:
        return a.size == b.size
    scale = max(1e-3, float(np.nanmax(np.abs(b), initial=0, where=np.isfinite(b))))
    return a.size == b.size and np.allclose(a.reshape(-1), b.reshape(-1), rtol=2e-2, atol=2e-2 * scale, equal_nan=True)


def problems_of(path, feeds):
    model = onnx.load(path)
    plain = run(model, feeds)
    for keep in (True, False):
        readers = Readers(model, keep)
        if not readers.expected:
            continue
        seen = run(readers.model, {**feeds, "reader_condition": np.array(True)})
        own = {}
        for name, (of, change) in readers.expected.items():
            truth = own.setdefault(of, seen[of] if keep else seen[name])
            if not same(change(truth), seen[name]):
                yield f"{name} saw something else than {of}"
        for of, truth in own.items():
            if not close(truth, plain[of]):
                yield f"{of} is not what the model gives without readers"


def cases(models):
    """(name, model file, feeds) of every recorded model."""
    for case in sorted([*models.rglob("*.case.json"), *models.rglob("case.json")]):
        recorded = json.loads(case.read_text())
        inputs = (recorded.get("sets") or [recorded])[0].get("inputs")
        if not isinstance(inputs, dict) or "model" not in recorded:
            continue
        below = models / "ort_testdata" if "ort_testdata_expected" in case.parts else case.parent
        path = below / recorded["model"]
        if not path.is_file() or path.stat().st_size > LARGEST:
            continue
        try:
            feeds = {k: np.load(case.parent / v) for k, v in inputs.items()}
        except (ValueError, TypeError, OSError):  # text, and types that NumPy lacks
            continue
        yield str(case.parent.relative_to(models) / case.name), path, feeds


def main():
    models = find_models()
    if not models:
        print("no models")
        return SKIPPED
    count = failures = 0
    refused = []
    for name, path, feeds in cases(models):
        try:
            found = list(problems_of(path, feeds))
        except Exception as e:  # models that are listed as not running here, and what cannot be written as one file
            refused.append(f"{name}: {str(e).splitlines()[0][:150]}")
            continue
        count += 1
        for text in found:
            failures += 1
            print(f"FAIL {name}: {text}")
    for text in refused:
        print(f"left out: {text}")
    print(f"{count} models, {len(refused)} left out, {failures} failures")
    return 1 if failures or not count else 0


if __name__ == "__main__":
    sys.exit(main())
