"""ONNX Runtime training 1.19.2 trains from artifacts that Sardonyx made, to the recorded losses and parameters: of ONNX Runtime
itself where it could make artifacts, of an independent calculation where it could not (average pooling, LayerNormalization of
one output).

Needs SDX_ORT_TRAINING (ort_training.py) and SDX_TEST_MODELS; exit code 77 without them.
"""

import json
import os
import sys
from pathlib import Path

import ort_training

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from scratch import scratch  # noqa: E402

OPTIMIZERS = {"AdamWOptimizer": "AdamW", "SGDOptimizerV2": "SGD"}
# Further ways to the same numbers.
VARIANTS = {"cnn_maxpool_sgd": [{"recompute": ["auto"]}], "encoder_layernorm_adamw": [{"recompute": ["auto"]}],
            "transfer_frozen_backbone": [{"frozen_params": ["conv*"], "requires_grad": None}]}


def train_there(case, folder):
    """Runs in ONNX Runtime's interpreter."""
    import numpy as np
    from onnxruntime.training.api import CheckpointState, LinearLRScheduler, Module, Optimizer

    expected = json.loads(Path(case, "expected.json").read_text())
    state = CheckpointState.load_checkpoint(f"{folder}/checkpoint")
    module = Module(f"{folder}/training_model.onnx", state, f"{folder}/eval_model.onnx")
    optimizer = Optimizer(f"{folder}/optimizer_model.onnx", module)
    optimizer.set_learning_rate(expected["base_learning_rate"])
    schedule = expected["scheduler"]
    # The Python class hands the two counts over in the wrong order.
    scheduler = schedule and LinearLRScheduler(optimizer, schedule["total_step_count"], schedule["warmup_step_count"],
                                               schedule["initial_lr"])
    batches = np.load(f"{case}/batches.npz")
    keys = [expected["inputs"][name] for name in module.input_names()]
    losses = []
    module.train()
    for i in range(len(expected["train_loss"])):
        losses.append(float(module(*(batches[k][i] for k in keys))))
        if i in expected["updates_after_batch"]:
            optimizer.step()
            if scheduler:
                scheduler.step()
            module.lazy_reset_grad()
    module.eval()
    evaluated = float(module(*(batches["eval_" + k] for k in keys)))
    module.export_model_for_inferencing(f"{folder}/inference.onnx", [expected["model_output"]])
    final = np.load(f"{case}/final_params.npz")
    gradients = np.load(f"{case}/first_gradients.npz")
    worst = 0.0
    for name, parameter in state.parameters:
        scale = max(float(np.abs(final[name]).max()), 1e-3)
        if name in gradients and np.abs(gradients[name]).max() < 1e-7:
            scale *= 100  # keys' biases have no gradient but rounding, which AdamW magnifies
        worst = max(worst, float(np.abs(parameter.data.reshape(final[name].shape) - final[name]).max()) / scale)
    print(json.dumps({"losses": losses, "eval": evaluated, "parameters": worst}))


def check(case, expected, there):
    def off(a, b):
        return max(abs(x - y) / max(abs(y), 1e-3) for x, y in zip(a, b))

    losses = expected["train_loss"]
    found = {"first": off(there["losses"][:3], losses[:3]), "all": off(there["losses"], losses),
             "eval": off([there["eval"]], [expected["eval_loss"]["after_each_update"][-1]]), "parameters": there["parameters"]}
    good = found["first"] < 1e-5 and max(found["all"], found["eval"], found["parameters"]) < 1e-4
    print(f"{'ok' if good else 'FAIL'} {case}: " + ", ".join(f"{k} {v:.1e}" for k, v in found.items()))
    return good


def main():
    models = Path(os.environ.get("SDX_TEST_MODELS") or "none") / "training"
    if ort_training.interpreter() is None or not models.exists():
        print("skipped: needs SDX_ORT_TRAINING and SDX_TEST_MODELS")
        return 77
    from sardonyx.training.artifacts import generate_artifacts

    failures = 0
    for case in sorted(p.parent for p in models.glob("*/model.onnx")):
        expected = json.loads((case / "expected.json").read_text())
        for more in [{}, *VARIANTS.get(case.name, [])]:
            with scratch() as folder:
                arguments = {"requires_grad": expected["trainable"], "frozen_params": expected["frozen"],
                             "loss": expected["loss_type"], "optimizer": OPTIMIZERS[expected["optimizer"]], **more}
                generate_artifacts(case / "model.onnx", **arguments, artifact_directory=folder)
                there = json.loads(ort_training.run(__file__, case, folder))
                failures += not check(" ".join([case.name, *more]), expected, there)
    return 1 if failures else 0


if __name__ == "__main__":
    if len(sys.argv) > 2:
        train_there(*sys.argv[1:])
    else:
        sys.exit(main())
