"""Draws a model: a pool of values that operators take and add to, and the numbers, shapes and types they are made of.

Everything comes from one seed: the same seed gives the same model and the same inputs.
"""

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper, numpy_helper

FLOATS = [T.FLOAT, T.DOUBLE, T.FLOAT16, T.BFLOAT16]
INTS = [T.INT8, T.INT16, T.INT32, T.INT64, T.UINT8, T.UINT16, T.UINT32, T.UINT64]
PLAIN = [T.FLOAT, T.DOUBLE, T.FLOAT16, *INTS, T.BOOL]  # NumPy has them
TYPE_NAMES = {
    "float": T.FLOAT, "double": T.DOUBLE, "float16": T.FLOAT16, "bfloat16": T.BFLOAT16, "int8": T.INT8, "int16": T.INT16,
    "int32": T.INT32, "int64": T.INT64, "uint8": T.UINT8, "uint16": T.UINT16, "uint32": T.UINT32, "uint64": T.UINT64,
    "bool": T.BOOL, "string": T.STRING, "float8e4m3fn": T.FLOAT8E4M3FN, "float8e4m3fnuz": T.FLOAT8E4M3FNUZ,
    "float8e5m2": T.FLOAT8E5M2, "float8e5m2fnuz": T.FLOAT8E5M2FNUZ, "int4": T.INT4, "uint4": T.UINT4,
}
NEWEST = 26
WORDS = ["", "a", "A", "süß", "word", "two words", " x ", "1", "-2.5", "ab-cd", "日本", "Zebra", "the", "THE"]


class Skip(Exception):
    """What was drawn does not fit together: draw again."""


class Value:
    """exact: no rounding has touched it, so that comparing, rounding and indexing by it are safe.
    tame: of moderate size, so that exponentials and powers of it stay finite."""

    def __init__(self, name, dtype=None, shape=None, exact=True, tame=True, data=None):
        self.name, self.dtype, self.shape, self.exact, self.tame, self.data = name, dtype, shape, exact, tame, data


