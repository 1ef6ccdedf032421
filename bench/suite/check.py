"""What became slower: `check.py BASE SDX [--models A,B] [--threads 1,2]`.

BASE is a program (build/other/bin/sdx), or the folder that `make bench-keep` wrote. Of each model both programs start one short process after the other, in
changing order, and `sdx diff` compares what these processes measured. What it calls a regression is measured a second time, with twice as many
processes: only what is found again counts. The exit code is then 1.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

import numpy as np

import models
from measure import random_inputs

def program_of(base):
    path = os.path.join(base, "bin", "sdx") if os.path.isdir(base) else base
    if not os.path.isfile(path):
        sys.exit(f"{path}: no such program. `make bench-keep` keeps the present one; BASE=OTHER/bin/sdx names another")
    return os.path.abspath(path)


def bench(program, model, inputs, threads, runs, warmup, out):
    command = [program, "bench", model, "-f", inputs, "-b", "cpu", "-t", str(threads), "-n", str(runs), "-w", str(warmup), "--processes", "1", "--rounds", "1",
               "--no-cache", "--json", out]
    done = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ, SDX_THREADS=str(threads)))
    if not os.path.exists(out):
        raise RuntimeError(f"{program}: {(done.stderr.strip().splitlines() or ['no result'])[-1]}")
    with open(out) as file:
        report = json.load(file)
    os.remove(out)
    if report["results"][0]["error"]:
        raise RuntimeError(f"{program}: {report['results'][0]['error']}")
    return report


def joined(reports):
    """Benchmarks of one process each as one of many processes. `sdx diff` works out the rest from these lists."""
    whole = json.loads(json.dumps(reports[0]))
    result = whole["results"][0]
    for key in ("latencies_ms", "iterations", "processes", "rounds"):
        result[key] = []
    for number, report in enumerate(reports):
        part = report["results"][0]
        result["latencies_ms"] += part["latencies_ms"]
        result["processes"] += part["processes"]
        result["rounds"] += [dict(r, process=number) for r in part["rounds"]]
        result["iterations"] += [dict(i, process=number, round=number) for i in part["iterations"]]
    return whole


def compare(programs, model, inputs, threads, args, processes):
    """What `sdx diff` says of `processes` processes of each program."""
    with tempfile.TemporaryDirectory() as folder:
        once = lambda program, runs, warmup: bench(program, model, inputs, threads, runs, warmup, os.path.join(folder, "one.json"))
        first = max(1e-3, once(programs[1], 3, 1)["results"][0]["median_ms"])
        runs, warmup = (int(min(2000, max(least, 1000 * seconds / first))) for seconds, least in ((args.seconds, 5), (args.seconds / 4, 1)))
        found = ([], [])
        for number in range(processes):
            for side in (0, 1) if number % 2 == 0 else (1, 0):
                found[side].append(once(programs[side], runs, warmup))
        files = [os.path.join(folder, name) for name in ("base.json", "current.json")]
        for file, reports in zip(files, found):
            with open(file, "w") as out:
                json.dump(joined(reports), out)
        done = subprocess.run([programs[1], "diff", *files, "-t", str(args.threshold), "--json", "--no-fail"], capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip())
        return json.loads(done.stdout)["results"][0]


def check(programs, args):
    worse, failed = [], []
    print("| model | T | base ms | now ms | change | p | verdict |\n|---|--:|--:|--:|--:|--:|---|", flush=True)
    for name in args.models.split(","):
        path = name if os.path.exists(name) else models.make(args.folder, name)
        with tempfile.TemporaryDirectory() as folder:
            inputs = os.path.join(folder, "inputs.npz")
            np.savez(inputs, **random_inputs(path))
            for threads in (int(t) for t in args.threads.split(",")):
                label = f"{os.path.basename(name)} | {threads}"
                try:
                    entry = compare(programs, path, inputs, threads, args, args.processes)
                    if entry["verdict"] == "REGRESSION":
                        entry = compare(programs, path, inputs, threads, args, 2 * args.processes)
                except RuntimeError as error:
                    failed.append(label)
                    print(f"| {label} | – | – | – | – | {error} |", flush=True)
                    continue
                if entry["verdict"] == "REGRESSION":
                    worse.append(label)
                p = "–" if entry["p_value"] is None else f"{entry['p_value']:.2g}"
                print(f"| {label} | {entry['base_ms']:.3f} | {entry['current_ms']:.3f} | {entry['change_percent']:+.1f} % | {p} | {entry['verdict']} |", flush=True)
    print(f"\n{len(worse)} slower by more than {args.threshold:g} %" + (f", {len(failed)} could not be measured" if failed else "") + ".")
    return 1 if worse or failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base")
    parser.add_argument("sdx")
    parser.add_argument("--models", default=",".join(models.SUITE), help="of the suite, or paths of ONNX files")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--threshold", type=float, default=3, help="percent")
    parser.add_argument("--processes", type=int, default=12, help="of each program, model and number of threads; sdx diff wants at least 8")
    parser.add_argument("--seconds", type=float, default=0.3, help="of runs that count, in each process")
    parser.add_argument("--folder", default="build/bench-models", help="where the models are made")
    args = parser.parse_args()
    unknown = [name for name in args.models.split(",") if name not in models.SUITE and not os.path.exists(name)]
    if unknown:
        sys.exit(f"{', '.join(unknown)}: neither a file nor a model of the suite, which has {', '.join(models.SUITE)}")
    return check([program_of(args.base), program_of(args.sdx)], args)


if __name__ == "__main__":
    sys.exit(main())
