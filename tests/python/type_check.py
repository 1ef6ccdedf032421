"""mypy --strict finds nothing in the package, and finds what a program does wrong with it. Exit code 77 without mypy."""

import importlib.util
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from scratch import scratch  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]

PROGRAM = """
import numpy as np
import sardonyx as ort

options = ort.SessionOptions()
options.intra_op_num_threads = 2
options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
options.runtime = "native"
session = ort.InferenceSession("model.onnx", options, providers=["CPUExecutionProvider"])
outputs: list[object] = session.run(None, {"x": np.zeros(3, np.float32)})
run_options = ort.RunOptions()
run_options.terminate = True
"""
WRONG = {
    "options.bogus = 1": "attr-defined",
    "run_options.bogus = 1": "attr-defined",
    'options.intra_op_num_threads = "2"': "assignment",
    'options.runtime = "nativ"': "assignment",
    "session.bogus()": "attr-defined",
}


def mypy(*arguments):
    command = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml"), "--cache-dir", "build/mypy", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


def main():
    if importlib.util.find_spec("mypy") is None:
        print("mypy is not installed")
        return 77
    package = mypy()
    if package.returncode != 0:
        print(package.stdout + package.stderr)
        return 1
    with scratch() as folder:
        program = folder / "program.py"
        program.write_text(PROGRAM + "".join(line + "\n" for line in WRONG))
        found = [line.split("[")[-1].rstrip("]") for line in mypy(str(program)).stdout.splitlines() if ": error: " in line]
    if found != list(WRONG.values()):
        print(f"expected one error for each of {list(WRONG)}, found {found}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
