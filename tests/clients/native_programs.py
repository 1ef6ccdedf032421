"""native_programs.py PROGRAM ARGUMENT...: what native.py runs in a process of its own: a published library, on inputs that are the same every
time. Prints as JSON what it finds, and the CPU time to import and open it, then that of the work (the best of three, after one to warm up).

genai FOLDER             onnxruntime-genai continues three prompts with a language model
extensions LIBRARY       onnxruntime-extensions through the C library LIBRARY"""

import ctypes
import importlib.util
import json
import sys
import time
from pathlib import Path

import numpy as np

DOMAIN = "ai.onnx.contrib"
TEXTS = ["The quick brown Fox", "JUMPS over 13 lazy dogs", "Grüße aus Köln, ça va?", ""]
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "quick", "brown", "fox", "jump", "##s", "over", "13", "lazy", "dog", ",", "?"]


def genai(folder):
    def opened():
        import onnxruntime_genai as og

        model = og.Model(folder)

        def work():
            found = []
            for prompt in ([5], [7, 1, 9, 3], list(range(2, 40))):
                params = og.GeneratorParams(model)
                params.set_search_options(max_length=len(prompt) + 80, do_sample=False)
                generator = og.Generator(model, params)
                generator.append_tokens(np.array(prompt, dtype=np.int32))
                while not generator.is_done():
                    generator.generate_next_token()
                found.append([int(t) for t in generator.get_sequence(0)])
            return {"texts": found}

        return work

    return opened


def operators():
    """A model of operators that only onnxruntime-extensions has."""
    from onnx import TensorProto, helper

    def node(name, inputs, outputs, **attributes):
        return helper.make_node(name, inputs, outputs, domain=DOMAIN, **attributes)

    def value(name, kind):
        return helper.make_tensor_value_info(name, kind, None)

    def text(name, content):
        return helper.make_tensor(name, TensorProto.STRING, [1], [content.encode()])

    def number(name, content):
        return helper.make_tensor(name, TensorProto.INT64, [], [content])

    nodes = [
        node("StringUpper", ["s"], ["upper"]),
        node("StringLower", ["s"], ["lower"]),
        node("StringLength", ["s"], ["length"]),
        node("StringRegexReplace", ["s", "pattern", "rewrite"], ["replaced"]),
        node("StringToVector", ["s"], ["vectors"], map=f"{TEXTS[0]}\t3 4\n{TEXTS[1]}\t5 6", unk="0 0"),
        node("BertTokenizer", ["s0"], ["ids", "types", "mask"], vocab_file="\n".join(VOCABULARY), do_lower_case=1),
        node("StftNorm", ["sound", "size", "hop", "window", "size"], ["power"]),
        helper.make_node("Slice", ["s", "zero", "one"], ["s0"]),
    ]
    kinds = {"upper": TensorProto.STRING, "lower": TensorProto.STRING, "length": TensorProto.INT64, "replaced": TensorProto.STRING,
             "vectors": TensorProto.INT64, "ids": TensorProto.INT64, "mask": TensorProto.INT64, "power": TensorProto.FLOAT}  # fmt: skip
    constants = [
        text("pattern", "([a-z]+)ck"), text("rewrite", "<\\1>"), number("size", 400), number("hop", 160),
        helper.make_tensor("window", TensorProto.FLOAT, [400], np.hanning(400).astype(np.float32)),
        helper.make_tensor("zero", TensorProto.INT64, [1], [0]), helper.make_tensor("one", TensorProto.INT64, [1], [1]),
    ]  # fmt: skip
    inputs = [helper.make_tensor_value_info("s", TensorProto.STRING, ["n"]), helper.make_tensor_value_info("sound", TensorProto.FLOAT, [1, "m"])]
    graph = helper.make_graph(nodes, "operators", inputs, [value(n, k) for n, k in kinds.items()], constants)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(DOMAIN, 1)]
    return helper.make_model(graph, ir_version=8, opset_imports=opsets).SerializeToString(), list(kinds)


def sound():
    t = np.arange(16000, dtype=np.float32) / 16000
    return np.sin(2 * np.pi * (200 + 300 * t) * t)[None].astype(np.float32)


