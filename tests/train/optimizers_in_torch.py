"""Every optimizer makes the steps that torch.optim makes, on the recorded perceptron.

Needs PyTorch in some interpreter (SDX_TORCH_PYTHON names it; else this one, else /usr/bin/python3 as Debian's python3-torch) and
SDX_TEST_MODELS; exit code 77 without them. The steps are computed there; NumPy's files carry them here.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from scratch import scratch  # noqa: E402

COMMON = {"lr": 0.003}
CASES = {  # ours, torch's class, its arguments
    "adamw, decay before": ({"optimizer": "adamw", "adam_mode": 0, "weight_decay": 0.05, "epsilon": 1e-5}, "AdamW",
                            {"weight_decay": 0.05, "eps": 1e-5}),
    "adam": ({"optimizer": "adam", "weight_decay": 0.02, "beta1": 0.8, "epsilon": 1e-5}, "Adam",
             {"weight_decay": 0.02, "betas": (0.8, 0.999), "eps": 1e-5}),
    "sgd": ({"optimizer": "sgd", "weight_decay": 0.01}, "SGD", {"weight_decay": 0.01}),
    "sgd, momentum": ({"optimizer": "sgd", "momentum": 0.9}, "SGD", {"momentum": 0.9}),
    "sgd, dampening": ({"optimizer": "sgd", "momentum": 0.9, "dampening": 0.4}, "SGD", {"momentum": 0.9, "dampening": 0.4}),
    "sgd, nesterov": ({"optimizer": "sgd", "momentum": 0.8, "nesterov": True, "weight_decay": 0.01}, "SGD",
                      {"momentum": 0.8, "nesterov": True, "weight_decay": 0.01}),
    "rmsprop": ({"optimizer": "rmsprop", "alpha": 0.95, "epsilon": 1e-4}, "RMSprop", {"alpha": 0.95, "eps": 1e-4}),
    "rmsprop, momentum": ({"optimizer": "rmsprop", "momentum": 0.5, "epsilon": 1e-4, "weight_decay": 0.01}, "RMSprop",
                          {"momentum": 0.5, "eps": 1e-4, "weight_decay": 0.01}),
    "adagrad": ({"optimizer": "adagrad", "initial_accumulator": 0.1, "epsilon": 1e-5}, "Adagrad",
                {"initial_accumulator_value": 0.1, "eps": 1e-5}),
    "adam, clipped": ({"optimizer": "adam", "clip_norm": 5, "epsilon": 1e-5}, "Adam", {"eps": 1e-5, "clip": 5}),
}
STEPS = 6


def in_torch(cases, parameters, batches, results):
    import numpy as np
    import torch

    data, start, out = np.load(batches), np.load(parameters), {}
    for name, (_, kind, arguments) in json.loads(cases).items():
        clip = arguments.pop("clip", None)
        p = {k: torch.tensor(start[k], requires_grad=True) for k in start.files}
        optimizer = getattr(torch.optim, kind)(list(p.values()), **COMMON, **arguments)
        for i in range(STEPS):
            hidden = torch.relu(torch.tensor(data["x"][i]) @ p["fc1.weight"].T + p["fc1.bias"])
            loss = torch.nn.functional.cross_entropy(hidden @ p["fc2.weight"].T + p["fc2.bias"], torch.tensor(data["y"][i]))
            optimizer.zero_grad()
            loss.backward()
            if clip:
                torch.nn.utils.clip_grad_norm_(list(p.values()), clip)
            optimizer.step()
            out[f"{name}/loss{i}"] = loss.detach().numpy()
        for key, value in p.items():
            out[f"{name}/{key}"] = value.detach().numpy()
    np.savez(results, **out)


def torch_python():
    for python in (os.environ.get("SDX_TORCH_PYTHON"), sys.executable, "/usr/bin/python3"):
        if python and Path(python).exists():
            found = subprocess.run([python, "-c", "import torch, numpy"], capture_output=True, check=False)
            if found.returncode == 0:
                return python
    return None


def main():
    case = Path(os.environ.get("SDX_TEST_MODELS") or "none") / "training" / "mlp_adamw"
    python = torch_python()
    if python is None or not case.exists():
        print("skipped: needs PyTorch and SDX_TEST_MODELS")
        return 77
    import numpy as np
    from sardonyx.training.api import CheckpointState, Trainer

    failures = 0
    with scratch() as folder:
        start = CheckpointState.load_checkpoint(case / "checkpoint")
        np.savez(f"{folder}/start.npz", **{name: p.data for name, p in start.parameters})
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        subprocess.run([python, "-B", __file__, json.dumps(CASES), f"{folder}/start.npz", case / "batches.npz", f"{folder}/torch.npz"],
                       check=True, env=environment)
        theirs, batches = np.load(f"{folder}/torch.npz"), np.load(case / "batches.npz")
        for name, (ours, _, _) in CASES.items():
            state = start.clone()
            trainer = Trainer(case, state, learning_rate=COMMON["lr"], **ours)
            losses = [trainer.train_step([batches["x"][i], batches["y"][i]]) for i in range(STEPS)]
            off = max(abs(loss - theirs[f"{name}/loss{i}"]) / abs(theirs[f"{name}/loss{i}"]) for i, loss in enumerate(losses))
            moved = max(np.abs(p.data - theirs[f"{name}/{key}"]).max() / np.abs(p.data).max() for key, p in state.parameters)
            good = off < 1e-5 and moved < 1e-4
            failures += not good
            print(f"{'ok' if good else 'FAIL'} {name}: losses differ by {off:.2g}, parameters by {moved:.2g} of the largest")
    return 1 if failures else 0


if __name__ == "__main__":
    if len(sys.argv) > 2:
        in_torch(*sys.argv[1:])
    else:
        sys.exit(main())
