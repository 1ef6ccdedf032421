"""What the tests of interfaces with published clients share. A test imports this first: `interfaces.enter(PROJECT)` goes on in
build/serving-venv, which tools/clients_env.sh makes, and ends with exit code 77 without it."""

import json
import os
import re
import sys
from pathlib import Path

SKIPPED = 77

# Bodies that no interface may answer with a status of 500 or more, or with silence.
BROKEN = [b"", b"{", b"[]", b"null", b"3", b'"a"', b"\xff\xfe", b"{} {}", b"[" * 100000, b'{"a":' * 70 + b"1" + b"}" * 70,
          b'{"model": "\\ud800"}', b"{" + b",".join(b'"k%d": 1' % i for i in range(2000)) + b"}"]
# Values that stand in the place of each field in turn.
ODD = [None, True, -1, 0, 1e308, 2**70, "", "x", [], {}, [None], [[]], [{}], {"a": {}}, {"type": "x"}, [{"type": "text"}], [{"role": "user"}],
       [{"role": 3, "content": 3}], "\u0000"]


def enter(project):
    python = project / "build" / "serving-venv" / "bin" / "python"
    if not python.exists():
        print(f"{python} is missing: tools/clients_env.sh makes it")
        sys.exit(SKIPPED)
    if Path(sys.prefix).resolve() != python.parent.parent.resolve():
        os.execv(python, [str(python), "-B", *sys.argv])
    sys.path[:0] = [str(project / "tests" / folder) for folder in ("cli", "serve", "support")]


def expect(condition, what):
    if not condition:
        sys.exit(f"wrong: {what}")


class Test:
    """Serves `scripted`, whose answers are those of scripted.py, `letters`, all of whose tokens are as likely, and the embedder `embed`."""

    def __init__(self, sdx, folder):
        import scripted
        import tiny_models

        self.sdx, self.folder = Path(sdx).resolve(), folder
        tiny_models.write_served(folder, 600)
        (folder / "scripted.gguf").write_bytes(scripted.scripted())
        self.words = [f"scripted={folder / 'scripted.gguf'}", f"letters={folder / 'letters.gguf'}", f"embed={folder / 'embedder'}"]

    def serve(self, *more):
        from serve_process import Serve

        self.server = Serve(self.sdx, *self.words, *more)
        return self.server

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server.port}"

    def post(self, path, body, headers=()):
        if not isinstance(body, (bytes, str)):
            body = json.dumps(body)
        return self.server.ask("POST", path, body, {"Content-Type": "application/json", **dict(headers)})


def attack(test, path, body, is_error, fine=(200,)):
    """Broken bodies, and `body` with each of its fields in turn replaced by odd values: an answer, or an error of the client's in the
    interface's form, as is_error(JSON) has it. Then the server still answers `body`."""
    def check(sent):
        answer = test.post(path, sent)
        shown = sent[:120] if isinstance(sent, bytes) else json.dumps(sent)[:400]
        expect(answer.status in fine or 400 <= answer.status < 500, f"{path}: {shown}: {answer.status} {answer.body[:200]}")
        if answer.status not in fine:
            expect(is_error(json.loads(answer.body)), f"{path}: {shown}: {answer.body[:300]}")

    for sent in BROKEN:
        check(sent)
    for field in body:
        for odd in ODD:
            check({**body, field: odd})
        check({k: v for k, v in body.items() if k != field})
    for where in places(body):
        for odd in ODD[:6]:
            check(replaced(body, where, odd))
    answer = test.post(path, body)
    expect(answer.status in fine, f"{path} afterwards: {answer.status} {answer.body[:300]}")


def places(value, here=()):
    """The paths of all members below the first level."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        if here:
            yield (*here, key)
        yield from places(inner, (*here, key))


def replaced(value, where, odd):
    if not where:
        return odd
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[where[0]] = replaced(copy[where[0]], where[1:], odd)
    return copy


def events_of(body):
    """Names and data of a stream of events."""
    out = []
    for block in body.decode().split("\n\n"):
        if block.startswith("event: "):
            name, data = re.fullmatch(r"event: (\S+)\ndata: (.*)", block).groups()
            out.append((name, json.loads(data)))
    return out


def main(functions):
    from scratch import scratch

    functions = {f.__name__: f for f in functions}
    with scratch() as folder:
        functions[sys.argv[3]](Test(sys.argv[1], folder))
