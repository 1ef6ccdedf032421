"""soak.py SDX SECONDS [FLAGS OF sdx serve ...]: a server under load of all kinds at once: inferences (wrk where it is installed), texts in streams,
packed bodies, forms, gRPC (where tritonclient is installed), models loaded and unloaded, new versions, keys read again, clients that go in the
middle or send nonsense. Fails where an answer is wrong, where the server ends, and where its memory still grows in the second half of a run of
ten minutes or more. For builds with sanitizers, and for long runs."""

import gzip
import json
import os
import random
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from scratch import scratch  # noqa: E402

PROJECT = Path(__file__).resolve().parent.parent.parent
try:
    import numpy as np
    import tritonclient.grpc as triton
except ImportError:
    PYTHON = PROJECT / "build" / "serving-venv" / "bin" / "python"
    if PYTHON.exists() and Path(sys.prefix) != PYTHON.parent.parent:
        os.execv(PYTHON, [str(PYTHON), "-B", *sys.argv])
    triton = None

from inference_models import times, write, write_repository  # noqa: E402
from server import Server  # noqa: E402
from tiny_models import alphabet, gguf, write_language  # noqa: E402

SAMPLE = 10  # seconds from one look at the memory to the next
GROWTH = 1.03  # of the memory, from the middle third of a run to the last
PAIR = {"inputs": [{"name": f"INPUT{i}", "datatype": "INT32", "shape": [1, 16], "data": list(range(16))} for i in (0, 1)]}
POINT = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 2], "data": [1, 2]}]}


class Quiet(Server):
    """Lines of requests are thrown away: there are millions."""

    def _read(self):
        for line in self.process.stderr:
            if " request id=" in line:
                continue
            self.lines.append(line.rstrip("\n"))
            self.arrived.put(self.lines[-1])
        self.arrived.put(None)


