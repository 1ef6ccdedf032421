"""One library trains one case in a process of its own: worker.py LIBRARY CASE FOLDER THREADS. Prints JSON.

step: milliseconds, the least of many steps on one batch, each with the update of the parameters; start: milliseconds from the files (or
the constructor of the module) to the end of the first step, less the time of a step; memory: megabytes at the most, without pages of
files, beyond what the process took before the artifacts were opened. With the environment variable BENCH_BY=cpu times are of the
processor where that is less than the wall clock's, as on a machine with other work.
"""

from __future__ import annotations

import json
import os
import pathlib
import re
import sys
import time
from collections.abc import Callable

LIBRARY, CASE, FOLDER, THREADS = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3]) / sys.argv[2], int(sys.argv[4])
for variable in ("SDX_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = str(THREADS)
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:THREADS])

import numpy as np  # noqa: E402

SECONDS = 1.5  # of steps, at least
RATE = 1e-4  # the batch is always the same


def memory(field: str) -> float:
    return int(re.search(rf"{field}:\s+(\d+) kB", pathlib.Path("/proc/self/status").read_text())[1]) / 1e3


def clear_peak() -> None:
    pathlib.Path("/proc/self/clear_refs").write_text("5")


def sardonyx() -> Callable[[], Callable[[], float]]:
    from sardonyx.training import api

    def start() -> Callable[[], float]:
        state = api.CheckpointState.load_checkpoint(FOLDER / "sdx" / "checkpoint")
        trainer = api.Trainer(FOLDER / "sdx", state, learning_rate=RATE, threads=THREADS)
        return lambda: trainer.train_step((x, labels))

    return start


def onnxruntime() -> Callable[[], Callable[[], float]]:
    import stand_in

    stand_in.install()
    import onnxruntime as ort
    from onnxruntime.training import api

    def start() -> Callable[[], float]:
        folder = FOLDER / "ort"
        state = api.CheckpointState.load_checkpoint(str(folder / "checkpoint"))
        options = ort.SessionOptions()
        options.intra_op_num_threads = THREADS
        module = api.Module(str(folder / "training_model.onnx"), state, None, "cpu", options)
        optimizer = api.Optimizer(str(folder / "optimizer_model.onnx"), module)
        optimizer.set_learning_rate(RATE)

        def step() -> float:
            loss = module(x, labels)
            optimizer.step()
            module.lazy_reset_grad()
            return float(loss)

        module.train()
        return step

    return start


def pytorch() -> Callable[[], Callable[[], float]]:
    import models
    import torch

    torch.set_num_threads(THREADS)

    def start() -> Callable[[], float]:
        module = models.made(CASE)
        trained = [p for p in module.parameters() if p.requires_grad]
        kinds = {"adamw": torch.optim.AdamW, "sgd": torch.optim.SGD}
        optimizer = kinds[models.CASES[CASE].optimizer](trained, lr=RATE)
        a, b = torch.from_numpy(x), torch.from_numpy(labels)

        def step() -> float:
            optimizer.zero_grad(set_to_none=True)
            loss = torch.nn.functional.cross_entropy(module(a), b)
            loss.backward()
            optimizer.step()
            return loss.item()

        return step

    return start


def clocks() -> tuple[float, float]:
    return time.perf_counter(), time.process_time() if os.environ.get("BENCH_BY") == "cpu" else time.perf_counter()


def timed(call: Callable[[], object]) -> tuple[float, object]:
    before = clocks()
    result = call()
    return min(b - a for a, b in zip(before, clocks())) * 1e3, result


with np.load(FOLDER / "batch.npz") as data:
    x, labels = data["x"], data["labels"]
prepared = {"sardonyx": sardonyx, "onnxruntime": onnxruntime, "pytorch": pytorch}[LIBRARY]()
clear_peak()
before = memory("RssAnon")
begun, step = timed(prepared)
first, loss = timed(step)
peak = memory("VmHWM") - memory("RssFile")
clear_peak()
times, end = [], time.perf_counter() + SECONDS
while len(times) < 5 or time.perf_counter() < end:
    times.append(timed(step)[0])
peak = max(peak, memory("VmHWM") - memory("RssFile"))
print(json.dumps({"start": begun + first - min(times), "step": min(times), "memory": peak - before, "loss": loss}))
