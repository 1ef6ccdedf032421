"""PyPI's `ollama`, unchanged, against `sdx serve`: ollama_test.py SDX PROJECT WHAT. WHAT is one of the functions at the end."""

import json
import math
import os
import subprocess
import sys
import time
from pathlib import Path

import interfaces
from interfaces import attack, expect

PROJECT = Path(sys.argv[2]).resolve()
interfaces.enter(PROJECT)
import ollama  # noqa: E402
from serve_process import Serve  # noqa: E402

WEATHER = {"type": "function", "function": {"name": "weather", "description": "Of a place.", "parameters": {
    "type": "object", "properties": {"place": {"type": "string", "maxLength": 20}}, "required": ["place"]}}}
HELLO = "Hello there, my friend."


def hi(letter):
    return [{"role": "user", "content": "hi " + letter}]


def client(test):
    return ollama.Client(host=test.url, timeout=120)


def chat(test):
    with test.serve():
        ask = client(test).chat
        told = ask("scripted", hi("a"))
        expect(told.message.role == "assistant" and told.message.content == HELLO and told.message.thinking is None, told)
        expect(told.done and told.done_reason == "stop" and told.model == "scripted" and told.created_at.endswith("Z"), told)
        expect(told.prompt_eval_count == len("user:hi a\n=a") and told.eval_count == 5, told)
        expect(min(told.total_duration, told.load_duration, told.prompt_eval_duration, told.eval_duration) >= 0 and told.total_duration > 0, told)
        expect(ask("scripted:latest", hi("a")).message.content == HELLO, "the tag")
        parts = list(ask("scripted", hi("u"), stream=True))
        expect("".join(p.message.content for p in parts) == "gr\u00fc\u00dfe \U0001f600" and len(parts) > 2, parts)
        expect([p.done for p in parts] == [False] * (len(parts) - 1) + [True] and parts[-1].eval_count == 3, parts[-1])
        options = {"num_predict": 2, "temperature": 0, "num_ctx": 4096, "seed": 1}
        cut = ask("scripted", hi("a"), options=options, keep_alive="5m")
        expect((cut.message.content, cut.done_reason) == ("Hello there,", "length"), cut)
        expect(ask("scripted", hi("a"), options={"stop": ["my"]}).message.content == "Hello there, ", "stop")
        begun = ask("scripted", [*hi("x"), {"role": "assistant", "content": "I say: a"}])
        expect(begun.message.content == HELLO, begun)
        drawn = [ask("letters", hi("x"), options={"seed": seed, "temperature": 1.0, "num_predict": 9}).message.content for seed in (1, 1, 2)]
        expect(drawn[0] == drawn[1] != drawn[2], drawn)
        loaded = ask("scripted", [])
        expect(loaded.done and loaded.done_reason == "load" and loaded.message.content == "", loaded)


def forms(test):
    with test.serve():
        ask = client(test).chat
        told = ask("scripted", hi("t"))
        expect((told.message.thinking, told.message.content) == ("Let me see.", "It is four."), told)
        parts = list(ask("scripted", hi("t"), stream=True, think=True))
        expect("".join(p.message.thinking or "" for p in parts) == "Let me see.", parts)
        expect("".join(p.message.content or "" for p in parts) == "It is four.", parts)
        plain = ask("scripted", hi("a"), think=False)
        expect(plain.prompt_eval_count == len("[plain]user:hi a\n=a"), plain)
        place = json.loads(ask("letters", hi("x"), format=WEATHER["function"]["parameters"], options={"temperature": 0}).message.content)
        expect(isinstance(place["place"], str), place)
        expect(isinstance(json.loads(ask("letters", hi("x"), format="json", options={"temperature": 0}).message.content), dict), "json")


