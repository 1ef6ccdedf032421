"""Writes a repository of models that behave like the `simple` models of Triton's examples. Standard library only.

  simple            INPUT0, INPUT1: INT32[16], batches to 8; OUTPUT0 = sum, OUTPUT1 = difference
  simple_int8       the same in INT8
  simple_string     the same on texts of numbers: BYTES[16]
  simple_identity   INPUT0: BYTES[-1] -> OUTPUT0
  scores            x: FP32[3] -> y: FP32[3], their magnitudes, with labels; joined with a delay
  versions          1 and 2: x: FP32[2] -> y = version * x; all served
  quantised_sum     a, b: UINT8["n", "m"] -> y = a + b, whose two symbols need not have one size
"""

import os
import struct
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "cli"))
from tiny_models import FLOAT, STRING, data, model, node, number, tensor, value_info  # noqa: E402

UINT8, INT8, INT32 = 2, 3, 6


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    part.write_bytes(content if isinstance(content, bytes) else content.encode())
    os.replace(part, path)


def sum_and_difference(elem):
    values = lambda names: [value_info(n, elem, ["batch", 16]) for n in names]
    nodes = [node("Add", ["INPUT0", "INPUT1"], ["OUTPUT0"]), node("Sub", ["INPUT0", "INPUT1"], ["OUTPUT1"])]
    return model(nodes, values(["INPUT0", "INPUT1"]), values(["OUTPUT0", "OUTPUT1"]))


def sum_and_difference_of_texts():
    values = lambda names: [value_info(n, STRING, ["batch", 16]) for n in names]
    nodes = [node("Cast", ["INPUT0"], ["a"], to=INT32), node("Cast", ["INPUT1"], ["b"], to=INT32), node("Add", ["a", "b"], ["sum"]),
             node("Sub", ["a", "b"], ["difference"]), node("Cast", ["sum"], ["OUTPUT0"], to=STRING),
             node("Cast", ["difference"], ["OUTPUT1"], to=STRING)]
    return model(nodes, values(["INPUT0", "INPUT1"]), values(["OUTPUT0", "OUTPUT1"]))


def times(factor):
    return model([node("Mul", ["x", "f"], ["y"])], [value_info("x", FLOAT, ["n", 2])], [value_info("y", FLOAT, ["n", 2])],
                 [tensor("f", FLOAT, [1], struct.pack("<f", factor))])


def quantised_sum():
    inputs = [value_info(name, UINT8, ["n", "m"]) for name in ("a", "b")]
    add = node("QLinearAdd", ["a", "one", "zero", "b", "one", "zero", "one", "zero"], ["y"], "com.microsoft")
    constants = [tensor("one", FLOAT, [], struct.pack("<f", 1)), tensor("zero", UINT8, [], b"\0")]
    microsoft = data(8, data(1, "com.microsoft") + number(2, 1))
    return model([add], inputs, [value_info("y", UINT8, ["n", "m"])], constants) + microsoft


def gray_pixels():
    """A grey picture of two pixels, as it comes."""
    return model([node("Abs", ["x"], ["y"])], [value_info("x", FLOAT, [1, 1, 1, 2])], [value_info("y", FLOAT, [1, 1, 1, 2])])


def config(name, data_type, dims, names, batch=8, more=""):
    one = lambda n: f'{{ name: "{n}" data_type: {data_type} dims: [ {dims} ] }}'
    inputs, outputs = names
    return (f'name: "{name}"\nplatform: "onnxruntime_onnx"\nmax_batch_size: {batch}\n'
            f'input [ {", ".join(one(n) for n in inputs)} ]\noutput [ {", ".join(one(n) for n in outputs)} ]\n{more}')


def write_repository(folder):
    folder = Path(folder)
    pair = (["INPUT0", "INPUT1"], ["OUTPUT0", "OUTPUT1"])
    for name, elem, data_type in (("simple", INT32, "TYPE_INT32"), ("simple_int8", INT8, "TYPE_INT8")):
        write(folder / name / "1" / "model.onnx", sum_and_difference(elem))
        write(folder / name / "config.pbtxt", config(name, data_type, 16, pair))
    write(folder / "simple_string/1/model.onnx", sum_and_difference_of_texts())
    write(folder / "simple_string/config.pbtxt", config("simple_string", "TYPE_STRING", 16, pair))
    write(folder / "simple_identity/1/model.onnx",
          model([node("Identity", ["INPUT0"], ["OUTPUT0"])], [value_info("INPUT0", STRING, ["n", "m"])],
                [value_info("OUTPUT0", STRING, ["n", "m"])]))
    write(folder / "simple_identity/config.pbtxt", config("simple_identity", "TYPE_STRING", -1, (["INPUT0"], ["OUTPUT0"])))
    write(folder / "quantised_sum/1/model.onnx", quantised_sum())
    write(folder / "scores/1/model.onnx", model([node("Abs", ["x"], ["y"])], [value_info("x", FLOAT, ["n", 3])],
                                                [value_info("y", FLOAT, ["n", 3])]))
    write(folder / "scores/labels.txt", "cat\ndog\nbird\n")
    write(folder / "scores/config.pbtxt",
          'max_batch_size: 16\noutput [ { name: "y" data_type: TYPE_FP32 dims: [ 3 ] label_filename: "labels.txt" } ]\n'
          'dynamic_batching { preferred_batch_size: [ 8 ] max_queue_delay_microseconds: 2000 }\n'
          'model_warmup [ { name: "first" batch_size: 2 inputs { key: "x" value { data_type: TYPE_FP32 dims: 3 zero_data: true } } } ]\n'
          'optimization { graph { level: 1 } }\n')
    for version in (1, 2):
        write(folder / f"versions/{version}/model.onnx", times(version))
    write(folder / "versions/config.pbtxt", "version_policy { all {} }\n")


if __name__ == "__main__":
    write_repository(sys.argv[1])
