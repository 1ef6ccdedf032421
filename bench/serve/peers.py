"""`sdx serve` beside MLServer, Ray Serve and BentoML with onnxruntime: the same models, asked by wrk over HTTP with JSON, in turns.

    peers.py --venvs build [--sdx build/release/bin/sdx] [--models tiny,mlp,minilm] [--peers mlserver,ray,bentoml] [--rounds 2] [--seconds 6]
             [--gguf MODEL.gguf] [--markdown FILE]

Each server has one process for the model and all cores, which wrk needs too. 1 client: what one request takes; 16: how many a second. The best of
the rounds counts, since others on the machine only take away. Answers are compared first. `minilm` is served joined (up to 16 samples) by all of
them, and by `sdx serve` also one by one. With --gguf: tokens a second of 1 and 8 streams, for `sdx serve` alone.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "tests" / "serve"))
from server import Server  # noqa: E402

CLIENTS, BATCH, PATIENCE = (1, 16), 16, 180
NAMES = {"sdx": "sdx serve", "sdx-alone": "sdx serve, one by one", "mlserver": "MLServer", "ray": "Ray Serve", "bentoml": "BentoML"}
UNITS = {"us": 1, "ms": 1e3, "s": 1e6}


def values_of(model: str) -> dict:
    if model == "minilm":
        return {"input_ids": ("INT64", [101, *(2000 + 37 * i for i in range(30)), 102]), "attention_mask": ("INT64", [1] * 32)}
    return {"x": ("FP32", [0.25 * i - 1 for i in range(4 if model == "tiny" else 64)])}


def protocol_body(model: str) -> bytes:
    inputs = [{"name": n, "datatype": d, "shape": [1, len(v)], "data": v} for n, (d, v) in values_of(model).items()]
    return json.dumps({"inputs": inputs}).encode()


def protocol_values(answer: bytes) -> list:
    return json.loads(answer)["outputs"][0]["data"]


class Target:
    """What is asked: an address and how it is talked to."""

    def __init__(self, port: int, path: str, body: bytes, values=protocol_values):
        self.port, self.path, self.body, self.values = port, path, body, values

    def ask(self) -> list:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.request("POST", self.path, self.body, {"Content-Type": "application/json"})
            response = connection.getresponse()
            content = response.read()
            if response.status != 200:
                raise ConnectionError(content[:300])
            return self.values(content)
        finally:
            connection.close()

    def wait(self, process: subprocess.Popen):
        end = time.monotonic() + PATIENCE
        while True:
            try:
                return self.ask()
            except (OSError, http.client.HTTPException):
                if process.poll() is not None or time.monotonic() > end:
                    raise
            time.sleep(0.3)


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@contextlib.contextmanager
def process(command: list, log: pathlib.Path, **environment: str):
    with log.open("wb") as out:
        started = subprocess.Popen([str(c) for c in command], stdout=out, stderr=out, env={**os.environ, **environment}, start_new_session=True)
        try:
            yield started
        finally:
            for number in (signal.SIGTERM, signal.SIGKILL):
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(started.pid, number)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    started.wait(20)


@contextlib.contextmanager
def sdx(args, model: str, file: pathlib.Path, joined: bool):
    flags = ["--max-batch-size", BATCH] if joined else []
    with Server(args.sdx, f"{model}={file}", "--log-format", "json", *flags) as server:
        yield Target(server.port, f"/v2/models/{model}/infer", protocol_body(model))


@contextlib.contextmanager
def mlserver(args, model: str, file: pathlib.Path, work: pathlib.Path, joined: bool):
    port, folder = free_port(), work / f"mlserver-{model}"
    folder.mkdir(exist_ok=True)
    # The model in the server's own process: workers beside it cost a copy more.
    (folder / "settings.json").write_text(json.dumps({"http_port": port, "grpc_port": free_port(), "metrics_endpoint": None, "parallel_workers": 0,
                                                      "host": "127.0.0.1", "logging_settings": None}))  # fmt: skip
    settings = {"name": model, "implementation": "mlserver_model.OnnxModel", "parameters": {"uri": str(file)}}
    if joined:
        settings |= {"max_batch_size": BATCH, "max_batch_time": 0.002}
    (folder / "model-settings.json").write_text(json.dumps(settings))
    python = args.venvs / "bench-mlserver-venv/bin/python"
    start = [python, "-c", "from mlserver.cli import main; main()", "start", folder]
    with process(start, work / "mlserver.log", PYTHONPATH=str(HERE / "peers")) as server:
        target = Target(port, f"/v2/models/{model}/infer", protocol_body(model))
        target.wait(server)
        yield target


@contextlib.contextmanager
def ray(args, model: str, file: pathlib.Path, work: pathlib.Path, joined: bool):
    port = free_port()
    python = args.venvs / "bench-ray-venv/bin/python"
    start = [python, HERE / "peers/ray_app.py", file, port, BATCH if joined else 1]
    with process(start, work / "ray.log", RAY_USAGE_STATS_ENABLED="0") as server:
        target = Target(port, "/", protocol_body(model))
        target.wait(server)
        yield target


@contextlib.contextmanager
def bentoml(args, model: str, file: pathlib.Path, work: pathlib.Path, joined: bool):
    port = free_port()
    python = args.venvs / "bench-bentoml-venv/bin/python"
    start = [python, "-m", "bentoml", "serve", "bento_service:Model", "--port", port, "--host", "127.0.0.1"]
    environment = {"BENCH_MODEL": str(file), "BENCH_BATCH": str(BATCH if joined else 1), "BENTOML_DO_NOT_TRACK": "True",
                   "BENTOML_HOME": str(work / "bentoml"), "PYTHONPATH": str(HERE / "peers")}  # fmt: skip
    body = json.dumps({"x": [next(iter(values_of(model).values()))[1]]}).encode()
    with process(start, work / "bentoml.log", **environment) as server:
        target = Target(port, "/infer", body, lambda answer: json.loads(answer)[0])
        target.wait(server)
        yield target


def load(target: Target, clients: int, seconds: int, work: pathlib.Path) -> tuple[float, float, float]:
    """Requests a second; median and 99th percentile in us."""
    lua = work / "post.lua"
    text = target.body.decode().replace("\\", "\\\\").replace("'", "\\'")
    lua.write_text(f"wrk.method = 'POST'\nwrk.headers['Content-Type'] = 'application/json'\nwrk.body = '{text}'\n")
    out = subprocess.run(["wrk", "-t1", f"-c{clients}", f"-d{seconds}s", "--timeout", "60s", "--latency", "-s", lua,
                          f"http://127.0.0.1:{target.port}{target.path}"], capture_output=True, text=True, check=True).stdout  # fmt: skip
    if "Non-2xx" in out or "Socket errors" in out:
        raise SystemExit(out)
    times = [float(m[1]) * UNITS[m[2]] for at in ("50", "99") if (m := re.search(rf"{at}%\s+([\d.]+)(us|ms|s)", out))]
    return float(re.search(r"Requests/sec:\s+([\d.]+)", out)[1]), times[0], times[1]


def better(a: tuple | None, b: tuple) -> tuple:
    return b if a is None else (max(a[0], b[0]), min(a[1], b[1]), min(a[2], b[2]))


def started(args, engine: str, model: str, work: pathlib.Path):
    file, joined = args.folder / f"{model}.onnx", model == "minilm"
    if engine.startswith("sdx"):
        return sdx(args, model, file, joined and engine == "sdx")
    return {"mlserver": mlserver, "ray": ray, "bentoml": bentoml}[engine](args, model, file, work, joined)


def compare(args, model: str, work: pathlib.Path) -> list[str]:
    engines = ["sdx", *(["sdx-alone"] if model == "minilm" else []), *args.peers]
    best, wanted = {}, None
    for turn in range(args.rounds):
        for engine in engines[turn % len(engines):] + engines[: turn % len(engines)]:
            with started(args, engine, model, work) as target:
                got = target.ask()
                wanted = wanted or got
                if len(got) != len(wanted) or any(abs(a - b) > 1e-3 * (1 + abs(b)) for a, b in zip(got, wanted)):
                    raise SystemExit(f"{engine} computes something else for {model}: {got[:4]} instead of {wanted[:4]}")
                load(target, CLIENTS[-1], 1, work)  # what starts late
                for clients in CLIENTS:
                    best[engine, clients] = better(best.get((engine, clients)), load(target, clients, args.seconds, work))
                    print(model, engine, clients, best[engine, clients], flush=True)
    lines = [f"## {model}", "", "| | 1 client: requests/s | median, us | 99 %, us | 16 clients: requests/s | median, us | 99 %, us | × |",
             "|---|--:|--:|--:|--:|--:|--:|--:|"]  # fmt: skip
    for engine in engines:
        numbers = [f"{v:.0f}" for clients in CLIENTS for v in best[engine, clients]]
        ratio = best["sdx", 16][0] / best[engine, 16][0]
        lines.append(f"| {NAMES[engine]} | " + " | ".join(numbers) + f" | {ratio:.2f} |")
    return [*lines, ""]


def own_run(args, model: str) -> str:
    """How long the engine's own run takes, without a server."""
    out = subprocess.run([args.sdx, "bench", args.folder / f"{model}.onnx", "--json", "-"], capture_output=True, text=True, check=True).stdout
    return f"The engine's own run of `{model}` takes {1e3 * json.loads(out)['results'][0]['median_ms']:.1f} us in the median (`sdx bench`)."