class Soak:
    def __init__(self, sdx, seconds, flags, folder):
        self.end, self.folder, self.wrong, self.done = time.monotonic() + seconds, folder, [], {}
        self.keys = folder / "keys"
        self.write_keys(0)
        write_repository(folder / "models")
        (folder / "letters.gguf").write_bytes(gguf([*alphabet(), "<end>"], 4000))
        write_language(lambda name, content: write(folder / "language" / name, content))
        models = [f"letters={folder / 'letters.gguf'}", f"embed={folder / 'language/embedder'}"]
        self.server = Quiet(sdx, *models, "--repository", folder / "models", "--api-keys", self.keys, *flags, grpc=triton is not None)

    def write_keys(self, turn):
        part = self.keys.with_suffix(".new")
        part.write_text(f"secret name=load\nother-{turn} name=other rate=60\n")
        part.replace(self.keys)

    def ask(self, method, path, body=None, headers=()):
        return self.server.ask(method, path, body, {"Authorization": "Bearer secret", **dict(headers)})

    def expect(self, answer, *statuses):
        if answer.status not in statuses:
            self.wrong.append((answer.status, answer.body[:300]))
        return answer.status == 200

    # ---- What happens over and over again, each on a thread of its own

    def infer(self):
        answer = self.ask("POST", "/v2/models/simple/infer", PAIR)
        if self.expect(answer, 200, 503) and answer.json()["outputs"][0]["data"] != [2 * i for i in range(16)]:
            self.wrong.append(answer.body)

    def pack(self):
        body = gzip.compress(json.dumps(PAIR).encode())
        self.expect(self.ask("POST", "/v2/models/simple/infer", body, {"Content-Encoding": "gzip"}), 200, 503)
        self.expect(self.ask("POST", "/v2/models/simple/infer", body[:-9], {"Content-Encoding": "gzip"}), 400)

    def speak(self):
        body = {"model": "letters", "prompt": "ab" * random.randint(1, 300), "max_tokens": 64, "stream": True, "n": random.randint(1, 2)}
        answer = self.ask("POST", "/v1/completions", body)
        if self.expect(answer, 200, 503, 429) and not answer.body.endswith(b"data: [DONE]\n\n"):
            self.wrong.append(answer.body[-200:])

    def chat(self):
        body = {"model": "letters", "messages": [{"role": "user", "content": "a" * random.randint(1, 200)}], "max_tokens": 16}
        self.expect(self.ask("POST", "/v1/chat/completions", body), 200, 503, 429)
        self.expect(self.ask("POST", "/v1/embeddings", {"model": "embed", "input": ["a", "b a"]}), 200)

    def leave(self):
        """In the middle of an answer, of a body, of a head."""
        body = json.dumps({"model": "letters", "prompt": "ab", "max_tokens": 3000, "stream": True}).encode()
        head = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer secret\r\nContent-Length: %d\r\n\r\n" % len(body)
        whole = head + body
        with socket.create_connection(("127.0.0.1", self.server.port)) as s:
            s.settimeout(60)
            cut = random.choice([len(whole), len(whole), random.randrange(len(whole))])
            s.sendall(whole[:cut])
            if cut == len(whole):
                s.recv(random.randint(1, 2000))
            if random.random() < 0.5:  # as a client does that was killed
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        time.sleep(0.02)

    def babble(self):
        self.server.raw(random.randbytes(random.randint(1, 500)) + b"\r\n\r\n")
        self.expect(self.server.ask("GET", "/v1/models", headers={"Authorization": "Bearer nobody"}), 401)
        self.expect(self.ask("POST", "/v2/models/simple/infer", b'{"inputs": [' + random.randbytes(20)), 400)

    def control(self):
        name = random.choice(["simple_int8", "scores", "simple_identity"])
        self.expect(self.ask("POST", f"/v2/repository/models/{name}/{random.choice(['load', 'load', 'unload'])}"), 200, 404)
        self.expect(self.ask("POST", "/v2/repository/index", {}), 200)
        for path in ("/metrics", "/", "/v2/models/stats", "/v1/models", "/v2/models/simple/config"):
            self.expect(self.ask("GET", path), 200)

    def change(self):
        """New versions of a model that is asked all the time."""
        turn = self.done["change"]
        write(self.folder / f"models/versions/{turn % 2 + 1}/model.onnx", times(turn % 3 + 1))
        for _ in range(20):
            answer = self.ask("POST", "/v2/models/versions/infer", POINT)
            if self.expect(answer, 200, 503) and answer.json()["outputs"][0]["data"][0] not in (1, 2, 3):
                self.wrong.append(answer.body)
            time.sleep(0.05)

    def hang_up(self):
        self.write_keys(self.done["hang_up"])
        self.server.signal(signal.SIGHUP)
        time.sleep(0.5)

    def call(self):
        """gRPC: inferences, and texts of which half are given up."""
        headers = {"authorization": "Bearer secret"}
        with triton.InferenceServerClient(f"127.0.0.1:{self.server.grpc_port}") as client:
            x = triton.InferInput("x", [1, 2], "FP32")
            x.set_data_from_numpy(np.ones((1, 2), np.float32))
            for _ in range(20):
                client.infer("versions", [x], headers=headers)
            text, stream, most = (triton.InferInput(n, [1], d) for n, d in (("text_input", "BYTES"), ("stream", "BOOL"), ("max_tokens", "INT32")))
            text.set_data_from_numpy(np.array([b"abc"], np.object_))
            stream.set_data_from_numpy(np.array([True]))
            most.set_data_from_numpy(np.array([200], np.int32))
            arrived = threading.Event()
            client.start_stream(callback=lambda result, error: arrived.set(), headers=headers)
            for _ in range(2):
                client.async_stream_infer("letters", [text, stream, most])
            if not arrived.wait(60):
                self.wrong.append("no piece of a text")
            client.stop_stream(cancel_requests=random.random() < 0.5)

    # ----

    def repeat(self, action):
        name = action.__name__
        self.done[name] = 0
        while time.monotonic() < self.end and self.server.process.poll() is None and len(self.wrong) < 20:
            try:
                action()
                self.done[name] += 1
            except Exception as error:  # the last word has whoever reads the list
                if time.monotonic() < self.end - 1 and self.server.process.poll() is None:
                    self.wrong.append((name, repr(error)))

    def wrk(self):
        lua = self.folder / "post.lua"
        lua.write_text(f"wrk.method = 'POST'\nwrk.headers['Authorization'] = 'Bearer secret'\nwrk.body = '{json.dumps(PAIR)}'\n")
        seconds = max(1, int(min(20, self.end - time.monotonic())))
        subprocess.run(["wrk", "-t1", "-c8", f"-d{seconds}s", "-s", lua, f"http://{self.server.address}/v2/models/simple/infer"],
                       capture_output=True, check=True)  # fmt: skip

    def memory(self):
        """Without what language models keep of texts that have ended: that grows up to its limit."""
        status = Path(f"/proc/{self.server.process.pid}/status").read_text()
        lines = self.ask("GET", "/metrics").body.decode().splitlines()
        kept = sum(float(line.split()[-1]) for line in lines if line.startswith("sdx_engine_cache_bytes"))
        return int(status.split("VmRSS:")[1].split()[0]) / 1024 - kept / 2**20

    def run(self):
        actions = [self.infer, self.pack, self.speak, self.speak, self.chat, self.leave, self.leave, self.babble, self.control, self.change, self.hang_up]
        actions += [self.wrk] if shutil.which("wrk") else []
        actions += [self.call] if triton else []
        threads = [threading.Thread(target=self.repeat, args=(action,)) for action in actions]
        begin, seen = time.monotonic(), []
        for thread in threads:
            thread.start()
        while alive := [thread for thread in threads if thread.is_alive()]:
            alive[0].join(SAMPLE)
            if self.server.process.poll() is None:
                seen.append(self.memory())
                print(f"{time.monotonic() - begin:6.0f} s {seen[-1]:8.1f} MiB {sum(self.done.values()):8} done", flush=True)
            else:
                break
        for thread in threads:
            thread.join()
        return seen


def main():
    seconds = int(sys.argv[2])
    with scratch() as folder:
        soak = Soak(sys.argv[1], seconds, sys.argv[3:], folder)
        seen = soak.run()
        code = soak.server.end()
        noise = [line for line in soak.server.lines if not any(word in line for word in (" info ", " warning ", "listening on"))]
        print(soak.done)
        for line in noise[:200]:
            print(line)
        if code != 0 or soak.wrong:
            sys.exit(f"exit code {code}; wrong: {soak.wrong[:20]}")
    third = len(seen) // 3
    if seconds >= 600 and (middle := statistics.median(seen[third : 2 * third])) * GROWTH < (last := statistics.median(seen[2 * third :])):
        sys.exit(f"the memory grows: {middle:.1f} MiB in the middle of the run, {last:.1f} at its end")


if __name__ == "__main__":
    main()