def logprobs(test):
    with test.serve():
        ask = client(test).chat
        words = ["Let me", " see.", "It is", " four."]
        told = ask("scripted", hi("t"), logprobs=True, top_logprobs=3)
        expect([t.token for t in told.logprobs] == words, told)  # marks are no text
        expect(all(len(t.top_logprobs) == 3 and t.top_logprobs[0].logprob == t.logprob <= 0 for t in told.logprobs), told)
        parts = list(ask("scripted", hi("t"), stream=True, logprobs=True))
        expect([[t.token for t in p.logprobs or []] for p in parts] == [[w] for w in words] + [[]], parts)
        called = ask("scripted", hi("c"), tools=[WEATHER], logprobs=True)
        expect([t.token for t in called.logprobs] == ["I look."] and called.message.tool_calls, called)
        expect(ask("scripted", hi("a")).logprobs is None and ask("scripted", hi("a"), top_logprobs=2).logprobs is None, "unless it is asked for")
        whole = client(test).generate("scripted", "hi a", logprobs=True)
        expect("".join(t.token for t in whole.logprobs) == HELLO and not whole.logprobs[0].top_logprobs, whole)


def tools(test):
    def weather(place: str) -> str:
        """Of a place."""
        return place

    with test.serve():
        ask = client(test).chat
        told = ask("scripted", hi("c"), tools=[WEATHER])
        call = told.message.tool_calls[0]
        expect((call.function.name, call.function.arguments, told.message.content) == ("weather", {"place": "Paris"}, "I look."), told)
        parts = list(ask("scripted", hi("p"), tools=[weather], stream=True))
        calls = [c for p in parts for c in p.message.tool_calls or []]
        expect([c.function.arguments for c in calls] == [{"place": "Paris"}] * 2, calls)
        turns = [*hi("c"), told.message, {"role": "tool", "content": "4 degrees a", "tool_name": "weather"}]
        again = ask("scripted", turns, tools=[WEATHER])
        expect(again.message.content == HELLO, again)
        expect(again.prompt_eval_count == len('[1 tools]user:hi c\nassistant:I look.<weather{"place": "Paris"}>\ntool:4 degrees a\n=a'), again)


def generate(test):
    with test.serve():
        make = client(test).generate
        told = make("scripted", "hi a")
        expect(told.response == HELLO and told.done_reason == "stop" and told.prompt_eval_count == len("user:hi a\n=a"), told)
        expect(make("scripted", "hi a", system="s").prompt_eval_count == len("system:s\nuser:hi a\n=a"), "system")
        raw = make("scripted", "hi a", raw=True)
        expect(raw.response == HELLO and raw.prompt_eval_count == len("hi a"), raw)
        parts = list(make("scripted", "hi t", stream=True))
        expect("".join(p.thinking or "" for p in parts) == "Let me see." and "".join(p.response for p in parts) == "It is four.", parts)
        expect(parts[-1].done and parts[-1].eval_count == 7, parts[-1])
        expect(make("scripted").done_reason == "load", "load")


def embed(test):
    with test.serve():
        ask = client(test)
        two = ask.embed("embed", ["a b", "c"])
        expect(len(two.embeddings) == 2 and two.model == "embed" and two.prompt_eval_count > 0 and two.total_duration > 0, two)
        expect(all(abs(math.sqrt(sum(x * x for x in v)) - 1) < 1e-3 for v in two.embeddings), two)
        one = ask.embed("embed:latest", "c")
        expect(max(abs(a - b) for a, b in zip(one.embeddings[0], two.embeddings[1])) < 1e-5, "one and two")
        old = ask.embeddings("embed", "c")
        expect(list(old.embedding) == list(one.embeddings[0]), "the older path")
        expect(len(ask.embed("embed", "c", dimensions=1).embeddings[0]) == 1, "dimensions")
        refused(lambda: ask.embed("embed", "c", dimensions=5000), 400, "dimensions")
        expect(ask.embed("embed", []).embeddings == [], "nothing")