class Library:
    """ONNX Runtime's C interface: its functions by their places in the table."""

    MESSAGE, CREATE_ENV, CREATE_SESSION, RUN, CREATE_OPTIONS, CREATE_TENSOR, DATA, FILL_STRINGS = 2, 3, 8, 9, 10, 48, 51, 52
    STRINGS_LENGTH, STRINGS, TYPE, COUNT, SHAPE, ELEMENTS, INFO, ALLOCATOR, REGISTER = 53, 54, 60, 61, 62, 64, 65, 78, 228
    TYPES = {1: np.float32, 7: np.int64}
    STRING = 8

    def __init__(self, path):
        class Base(ctypes.Structure):
            _fields_ = [("table", ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint32)), ("version", ctypes.CFUNCTYPE(ctypes.c_char_p))]

        library = ctypes.CDLL(path)
        library.OrtGetApiBase.restype = ctypes.POINTER(Base)
        table = library.OrtGetApiBase().contents.table(24)
        self.slots = ctypes.cast(table, ctypes.POINTER(ctypes.c_void_p))
        self.env = self.made(self.CREATE_ENV, 2, b"native")
        self.allocator = self.made(self.ALLOCATOR)

    def call(self, slot, *arguments):
        status = ctypes.CFUNCTYPE(ctypes.c_void_p)(self.slots[slot])(*(ctypes.c_void_p(a) if type(a) is int else a for a in arguments))
        if status:
            sys.exit(ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.c_void_p)(self.slots[self.MESSAGE])(status).decode())

    def made(self, slot, *arguments, kind=ctypes.c_void_p):
        out = kind()
        self.call(slot, *arguments, ctypes.byref(out))
        return out.value

    def session(self, model, operators_of):
        options = self.made(self.CREATE_OPTIONS)
        self.call(self.REGISTER, options, operators_of.encode())
        return self.made(self.CREATE_SESSION, self.env, model, len(model), options)

    def tensor(self, array):
        extents = (ctypes.c_int64 * array.ndim)(*array.shape)
        kind = self.STRING if array.dtype == object else next(k for k, t in self.TYPES.items() if t == array.dtype)
        value = self.made(self.CREATE_TENSOR, self.allocator, extents, array.ndim, kind)
        if kind == self.STRING:
            self.call(self.FILL_STRINGS, value, (ctypes.c_char_p * array.size)(*(s.encode() for s in array)), array.size)
        else:
            ctypes.memmove(self.made(self.DATA, value), array.ctypes.data, array.nbytes)
        return value

    def array(self, value):
        info = self.made(self.INFO, value)
        rank, size = self.made(self.COUNT, info, kind=ctypes.c_size_t), self.made(self.ELEMENTS, info, kind=ctypes.c_size_t)
        shape = (ctypes.c_int64 * rank)()
        self.call(self.SHAPE, info, shape, rank)
        kind = self.made(self.TYPE, info, kind=ctypes.c_int)
        if kind != self.STRING:
            out = np.empty(tuple(shape), self.TYPES[kind])
            ctypes.memmove(out.ctypes.data, self.made(self.DATA, value), out.nbytes)
            return out
        length = self.made(self.STRINGS_LENGTH, value, kind=ctypes.c_size_t)
        text, offsets = ctypes.create_string_buffer(length + 1), (ctypes.c_size_t * size)()
        self.call(self.STRINGS, value, text, length, offsets, size)
        ends = [*offsets[1:], length]
        return np.array([text.raw[a:b].decode() for a, b in zip(offsets, ends)], dtype=object).reshape(tuple(shape))

    def run(self, session, inputs, outputs):
        def names(of):
            return (ctypes.c_char_p * len(of))(*(n.encode() for n in of))

        given = (ctypes.c_void_p * len(inputs))(*(self.tensor(v) for v in inputs.values()))
        found = (ctypes.c_void_p * len(outputs))()
        self.call(self.RUN, session, 0, names(inputs), given, len(inputs), names(outputs), len(outputs), found)
        return [self.array(v) for v in found]


def as_found(names, arrays):
    """Texts and integers to the letter; what is computed, to a tolerance."""
    found = {n: a.tolist() for n, a in zip(names, arrays)}
    power = found.pop("power")
    return {"texts": found, "scores": power}


def extensions_library():
    (folder,) = importlib.util.find_spec("onnxruntime_extensions").submodule_search_locations
    return next(str(p) for p in Path(folder).glob("_extensions_pydll*.so"))


def extensions(path):
    model, outputs = operators()
    inputs = {"s": np.array(TEXTS, dtype=object), "sound": sound()}

    def opened():
        library = Library(path)
        session = library.session(model, extensions_library())
        return lambda: as_found(outputs, library.run(session, inputs, outputs))

    return opened


def main():
    opened = globals()[sys.argv[1]](*sys.argv[2:])
    start = time.process_time()
    work = opened()
    took = time.process_time() - start
    found, times = work(), []
    for _ in range(3):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    with open("/proc/self/maps") as maps:
        ours = any("libsdx.so" in line or "sardonyx" in line for line in maps)
    print(json.dumps({"ours": ours, "start_ms": 1000 * took, "work_ms": 1000 * min(times), "found": found}))


if __name__ == "__main__":
    main()
