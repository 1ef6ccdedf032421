"""ONNX Runtime training 1.19.2 goes on from checkpoints that Sardonyx wrote, with the same losses as from its own.

Needs SDX_ORT_TRAINING (ort_training.py) and SDX_TEST_MODELS; exit code 77 without them.
"""

import json
import os
import sys
from pathlib import Path

import ort_training

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from scratch import scratch  # noqa: E402

CASES = ["mlp_adamw", "encoder_layernorm_adamw"]


def losses_there(case, checkpoint):
    """Runs in ONNX Runtime's interpreter."""
    import numpy as np
    from onnxruntime.training.api import CheckpointState, Module, Optimizer

    state = CheckpointState.load_checkpoint(checkpoint)
    module = Module(f"{case}/training_model.onnx", state, f"{case}/eval_model.onnx")
    optimizer = Optimizer(f"{case}/optimizer_model.onnx", module)
    batches = np.load(f"{case}/batches.npz")
    losses = []
    module.train()
    for x, y in list(zip(batches["x"], batches["y"]))[:5]:
        losses.append(float(module(x, y)))
        optimizer.step()
        module.lazy_reset_grad()
    print(json.dumps({"losses": losses, "properties": dict(state.properties)}))


def main():
    models = Path(os.environ.get("SDX_TEST_MODELS") or "none") / "training"
    if ort_training.interpreter() is None or not models.exists():
        print("skipped: needs SDX_ORT_TRAINING and SDX_TEST_MODELS")
        return 77
    from sardonyx.training.api import CheckpointState

    failures = 0
    with scratch() as folder:
        written = f"{folder}/checkpoint"
        for name in CASES:
            theirs = models / name / "checkpoint_after_20"
            state = CheckpointState.load_checkpoint(theirs)
            state.properties["epoch"], state.properties["best"], state.properties["note"] = 7, 0.5, "läuft"
            CheckpointState.save_checkpoint(state, written, include_optimizer_state=True)
            expected = json.loads(ort_training.run(__file__, models / name, theirs))["losses"]
            found = json.loads(ort_training.run(__file__, models / name, written))
            same = found["losses"] == expected and found["properties"] == {"epoch": 7, "best": 0.5, "note": "läuft"}
            print(f"{'ok' if same else 'FAIL'} {name}: {found}, expected {expected}")
            failures += not same
    return 1 if failures else 0


if __name__ == "__main__":
    if len(sys.argv) > 2:
        losses_there(*sys.argv[1:])
    else:
        sys.exit(main())