def models(test):
    with test.serve():
        ask = client(test)
        listed = {m.model: m for m in ask.list().models}
        expect(sorted(listed) == ["embed:latest", "letters:latest", "scripted:latest"], listed)
        expect(listed["scripted:latest"].size > 1e6 and len(listed["scripted:latest"].digest) == 64, listed)
        expect(listed["scripted:latest"].details.family == "llama" and listed["scripted:latest"].details.format == "gguf", listed)
        shown = ask.show("scripted")
        expect(shown.capabilities == ["completion", "tools", "thinking"] and "messages" in shown.template, shown)
        expect(shown.modelinfo["llama.context_length"] == 2000, shown.modelinfo)
        expect(ask.show("embed:latest").capabilities == ["embedding"], "of an embedder")
        expect({m.model for m in ask.ps().models} == set(listed), "running")
        expect([m.context_length for m in ask.ps().models if m.model == "scripted:latest"] == [2000], "context")
        version = test.server.get("/api/version").json()["version"]
        expect(tuple(map(int, version.split("."))) >= (0, 6, 4), version)
        expect(ask.pull("scripted").status == "success", "what is there")
        expect([p.status for p in ask.pull("scripted", stream=True)] == ["success"], "what is there, as a stream")


def refused(call, status, words):
    try:
        answer = call()
        list(answer if not hasattr(answer, "model_dump") else [])
    except ollama.ResponseError as error:
        expect(error.status_code == status and words in error.error, f"{error.status_code} {error.error}")
        return
    sys.exit(f"wrong: taken, not '{words}'")


def names(test):
    """Names of registries: what was pulled is served, listed and "pulled" under its name."""
    home = test.folder / "home"
    environment = {**os.environ, "SDX_HOME": str(home)}

    def command(*words, code=0):
        done = subprocess.run([test.sdx, *words], env=environment, capture_output=True, text=True, timeout=60)
        expect(done.returncode == code, done.stdout + done.stderr)
        return done.stdout

    folder = home / "models" / "qwen3-0.6b"
    folder.mkdir(parents=True)
    (folder / "model.gguf").write_bytes((test.folder / "scripted.gguf").read_bytes())
    size = (folder / "model.gguf").stat().st_size
    (folder / ".sdx-pull.json").write_text(json.dumps({"name": "qwen3:0.6b", "source": "library/qwen3:0.6b", "revision": "sha256:0",
                                                       "files": [{"name": "model.gguf", "bytes": size, "sha256": "", "etag": ""}]}))
    expect(json.loads(command("models", "ls", "--json"))["pulled"][0]["name"] == "qwen3:0.6b", "sdx models ls")
    command("models", "ps", "--endpoint", "http://127.0.0.1:1", code=1)
    with Serve(test.sdx, "qwen3:0.6b", environment=environment) as test.server:
        expect(client(test).chat("qwen3:0.6b", hi("a")).message.content == HELLO, "the name of a registry")
        expect([m.model for m in client(test).list().models] == ["qwen3:0.6b"], client(test).list())
        expect(client(test).pull("qwen3:0.6b").status == "success", "a model that is served")
        running = json.loads(command("models", "ps", "--endpoint", test.url, "--json"))
        expect([(m["name"], m["context_length"]) for m in running["models"]] == [("qwen3:0.6b", 2000)] and running["server"] == test.url, running)
        lines = command("models", "ps", "--endpoint", test.url).splitlines()
        expect(lines[0].split() == ["NAME", "SIZE", "CONTEXT", "FAMILY"] and lines[1].split()[0] == "qwen3:0.6b" and "2000" in lines[1], lines)


    # The folder of pulled models as a repository.
    with Serve(test.sdx, "--repository", folder.parent, environment=environment) as test.server:
        expect(client(test).pull("qwen3:0.6b").status == "success", "a model of the repository")
        for name in ("qwen3:0.6b", "qwen3-0.6b", "qwen3-0.6b:latest"):
            expect(client(test).chat(name, hi("a")).message.content == HELLO, name)
        told = test.post("/v1/chat/completions", {"model": "qwen3:0.6b", "messages": hi("a")}).json()
        expect(told["choices"][0]["message"]["content"] == HELLO, told)
        expect(test.post("/api/pull", {"model": "qwen3:8b"}).status == 400, "another model")


