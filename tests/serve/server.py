"""A server of models under test, with what the tests of the inference protocol ask it. Standard library only."""

import re
import time

from serve_process import Serve


class Server(Serve):
    def __init__(self, sdx, *arguments, grpc=False, environment=()):
        super().__init__(sdx, *arguments, *(["--grpc-port", "0"] if grpc else ["--no-grpc"]),
                         environment=environment)
        found = [m for line in self.lines if (m := re.search(r"gRPC on .*?:(\d+)", line))]
        self.grpc_port = int(found[0][1]) if found else None

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    def json(self, method, path, body=None, status=200):
        answer = self.ask(method, path, body)
        if answer.status != status:
            raise AssertionError(f"{method} {path}: {answer.status} instead of {status}: {answer.body[:500]!r}")
        return answer.json() if answer.body else None


def wait_until(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError("waited in vain")
        time.sleep(0.05)
