"""One adapter per engine: open(path, threads) -> object with run(inputs: {name: array}) -> [array]. Each as its documentation advises
for latency on a CPU; nothing is imported before it is used, so that memory counts from there."""

import os
import subprocess


class Sardonyx:
    keeps = False  # whether it writes what it compiled into the cache

    def __init__(self, path, threads):
        import sardonyx

        options = sardonyx.SessionOptions()
        options.intra_op_num_threads = threads
        options.keep_compiled = self.keeps
        self.session = sardonyx.InferenceSession(path, options, providers=["cpu"])
        self.version = sardonyx.__version__

    def run(self, inputs):
        return self.session.run(None, inputs)


class KeepingSardonyx(Sardonyx):
    keeps = True


class OnnxRuntime:
    def __init__(self, path, threads):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self.version = onnxruntime.__version__

    def run(self, inputs):
        return self.session.run(None, inputs)


class OpenVino:
    def __init__(self, path, threads):
        import openvino

        core = openvino.Core()
        # f32: on CPUs with bfloat16 it would compute in that by default, which is another accuracy.
        settings = {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}
        self.request = core.compile_model(path, "CPU", settings).create_infer_request()
        self.outputs = self.request.model_outputs
        self.version = openvino.__version__.split("-")[0]

    def run(self, inputs):
        results = self.request.infer(inputs, share_inputs=True, share_outputs=True)
        return [results[o] for o in self.outputs]


class Tract:
    def __init__(self, path, threads):
        if threads > 1:
            raise RuntimeError("has one thread")
        import importlib.metadata

        import onnx
        import tract

        graph = onnx.load(path, load_external_data=False).graph
        weights = {t.name for t in graph.initializer}
        self.names = [i.name for i in graph.input if i.name not in weights]
        self.model = tract.onnx().load(path).into_model().into_runnable()
        self.version = importlib.metadata.version("tract")

    def run(self, inputs):
        return [o.to_numpy() for o in self.model.run([inputs[n] for n in self.names])]


def _converted(path, suffix, command):
    """A file that the engine's own converter makes, once, beside the model."""
    out = path + suffix
    if not os.path.exists(out):
        # There: some write scratch files into the current folder.
        done = subprocess.run(command(out), cwd=os.path.dirname(path), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600)
        if done.returncode or not os.path.exists(out):
            lines = [line for line in done.stdout.splitlines() if line.strip()]
            raise RuntimeError("does not convert it: " + (lines[-1] if lines else f"exit code {done.returncode}"))
    return out


class Mnn:
    def __init__(self, path, threads):
        import sys

        converter = os.path.join(os.path.dirname(sys.executable), "mnnconvert")
        file = _converted(path, ".mnn", lambda out: [sys.executable, converter, "-f", "ONNX", "--modelFile", path, "--MNNModel", out, "--bizCode", "bench"])
        import MNN
        import onnx

        self.mnn = MNN
        graph = onnx.load(path, load_external_data=False).graph
        weights = {t.name for t in graph.initializer}
        self.names = [i.name for i in graph.input if i.name not in weights]
        config = {"backend": 0, "precision": 1, "numThread": threads}  # CPU, high: f32
        runtime = MNN.nn.create_runtime_manager((config,))
        self.net = MNN.nn.load_module_from_file(file, self.names, [o.name for o in graph.output], runtime_manager=runtime)
        self.version = MNN.version()

    def run(self, inputs):
        np, expr = self.mnn.numpy, self.mnn.expr
        feeds = []
        for name in self.names:
            array = inputs[name]
            if array.dtype == "int64":  # it has no 64-bit integers
                array = array.astype("int32")
            kind = np.int32 if array.dtype == "int32" else np.float32
            feeds.append(expr.const(array.ctypes.data, list(array.shape), expr.NCHW, kind))
        return [o.read().reshape(o.shape) for o in self.net.forward(feeds)]


class Ncnn:
    def __init__(self, path, threads):
        import sys

        pnnx = os.path.join(os.path.dirname(sys.executable), "pnnx")
        # pnnx writes eight files beside the model; those of ncnn end so.
        param = _converted(path, ".ncnn.param", lambda out: [sys.executable, pnnx, path, "fp16=0", f"ncnnparam={out}", f"ncnnbin={path}.ncnn.bin"])
        import ncnn

        self.ncnn, self.net = ncnn, ncnn.Net()
        self.net.opt.num_threads = threads
        self.net.opt.use_fp16_packed = self.net.opt.use_fp16_storage = self.net.opt.use_fp16_arithmetic = False
        self.net.opt.use_bf16_storage = False
        if self.net.load_param(param) or self.net.load_model(path + ".ncnn.bin"):
            raise RuntimeError("does not load what its converter wrote")
        self.version = ncnn.__version__

    def run(self, inputs):
        with self.net.create_extractor() as extractor:
            for name, array in zip(self.net.input_names(), inputs.values()):
                extractor.input(name, self.ncnn.Mat(array[0]))  # it has no batch axis
            results = []
            for name in self.net.output_names():
                code, mat = extractor.extract(name)
                if code:
                    raise RuntimeError(f"code {code} at output {name}")
                results.append(self.__array(mat))
            return results

    @staticmethod
    def __array(mat):
        import numpy

        return numpy.array(mat)[None]


ENGINES = {"sdx": Sardonyx, "sdx-keeping": KeepingSardonyx, "onnxruntime": OnnxRuntime, "openvino": OpenVino, "tract": Tract, "mnn": Mnn, "ncnn": Ncnn}