def pulled(test):
    """Models that clients fetch into the repository: from a registry on this machine, with progress, by two at once, again, and away."""
    import scripted
    import tiny_models
    from registry import Registry, digest

    store = test.folder / "store"
    store.mkdir()
    own = tiny_models.gguf([*tiny_models.alphabet(), "<end>"], 600)
    (store / "own.gguf").write_bytes(own)
    model, other = scripted.scripted(), tiny_models.gguf([*tiny_models.alphabet(), "<end>"], 64)
    registry = Registry({"library/tiny": {"1b": model, "latest": other}, "team/tiny": {"latest": other}, "library/broken": {"latest": b"GGUF" + bytes(99)}})
    home = {**os.environ, "SDX_REGISTRY_ENDPOINT": registry.url, "SDX_HUB_ENDPOINT": registry.url, "no_proxy": "*", "SDX_HOME": str(test.folder)}
    os.environ.update(home)
    test.words = []
    try:
        with test.serve("--repository", str(store), "--allow-pull", "--pull-limit", "20MB"):
            fetch_and_remove(test, registry, store, model, other, digest)
        registry.pace = 0.2
        with test.serve("--repository", str(store), "--allow-pull", "--pull-limit", "20MB"):
            ends_with_its_clients(test, registry, store, model)
        registry.pace = 0
        with test.serve("--repository", str(store), "--allow-pull", "--pull-limit", "1MB"):
            ask = client(test)
            expect(ask.pull("tiny:1b").status == "success", "what is there already")
            ask.delete("tiny:1b")
            refused(lambda: ask.pull("tiny:1b"), 400, "more than the allowed")
            expect(not (store / "tiny-1b").exists(), "what is too large")
        with test.serve("--repository", str(store)):
            ask = client(test)
            refused(lambda: ask.pull("tiny:1b"), 400, "--allow-pull")
            refused(lambda: ask.delete("own"), 400, "--allow-pull")
            expect(ask.pull("own").status == "success" and (store / "own.gguf").exists(), "what is there")
    finally:
        registry.close()


def fetch_and_remove(test, registry, store, model, other, digest):
    ask = client(test)
    refused(lambda: ask.chat("tiny:1b", hi("a")), 404, "tiny:1b")
    steps = list(ask.pull("tiny:1b", stream=True))
    expect((steps[0].status, steps[-1].status) == ("pulling manifest", "success"), steps)
    told = [s for s in steps if s.digest]
    expect(told and {s.digest for s in told} == {digest(model)} and told[-1].total == len(model) >= told[-1].completed > 0, steps)
    expect((store / "tiny-1b" / "model.gguf").read_bytes() == model, "the file")
    expect(ask.chat("tiny:1b", hi("a")).message.content == HELLO, "the model that was fetched")
    expect("tiny:1b" in {m.model for m in ask.list().models} and "tiny:1b" in {m.model for m in ask.ps().models}, ask.list())
    expect(ask.show("tiny:1b").modelinfo["llama.context_length"] == 2000, "facts")
    for name in ("tiny", "team/tiny:latest", "team/tiny"):
        expect(ask.pull(name).status == "success" and ask.show(name).modelinfo["llama.context_length"] == 64, name)
    # The same tag with another model: the new one is served.
    registry.models["library/tiny"]["1b"] = other
    expect(ask.pull("tiny:1b").status == "success" and ask.show("tiny:1b").modelinfo["llama.context_length"] == 64, "renewed")
    registry.models["library/tiny"]["1b"] = model
    seen = len(registry.seen)
    expect(ask.pull("own").status == "success" and len(registry.seen) == seen, "the operator's own model needs no fetching")
    for name, words in (("nobody:1b", "nobody"), ("broken", ""), (registry.url + "/small.onnx", ""), ("/etc/passwd", ""), ("../own.gguf", ""),
                        (str(store / "own.gguf"), ""), ("file://" + str(store / "own.gguf"), ""), ("127.0.0.1:1/library/x:1b", "not the name"),
                        ("evil.example/x:1b", "not the name"), ("hf://org/name", "not the name"), ("x" * 300, "too long"), ("team-tiny", "holds another")):
        status = test.post("/api/pull", {"model": name, "stream": False}).status
        expect(status == (502 if name in ("nobody:1b", "broken") else 400), f"{name}: {status}")
        try:
            list(ask.pull(name, stream=True))
            sys.exit(f"wrong: {name} is fetched")
        except ollama.ResponseError as error:
            expect(words in error.error, f"{name}: {error.error}")
    expect(sorted(p.name for p in store.iterdir() if not p.name.startswith(".")) == ["own.gguf", "team-tiny", "tiny", "tiny-1b"], list(store.iterdir()))
    refused(lambda: ask.delete("own"), 403, "was not pulled")
    refused(lambda: ask.delete("nobody"), 404, "nobody")
    expect(ask.delete("tiny:1b").status == "success" and not (store / "tiny-1b").exists(), "removed")
    refused(lambda: ask.chat("tiny:1b", hi("a")), 404, "tiny:1b")
    expect(ask.pull("tiny:1b").status == "success" and ask.chat("tiny:1b", hi("a")).message.content == HELLO, "fetched again")
    ask.delete("tiny:1b")


