#!/usr/bin/env python3
"""What holds for every request to `sdx serve`, whatever it asks for: frame_test.py SDX [CASE]..."""

import http.server
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time
import warnings

from serve_process import PATIENCE, Serve, check

import tiny_models

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from scratch import scratch  # noqa: E402

INFER = "/v2/models/add/infer"


def tensors(*values):
    return {"inputs": [{"name": n, "shape": [len(v)], "datatype": "FP32", "data": v} for n, v in zip("AB", values)]}


def with_model(arguments=(), **more):
    """A server of add.onnx: C = A + B."""
    return Serve(SDX, "add=" + str(FOLDER / "add.onnx"), "--no-grpc", *arguments, **more)


def routes():
    with with_model() as s:
        check(s.get("/health").json() == {"status": "ok"})
        check(s.get("/v2/health/live").status == 200)
        check(s.get("/v2/health/ready").status == 200)
        answer = s.ask("POST", INFER, tensors([1, 2], [10, 20]))
        check(answer.status == 200 and answer.json()["outputs"][0]["data"] == [11, 22], answer.body)
        check(s.ask("HEAD", "/health").status == 200 and s.ask("HEAD", "/health").body == b"")
        missing = s.get("/nothing")
        check(missing.status == 404 and missing.json()["error"]["type"] == "not_found_error", missing.body)
        wrong = s.ask("DELETE", "/health")
        check(wrong.status == 405 and wrong.headers["Allow"] == "GET, HEAD", wrong.headers)
        check(s.get("/health", headers={"X-Request-Id": "mine"}).headers["X-Request-Id"] == "mine")
        check(len(s.get("/health", headers={"X-Request-Id": "x" * 1000}).headers["X-Request-Id"]) == 16)
        check(s.metric("sdx_http_requests_total", route="/v2/models/{model}/infer", status="200", method="POST") == 1)
        check(s.metric("sdx_http_requests_total", route="none", status="404") == 1)
        check(s.metric("sdx_http_request_duration_seconds_count", route="/v2/models/{model}/infer") == 1)
        check(s.metric("sdx_model_ready", model="add") == 1)
        check(s.metric("nv_inference_request_success", model="add") == 1)
        check(s.metric("sdx_http_connections") >= 1 and s.metric("process_resident_memory_bytes") > 1e6)


def wrong_starts():
    for arguments, said in [
        (["missing.onnx"], "missing.onnx"),
        (["add.onnx", "--api-keys", "missing"], "missing"),
        (["add.onnx", "--tls-cert", "missing", "--tls-key", "missing"], "missing"),
        (["add.onnx", "--tls-cert", "missing"], "must be given together"),
        (["add.onnx", "--otlp", "nonsense"], "nonsense"),
        (["add.onnx", "--host", "256.0.0.1"], "256.0.0.1"),
    ]:
        done = subprocess.run([SDX, "serve", "--no-grpc", "--port", "0", *arguments], capture_output=True, text=True, cwd=FOLDER, timeout=PATIENCE)
        check(done.returncode == 1 and said in done.stderr and "listening" not in done.stderr, arguments, done)


def keys():
    file = FOLDER / "keys.txt"
    file.write_text("good name=alice\nslow name=bob rate=1\nold expires=2020-01-01\n")
    with with_model(["--api-keys", file, "--log-format", "json"]) as s:
        ask = lambda key, path="/v2/models/add": s.get(path, headers={"Authorization": f"Bearer {key}"} if key else {})
        check(s.get("/health").status == 200 and s.get("/v2/health/ready").status == 200)
        check(ask("").status == 401 and "API key" in ask("").json()["error"])  # as the route's protocol has errors
        refused = ask("", "/metrics")
        check(refused.status == 401 and refused.json()["error"]["code"] == "missing_api_key" and refused.headers["WWW-Authenticate"] == "Bearer")
        check(ask("bad", "/metrics").json()["error"]["code"] == "invalid_api_key")
        check(ask("bad", "/nothing").status == 401 and ask("good", "/nothing").status == 404)
        check(ask("", "/metrics").status == 401 and ask("good", "/metrics").status == 200)
        check(ask("old").status == 403)
        check(ask("good").status == 200)
        check(ask("slow").status == 200)
        often = ask("slow")
        check(often.status == 429 and 1 <= int(often.headers["Retry-After"]) <= 60, often.headers)
        line = json.loads(s.wait_for('models/add.*"key":"alice"'))
        check(line["status"] == 200 and "good" not in json.dumps(line), line)

        file.write_text("new name=carol\nslow name=bob rate=1\n")
        s.signal(signal.SIGHUP)
        s.wait_for("API keys read again")
        check(ask("new").status == 200 and ask("good").status == 401)
        check(ask("slow").status == 429)  # still used up
        file.write_text("new rate=nonsense\n")
        s.signal(signal.SIGHUP)
        s.wait_for("API keys as before: .*keys.txt:1")
        check(ask("new").status == 200)


