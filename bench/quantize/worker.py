"""worker.py MODEL INPUTS.npz THREADS SECONDS [sardonyx|onnxruntime]: prints the median of the model's runs in that engine in milliseconds.
SDX_CPU_ISA chooses our instruction set."""

import importlib
import statistics
import sys
import time

import numpy as np

model, inputs, threads, seconds = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
engine = importlib.import_module(sys.argv[5] if len(sys.argv) > 5 else "sardonyx")
options = engine.SessionOptions()
options.intra_op_num_threads = threads
session = engine.InferenceSession(model, options, providers=["CPUExecutionProvider"])
feed = dict(np.load(inputs))
session.run(None, feed)
times = []
end = time.monotonic() + seconds
while len(times) < 5 or time.monotonic() < end:
    begin = time.perf_counter()
    session.run(None, feed)
    times.append(time.perf_counter() - begin)
print(statistics.median(times) * 1e3)