def ends_with_its_clients(test, registry, store, model):
    """A fetch that two clients wait for goes on when one leaves, and ends when both have left; the next one goes on from there."""
    blob = lambda: [p for p in registry.seen if "/blobs/" in p]
    registry.seen.clear()
    first, second = (client(test).pull("tiny:1b", stream=True) for _ in range(2))
    for steps in (first, second):
        while not next(steps).completed:
            pass
    expect(len(blob()) == 1, "one fetch for both")
    first.close()
    for _ in range(3):
        expect(not next(second).status == "success", "still under way")
    second.close()
    deadline = time.monotonic() + 60
    while registry.broken == 0:
        expect(time.monotonic() < deadline, "the fetch goes on without its clients")
        time.sleep(0.05)
    while test.server.ask("POST", "/api/pull", json.dumps({"model": "tiny:1b", "stream": False}), {"Content-Type": "application/json"}).status == 503:
        expect(time.monotonic() < deadline, "the fetch does not end")
        time.sleep(0.2)
    expect((store / "tiny-1b" / "model.gguf").read_bytes() == model and len(blob()) == 2, blob())
    expect(registry.resumed == 1, "it goes on from there")


def errors(test):
    with test.serve():
        ask = client(test)
        for streaming in (False, True):
            refused(lambda: ask.chat("nobody", hi("a"), stream=streaming), 404, "nobody")
            refused(lambda: ask.chat("scripted", hi("b" * 3000), stream=streaming), 400, "context length")
            refused(lambda: ask.generate("scripted", "a", suffix="b", stream=streaming), 400, "suffix")
        refused(lambda: ask.chat("embed", hi("a")), 404, "api/chat")
        refused(lambda: ask.embed("scripted", "a"), 404, "api/embed")
        refused(lambda: ask.chat("scripted", [{"role": "user", "content": "a", "images": [b"abc"]}]), 400, "only text")
        refused(lambda: ask.pull("nobody"), 400, "sdx pull")
        refused(lambda: ask.delete("scripted"), 400, "--allow-pull")
        refused(lambda: ask.show("nobody"), 404, "nobody")
        is_error = lambda e: isinstance(e["error"], str) and e["error"]
        body = {"model": "scripted", "stream": False, "messages": [*hi("x"), {"role": "assistant", "content": "", "thinking": "t", "tool_calls": [
            {"function": {"name": "weather", "arguments": {"place": "x"}}}]}, {"role": "tool", "content": "4", "tool_name": "weather"}],
            "tools": [WEATHER], "options": {"temperature": 1, "num_predict": 4, "stop": ["q"], "seed": 3}, "think": True, "keep_alive": 5, "logprobs": True, "top_logprobs": 1}
        attack(test, "/api/chat", body, is_error)
        attack(test, "/api/generate", {"model": "scripted", "prompt": "a", "system": "b", "stream": False, "raw": False, "options": {"top_k": 3},
                                       "format": {"type": "object", "properties": {"a": {"enum": [1]}}, "required": ["a"]}}, is_error)
        attack(test, "/api/embed", {"model": "embed", "input": ["a", "b"], "truncate": True, "dimensions": 1}, is_error)
        attack(test, "/api/embeddings", {"model": "embed", "prompt": "a"}, is_error)
        attack(test, "/api/show", {"model": "scripted", "verbose": True}, is_error)
        attack(test, "/api/pull", {"model": "scripted"}, is_error)


interfaces.main([chat, forms, logprobs, tools, generate, embed, models, names, pulled, errors])
