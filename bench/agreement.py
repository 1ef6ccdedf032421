"""Does `sdx bench` measure what the peers' own tools measure? agreement.py SDX MODEL... [--csv FILE]

For each model, in turns: `sdx bench -b ort:cpu` and ONNX Runtime's Python API in a loop; where OpenVINO's Python package is
installed, `sdx bench -b openvino` and its benchmark_app. Every measurement is a fresh process of one thread with the same number of runs; what is
compared are the fastest run of all, which other processes on the machine disturb least, and the median of the processes' medians. Run it with a Python that has onnxruntime (and openvino) installed: its library is
the one that sdx uses.
"""

import argparse
import csv
import importlib.util
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

COLUMNS = ["model", "backend", "peer", "sdx median ms", "peer median ms", "ratio of medians", "sdx fastest ms", "peer fastest ms", "ratio of fastest",
           "sdx spread", "peer spread"]
LOOP = """
import sys, time, json
import numpy as np
import onnxruntime as ort
model, runs, warmup = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
inputs = json.loads(sys.argv[4])
options = ort.SessionOptions()
options.intra_op_num_threads = 1
options.add_session_config_entry("session.x64quantprecision", "1")
session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
feed = {}
rng = np.random.default_rng(0)
for i in inputs:
    dtype = np.dtype(i["dtype"])
    feed[i["name"]] = (rng.random(i["shape"]) if dtype.kind == "f" else rng.integers(0, 10, i["shape"])).astype(dtype)
for _ in range(warmup):
    session.run(None, feed)
times = []
for _ in range(runs):
    start = time.perf_counter_ns()
    session.run(None, feed)
    times.append((time.perf_counter_ns() - start) / 1e6)
times.sort()
print(json.dumps([times[0], times[len(times) // 2]]))
"""


def sdx_times(args, model, backend, out, environment):
    command = [args.sdx, "bench", model, "-b", backend, "-t", "1", "-w", str(args.warmup), "-n", str(args.runs), "--processes", "1",
               "--rounds", "1", "--json", out]
    result = subprocess.run(command, env=environment, capture_output=True, text=True)
    run = json.loads(Path(out).read_text())
    if run["results"][0]["error"]:
        return None, run, run["results"][0]["error"]
    if result.returncode != 0:
        return None, run, result.stderr
    return [run["results"][0]["min_ms"], run["results"][0]["median_ms"]], run, ""


def loop_times(args, model, inputs):
    command = [sys.executable, "-c", LOOP, model, str(args.runs), str(args.warmup), json.dumps(inputs)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def benchmark_app_times(args, model, inputs):
    shapes = ",".join(f"{i['name']}[{','.join(map(str, i['shape']))}]" for i in inputs)
    code = "import sys; from openvino.tools.benchmark.main import main; sys.exit(main())"
    command = [sys.executable, "-c", code, "-m", model, "-d", "CPU", "-api", "sync", "-nireq", "1", "-nthreads", "1", "-niter",
               str(args.runs), "-hint", "none", "-nstreams", "1", "-shape", shapes]
    text = subprocess.run(command, capture_output=True, text=True).stdout
    found = [re.search(name + r":\s+([0-9.]+) (us|ms|s)\b", text) for name in ("Min", "Median")]
    return [float(m.group(1)) * {"us": 1e-3, "ms": 1, "s": 1e3}[m.group(2)] for m in found] if all(found) else None


def summary(processes):
    return {"fastest_ms": min(p[0] for p in processes), "median_ms": statistics.median(p[1] for p in processes)}


def spread(processes):
    return max(p[1] for p in processes) / min(p[1] for p in processes) - 1


def compare(args, model, name, backend, peer, folder, environment):
    ours, theirs = [], []
    _, run, error = sdx_times(args, model, backend, folder / "run.json", environment)
    if error:
        print(f"{Path(model).name}: {backend}: {error.splitlines()[0]}")
        return None
    for _ in range(args.processes):
        ours.append(sdx_times(args, model, backend, folder / "run.json", environment)[0])
        theirs.append(peer(args, model, run["inputs"]))
    if None in theirs:
        print(f"{Path(model).name}: {name} gave no figures")
        return None
    a, b = summary(ours), summary(theirs)
    row = [a["median_ms"], b["median_ms"], a["median_ms"] / b["median_ms"], a["fastest_ms"], b["fastest_ms"], a["fastest_ms"] / b["fastest_ms"],
           spread(ours), spread(theirs)]
    print(f"{Path(model).name:40} {backend:9} {a['fastest_ms']:9.4f} ms   {name:14} {b['fastest_ms']:9.4f} ms   ratio of the fastest "
          f"{row[5]:.3f}, of the medians {row[2]:.3f}; processes differ by {100 * row[6]:.0f} % and {100 * row[7]:.0f} %", flush=True)
    return [Path(model).name, backend, name, *(f"{value:.6f}" for value in row)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("sdx")
    parser.add_argument("models", nargs="+")
    parser.add_argument("--processes", type=int, default=9)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--warmup", type=int, default=20)
    parser.add_argument("--csv", help="bench/results/agreement.csv, from which the documents' figures come")
    args = parser.parse_args()
    environment = dict(os.environ, VIRTUAL_ENV=sys.prefix)  # where sdx looks for OpenVINO
    rows = []
    with tempfile.TemporaryDirectory() as name:
        for model in args.models:
            if importlib.util.find_spec("onnxruntime"):
                library = next(Path(importlib.util.find_spec("onnxruntime").origin).parent.glob("capi/libonnxruntime.so*"), None)
                if library:
                    environment["SDX_ORT_LIB"] = str(library)
                rows.append(compare(args, model, "Python loop", "ort:cpu", loop_times, Path(name), environment))
            if importlib.util.find_spec("openvino"):
                rows.append(compare(args, model, "benchmark_app", "openvino", benchmark_app_times, Path(name), environment))
    if args.csv:
        with open(args.csv, "w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([COLUMNS, *filter(None, rows)])
    return 0


if __name__ == "__main__":
    sys.exit(main())
