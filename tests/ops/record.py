"""Records operator cases: record.py [FAMILY...] writes FAMILY.txt beside this file. Needs onnx, onnxruntime and NumPy; the tests do not."""

import importlib
import pathlib
import sys

sys.dont_write_bytecode = True
here = pathlib.Path(__file__).parent
sys.path.insert(0, str(here))
from recorder import Recorder  # noqa: E402

families = sys.argv[1:] or sorted(p.stem.removeprefix("cases_") for p in here.glob("cases_*.py"))
for family in families:
    module = importlib.import_module(f"cases_{family}")
    recorder = Recorder(f"{module.__doc__.strip()} Written by record.py.")
    for make in module.CASES:
        make(recorder)
    recorder.write(here / f"{family}.txt")