def stream(port: int, number: int, tokens: int, counts: list):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    # Prompts of their own: what they have in common is computed once.
    body = {"model": "chat", "prompt": f"{number} {number} is the number of a long story about", "max_tokens": tokens, "min_tokens": tokens, "temperature": 0,
            "stream": True, "stream_options": {"include_usage": True}}  # fmt: skip
    connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
    for line in connection.getresponse():
        if line.startswith(b"data: {") and (usage := json.loads(line[6:]).get("usage")):
            counts.append(usage["completion_tokens"])
    connection.close()


def streams(args) -> list[str]:
    best = {}
    with Server(args.sdx, f"chat={args.gguf}") as server:
        for _ in range(args.rounds + 1):
            for clients in (1, 8):
                counts: list = []
                threads = [threading.Thread(target=stream, args=(server.port, i, 128, counts)) for i in range(clients)]
                begin = time.monotonic()
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
                rate = sum(counts) / (time.monotonic() - begin)
                best[clients] = max(best.get(clients, 0), rate)
                print("streams", clients, f"{rate:.1f}", flush=True)
    return ["## Streams of a language model", "", "| streams | tokens/s | of one |", "|--:|--:|--:|",
            *(f"| {n} | {rate:.1f} | {rate / best[1]:.2f} |" for n, rate in best.items()), ""]  # fmt: skip


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sdx", default="build/release/bin/sdx")
    parser.add_argument("--venvs", type=lambda p: pathlib.Path(p).absolute(), default=pathlib.Path("build").absolute())
    parser.add_argument("--folder", type=lambda p: pathlib.Path(p).absolute(), default=pathlib.Path("build/bench-serve-models").absolute())
    parser.add_argument("--models", type=lambda s: [m for m in s.split(",") if m], default=["tiny", "mlp", "minilm"])
    parser.add_argument("--peers", type=lambda s: [p for p in s.split(",") if p], default=["mlserver", "ray", "bentoml"])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seconds", type=int, default=6)
    parser.add_argument("--gguf", default="")
    parser.add_argument("--markdown", type=pathlib.Path)
    args = parser.parse_args()
    subprocess.run([args.venvs / "bench-bentoml-venv/bin/python", HERE / "models.py", args.folder], check=True)
    lines = []
    with tempfile.TemporaryDirectory() as work:
        for model in args.models:
            lines += compare(args, model, pathlib.Path(work))
            if model != "minilm":
                lines += [own_run(args, model), ""]
    if args.gguf:
        lines += streams(args)
    print("\n".join(lines))
    if args.markdown:
        args.markdown.write_text("\n".join(lines))


if __name__ == "__main__":
    main()
