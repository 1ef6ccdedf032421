"""Records operator cases: record.py [FAMILY...] writes FAMILY.txt beside this file; without names, all but
"training", which another package records (cases_training.py). Needs onnx, onnxruntime and NumPy; the tests do not."""

import argparse
import importlib
import pathlib
import sys

sys.dont_write_bytecode = True
here = pathlib.Path(__file__).parent
sys.path.insert(0, str(here))
from recorder import Recorder  # noqa: E402

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("families", nargs="*")
parser.add_argument("--seed", type=int, default=4)
parser.add_argument("--to", type=pathlib.Path, default=here, help="folder of the written files")
arguments = parser.parse_args()
families = arguments.families or sorted(p.stem.removeprefix("cases_") for p in here.glob("cases_*.py") if p.stem != "cases_training")
for family in families:
    module = importlib.import_module(f"cases_{family}")
    recorder = Recorder(f"{module.__doc__.strip()} Written by record.py.", arguments.seed)
    for make in module.CASES:
        make(recorder)
    recorder.write(arguments.to / f"{family}.txt")
