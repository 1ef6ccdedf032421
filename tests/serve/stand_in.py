"""A server with the routes that the page of `sdx serve` asks for, and answers of its own: what the page does can be looked at with any
answer, without a model. StandIn(key="") serves on a free port of 127.0.0.1 until close()."""

import http.server
import json
import pathlib
import struct
import threading
import time

ASSETS = pathlib.Path(__file__).resolve().parents[2] / "src" / "serve" / "page" / "assets"
SCRIPTS = ["server", "markdown", "chat", "try", "embed", "metrics", "page"]
POLICY = ("default-src 'none'; script-src 'nonce-n'; style-src 'nonce-n'; img-src 'self' blob: data:; connect-src 'self'; base-uri 'none'; "
          "form-action 'none'; frame-ancestors 'none'")

ANSWER = """## Quartz and <em>iron</em>

Sardonyx is a *banded* chalcedony with **red** layers. <script>document.title = "taken"</script><img src=x onerror="document.title='taken'">

- brown bands of `sard`
- white bands of onyx
  1. cut along them
  2. carved as cameos

| layer | colour |
|---|---|
| sard | red |
| onyx | white |

```python
print("<b>banded</b>")
```

See [a mineral](https://example.com/sardonyx) and [nothing](javascript:alert(1)).
"""

MODELS = {
    "colours": {"platform": "sardonyx_onnx", "inputs": [{"name": "x", "datatype": "FP32", "shape": [-1, 3, 8, 8]}],
                "outputs": [{"name": "scores", "datatype": "FP32", "shape": [-1, 3]}]},
    "talker": {"platform": "sardonyx_language", "inputs": [{"name": "text_input", "datatype": "BYTES", "shape": [1]}],
               "outputs": [{"name": "text_output", "datatype": "BYTES", "shape": [1]}]},
    "minilm": {"platform": "sardonyx_embedding", "inputs": [{"name": "text", "datatype": "BYTES", "shape": [-1]}],
               "outputs": [{"name": "embedding", "datatype": "FP32", "shape": [-1, -1]}]},
}
MODELS["resting"] = MODELS["colours"]