def browsers():
    with with_model(["--cors", "https://friend.example", "--allow-host", "box.example"]) as s:
        port = s.port
        status = lambda **headers: s.get("/health", headers={k.replace("_", "-"): v for k, v in headers.items()}).status
        check(status(Host=f"localhost:{port}") == 200 and status(Host="box.example") == 200)
        check(status(Host="rebound.example") == 421)
        check(status(Origin="https://evil.example") == 403 and status(Origin="null") == 403)
        check(status(Origin=f"http://127.0.0.1:{port}") == 200)
        friend = s.get("/health", headers={"Origin": "https://friend.example"})
        check(friend.status == 200 and friend.headers["Access-Control-Allow-Origin"] == "https://friend.example")
        asked = s.ask("OPTIONS", INFER, headers={"Origin": "https://friend.example", "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type"})
        check(asked.status == 204 and "POST" in asked.headers["Access-Control-Allow-Methods"], asked.headers)
        check(s.get("/health").headers["Access-Control-Allow-Origin"] is None)
    with with_model() as s:
        check(s.get("/health", headers={"Origin": "https://friend.example"}).status == 403)


def wide():
    said = lambda s: [line for line in s.lines if " warning " in line]
    with with_model() as s:
        check(not said(s), s.lines)
    with with_model(["--host", "0.0.0.0"]) as s:
        check(s.host == "0.0.0.0" and any("--api-keys" in line for line in said(s)), s.lines)
        check(s.get("/health", headers={"Host": "any.example"}).status == 200)
    (FOLDER / "one.txt").write_text("key")
    with with_model(["--host", "0.0.0.0", "--api-keys", FOLDER / "one.txt"]) as s:
        check(any("--tls-cert" in line for line in said(s)), s.lines)


def project():
    (FOLDER / "served.yml").write_text("name: served\nmodel: {source: row.onnx}\nserving: {host: 127.0.0.2, max_batch_size: 4}\n")
    with Serve(SDX, FOLDER / "served.yml", "--no-grpc", "--host", "127.0.0.1", "--port", "0") as s:
        check(s.host == "127.0.0.1" and s.get("/v2/models/served").json()["name"] == "served")
    process = subprocess.Popen([SDX, "serve", FOLDER / "served.yml", "--no-grpc", "--port", "0"], stderr=subprocess.PIPE, text=True)
    line = next(line for line in process.stderr if "listening" in line)
    check(line.startswith("listening on http://127.0.0.2:"), line)
    process.terminate()
    check(process.wait(PATIENCE) == 0)


def certificate(name):
    """A certificate for 127.0.0.1 and its key."""
    cert, key = FOLDER / f"{name}.pem", FOLDER / f"{name}.key"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
                    f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", cert], check=True, capture_output=True)
    return cert, key


