"""`sdx faces page` as a process, and requests to it."""

import http.client
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from scratch import scratch  # noqa: E402

SKIP = 77


def models():
    """The folder of test models; None where there is none."""
    folder = os.environ.get("SDX_TEST_MODELS")
    return pathlib.Path(folder) if folder and (pathlib.Path(folder) / "face_yunet").is_dir() else None


class Page:
    def __init__(self, sdx, model, *flags):
        self.sdx, self.model = str(sdx), str(model)
        self.process = subprocess.Popen([self.sdx, "faces", "page", "-m", self.model, *flags], stderr=subprocess.PIPE, text=True)
        self.url = ""
        for line in self.process.stderr:
            if match := re.match(r"open (http://127\.0\.0\.1:(\d+)/\?token=([0-9a-f]{32}))$", line.strip()):
                self.url, self.port, self.token = match.group(1), int(match.group(2)), match.group(3)
                break
        if not self.url:
            raise SystemExit(f"sdx faces page did not start, exit code {self.process.wait()}")

    def ask(self, method, path, body=None, headers=None, token=True):
        """Status, headers, body."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        all_headers = {"X-Sdx-Token": self.token} if token else {}
        all_headers.update(headers or {})
        try:
            connection.request(method, path, body, all_headers)
            response = connection.getresponse()
            return response.status, response.headers, response.read()
        finally:
            connection.close()

    def json(self, method, path, document=None):
        status, _, body = self.ask(method, path, None if document is None else json.dumps(document))
        assert status in (200, 201), (path, status, body)
        return json.loads(body)

    def upload(self, file, name=None):
        path = "/api/pictures?" + urllib.parse.urlencode({"name": name or pathlib.Path(file).name})
        status, _, body = self.ask("POST", path, pathlib.Path(file).read_bytes())
        assert status == 201, (file, status, body)
        return json.loads(body)

    def command_crop(self, file, flags):
        """What `sdx faces crop` writes: {name: bytes}."""
        with scratch() as folder:
            done = subprocess.run([self.sdx, "faces", "crop", str(file), "-o", folder, "-m", self.model, *flags], capture_output=True, text=True)
            assert done.returncode == 0, (flags, done.stderr)
            return {f.name: f.read_bytes() for f in sorted(folder.rglob("*_face*"))}

    def stop(self):
        """Ctrl-C; the exit code."""
        self.process.send_signal(signal.SIGINT)
        try:
            return self.process.wait(timeout=60)
        finally:
            self.process.kill()
            self.process.stderr.close()