def document():
    page = (ASSETS / "page.html").read_text(encoding="utf-8")
    page = page.replace("/*STYLE*/", (ASSETS / "page.css").read_text(encoding="utf-8"))
    page = page.replace("/*SCRIPT*/", "\n".join((ASSETS / f"{name}.js").read_text(encoding="utf-8") for name in SCRIPTS))
    return page.replace("@NONCE@", "n").encode()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, body, status=200, kind="application/json", headers=()):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def allowed(self):
        key = self.server.owner.key
        if not key or self.headers.get("Authorization") == f"Bearer {key}":
            return True
        self.answer({"error": {"message": "this server needs an API key"}}, 401)
        return False

    def do_GET(self):
        owner = self.server.owner
        if self.path == "/":
            return self.answer(document(), kind="text/html; charset=utf-8", headers=[("Content-Security-Policy", POLICY)])
        if not self.allowed():
            return None
        if self.path == "/metrics":
            return self.answer(owner.metrics().encode(), kind="text/plain")
        parts = self.path.strip("/").split("/")
        if parts[0] == "info":
            return self.answer({"name": parts[1], **({"project": "colours"} if owner.project else {})})
        if parts[-1] == "config":
            return self.answer({"max_batch_size": 8, "parameters": {"sardonyx.providers": {"string_value": "cpu"}}})
        if parts[:2] == ["v2", "models"] and parts[2] in MODELS:
            return self.answer({"name": parts[2], "versions": ["1"], **MODELS[parts[2]]})
        return self.answer({"error": f"there is no '{self.path}' here"}, 404)

    def do_POST(self):
        owner = self.server.owner
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if not self.allowed():
            return None
        owner.requests.append((self.path, dict(self.headers), body))
        if self.path == "/v2/repository/index":
            return self.answer([{"name": n, "version": "1", "state": s, "reason": ""} for n, s in owner.states.items()])
        parts = self.path.strip("/").split("/")
        if parts[:3] == ["v2", "repository", "models"]:
            if parts[3] == "broken":
                return self.answer({"error": "model 'broken' cannot be loaded: its file is cut short"}, 400)
            owner.states[parts[3]] = "READY" if parts[4] == "load" else "UNAVAILABLE"
            return self.answer({})
        if self.path == "/v1/chat/completions":
            return self.chat(json.loads(body))
        if self.path == "/v1/embeddings":
            vectors = [[1, len(text), text.count("a")] for text in json.loads(body)["input"]]
            return self.answer({"data": [{"index": i, "embedding": v} for i, v in enumerate(vectors)]})
        if parts[-1] == "infer":
            return self.infer(body)
        if parts[0] == "predict":
            return self.answer({"scores": [[0.1, 0.7, 0.2]], "top": [{"output": "scores", "class": 1, "score": 0.7, "label": "green"}]})
        return self.answer({"error": f"there is no '{self.path}' here"}, 404)

    def infer(self, body):
        """The mean of each colour, as classes."""
        size = int(self.headers.get("Inference-Header-Content-Length", len(body)))
        head = json.loads(body[:size])
        values = struct.unpack(f"<{(len(body) - size) // 4}f", body[size:]) if len(body) > size else head["inputs"][0]["data"]
        plane = len(values) // 3
        means = [sum(values[c * plane:(c + 1) * plane]) / plane for c in range(3)]
        order = sorted(range(3), key=lambda c: -means[c])
        labels = ["red", "green", "blue"]
        self.answer({"model_name": "colours", "outputs": [{"name": "scores", "datatype": "BYTES", "shape": [1, 3],
                                                           "data": [f"{means[c]:.4f}:{c}:{labels[c]}" for c in order]}]})

    def chat(self, request):
        owner = self.server.owner
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True

        def event(delta, finish=None):
            chunk = {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
            self.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())
            self.wfile.flush()
            time.sleep(owner.pause)

        try:
            event({"role": "assistant", "content": ""})
            self.wfile.write(b": heartbeat\n\n")
            if request.get("tools") and request["messages"][-1]["role"] == "user":
                event({"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": {"name": "weather", "arguments": ""}}]})
                for part in ('{"city"', ': "Warsaw"}'):
                    event({"tool_calls": [{"index": 0, "function": {"arguments": part}}]})
                event({}, "tool_calls")
            else:
                for word in ("The user ", "asks."):
                    event({"reasoning_content": word})
                for i in range(0, len(owner.text), 7):
                    owner.tokens += 1
                    event({"content": owner.text[i:i + 7]})
                event({}, "stop")
            usage = {"choices": [], "usage": {"prompt_tokens": 12, "completion_tokens": len(owner.text) // 7}}
            self.wfile.write(f"data: {json.dumps(usage)}\n\ndata: [DONE]\n\n".encode())
        except OSError:
            owner.broken_off += 1


class StandIn:
    def __init__(self, key="", project=False):
        self.key, self.project = key, project
        self.states = {"colours": "READY", "minilm": "READY", "talker": "READY", "resting": "UNAVAILABLE", "broken": "UNAVAILABLE"}
        self.requests, self.text, self.pause, self.tokens, self.broken_off = [], ANSWER, 0.002, 0, 0
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.owner = self
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def metrics(self):
        asked = sum(1 for path, _, _ in self.requests if path != "/v2/repository/index")
        return "\n".join([
            "# HELP sdx_http_requests_total Requests.",
            f'sdx_http_requests_total{{method="POST",route="/v1/chat/completions",status="200"}} {asked}',
            'sdx_http_requests_total{method="GET",route="/metrics",status="200"} 1e9',
            f'sdx_engine_generated_tokens_total{{model="talker"}} {self.tokens}',
            'sdx_engine_requests_waiting{model="talker"} 3', 'nv_inference_pending_request_count{model="colours",version="1"} 1',
            "sdx_http_requests_running 2",
            f'sdx_time_to_first_token_seconds_sum{{model="talker"}} {0.25 * asked}',
            f'sdx_time_to_first_token_seconds_count{{model="talker"}} {asked}', ""])

    def last(self, path):
        return next(r for r in reversed(self.requests) if r[0] == path)

    def close(self):
        self.server.shutdown()
        self.server.server_close()
