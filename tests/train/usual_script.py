"""The script that ONNX Runtime's documentation shows, with one import or the other, gives the same losses.

Needs SDX_ORT_TRAINING (ort_training.py) and SDX_TEST_MODELS; exit code 77 without them.
"""

import importlib
import json
import os
import sys
from pathlib import Path

import ort_training

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from scratch import scratch  # noqa: E402

CASES = ["mlp_adamw", "cnn_maxpool_globalaveragepool_sgd", "cnn_batchnorm_frozen_stats", "encoder_layernorm_adamw", "accumulate4_mlp_adamw"]


def train(package, case, exported):
    import numpy as np

    api = importlib.import_module(package)  # the only line that differs
    CheckpointState, Module, Optimizer = api.CheckpointState, api.Module, api.Optimizer

    state = CheckpointState.load_checkpoint(f"{case}/checkpoint")
    model = Module(f"{case}/training_model.onnx", state, f"{case}/eval_model.onnx", device="cpu")
    optimizer = Optimizer(f"{case}/optimizer_model.onnx", model)
    optimizer.set_learning_rate(0.002)
    batches = np.load(f"{case}/batches.npz")
    losses = []
    for epoch in range(2):
        model.train()
        for i, (x, y) in enumerate(zip(batches["x"], batches["y"])):
            if i == 7:
                x, y = x[:5], y[:5]
            loss = model(x, y)
            if i % 2 == epoch:
                optimizer.step()
                model.lazy_reset_grad()
            losses.append(float(loss))
        model.eval()
        losses.append(float(model(batches["eval_x"], batches["eval_y"])))
    flat = model.get_contiguous_parameters().numpy()
    output = json.loads(Path(f"{case}/expected.json").read_text())["model_output"]
    model.export_model_for_inferencing(exported, [output])
    print(json.dumps({"losses": losses, "names": model.input_names(), "sum": float(np.abs(flat).sum()), "size": len(flat),
                      "rate": optimizer.get_learning_rate()}))


def close(a, b, tolerance):
    return abs(a - b) <= tolerance * max(abs(a), abs(b), 1e-3)


def main():
    models = Path(os.environ.get("SDX_TEST_MODELS") or "none") / "training"
    if ort_training.interpreter() is None or not models.exists():
        print("skipped: needs SDX_ORT_TRAINING and SDX_TEST_MODELS")
        return 77
    import subprocess

    failures = 0
    with scratch() as folder:
        for name in CASES:
            theirs = json.loads(ort_training.run(__file__, "onnxruntime.training.api", models / name, f"{folder}/theirs.onnx"))
            ours = json.loads(subprocess.run([sys.executable, "-B", __file__, "sardonyx.training.api", models / name,
                                              f"{folder}/ours.onnx"], check=True, capture_output=True, text=True).stdout)
            worst = max(abs(a - b) / max(abs(a), 1e-3) for a, b in zip(theirs["losses"], ours["losses"]))
            same = worst < 1e-4 and close(theirs["sum"], ours["sum"], 1e-5) and all(theirs[k] == ours[k] for k in ("names", "size", "rate"))
            print(f"{'ok' if same else 'FAIL'} {name}: losses differ by {worst:.2g} at most; {theirs if not same else ''} {ours if not same else ''}")
            failures += not same
    return 1 if failures else 0


if __name__ == "__main__":
    if len(sys.argv) > 2:
        train(*sys.argv[1:])
    else:
        sys.exit(main())
