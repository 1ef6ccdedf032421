"""models.py FOLDER: the models that bench/serve/peers.py serves, with random weights; what is there already stays.

  tiny.onnx    x: FP32[n, 4] -> y = x + 1
  mlp.onnx     x: FP32[n, 64] -> y: FP32[n, 10]; three layers of 256
  minilm.onnx  input_ids, attention_mask: INT64[n, 32] -> y: FP32[n, 384]; the shape of all-MiniLM-L6-v2, mean over the tokens
"""

import pathlib
import sys

import onnx

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "suite"))
import sequence  # noqa: E402
from builder import Builder  # noqa: E402

TOKENS = 32


def tiny():
    b = Builder("tiny", seed=1)
    b.output(b.op("Add", [b.input("x", ["n", 4]), b.scalar(1.0)]), ["n", 4], name="y")
    return b.model()


def mlp():
    b = Builder("mlp", seed=2)
    y = b.input("x", ["n", 64])
    for size, to in ((64, 256), (256, 256), (256, 256)):
        y = b.op("Relu", [b.linear(y, size, to)])
    b.output(b.linear(y, 256, 10), ["n", 10], name="y")
    return b.model()


def minilm():
    model = sequence.bert(TOKENS, layers=6, features=384, heads=12, seed=21)
    graph = model.graph
    shapes = {node.input[1] for node in graph.node if node.op_type == "Reshape"}
    for item in graph.initializer:
        if item.name in shapes:  # 0: as many as come
            shape = onnx.numpy_helper.to_array(item).copy()
            shape[0] = 0
            item.CopyFrom(onnx.numpy_helper.from_array(shape, item.name))
    for value in graph.input:
        value.type.tensor_type.shape.dim[0].dim_param = "n"
    graph.node.append(onnx.helper.make_node("ReduceMean", [graph.output[0].name], ["y"], axes=[1], keepdims=0))
    del graph.output[:]
    graph.output.append(onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["n", 384]))
    return model


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for make in (tiny, mlp, minilm):
        path = folder / f"{make.__name__}.onnx"
        if not path.exists():
            model = make()
            onnx.checker.check_model(model)
            onnx.save(model, path.with_suffix(".new"))
            path.with_suffix(".new").rename(path)


if __name__ == "__main__":
    main()