class Draw:
    def __init__(self, seed, opset=None, few_symbols=False):
        self.rng = np.random.default_rng(seed)
        self.opset = opset or int(self.rng.choice([7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, NEWEST]))
        self.ml = int(self.rng.integers(1, 6))
        self.nodes, self.inputs, self.weights, self.feeds, self.pool = [], [], [], {}, []
        self.domains = set()
        self.count = 0
        self.results = []  # outputs of nodes, in order: names
        self.dims = self.rng.choice(["static", "symbolic", "rank", "unknown"], p=[0.55, 0.27, 0.13, 0.05])
        # Of its own, so that the graph stays the same whatever is declared of it.
        self.sizes_rng = np.random.default_rng([seed, 1])
        self.few_symbols = few_symbols or (self.dims == "symbolic" and self.sizes_rng.random() < 0.5)

    # Choices.

    def chance(self, p):
        return bool(self.rng.random() < p)

    def choice(self, items):
        return items[int(self.rng.integers(len(items)))]

    def int(self, low, high):
        """Both ends included."""
        return int(self.rng.integers(low, high + 1))

    def dim(self, empty=0.03, large=0.08):
        x = self.rng.random()
        if x < empty:
            return 0
        if x < empty + 0.15:
            return 1
        if x > 1 - large:
            return self.choice([15, 16, 17, 31, 33, 64, 65, 100, 129])
        return self.int(2, 9)

    def shape(self, rank=None, limit=6000, **kw):
        if rank is None:
            rank = int(self.rng.choice([0, 1, 2, 3, 4, 5], p=[0.08, 0.2, 0.27, 0.22, 0.18, 0.05]))
        shape = [self.dim(**kw) for _ in range(rank)]
        while np.prod(shape, dtype=np.int64) > limit:
            shape[int(np.argmax(shape))] = self.int(1, 5)
        return tuple(shape)

    def axis(self, rank, negative=True):
        if rank == 0:
            raise Skip
        return self.int(-rank if negative else 0, rank - 1)

    def axes(self, rank, count=None):
        count = self.int(0, rank) if count is None else count
        picked = self.rng.permutation(rank)[:count]
        return [int(a) - (rank if self.chance(0.3) else 0) for a in picked]

    def broadcast_shapes(self, n, rank=None):
        whole = self.shape(rank)
        shapes = []
        for i in range(n):
            s = tuple(1 if self.chance(0.2) else d for d in whole)
            if self.chance(0.3):
                s = s[self.int(0, len(s)):] if s else s
            shapes.append(s)
        if n:
            shapes[self.int(0, n - 1)] = whole
        return shapes

    # Types, from the schemas.

    def schema(self, op, domain=""):
        return onnx.defs.get_schema(op, {"": self.opset, "ai.onnx.ml": self.ml}.get(domain, 1), domain)

    def since(self, op, domain=""):
        try:
            return self.schema(op, domain).since_version
        except onnx.defs.SchemaError:
            raise Skip from None

    def need(self, op, version=1, domain=""):
        if self.since(op, domain) < version:
            raise Skip

    def type_of(self, op, argument=0, among=None, domain="", favour=(T.FLOAT,)):
        """A tensor type that the schema permits for an input (or, by name, a type variable)."""
        self.since(op, domain)
        schema = self.schema(op, domain)
        if isinstance(argument, str):
            texts = next(c.allowed_type_strs for c in schema.type_constraints if c.type_param_str == argument)
        else:
            texts = schema.inputs[argument].types
        types = [TYPE_NAMES[t[7:-1]] for t in texts if t.startswith("tensor(") and t[7:-1] in TYPE_NAMES]
        types = sorted(t for t in types if among is None or t in among)
        if not types:
            raise Skip
        liked = [t for t in types if t in favour]
        return self.choice(liked) if liked and self.chance(0.55) else self.choice(types)

    # Numbers.

    def numbers(self, dtype, shape, kind="normal"):
        """kind: normal; positive (in 0.1..4); unit (in -0.99..0.99); small (integers in -4..4); wild (extremes, NaN, infinities)."""
        n = int(np.prod(shape, dtype=np.int64))
        rng = self.rng
        if dtype == T.STRING:
            return np.array([self.choice(WORDS) for _ in range(n)], dtype=object).reshape(shape)
        if dtype == T.BOOL:
            return (rng.random(shape) < 0.5)
        numpy_type = helper.tensor_dtype_to_np_dtype(dtype)
        if dtype in INTS or dtype in (T.INT4, T.UINT4):
            low, high = (-8, 7) if dtype == T.INT4 else (0, 15) if dtype == T.UINT4 else (np.iinfo(numpy_type).min, np.iinfo(numpy_type).max)
            if kind == "wild":
                x = rng.choice(np.array([low, low + 1, 0, 1, high - 1, high, 3, 7 if low >= 0 else -3], dtype=object), size=shape)
            elif kind == "positive":
                x = rng.integers(1, 8, shape)
            elif kind == "full":
                x = rng.integers(max(low, -(2**62)), min(high, 2**62), shape, endpoint=True)
            else:
                x = rng.integers(max(low, -9), min(high, 9), shape, endpoint=True)
            return np.asarray(x).astype(numpy_type)
        if kind == "positive":
            x = 0.1 + rng.random(shape) * 4
        elif kind == "unit":
            x = rng.random(shape) * 1.98 - 0.99
        elif kind == "small":
            x = rng.integers(-4, 5, shape)
        else:
            x = rng.standard_normal(shape) * 2
        x = np.asarray(x, np.float64)
        if kind == "wild":
            special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e30, -1e30, 1e-40, 0.5, 1.5, -0.5, 2.5, 1.0, -1.0])
            x = np.where(rng.random(shape) < 0.5, rng.choice(special, size=shape), x)
        with np.errstate(over="ignore"):
            return np.asarray(x).astype(numpy_type)

    def fresh(self, prefix):
        self.count += 1
        return f"{prefix}{self.count}"

    def given(self, array, dtype=None, constant=None, exact=True, tame=True):
        """A value with these elements: an input of the model, or a constant of it (always, for types that NumPy lacks)."""
        array = np.asarray(array)
        if dtype is None:
            dtype = T.STRING if array.dtype.kind in "OUS" else helper.np_dtype_to_tensor_dtype(array.dtype)
        constant = self.chance(0.25) if constant is None else constant
        if dtype not in PLAIN and dtype != T.STRING:
            constant = True
        name = self.fresh("w" if constant else "x")
        value = Value(name, dtype, tuple(array.shape), exact, tame, array)
        if constant:
            if self.chance(0.15):
                value.name = name = self.fresh("c")
                self.nodes.append(helper.make_node("Constant", [], [name], value=tensor(name, array, dtype)))
            else:
                self.weights.append(tensor(name, array, dtype))
        else:
            self.inputs.append((name, dtype, tuple(array.shape)))
            self.feeds[name] = array
        return value

    def new(self, dtype, shape, kind="normal", constant=None):
        return self.given(self.numbers(dtype, shape, kind), dtype, constant, tame=kind != "wild")

    def ints(self, numbers, constant=None, dtype=T.INT64):
        """Indices, shapes, axes: an input or, mostly, a constant."""
        array = np.asarray(numbers, helper.tensor_dtype_to_np_dtype(dtype))
        return self.given(array, dtype, self.chance(0.7) if constant is None else constant)

    def pick(self, dtype, rank=None, shape=None, kind="normal", exact=False, tame=False, where=None, constant=None):
        """A value of the pool that fits, or a new one. where: a condition on the shape."""
        if kind == "normal" and self.chance(0.85):
            fits = [v for v in self.pool if v.dtype == dtype and v.shape is not None and (not exact or v.exact) and (not tame or v.tame)
                    and (rank is None or len(v.shape) == rank) and (shape is None or v.shape == tuple(shape))
                    and (where is None or where(v.shape))]
            if fits:
                return fits[int(self.rng.integers(max(0, len(fits) - 3), len(fits)))]
        if shape is None:
            for _ in range(200):
                shape = self.shape(rank)
                if where is None or where(shape):
                    break
            else:
                raise Skip
        return self.new(dtype, tuple(shape), kind, constant)

    # Nodes.

    def node(self, op, inputs, outputs=1, domain="", exact=None, tame=None, types=None, keep=True, **attributes):
        """Adds a node; its outputs join the pool where their types follow. outputs: how many, or a list of 0 (left out) and 1.
        exact, tame: of the outputs; where not given, as the inputs. None among the inputs and attributes is left out."""
        self.since(op, domain) if domain in ("", "ai.onnx.ml") else None
        while inputs and inputs[-1] is None:
            inputs = inputs[:-1]
        wanted = [1] * outputs if isinstance(outputs, int) else list(outputs)
        names = [self.fresh("t") if w else "" for w in wanted]
        made = helper.make_node(op, [v.name if v is not None else "" for v in inputs], names, domain=domain,
                                **{k: v for k, v in attributes.items() if v is not None})
        present = [v for v in inputs if v is not None]
        exact = all(v.exact for v in present) if exact is None else exact
        tame = all(v.tame for v in present) if tame is None else tame
        self.nodes.append(made)
        self.domains.add(domain)
        known = types if types is not None else self.infer(made, present, domain)
        out = []
        for name in names:
            if not name:
                out.append(None)
                continue
            dtype, shape = known.get(name, (None, None)) if isinstance(known, dict) else known[len(out)]
            value = Value(name, dtype, shape, exact, tame)
            out.append(value)
            self.results.append(name)
            if keep and dtype is not None and shape is not None and len(shape) <= 6 and np.prod(shape, dtype=np.int64) <= 60000:
                self.pool.append(value)
        return out[0] if outputs == 1 else out

    def infer(self, node, inputs, domain):
        if domain not in ("", "ai.onnx.ml"):
            return {}
        types = {v.name: helper.make_tensor_type_proto(v.dtype, v.shape) for v in inputs if v.dtype and v.shape is not None}
        data = {v.name: tensor(v.name, v.data, v.dtype) for v in inputs if v.data is not None and v.data.size < 100 and v.dtype != T.STRING}
        try:
            found = onnx.shape_inference.infer_node_outputs(
                self.schema(node.op_type, domain), node, types, data, opset_imports=self.opsets())
        except Exception:  # what it cannot infer does not join the pool
            return {}
        known = {}
        for name, t in found.items():
            if not t.HasField("tensor_type"):
                continue
            dims = t.tensor_type.shape.dim if t.tensor_type.HasField("shape") else None
            whole = dims is not None and all(d.HasField("dim_value") for d in dims)
            known[name] = (t.tensor_type.elem_type, tuple(d.dim_value for d in dims) if whole else None)
        return known

    # The model.

    def opsets(self):
        made = [helper.make_opsetid("", self.opset)]
        for domain in sorted(self.domains - {""}):
            made.append(helper.make_opsetid(domain, self.ml if domain == "ai.onnx.ml" else 1))
        return made

    def declared_by_few_symbols(self, shape):
        """Names that stand for several sizes, as exporters and people write them for every extent that they leave open."""
        rng = self.sizes_rng
        names = ["N", "N", "batch", "?"]
        return [d if rng.random() < 0.2 else names[int(rng.integers(len(names)))] for d in shape]

    def shorten_leading_axes(self):
        """Some inputs get leading axes of extent 1, which broadcast or no longer fit."""
        for i, (name, dtype, shape) in enumerate(self.inputs):
            if not shape or shape[0] < 2 or self.sizes_rng.random() > 0.3:
                continue
            self.feeds[name] = self.feeds[name][:1]
            self.inputs[i] = (name, dtype, (1, *shape[1:]))

    def declared_shape(self, shape):
        if self.few_symbols:
            return self.declared_by_few_symbols(shape)
        if self.dims == "static":
            return shape
        if self.dims == "symbolic":
            return [d if self.chance(0.3) else f"d{d}" for d in shape]
        return [None] * len(shape) if self.dims == "rank" else None

    def model(self):
        if self.few_symbols:
            self.shorten_leading_axes()
        used = {n for node in self.nodes for n in all_inputs(node)}
        outputs = [n for n in self.results if n not in used or self.chance(0.15)]
        inputs = [helper.make_tensor_value_info(n, t, self.declared_shape(s)) for n, t, s in self.inputs]
        graph = helper.make_graph(self.nodes, "drawn", inputs, [onnx.ValueInfoProto(name=n) for n in outputs], self.weights)
        ir = 10 if self.opset < 24 else 11
        return helper.make_model(graph, opset_imports=self.opsets(), ir_version=ir)


def all_inputs(node):
    """Names that a node and its subgraphs read."""
    yield from node.input
    for a in node.attribute:
        for g in [a.g] if a.type == onnx.AttributeProto.GRAPH else a.graphs:
            yield from (o.name for o in g.output)
            for inner in g.node:
                yield from all_inputs(inner)


def tensor(name, array, dtype):
    array = np.asarray(array)
    if dtype == T.STRING:
        return helper.make_tensor(name, T.STRING, array.shape, [s.encode() for s in array.reshape(-1)])
    if dtype in PLAIN:
        return numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), name)
    return helper.make_tensor(name, dtype, array.shape, array.astype(np.float32).reshape(-1).tolist())
