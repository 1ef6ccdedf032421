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

STARTS = 3  # processes of each engine, unless asked for another number
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
    def __init__(self, engine, path, folder, threads, cache="none"):
        self.outputs = os.path.join(folder, f"{engine}.{cache}.npz")
        self.log = open(os.path.join(folder, f"{engine}.log"), "w+")
        command = [sys.executable, os.path.join(HERE, "worker.py"), engine, path, os.path.join(folder, "inputs.npz"), self.outputs, str(threads)]
        # One BLAS thread: numpy must not compete with what is measured.
        env = dict(os.environ, OPENBLAS_NUM_THREADS="1", SDX_THREADS=str(threads), SDX_CACHE_DIR=os.path.join(folder, cache))
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
            if e.size == 0:  # nothing was found in a picture
                continue
            scale = np.abs(e).max() or 1.0
            worst = max(worst, float(np.abs(e.ravel() - a.ravel()).max() / scale))
    return worst


def warm(path):
    """Whoever comes first must not read the model from the disk for the others."""
    for name in os.listdir(os.path.dirname(path)):
        if name.startswith(os.path.basename(path)):  # and its external data
            with open(os.path.join(os.path.dirname(path), name), "rb") as file:
                while file.read(1 << 24):
                    pass


def start(engines, path, folder, threads, count):
    """Loads one after the other, so that nobody's loading disturbs another's: (workers that are ready, results so far). The times to
    load are medians of `count` processes; the last one stays."""
    warm(path)
    workers, results, starts = {}, {}, {}
    for last in range(count):
        for engine in engines:
            if "error" in results.get(engine, {}):
                continue
            worker = Worker(engine, path, folder, threads)
            results[engine] = result = worker.answer()
            if "error" in result or last < count - 1:
                worker.close()
            else:
                workers[engine] = worker
            starts.setdefault(engine, []).append(result)
    for engine in workers:
        results[engine].update(times_ms=[], medians_ms=[], cpus_ms=[])
        for field in ("load_ms", "first_ms"):
            results[engine][field] = median(r[field] for r in starts[engine])
    return workers, results


def cached_start(path, folder, threads, count):
    """Of a process that finds what another one has left in the cache."""
    worker = Worker("sdx-keeping", path, folder, threads, "cache")
    answer = worker.answer()
    worker.close()
    starts = []
    while "error" not in answer and len(starts) < count:
        worker = Worker("sdx", path, folder, threads, "cache")
        answer = worker.answer()
        worker.close()
        starts.append(answer)
    if "error" in answer:
        return {"cached_error": answer["error"]}
    if difference(os.path.join(folder, "sdx.none.npz"), worker.outputs) != 0:
        return {"cached_error": "other results than without the cache"}
    fields = {"cached_load_ms": "load_ms", "cached_first_ms": "first_ms", "cached_memory_mb": "start_memory_mb", "cached_private_mb": "private_mb"}
    return {mine: median(s[theirs] for s in starts) for mine, theirs in fields.items()}


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


def measure(path, engines, threads, rounds, seconds, limit, reference="onnxruntime", starts=STARTS):
    """{engine: {"p50_ms", "cpu_ms", "load_ms", "first_ms", "memory_mb", "private_mb", "difference", "medians_ms", "cpus_ms", "version"} or
    {"error"}}; of sdx also "cached_load_ms", "cached_first_ms", "cached_memory_mb", "cached_private_mb".
    limit: how far results may be from those of `reference`, relative to their largest magnitude."""
    path = os.path.abspath(path)
    with tempfile.TemporaryDirectory() as folder:
        np.savez(os.path.join(folder, "inputs.npz"), **random_inputs(path))
        workers, results = start(engines, path, folder, threads, starts)
        check(workers, results, reference, limit)
        if "sdx" in workers:
            results["sdx"].update(cached_start(path, folder, threads, starts))
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
            if times:
                result.update(p50_ms=median(times), runs=len(times), cpu_ms=median(result["cpus_ms"]))
        return results


def ratio(results, engine, peer, key="medians_ms"):
    """Time of peer over time of engine, the median over rounds: above 1 the engine is faster. None without figures of both."""
    mine, other = results.get(engine, {}).get(key), results.get(peer, {}).get(key)
    return median(o / m for m, o in zip(mine, other)) if mine and other else None
