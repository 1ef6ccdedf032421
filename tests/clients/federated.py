"""Flower's simulation of examples/federated: three clients, three rounds. What comes out is what the same rounds give with
CheckpointState.average, without Flower.

Needs flwr[simulation] in this interpreter, the package by PYTHONPATH, and SDX_TEST_MODELS; exit code 77 without them."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from scratch import scratch  # noqa: E402

SKIPPED = 77
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "federated"
CLIENTS, ROUNDS = 3, 3


def main():
    artifacts = Path(os.environ.get("SDX_TEST_MODELS") or "none") / "training" / "logreg_sgd"
    if not artifacts.exists() or not all(map(importlib.util.find_spec, ["flwr", "ray", "numpy"])):
        print("skipped: needs flwr[simulation] and SDX_TEST_MODELS")
        return SKIPPED
    import numpy as np

    os.environ.update(FLWR_TELEMETRY_ENABLED="0", RAY_USAGE_STATS_ENABLED="0")
    sys.path.insert(0, str(EXAMPLE))
    import federated
    from sardonyx.training.api import CheckpointState

    with scratch() as folder:
        out = f"{folder}/global"
        done = subprocess.run([sys.executable, "-B", EXAMPLE / "federated.py", artifacts, artifacts / "checkpoint", out, str(CLIENTS),
                               str(ROUNDS)], capture_output=True, text=True, timeout=540)
        if done.returncode != 0:
            sys.exit(f"the example failed ({done.returncode})\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
        found = CheckpointState.load_checkpoint(out)

    begin = state = CheckpointState.load_checkpoint(artifacts / "checkpoint")
    data = [federated.load_samples(c, *federated.sizes(state)) for c in range(CLIENTS)]
    for _ in range(ROUNDS):
        trained = [state.clone() for _ in data]
        for client, samples in zip(trained, data):
            federated.train(artifacts, client, samples, 0.1)
        state = CheckpointState.average(trained, [len(x) for x, _ in data])

    def loss(of):
        return float(np.average([federated.evaluate(artifacts, of, d) for d in data], weights=[len(x) for x, _ in data]))

    apart = float(np.abs(found.to_buffer() - state.to_buffer()).max())
    losses = [loss(begin), loss(found), found.properties["loss"]]
    print(f"losses before and after {losses}, parameters differ by {apart:.2g}")
    right = apart < 1e-6 and losses[1] < losses[0] / 4 and abs(losses[1] - losses[2]) < 1e-5 and found.properties["rounds"] == ROUNDS
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
