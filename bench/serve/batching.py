"""batching.py SDX MODEL.onnx: what joining requests is worth for a text encoder (inputs input_ids, attention_mask, token_type_ids): requests a
second, with and without, from 1, 4 and 16 clients. Needs wrk (Debian). Every client sends the same 32 tokens in binary form."""

import json
import os
import re
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "tests" / "serve"))
from server import Server  # noqa: E402

TOKENS, SECONDS = 32, 8
SETTINGS = [("one by one", []),
            ("joined, no delay", ["--max-batch-size", "16"]),
            ("joined, 2 ms", ["--max-batch-size", "16", "--max-queue-delay-ms", "2"])]


def body():
    names = {"input_ids": 2023, "attention_mask": 1, "token_type_ids": 0}
    blobs = b"".join(struct.pack("<q", value) * TOKENS for value in names.values())
    head = json.dumps({"inputs": [{"name": n, "datatype": "INT64", "shape": [1, TOKENS], "parameters": {"binary_data_size": 8 * TOKENS}}
                                  for n in names], "parameters": {"binary_data_output": True}}).encode()
    return head, blobs


def script(folder, head, blobs):
    content = "".join(f"\\{byte:03d}" for byte in head + blobs)
    path = Path(folder) / "post.lua"
    path.write_text(f'wrk.method = "POST"\nwrk.headers["Inference-Header-Content-Length"] = "{len(head)}"\nwrk.body = "{content}"\n')
    return path


def load(url, clients, lua):
    out = subprocess.run(["wrk", "-t1", f"-c{clients}", f"-d{SECONDS}s", "--timeout", "30s", "--latency", "-s", str(lua), url],
                         capture_output=True, text=True, check=True).stdout
    if "Non-2xx" in out:
        sys.exit(out)
    return float(re.search(r"Requests/sec:\s+([\d.]+)", out)[1]), re.search(r"99%\s+(\S+)", out)[1]


def counts(server):
    """Requests, runs, and milliseconds of processor time."""
    statistics = server.json("GET", "/v2/models/encoder/stats")["model_stats"][0]
    fields = Path(f"/proc/{server.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    ticks = int(fields[11]) + int(fields[12])
    return statistics["inference_count"], statistics["execution_count"], 1000 * ticks / os.sysconf("SC_CLK_TCK")


def main():
    sdx, model = sys.argv[1:3]
    with tempfile.TemporaryDirectory() as folder:
        lua = script(folder, *body())
        for name, flags in SETTINGS:
            with Server(sdx, f"encoder={model}", *flags) as server:
                before = counts(server)
                for clients in (1, 4, 16):
                    rate, slow = load(f"http://{server.address}/v2/models/encoder/infer", clients, lua)
                    after = counts(server)
                    requests, runs, cpu = (a - b for a, b in zip(after, before))
                    print(f"{name:18} {clients:3} clients {rate:8.1f} requests/s, 99 % within {slow}, {requests / runs:.1f} a run, "
                          f"{cpu / requests:.1f} ms of processor time each", flush=True)
                    before = after


if __name__ == "__main__":
    main()
