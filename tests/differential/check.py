"""Runs one model on both engines, says what differs, and traces it to a node."""

import dataclasses
import os

import known
import numpy as np
import onnx
from compare import same
from draw import all_inputs
from engines import Engine
from onnx import helper


@dataclasses.dataclass
class Finding:
    outcome: str  # for counting
    seed: int
    text: str = ""  # "" when nothing differs
    key: str = ""  # what to count it with
    reason: str = ""  # why it is expected to differ


ROUNDING = ("QuantizeLinear", "DynamicQuantizeLinear", "QLinearMatMul", "QLinearConv", "QLinearAdd", "QLinearMul", "QLinearSigmoid", "QLinearLeakyRelu",
            "QGemm", "QLinearConcat", "QLinearWhere", "QLinearSoftmax", "QLinearAveragePool", "QLinearGlobalAveragePool", "Resize")


def slack_of(model):
    """Integers made by rounding (quantisation, Resize of bytes) may differ by one."""
    return 1 if any(n.op_type in ROUNDING for n in model.graph.node) else 0


class Checker:
    def __init__(self, folder):
        self.folder = folder
        self.ours, self.theirs = Engine("sardonyx"), Engine("onnxruntime")

    def stop(self):
        self.ours.stop()
        self.theirs.stop()

    def answers(self, model, feeds):
        data = model.SerializeToString()
        return (self.ours.run(data, feeds, optimize=True, threads=2), self.ours.run(data, feeds, optimize=False), self.theirs.run(data, feeds))

    def difference(self, model, answers):
        """(what kind, in words) or ("", "")."""
        ours, plain, theirs = answers
        for answer, how in ((ours, ""), (plain, " without passes")):
            if answer[0] in ("crash", "hang"):
                return answer[0], f"{answer[0]}{how}: {answer[1]}"
        if theirs[0] != "ok":
            return self.with_and_without(model, ours, plain)
        for answer, how in ((ours, ""), (plain, " without passes")):
            if answer[0] == "error":
                return "refused", f"refused{how}: {answer[2]}"
            text = self.outputs_differ(model, answer[1], theirs[1])
            if text:
                return "values", text + how
        return "", ""

    def with_and_without(self, model, ours, plain):
        if ours[0] != plain[0]:
            return "passes", f"with passes: {ours[0]} {ours[2] if ours[0] == 'error' else ''}; without: {plain[0]} {plain[2] if plain[0] == 'error' else ''}"
        if ours[0] == "ok":
            text = self.outputs_differ(model, ours[1], plain[1])
            if text:
                return "passes", f"with passes, compared to without: {text}"
        return "", ""

    def outputs_differ(self, model, ours, theirs):
        for name, a, b in zip([o.name for o in model.graph.output], ours, theirs):
            text = same(a, b, slack_of(model))
            if text:
                return f"output {name}: {text}"
        return ""

    def check_specials(self, model, feeds, seed):
        """What passes must not change. ONNX Runtime's kernels and the definitions differ in what becomes of NaN."""
        data = model.SerializeToString()
        ours, plain = self.ours.run(data, feeds, optimize=True, threads=2), self.ours.run(data, feeds, optimize=False)
        kind, text = self.with_and_without(model, ours, plain)
        outcome = "compared" if ours[0] == plain[0] == "ok" else "not run"
        if not kind:
            return Finding(outcome, seed)
        self.save(f"specials_{seed}", model, feeds)
        return Finding(outcome, seed, f"graph of {', '.join(n.op_type for n in model.graph.node)}: {text}"[:1200], "specials: " + kind)

    def check(self, model, feeds, seed):
        answers = self.answers(model, feeds)
        kind, text = self.difference(model, answers)
        ours, theirs = answers[0][0] == "ok", answers[2][0] == "ok"
        outcome = "compared" if ours and theirs else "run only here" if ours else "run only there" if theirs else "neither runs it"
        if not kind:
            return Finding(outcome, seed)
        node, alone, inputs, its_text = self.trace(model, feeds) if len(model.graph.node) > 1 else (model.graph.node[0], model, feeds, text)
        if node is not None:
            reason = known.reason(node, alone, inputs, its_text)
            if reason:
                return Finding(outcome, seed, its_text, node.op_type, reason)
            name = f"{node.op_type}_{seed}"
            text = f"{node.op_type} {signature(node, inputs)} (opset {opsets(alone)}): {its_text}"
            self.save(name, alone, inputs)
        else:
            name = f"graph_{seed}"
            text = f"graph of {', '.join(n.op_type for n in model.graph.node)}: {text}"
            self.save(name, model, feeds)
        key = node.op_type + ": " + kind if node is not None else "graph: " + kind
        return Finding(outcome, seed, text[:1200], key)

    def trace(self, model, feeds):
        """The first node that alone makes the engines differ, as a model with its inputs: (node, model, feeds, difference)."""
        values = dict(feeds)
        constants = {t.name: t for t in model.graph.initializer}
        for node in model.graph.node:
            try:
                alone, inputs = alone_model(model, node, values, constants)
            except ValueError:
                return None, None, None, ""
            answers = self.answers(alone, inputs)
            kind, text = self.difference(alone, answers)
            if kind:
                return node, alone, inputs, text
            good = answers[2] if answers[2][0] == "ok" else answers[1]
            if good[0] != "ok":
                return None, None, None, ""
            values.update({o.name: v for o, v in zip(alone.graph.output, good[1])})
            if node.op_type == "Constant":
                constants[node.output[0]] = tensor_of(node)
        return None, None, None, ""

    def save(self, name, model, feeds):
        os.makedirs(self.folder, exist_ok=True)
        base = os.path.join(self.folder, name)
        onnx.save(model, base + ".onnx")
        np.savez(base + ".npz", **{k: np.asarray(v, dtype=object) if isinstance(v, list) else v for k, v in feeds.items()})

    def describe(self, model, feeds):
        lines = [onnx.printer.to_text(model)]
        lines += [f"{k} = {v!r}" for k, v in feeds.items()]
        lines += [f"{how}: {answer}" for how, answer in zip(("sardonyx", "without passes", "onnxruntime"), self.answers(model, feeds))]
        return "\n".join(lines)


