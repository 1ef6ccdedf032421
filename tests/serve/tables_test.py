"""The tables of docs/serve/interfaces.md say which fields are ignored and refused: tables_test.py SDX PROJECT fields.

Each field that a row says is ignored is sent, and the answer is that without it, and does not name it in Sdx-Ignored, where fields are named that
no row has. Each that is refused gets status 400.
"""

import json
import re
import sys
from pathlib import Path

import interfaces
from interfaces import expect

PROJECT = Path(sys.argv[2]).resolve()
interfaces.enter(PROJECT)

HI = [{"role": "user", "content": "hi a"}]
# By heading of the page: path and body of a request, where rows name no path of their own.
REQUESTS = {"Anthropic": ("/v1/messages", {"model": "scripted", "max_tokens": 9, "temperature": 0, "messages": HI}),
            "Ollama": ("/api/chat", {"model": "scripted", "stream": False, "options": {"temperature": 0}, "messages": HI}),
            "Responses": ("/v1/responses", {"model": "scripted", "temperature": 0, "input": "hi a"}),
            "llama.cpp": ("/completion", {"model": "scripted", "temperature": 0, "prompt": "hi a"}),
            "vLLM": ("/v1/score", {"model": "embed", "text_1": "a", "text_2": "b"})}
GENERATE = ("/api/generate", {"model": "scripted", "stream": False, "options": {"temperature": 0}, "prompt": "hi a"})


def rows():
    """(heading, names of fields, meaning) of the tables of fields."""
    heading, fields = "", False
    for line in (PROJECT / "docs" / "serve" / "interfaces.md").read_text().splitlines():
        if line.startswith("#"):
            heading, fields = line.strip("# "), False
        elif line.startswith("| field"):
            fields = True
        elif not line.startswith("|"):
            fields = False
        elif fields and (cells := re.fullmatch(r"\| (.*?) \| (.*) \|", line)):
            yield heading, cells.group(1), cells.group(2)


def told(answer):
    """What an answer says, without what differs from one to the next."""
    return re.sub(rb'"(id|created_at|created|completed_at|[a-z_]*duration|timings|[a-z_]*_ms|[a-z_]*_per_second|tokens_evaluated|tokens_cached)": ?'
                  rb'("[^"]*"|[0-9.e+-]+|\{[^}]*\})|"[a-z]+_[0-9a-f]{20,}"|"(cached_tokens|cache_read_input_tokens|input_tokens)":[0-9]+', b"", answer.body)


def fields(test):
    sent = {"ignored": 0, "refused": 0}
    with test.serve():
        for heading, names, meaning in rows():
            kind = meaning.split(":")[0].split(".")[0].strip()
            kind = "ignored" if kind.startswith("ignored") else "refused" if kind.startswith("refused") else ""
            if heading not in REQUESTS or not kind or names.startswith(("block", "item")):
                continue
            path, body = REQUESTS[heading]
            inside = "options" if names.startswith("`options`:") else ""
            for name in re.findall(r"`([a-z_]+)`", names):
                if name in ("options",):
                    continue
                path, body = GENERATE if kind == "refused" and heading == "Ollama" else REQUESTS[heading]
                if inside:
                    with_it = {**body, inside: {**body[inside], name: 1}}
                else:
                    with_it = {**body, name: [{"type": "x"}] if name.endswith("s") else "x"}
                answer = test.post(path, with_it)
                sent[kind] += 1
                if kind == "refused":
                    expect(answer.status == 400 and name in answer.body.decode(), f"{heading}: {name} is not refused: {answer.status} {answer.body[:300]}")
                    continue
                expect(answer.status == 200, f"{heading}: {name} is not ignored: {answer.status} {answer.body[:300]}")
                expect(name not in answer.headers.get("Sdx-Ignored", ""), f"{heading}: {name} is in no row that says that it is ignored")
                plain = test.post(path, body)
                expect(told(answer) == told(plain), f"{heading}: {name} changes the answer: {told(answer)[:600]} {told(plain)[:600]}")
        for heading, (path, body) in REQUESTS.items():
            answer = test.post(path, {**body, "no_such_field": 1})
            expect(answer.status == 200 and "no_such_field" in answer.headers.get("Sdx-Ignored", ""), f"{heading}: {answer.status} {dict(answer.headers)}")
    expect(sent["ignored"] > 20 and sent["refused"] > 5, sent)
    print(json.dumps(sent))


if __name__ == "__main__":
    interfaces.main([fields])
