"""Writes operator cases as text (see run_op_cases.cc): models made here, with the answers of ONNX Runtime or of a formula."""

import multiprocessing

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

NAMES = {
    TensorProto.FLOAT: "float32", TensorProto.DOUBLE: "float64", TensorProto.FLOAT16: "float16",
    TensorProto.BFLOAT16: "bfloat16", TensorProto.INT8: "int8", TensorProto.INT16: "int16", TensorProto.INT32: "int32",
    TensorProto.INT64: "int64", TensorProto.UINT8: "uint8", TensorProto.UINT16: "uint16", TensorProto.UINT32: "uint32",
    TensorProto.UINT64: "uint64", TensorProto.BOOL: "bool", TensorProto.STRING: "string",
    TensorProto.INT4: "int4", TensorProto.UINT4: "uint4", TensorProto.FLOAT8E4M3FN: "float8e4m3fn",
}


def number(x):
    if isinstance(x, (bool, np.bool_)):
        return "true" if x else "false"
    if isinstance(x, (int, np.integer)):
        return str(int(x))
    if isinstance(x, np.float64):
        text = repr(float(x))
    else:
        text = np.format_float_positional(np.float32(x), unique=True, trim="0") if 1e-3 <= abs(float(x)) < 1e7 or x == 0 else \
            np.format_float_scientific(np.float32(x), unique=True, trim="0")
    return text if any(c in text for c in ".enif") else text + ".0"


