"""ONNX Runtime's training artifacts of model.onnx in each folder: ort_artifacts.py FOLDER..."""

import pathlib
import sys

import stand_in

stand_in.install()

import onnx  # noqa: E402
from onnxruntime.training import artifacts  # noqa: E402

OPTIMIZERS = {"adamw": artifacts.OptimType.AdamW, "sgd": artifacts.OptimType.SGD}
STATISTICS = ("running_mean", "running_var", "num_batches_tracked")

for folder in map(pathlib.Path, sys.argv[1:]):
    optimizer, *frozen = (folder / "training.txt").read_text().split()
    model = onnx.load(folder / "model.onnx")
    for node in model.graph.node:  # whose gradient asks for the statistics
        if node.op_type == "LayerNormalization":
            node.output.extend(f"{node.output[0]}_{name}" for name in ("mean", "deviation")[len(node.output) - 1 :])
    floats = [t.name for t in model.graph.initializer if t.data_type == onnx.TensorProto.FLOAT]
    fixed = [n for n in floats if n.endswith(STATISTICS) or n.startswith(tuple(frozen) or "\n")]
    # Whatever is folded into a frozen layer has a name of its own; the head's names are kept.
    if frozen:
        fixed = [n for n in floats if not n.startswith("head.")]
    (folder / "ort").mkdir(exist_ok=True)
    artifacts.generate_artifacts(model, requires_grad=[n for n in floats if n not in fixed], frozen_params=fixed,
                                 loss=artifacts.LossType.CrossEntropyLoss, optimizer=OPTIMIZERS[optimizer],
                                 artifact_directory=str(folder / "ort"))  # fmt: skip