def tensor_of(node):
    made = onnx.TensorProto()
    made.CopyFrom(next(a.t for a in node.attribute if a.name == "value"))
    made.name = node.output[0]
    return made


def alone_model(model, node, values, constants):
    """The node alone: what it reads comes as inputs, constants stay constants."""
    infos, weights, feeds = [], [], {}
    inner = set(made_within(node))
    for name in dict.fromkeys(all_inputs(node)):
        if not name or name in inner:
            continue
        if name in constants:
            weights.append(constants[name])
        elif name in values:
            infos.append(info_of(name, values[name]))
            feeds[name] = values[name]
        else:
            raise ValueError(name)
    graph = helper.make_graph([node], "alone", infos, [onnx.ValueInfoProto(name=o) for o in node.output if o], weights)
    return helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version), feeds


def made_within(node):
    """Names that a node's subgraphs define, at any depth."""
    for a in node.attribute:
        if a.type != onnx.AttributeProto.GRAPH:
            continue
        yield from (i.name for i in a.g.input)
        for inner in a.g.node:
            yield from inner.output
            yield from made_within(inner)


def info_of(name, value):
    if isinstance(value, list):
        if not value or not isinstance(value[0], np.ndarray):
            raise ValueError(name)
        return helper.make_tensor_sequence_value_info(name, number_of(value[0]), None)
    if not isinstance(value, np.ndarray):
        raise ValueError(name)
    return helper.make_tensor_value_info(name, number_of(value), value.shape)


def number_of(array):
    return onnx.TensorProto.STRING if array.dtype.kind in "OUS" else helper.np_dtype_to_tensor_dtype(array.dtype)


def opsets(model):
    return ", ".join(f"{o.domain} {o.version}".strip() for o in model.opset_import)


def signature(node, feeds):
    parts = [f"{a.name}={helper.get_attribute_value(a)!r}"[:80] for a in node.attribute if a.type not in (onnx.AttributeProto.GRAPH, onnx.AttributeProto.TENSOR)]
    shapes = [f"{feeds[i].dtype}{list(feeds[i].shape)}" if isinstance(feeds.get(i), np.ndarray) else "constant" if i else "-" for i in node.input]
    return f"({', '.join(shapes)}) {{{', '.join(parts)}}}"


