"""Operators of training graphs beside ONNX Runtime training 1.19.2, on other numbers than those of tests/ops/training.txt:
operators_in_ort.py SDX_OP_TESTS [ROUNDS]

Needs SDX_ORT_TRAINING (ort_training.py); exit code 77 without it.
"""

import subprocess
import sys
from pathlib import Path

import ort_training

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from scratch import scratch  # noqa: E402

RECORDER = Path(__file__).parents[1] / "ops" / "record.py"


def main(program, rounds="2"):
    if ort_training.interpreter() is None:
        print("skipped: needs SDX_ORT_TRAINING")
        return 77
    failures = 0
    for seed in range(100, 100 + int(rounds)):
        with scratch() as folder:
            print(ort_training.run(RECORDER, "training", "--seed", seed, "--to", folder).strip())
            failures += subprocess.run([program, f"{folder}/training.txt"], check=False).returncode != 0
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