def quoted(s):
    data = s if isinstance(s, bytes) else str(s).encode()
    return '"' + "".join(chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\x{b:02x}" for b in data) + '"'


def elem(array, onnx_type=None):
    return NAMES[onnx_type if onnx_type is not None else helper.np_dtype_to_tensor_dtype(array.dtype)] if array.dtype.kind not in "OUS" else "string"


def tensor_type(array, onnx_type=None):
    return f"{elem(array, onnx_type)}[{','.join(map(str, array.shape))}]"


def elements(array):
    if array.dtype.kind in "OUS":
        return " ".join(quoted(x) for x in array.reshape(-1))
    if array.dtype.kind not in "biuf":
        array = array.astype(np.float32)
    return " ".join(number(x) for x in array.reshape(-1))


def literal(array, onnx_type=None):
    return f"{tensor_type(array, onnx_type)} {elements(array)}".rstrip()


def attribute(a):
    v = helper.get_attribute_value(a)
    if a.type == onnx.AttributeProto.FLOAT:
        return number(np.float32(v))
    if a.type == onnx.AttributeProto.INT:
        return str(v)
    if a.type == onnx.AttributeProto.STRING:
        return quoted(v)
    if a.type == onnx.AttributeProto.TENSOR:
        array = numpy_helper.to_array(v)
        return f"{tensor_type(array, v.data_type)}({elements(array)})"
    if a.type == onnx.AttributeProto.INTS:
        return "[" + ", ".join(map(str, v)) + "]"
    if a.type == onnx.AttributeProto.FLOATS:
        return "[" + ", ".join(number(np.float32(x)) for x in v) + "]"
    if a.type == onnx.AttributeProto.STRINGS:
        return "[" + ", ".join(quoted(x) for x in v) + "]"
    raise ValueError(f"attribute {a.name} of type {a.type}")


def value_type(info):
    t = info.type.tensor_type
    if not t.HasField("shape"):
        return NAMES[t.elem_type]
    dims = [str(d.dim_value) if d.HasField("dim_value") else d.dim_param or "?" for d in t.shape.dim]
    return f"{NAMES[t.elem_type]}[{','.join(dims)}]"


def graph_lines(graph, feeds, indent=""):
    initial = {t.name: t for t in graph.initializer}
    lines = []
    for i in graph.input:
        if i.name in feeds:
            lines.append(f"{indent}input {i.name}: {tensor_type(feeds[i.name], i.type.tensor_type.elem_type)} = {elements(feeds[i.name])}".rstrip())
        else:
            lines.append(f"{indent}input {i.name}: {value_type(i)}")
    for name, t in initial.items():
        array = numpy_helper.to_array(t)
        lines.append(f"{indent}constant {name}: {literal(array, t.data_type)}")
    for n in graph.node:
        op = f"{n.domain}.{n.op_type}" if n.domain else n.op_type
        plain = [a for a in n.attribute if a.type != onnx.AttributeProto.GRAPH]
        inner = [a for a in n.attribute if a.type == onnx.AttributeProto.GRAPH]
        attrs = " {" + ", ".join(f"{a.name}={attribute(a)}" for a in plain) + "}" if plain else ""
        lines.append(f"{indent}{', '.join(o or '_' for o in n.output)} = {op}({', '.join(i or '_' for i in n.input)}){attrs}")
        for a in inner:
            lines.append(f"{indent}  {a.name} {{")
            lines += graph_lines(a.g, {}, indent + "    ")
            lines.append(f"{indent}  }}")
    lines += [f"{indent}output {o.name}" for o in graph.output]
    return lines


def _run_shared(session, feeds, shared):
    """Some kernels want an output to be the very buffer of an input: `shared`, names of such outputs with their inputs."""
    binding = session.io_binding()
    values = {n: onnxruntime.OrtValue.ortvalue_from_numpy(x.copy()) for n, x in feeds.items()}
    for n, value in values.items():
        binding.bind_ortvalue_input(n, value)
    for o in session.get_outputs():
        if o.name in shared:
            binding.bind_ortvalue_output(o.name, values[shared[o.name]])
        else:
            binding.bind_output(o.name)
    session.run_with_iobinding(binding)
    return [np.array(x.numpy()) for x in binding.get_outputs()]


def _answer(pipe, model, feeds, shared):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        pipe.send(_run_shared(session, feeds, shared) if shared else session.run(None, feeds))
    except Exception as e:  # every kind of refusal has its own type
        pipe.send(str(e).splitlines()[0])


def onnx_runtime(model, feeds, shared=None):
    """The outputs, or why there are none. In a process of its own: some kernels of 1.31 crash on models that the schema permits."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_answer, args=(sender, model, feeds, shared))
    child.start()
    sender.close()
    try:
        return receiver.recv()
    except EOFError:
        return "ONNX Runtime crashed"
    finally:
        child.join()


class Recorder:
    """Collects cases of one file. Names of cases must be unique in it."""

    def __init__(self, about, seed=4):
        self.text = [about, ""]
        self.seen = set()
        self.rng = np.random.default_rng(seed)

    def normal(self, *shape, dtype=np.float32):
        # Few digits keep the files small, and exact in every float type wide enough.
        return (np.round(self.rng.standard_normal(shape) * 64) / 64).astype(dtype)

    def ints(self, low, high, *shape, dtype=np.int64):
        return np.asarray(self.rng.integers(low, high, shape)).astype(dtype)

    def model(self, name, graph, feeds, opsets, expect=None, tolerance=None, shared=None):
        """`expect`: the outputs; None asks ONNX Runtime."""
        assert name not in self.seen, name
        self.seen.add(name)
        model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid(d, v) for d, v in opsets.items()])
        if expect is None:
            expect = onnx_runtime(model.SerializeToString(), feeds, shared)
            if isinstance(expect, str):
                print(f"not recorded: {name}: {expect}")
                return
        self.text.append(f"== {name}")
        for domain, version in opsets.items():
            self.text.append(f"opset {domain} {version}" if domain else f"opset {version}")
        self.text += graph_lines(graph, feeds)
        self.text.append("--")
        if tolerance is not None:
            self.text.append(f"within {tolerance[0]} {tolerance[1]}")
        for o, array in zip(graph.output, expect):
            declared = o.type.tensor_type.elem_type
            self.text.append(f"constant {o.name}: {literal(np.asarray(array), declared if declared else None)}")
        self.text.append("")

    def case(self, op, inputs, outputs=1, domain="com.microsoft", opset=None, name="", expect=None, tolerance=None,
             constants=(), types=None, out_types=None, shared=None, declared=None, **attributes):
        """One node. `inputs`: arrays, None for one that is left out; `constants`: positions of those that are weights;
        `types`: TensorProto types where NumPy's are not enough; `outputs`: how many, or a list of 0 and 1; `shared`: names of outputs that must be the buffers of inputs;
        `declared`: shapes that the model given to ONNX Runtime declares, by position, None for any, where its checks of declared shapes are stricter than its kernels."""
        wanted = [1] * outputs if isinstance(outputs, int) else outputs
        ins, feeds, weights, names = [], {}, [], []
        for i, x in enumerate(inputs):
            if x is None:
                names.append("")
                continue
            n = f"x{i}"
            names.append(n)
            t = (types or {}).get(i) or (TensorProto.STRING if x.dtype.kind in "OUS" else helper.np_dtype_to_tensor_dtype(x.dtype))
            if i in constants:
                weights.append(helper.make_tensor(n, t, x.shape, x.tobytes(), raw=True))
            else:
                ins.append(helper.make_tensor_value_info(n, t, (declared or {}).get(i, x.shape)))
                feeds[n] = x
        outs = [f"y{i}" if w else "" for i, w in enumerate(wanted)]
        node = helper.make_node(op, names, outs, domain=domain, **{k: v for k, v in attributes.items() if v is not None})
        infos = []
        for i, o in enumerate(outs):
            if o:
                info = onnx.ValueInfoProto()
                info.name = o
                if out_types and i in out_types:
                    info.type.tensor_type.elem_type = out_types[i]
                infos.append(info)
        graph = helper.make_graph([node], "case", ins, infos, weights)
        opsets = {"": opset or 21}
        if domain:
            opsets = {"": 21, domain: opset or 1}
        self.model(f"{op} {name}".strip(), graph, feeds, opsets, expect, tolerance, shared)

    def fails(self, op, text, message):
        """A model that must be refused: `text` as run_op_cases.cc reads it; `message`: part of the error."""
        name = f"{op} refused: {message}"
        assert name not in self.seen, name
        self.seen.add(name)
        self.text += [f"== {name}", *text.strip().splitlines(), "--", f"fails {message}", ""]

    def write(self, path):
        with open(path, "w", encoding="ascii") as f:
            f.write("\n".join(self.text).rstrip() + "\n")
        print(f"{path}: {len(self.seen)} cases")
