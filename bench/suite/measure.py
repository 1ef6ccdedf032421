"""Measures one model on all engines: processes of their own, rounds in which they take turns in changing order."""

import json
import os
import random
import subprocess
import sys
import tempfile
from statistics import median

import numpy as np
import onnx

HERE = os.path.dirname(os.path.abspath(__file__))
INTEGERS = {onnx.TensorProto.INT64: np.int64, onnx.TensorProto.INT32: np.int32}


def random_inputs(path, seed=0):
    graph = onnx.load(path, load_external_data=False).graph
    weights = {t.name for t in graph.initializer}
    rng, inputs = np.random.default_rng(seed), {}
    for info in graph.input:
        if info.name in weights:
            continue
        shape = [d.dim_value for d in info.type.tensor_type.shape.dim]
        kind = info.type.tensor_type.elem_type
        if kind in INTEGERS:
            inputs[info.name] = (np.ones(shape) if "mask" in info.name else rng.integers(0, 1000, shape)).astype(INTEGERS[kind])
        else:
            inputs[info.name] = rng.standard_normal(shape, np.float32)
    return inputs


class Worker:
    def __init__(self, engine, path, folder, threads):
        self.outputs = os.path.join(folder, f"{engine}.npz")
        self.log = open(os.path.join(folder, f"{engine}.log"), "w+")
        command = [sys.executable, os.path.join(HERE, "worker.py"), engine, path, os.path.join(folder, "inputs.npz"), self.outputs, str(threads)]
        # One BLAS thread: numpy must not compete with what is measured.
        env = dict(os.environ, OPENBLAS_NUM_THREADS="1", SDX_THREADS=str(threads))
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True, env=env)

    def answer(self):
        line = self.process.stdout.readline()
        if line:
            return json.loads(line)
        self.process.wait()
        self.log.seek(0)
        last = self.log.read().strip().splitlines()[-1:] or [""]
        return {"error": f"ended with code {self.process.returncode}: {last[0][:200]}"}

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.answer()

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()
        self.log.close()


def difference(expected_file, actual_file):
    """Largest |a - b| over the largest |b| of an output; None where shapes or counts differ."""
    worst = 0.0
    with np.load(expected_file) as expected, np.load(actual_file) as actual:
        if len(expected.files) != len(actual.files):
            return None
        for name in expected.files:
            e, a = expected[name].astype(np.float64), actual[name].astype(np.float64)
            if e.size != a.size:
                return None
            scale = np.abs(e).max() or 1.0
            worst = max(worst, float(np.abs(e.ravel() - a.ravel()).max() / scale))
    return worst


def start(engines, path, folder, threads):
    """Loads one after the other, so that nobody's loading disturbs another's: (workers that are ready, results so far)."""
    workers, results = {}, {}
    for engine in engines:
        worker = Worker(engine, path, folder, threads)
        result = worker.answer()
        results[engine] = result
        if "error" in result:
            worker.close()
        else:
            result.update(times_ms=[], medians_ms=[], cpus_ms=[])
            workers[engine] = worker
    return workers, results


def check(workers, results, reference, limit):
    """Who computes something else has no times: what an engine may leave out makes it fast."""
    if reference not in workers:
        return
    for engine in list(workers):
        found = difference(workers[reference].outputs, workers[engine].outputs)
        results[engine]["difference"] = found
        if found is None or not found <= limit:
            workers.pop(engine).close()
            results[engine] = {"error": "results of another shape" if found is None else f"results differ by {found:.1e} of the largest", "difference": found}


def measure(path, engines, threads, rounds, seconds, limit, reference="onnxruntime"):
    """{engine: {"p50_ms", "cpu_ms", "load_ms", "first_ms", "memory_mb", "difference", "medians_ms", "cpus_ms", "version"} or {"error"}}
    limit: how far results may be from those of `reference`, relative to their largest magnitude."""
    path = os.path.abspath(path)
    with tempfile.TemporaryDirectory() as folder:
        np.savez(os.path.join(folder, "inputs.npz"), **random_inputs(path))
        workers, results = start(engines, path, folder, threads)
        check(workers, results, reference, limit)
        order = list(workers)
        for _ in range(rounds):
            random.shuffle(order)
            for engine in order:
                answer = workers[engine].ask(f"{seconds} 3")
                results[engine]["times_ms"] += answer["times_ms"]
                results[engine]["medians_ms"].append(median(answer["times_ms"]))
                results[engine]["cpus_ms"].append(answer["cpu_ms"])
        for engine, worker in workers.items():
            result = results[engine]
            result.update(worker.ask("memory"))
            worker.close()
            times = result.pop("times_ms")
            result.update(p50_ms=median(times), runs=len(times), cpu_ms=median(result["cpus_ms"]))
        return results


def ratio(results, engine, peer, key="medians_ms"):
    """Time of peer over time of engine, the median over rounds: above 1 the engine is faster. None without figures of both."""
    mine, other = results.get(engine, {}).get(key), results.get(peer, {}).get(key)
    return median(o / m for m, o in zip(mine, other)) if mine and other else None
