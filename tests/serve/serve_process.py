"""A server for tests: starts `sdx serve`, asks it, ends it. Standard library only."""

import http.client
import json
import os
import pathlib
import queue
import re
import signal
import socket
import ssl
import subprocess
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))

PATIENCE = 120  # seconds; how long something may take on a busy machine


def check(condition, *what):
    if not condition:
        raise AssertionError(what)


class Answer:
    def __init__(self, response):
        self.status, self.headers, self.body = response.status, response.headers, response.read()

    def json(self):
        return json.loads(self.body)


class Serve:
    def __init__(self, sdx, *arguments, environment=(), **popen):
        command = [sdx, "serve", *map(str, arguments)]
        if "--port" not in arguments and "LISTEN_FDS" not in dict(environment):
            command += ["--port", "0"]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, **dict(environment)}, **popen)
        self.lines, self.arrived = [], queue.Queue()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        line = self.wait_for(r"^listening on ")
        self.scheme, self.host, self.port = re.match(r"listening on (https?)://(.*):(\d+)$", line).groups()
        self.port = int(self.port)

    def _read(self):
        for line in self.process.stderr:
            self.lines.append(line.rstrip("\n"))
            self.arrived.put(self.lines[-1])
        self.arrived.put(None)

    def wait_for(self, pattern):
        """The next line on standard error that has the pattern."""
        while True:
            line = self.arrived.get(timeout=PATIENCE)
            check(line is not None, f"the server ended before '{pattern}'", self.lines)
            if re.search(pattern, line):
                return line

    def connection(self, context=None):
        if self.scheme == "https":
            context = context or ssl._create_unverified_context()
            return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=PATIENCE, context=context)
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)

    def ask(self, method, path, body=None, headers=(), context=None):
        connection = self.connection(context)
        try:
            if isinstance(body, (dict, list)):
                body = json.dumps(body)
            connection.request(method, path, body, dict(headers))
            return Answer(connection.getresponse())
        finally:
            connection.close()

    def get(self, path, **more):
        return self.ask("GET", path, **more)

    def raw(self, data, shut=True):
        """Everything that comes back for these bytes."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE) as s:
            try:
                s.sendall(data)
                if shut:
                    s.shutdown(socket.SHUT_WR)
            except OSError:
                pass  # refused before all was sent
            out = b""
            try:
                while piece := s.recv(65536):
                    out += piece
            except ConnectionError:
                pass
            return out

    def metric(self, name, **labels):
        """The sum of the samples with these labels."""
        total = 0.0
        for line in self.get("/metrics").body.decode().splitlines():
            match = re.fullmatch(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)", line)
            if line.startswith("#") or not line:
                continue
            check(match, "not Prometheus' format", line)
            found = dict(re.findall(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"', match[2] or ""))
            if match[1] == name and all(found.get(k) == v for k, v in labels.items()):
                total += float(match[3])
        return total

    def signal(self, number):
        self.process.send_signal(number)

    def end(self):
        """Its exit code, after SIGTERM."""
        if self.process.poll() is None:
            self.signal(signal.SIGTERM)
        code = self.process.wait(PATIENCE)
        self.reader.join()
        return code

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is not None:
            print("\n".join(self.lines[-50:]), file=sys.stderr)
            self.process.kill()
            self.process.wait()
            return
        code = self.end()
        check(code == 0, "exit code", code, self.lines[-20:])