def tls():
    if not shutil.which("openssl"):
        return print("no openssl: TLS is not tried")
    cert, key = certificate("first")
    trust = ssl.create_default_context(cafile=cert)
    with with_model(["big=" + str(FOLDER / "big.onnx"), "--tls-cert", cert, "--tls-key", key]) as s:
        check(s.scheme == "https")
        check(s.get("/health", context=trust).json() == {"status": "ok"})
        answer = s.ask("POST", "/v2/models/big/infer", tensors(list(range(20000)), list(range(20000))), context=trust)
        check(answer.status == 200 and answer.json()["outputs"][0]["data"][-1] == 39998)
        check(answer.headers["X-Request-Id"])
        connection = s.connection(trust)  # kept while the certificate is replaced
        connection.request("GET", "/health")
        check(connection.getresponse().read() == b'{"status":"ok"}')
        old = ssl.create_default_context(cafile=cert)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that it is old is the point
            old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1
        old.set_ciphers("ALL:@SECLEVEL=0")
        try:
            s.get("/health", context=old)
            check(False, "TLS 1.1 was spoken")
        except (ssl.SSLError, OSError):
            pass
        check(s.raw(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n").find(b"200 OK") < 0)
        second, second_key = certificate("second")
        shutil.copy(second_key, key)
        shutil.copy(second, cert)
        s.signal(signal.SIGHUP)
        s.wait_for("certificate read again")
        check(s.get("/health", context=ssl.create_default_context(cafile=second)).status == 200)
        connection.request("GET", "/health")
        check(connection.getresponse().status == 200)
        connection.close()
        cert.write_text("nonsense")
        s.signal(signal.SIGHUP)
        s.wait_for("certificate as before")
        check(s.get("/health", context=ssl.create_default_context(cafile=second)).status == 200)


def slow_server(**more):
    """One whose requests wait two seconds for others to run with."""
    return Serve(SDX, "open=" + str(FOLDER / "row.onnx"), "--no-grpc", "--max-batch-size", "64", "--max-queue-delay-ms", "2000", **more)


SLOW_BODY = {"inputs": [{"name": "R", "shape": [1, 2], "datatype": "FP32", "data": [1, 2]}]}


def in_background(ask):
    out = []
    thread = threading.Thread(target=lambda: out.append(ask()))
    thread.start()
    return thread, out


def wait_until(condition, what):
    end = time.monotonic() + PATIENCE
    while not condition():
        check(time.monotonic() < end, "never:", what)
        time.sleep(0.02)


def stopping():
    with slow_server() as s:
        thread, out = in_background(lambda: s.ask("POST", "/v2/models/open/infer", SLOW_BODY))
        wait_until(lambda: s.metric("sdx_http_requests_running") >= 1, "the request runs")
        s.signal(signal.SIGTERM)
        check(s.process.wait(PATIENCE) == 0)
        thread.join()
        check(out[0].status == 200 and out[0].json()["outputs"][0]["data"], out[0].body)
        check(s.wait_for("stopping"))
        try:
            socket.create_connection(("127.0.0.1", s.port), timeout=5).close()
            check(False, "the port is still open")
        except ConnectionRefusedError:
            pass
    server = slow_server()
    thread, out = in_background(lambda: s_ask_or_none(server))
    wait_until(lambda: server.metric("sdx_http_requests_running") >= 1, "the request runs")
    server.signal(signal.SIGTERM)
    server.wait_for("stopping")
    time.sleep(0.4)  # signals within 0.3 s are one wish, as timeout(1) sends them
    server.signal(signal.SIGTERM)
    check(server.process.wait(PATIENCE) == -signal.SIGTERM)
    thread.join()


def s_ask_or_none(server):
    try:
        return server.ask("POST", "/v2/models/open/infer", SLOW_BODY)
    except OSError:
        return None


def logs():
    with with_model(["--log-format", "json"]) as s:
        s.ask("POST", INFER + "?secret=1", tensors([1, 2], [3, 4]), headers={"X-Request-Id": "abc"})
        line = json.loads(s.wait_for('"id":"abc"'))
        check(line["method"] == "POST" and line["path"] == INFER and line["route"] == "/v2/models/{model}/infer" and line["status"] == 200, line)
        check(line["ms"] >= 0 and line["received"] > 0 and line["sent"] > 0 and line["client"] == "127.0.0.1" and "secret" not in json.dumps(line), line)
        s.get("/health", headers={"X-Request-Id": "quiet"})
        s.get("/nothing", headers={"X-Request-Id": "loud"})
        s.wait_for('"id":"loud"')
        check(not any("quiet" in line for line in s.lines))
    with with_model() as s:
        s.get("/nothing/a b".replace(" ", "%20"), headers={"X-Request-Id": "abc"})
        check(' status=404 ' in s.wait_for('request id=abc .* path="/nothing/a b"'))


class Collector(http.server.BaseHTTPRequestHandler):
    received = []

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        Collector.received.append((self.path, self.headers["Content-Type"], json.loads(body)))
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_):
        pass


def spans():
    return [x for _, _, d in Collector.received for r in d["resourceSpans"] for c in r["scopeSpans"] for x in c["spans"]]


def check_parts(parent, *names):
    """Its parts, one behind the other, within it."""
    parts = [x for x in spans() if x.get("parentSpanId") == parent["spanId"]]
    check([x["name"] for x in parts] == list(names), [x["name"] for x in parts])
    at = int(parent["startTimeUnixNano"])
    for part in parts:
        check(part["traceId"] == parent["traceId"] and part["kind"] == 1, part)
        check(at <= int(part["startTimeUnixNano"]) <= int(part["endTimeUnixNano"]), parent, parts)
        at = int(part["startTimeUnixNano"])
    # The answer may have arrived before the last part's own end was noted.
    check(at <= int(parent["endTimeUnixNano"]), parent, parts)


def traces():
    collector = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    threading.Thread(target=collector.serve_forever, daemon=True).start()
    trace, span = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
    with with_model(["--otlp", f"http://127.0.0.1:{collector.server_port}"]) as s:
        s.ask("POST", INFER, tensors([1, 2], [3, 4]), headers={"traceparent": f"00-{trace}-{span}-01", "tracestate": "a=b"})
        s.ask("POST", INFER, tensors([1, 2], [3, 4]), headers={"traceparent": f"00-{trace}-{span}-00"})  # not sampled
        s.ask("POST", INFER, {})
        check(f"trace={trace}" in s.wait_for("status=200"))
        wait_until(lambda: s.metric("sdx_spans_sent_total") >= 4, "spans are sent")
    path, kind, _ = Collector.received[0]
    check(path == "/v1/traces" and kind == "application/json")
    inferences = [x for x in spans() if "infer" in x["name"]]
    check(len(inferences) == 2, inferences)
    first = next(x for x in inferences if x["traceId"] == trace)
    check_parts(first, "queue", "compute")
    check(first["parentSpanId"] == span and first["spanId"] != span and first["traceState"] == "a=b" and first["kind"] == 2, first)
    check(int(first["endTimeUnixNano"]) > int(first["startTimeUnixNano"]))
    attributes = {a["key"]: next(iter(a["value"].values())) for a in first["attributes"]}
    check(attributes["http.route"] == "/v2/models/{model}/infer" and attributes["http.response.status_code"] == "200", attributes)
    letters = FOLDER / "letters.gguf"
    letters.write_bytes(tiny_models.gguf([*tiny_models.alphabet(), "<end>"], 64))
    with with_model([f"letters={letters}", "--otlp", f"http://127.0.0.1:{collector.server_port}"]) as s:
        for path, body in (("/v1/completions", {"model": "letters", "prompt": "ab", "max_tokens": 4}),
                           ("/v1/chat/completions", {"model": "letters", "messages": [{"role": "user", "content": "ab"}], "max_tokens": 4}),
                           ("/v2/models/letters/generate", {"text_input": "ab", "max_tokens": 4})):
            check(s.ask("POST", path, body).status == 200)
        wait_until(lambda: s.metric("sdx_spans_sent_total") >= 12, "spans are sent")
    answers = [x for x in spans() if x["name"].endswith(("completions", "generate"))]
    check(len(answers) == 3, answers)
    for answer in answers:
        check_parts(answer, "tokenize", "prompt", "decode")
    collector.shutdown()
    # A collector that is gone costs nothing but the spans.
    with with_model(["--otlp", "http://127.0.0.1:1"]) as s:
        check(s.get("/nothing").status == 404)
        wait_until(lambda: s.metric("sdx_spans_dropped_total") >= 1, "spans are dropped")


def systemd():
    notes = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    notes.bind(str(FOLDER / "notify"))
    notes.settimeout(PATIENCE)
    listening = socket.create_server(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    script = FOLDER / "activate.sh"
    script.write_text(f'#!/bin/sh\nLISTEN_PID=$$ LISTEN_FDS=1 exec "{SDX}" "$@" 3<&{listening.fileno()}\n')
    script.chmod(0o755)
    environment = {"NOTIFY_SOCKET": str(FOLDER / "notify"), "LISTEN_FDS": "1", "WATCHDOG_USEC": "200000"}
    with Serve(str(script), "add=" + str(FOLDER / "add.onnx"), "--no-grpc", environment=environment, pass_fds=[listening.fileno()]) as s:
        check(s.port == port, s.port)
        check(notes.recv(100) == b"READY=1")
        check(notes.recv(100) == b"WATCHDOG=1")
        check(s.get("/health").status == 200)
        s.signal(signal.SIGTERM)
        while (note := notes.recv(100)) == b"WATCHDOG=1":
            pass
        check(note == b"STOPPING=1", note)
        s.process.wait(PATIENCE)
    listening.close()
    notes.close()


SMUGGLED = b"GET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n"


def post(fields, body):
    return b"POST /v2/models/add/infer HTTP/1.1\r\nHost: localhost\r\n" + fields + b"\r\n" + body


def smuggling():
    n = len(SMUGGLED)
    chunked = b"Transfer-Encoding: chunked\r\n"
    cases = {
        "length and chunks": (post(b"Content-Length: 4\r\n" + chunked, b"0\r\n\r\n" + SMUGGLED), 400),
        "chunks and length": (post(chunked + b"Content-Length: 4\r\n", b"0\r\n\r\n" + SMUGGLED), 400),
        "two lengths": (post(b"Content-Length: 0\r\nContent-Length: %d\r\n" % n, SMUGGLED), 400),
        "the same length twice": (post(b"Content-Length: %d\r\nContent-Length: %d\r\n" % (n, n), SMUGGLED), 400),
        "lengths in a list": (post(b"Content-Length: 0, %d\r\n" % n, SMUGGLED), 400),
        "length with a sign": (post(b"Content-Length: +%d\r\n" % n, SMUGGLED), 400),
        "length in hexadecimal": (post(b"Content-Length: 0x2\r\n", SMUGGLED), 400),
        "space before the colon": (post(b"Content-Length : %d\r\n" % n, SMUGGLED), 400),
        "chunked twice": (post(b"Transfer-Encoding: chunked, chunked\r\n", b"0\r\n\r\n" + SMUGGLED), 501),
        "two encodings": (post(chunked + chunked, b"0\r\n\r\n" + SMUGGLED), 400),
        "another encoding": (post(b"Transfer-Encoding: gzip, chunked\r\n", b"0\r\n\r\n" + SMUGGLED), 501),
        "an unknown encoding": (post(b"Transfer-Encoding: xchunked\r\n", b"0\r\n\r\n" + SMUGGLED), 501),
        "a folded field": (post(b"X: a\r\n Transfer-Encoding: chunked\r\n", SMUGGLED), 400),
        "a tab before chunked": (post(b"Transfer-Encoding:\x0bchunked\r\n", b"0\r\n\r\n" + SMUGGLED), 400),
        "bare LF in the head": (b"POST / HTTP/1.1\nHost: localhost\nContent-Length: 0\n\n" + SMUGGLED, 400),
        "bare CR in the head": (b"POST / HTTP/1.1\r\nHost: localhost\rContent-Length: 0\r\n\r\n" + SMUGGLED, 400),
        "a zero byte": (post(b"X: a\0b\r\n", b"") + SMUGGLED, 400),
        "bare LF in chunks": (post(chunked, b"1\nx\n0\n\n" + SMUGGLED), 400),
        "a chunk that is longer": (post(chunked, b"1\r\nxy\r\n0\r\n\r\n" + SMUGGLED), 400),
        "a chunk of negative size": (post(chunked, b"-1\r\nx\r\n0\r\n\r\n" + SMUGGLED), 400),
        "a chunk's size with 0x": (post(chunked, b"0x1\r\nx\r\n0\r\n\r\n" + SMUGGLED), 400),
        "a chunk's size that overflows": (post(chunked, b"ffffffffffffffff1\r\nx\r\n0\r\n\r\n" + SMUGGLED), 400),
        "an endless extension": (post(chunked, b"1;" + b"x" * 100000 + b"\r\nx\r\n0\r\n\r\n" + SMUGGLED), 400),
        "much around little": (post(chunked, b"1;%s\r\nx\r\n" % (b"y" * 4000) * 100 + b"0\r\n\r\n" + SMUGGLED), 400),
        "two hosts": (b"GET /health HTTP/1.1\r\nHost: localhost\r\nHost: other\r\n\r\n" + SMUGGLED, 400),
        "no host": (b"GET /health HTTP/1.1\r\n\r\n" + SMUGGLED, 400),
        "an absolute target": (b"GET http://localhost/health HTTP/1.1\r\nHost: localhost\r\n\r\n" + SMUGGLED, 400),
        "a path upwards": (b"GET /v2/../health HTTP/1.1\r\nHost: localhost\r\n\r\n" + SMUGGLED, 400),
        "a path upwards, escaped": (b"GET /v2/%2e%2e/health HTTP/1.1\r\nHost: localhost\r\n\r\n" + SMUGGLED, 400),
        "another version": (b"GET /health HTTP/2.0\r\nHost: localhost\r\n\r\n" + SMUGGLED, 505),
        "chunks in HTTP/1.0": (b"POST / HTTP/1.0\r\nHost: localhost\r\n" + chunked + b"\r\n0\r\n\r\n" + SMUGGLED, 400),
        "HTTP/0.9": (b"GET /health\r\n\r\n" + SMUGGLED, 400),
    }
    with with_model() as s:
        for what, (data, status) in cases.items():
            out = s.raw(data)
            check(out.startswith(b"HTTP/1.1 %d " % status), what, out[:300])
            check(len(re.findall(rb"HTTP/1.1 \d{3} ", out)) == 1 and b"Connection: close\r\n" in out, what, out)
        # What is well formed: the body is a body, and what follows it a request.
        fine = s.raw(post(b"Content-Length: %d\r\n" % n, SMUGGLED) + b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", shut=False)
        check(fine.count(b"HTTP/1.1 ") == 2 and b'{"status":"ok"}' in fine, fine)
        check(s.metric("sdx_http_requests_total", route="none", status="404") == 0)  # nothing was smuggled in
        go_on = s.raw(post(b"Content-Length: 2\r\nExpect: 100-continue\r\nConnection: close\r\n", b""))
        check(go_on.startswith(b"HTTP/1.1 100 "), go_on)


def crowd():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    idle_count, slow_count = (1000, 200) if hard >= 4096 else (hard // 4, hard // 16)
    with with_model() as s:
        before = threads_of(s.process.pid)
        idle = [socket.create_connection(("127.0.0.1", s.port), timeout=PATIENCE) for _ in range(idle_count)]
        for one in idle[: idle_count // 2]:  # half of them have asked something
            one.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        for one in idle[: idle_count // 2]:
            check(one.recv(4096).startswith(b"HTTP/1.1 200 "))
        slow = [socket.create_connection(("127.0.0.1", s.port), timeout=PATIENCE) for _ in range(slow_count)]
        body = json.dumps(tensors([1, 2], [3, 4])).encode()
        head = post(b"Content-Length: %d\r\n" % len(body), b"")
        for number, one in enumerate(slow):
            one.sendall(head[: number % 40 + 1] if number % 2 else head + body[:10])
        for value in range(50):
            answer = s.ask("POST", INFER, tensors([value, 0], [1, 0]))
            check(answer.status == 200 and answer.json()["outputs"][0]["data"] == [value + 1, 0])
        check(s.metric("sdx_http_connections") >= idle_count + slow_count)
        check(threads_of(s.process.pid) < before + 80, "threads", before, threads_of(s.process.pid))
        for number, one in enumerate(slow):  # and all of them are answered in the end
            one.sendall(head[number % 40 + 1 :] + body if number % 2 else body[10:])
        for one in slow:
            check(one.recv(4096).startswith(b"HTTP/1.1 200 "))
        for one in idle + slow:
            one.close()
        wait_until(lambda: s.metric("sdx_http_connections") < 10, "connections are gone")
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


ROWS, COLUMNS = 4096, 2048


def write_table(path, name):
    """y = the sum of the rows of a table of ones that are asked for; 32 MiB, so that it is read where it lies."""
    ones = struct.pack("<f", 1) * (ROWS * COLUMNS)
    nodes = [tiny_models.node("Gather", ["table", "rows"], ["taken"]), tiny_models.node("ReduceSum", ["taken"], ["y"], keepdims=0)]
    inputs = [tiny_models.value_info("rows", tiny_models.INT64, [name])]
    path.write_bytes(tiny_models.model(nodes, inputs, [tiny_models.value_info("y", tiny_models.FLOAT, [])], [tiny_models.tensor("table", tiny_models.FLOAT, [ROWS, COLUMNS], ones)]))


def overwritten():
    """A model's file is written over while requests read it: an error each, and the server goes on and loads it again."""
    good, served = FOLDER / "good.onnx", FOLDER / "served.onnx"
    write_table(good, "n")
    shutil.copyfile(good, served)
    request = json.dumps({"inputs": [{"name": "rows", "shape": [ROWS], "datatype": "INT64", "data": list(range(ROWS))}]})
    ended, answers, failures = threading.Event(), [], []

    def keep_asking():
        while not ended.is_set():
            answer = s.ask("POST", "/v2/models/m/infer", request)
            (answers if answer.status == 200 else failures).append(answer)

    with Serve(SDX, f"m={served}", "--no-grpc") as s:
        askers = [threading.Thread(target=keep_asking, daemon=True) for _ in range(2)]
        for one in askers:
            one.start()
        for turn in range(6):
            before = len(answers)
            wait_until(lambda: len(answers) > before, "an answer")
            if turn % 2:
                shutil.copyfile(FOLDER / "add.onnx", served)  # what `cp` does: cut short, then written
            else:
                os.truncate(served, 4096)
            before = len(failures)
            wait_until(lambda: len(failures) > before, "an error")
            shutil.copyfile(good, served)
            if turn < 4:
                check(s.ask("POST", "/v2/repository/models/m/load").status == 200)
        # By itself, without a word from outside.
        before = len(answers)
        wait_until(lambda: len(answers) > before + 5, "the model, loaded again")
        ended.set()
        for one in askers:
            one.join()
        check(all(a.json()["outputs"][0]["data"] == [ROWS * COLUMNS] for a in answers))
        check(all(b"while in use" in f.body for f in failures), [f.body for f in failures][:3])
        check(s.ask("POST", "/v2/models/m/infer", request).status == 200)


def threads_of(pid):
    return len(os.listdir(f"/proc/{pid}/task"))


CASES = [routes, wrong_starts, keys, browsers, wide, project, tls, stopping, logs, traces, systemd, smuggling, crowd, overwritten]

if __name__ == "__main__":
    SDX = str(pathlib.Path(sys.argv[1]).resolve())
    with scratch() as FOLDER:
        os.chdir(FOLDER)
        tiny_models.write_all(FOLDER)
        vectors = [tiny_models.value_info(n, tiny_models.FLOAT, [20000]) for n in "ABC"]
        (FOLDER / "big.onnx").write_bytes(tiny_models.model([tiny_models.node("Add", ["A", "B"], ["C"])], vectors[:2], vectors[2:]))
        for case in CASES:
            if len(sys.argv) > 2 and case.__name__ not in sys.argv[2:]:
                continue
            start = time.monotonic()
            case()
            print(f"{case.__name__}: ok, {time.monotonic() - start:.1f} s", flush=True)
