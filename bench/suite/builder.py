"""Writes ONNX graphs node by node, with seeded random weights."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOAT = TensorProto.FLOAT
INT64 = TensorProto.INT64


class Builder:
    """Every method that adds a node returns the name of its (first) output."""

    def __init__(self, name, opset=17, seed=0, ir_version=8, domains=()):
        """IR 8 is what opset 17 came with; every peer reads it. domains: [(name, version)] beside ai.onnx and com.microsoft."""
        self.name, self.opset, self.ir_version, self.domains = name, opset, ir_version, dict(domains)
        self.random = np.random.default_rng(seed)
        self.nodes, self.inputs, self.outputs, self.initializers = [], [], [], []
        self.counter = 0

    def fresh(self, stem):
        self.counter += 1
        return f"{stem}_{self.counter}"

    def input(self, name, shape, dtype=FLOAT):
        self.inputs.append(helper.make_tensor_value_info(name, dtype, shape))
        return name

    def output(self, value, shape, dtype=FLOAT, name=None):
        if name:
            value = self.op("Identity", [value], out=name)
        self.outputs.append(helper.make_tensor_value_info(value, dtype, shape))

    def const(self, array, stem="c"):
        name = self.fresh(stem)
        self.initializers.append(numpy_helper.from_array(np.array(array, order="C"), name))
        return name

    def ints(self, *values):
        return self.const(np.array(values, np.int64), "ints")

    def scalar(self, value, dtype=np.float32):
        return self.const(np.array(value, dtype), "scalar")

    def normal(self, shape, std, stem="w"):
        return self.const((self.random.standard_normal(shape, np.float32) * np.float32(std)), stem)

    def op(self, op_type, inputs, out=None, outputs=1, domain="", **attributes):
        """outputs: how many, or their stems, of which "" leaves an output out."""
        stems = [op_type.lower()] * outputs if isinstance(outputs, int) else outputs
        names = [out] if out else [stem and self.fresh(stem) for stem in stems]
        self.nodes.append(helper.make_node(op_type, inputs, names, name=f"{op_type}_{len(self.nodes)}", domain=domain, **attributes))
        if domain:
            self.domains.setdefault(domain, 1)
        names = [name for name in names if name]
        return names[0] if len(names) == 1 else names

    # -- common pieces, as PyTorch's exporter writes them (batch normalisation folded into the convolution's bias)

    def conv(self, x, channels_in, channels_out, kernel, stride=1, group=1, padding=None, bias=True):
        fan_in = channels_in // group * kernel * kernel
        weight = self.normal((channels_out, channels_in // group, kernel, kernel), np.sqrt(2.0 / fan_in))
        pad = kernel // 2 if padding is None else padding
        inputs = [x, weight] + ([self.normal((channels_out,), 0.1, "b")] if bias else [])
        return self.op("Conv", inputs, kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4, group=group)

    def linear(self, x, features_in, features_out, bias=True, std=None):
        """MatMul + Add, as an exported nn.Linear on a tensor of rank 3."""
        y = self.op("MatMul", [x, self.normal((features_in, features_out), std or 1 / np.sqrt(features_in))])
        return self.op("Add", [self.normal((features_out,), 0.02, "b"), y]) if bias else y

    def gemm(self, x, features_in, features_out):
        weight = self.normal((features_out, features_in), 1 / np.sqrt(features_in))
        return self.op("Gemm", [x, weight, self.normal((features_out,), 0.02, "b")], transB=1)

    def layer_norm(self, x, features, epsilon=1e-5):
        scale = self.const(1 + 0.1 * self.random.standard_normal(features, np.float32), "gamma")
        return self.op("LayerNormalization", [x, scale, self.normal((features,), 0.02, "beta")], axis=-1, epsilon=epsilon)

    def gelu(self, x):
        """x / 2 * (1 + erf(x / sqrt(2))), decomposed as opsets before 20 have it."""
        inner = self.op("Erf", [self.op("Div", [x, self.scalar(np.sqrt(2.0))])])
        inner = self.op("Add", [inner, self.scalar(1.0)])
        return self.op("Mul", [self.op("Mul", [x, inner]), self.scalar(0.5)])

    def silu(self, x):
        return self.op("Mul", [x, self.op("Sigmoid", [x])])

    def reshape(self, x, *shape):
        return self.op("Reshape", [x, self.ints(*shape)])

    def transpose(self, x, *perm):
        return self.op("Transpose", [x], perm=list(perm))

    def model(self):
        graph = helper.make_graph(self.nodes, self.name, self.inputs, self.outputs, self.initializers)
        opsets = [helper.make_opsetid(domain, version) for domain, version in {"": self.opset, **self.domains}.items()]
        return helper.make_model(graph, opset_imports=opsets, ir_version=self.ir_version, producer_name="sdx-bench")
