"""Requests of programs that people use, rebuilt from their public documentation: programs_test.py SDX PROJECT WHAT. WHAT is one of the functions
at the end. Codex's are in responses_test.py, Claude Code's in anthropic_test.py."""

import json
import sys
from pathlib import Path

import interfaces
from interfaces import expect

PROJECT = Path(sys.argv[2]).resolve()
interfaces.enter(PROJECT)

HELLO = "Hello there, my friend."
WEATHER = {"type": "function", "function": {"name": "weather", "description": "Of a place.", "parameters": {
    "type": "object", "properties": {"place": {"type": "string", "description": "Where"}}, "required": ["place"]}}}


def lines_of(answer):
    expect(answer.status == 200, answer.body)
    return [json.loads(line) for line in answer.body.decode().splitlines() if line]


def chunks_of(answer):
    """What a stream of OpenAI's form has."""
    expect(answer.status == 200, answer.body)
    data = [line[6:] for line in answer.body.decode().splitlines() if line.startswith("data: ")]
    expect(data[-1] == "[DONE]", data[-1])
    return [json.loads(d) for d in data[:-1]]


def text_of(chunks):
    return "".join(c["choices"][0]["delta"].get("content") or "" for c in chunks if c["choices"])


def calls_of(chunks):
    """The calls of tools in a stream, put together."""
    calls = {}
    for chunk in chunks:
        for part in (chunk["choices"][0]["delta"].get("tool_calls") or []) if chunk["choices"] else []:
            call = calls.setdefault(part["index"], {"id": "", "type": "function", "function": {"name": "", "arguments": ""}})
            call["id"] += part.get("id") or ""
            for key in ("name", "arguments"):
                call["function"][key] += part["function"].get(key) or ""
    return list(calls.values())


def open_webui_openai(test):
    """A connection of OpenAI's kind: the list of models, a chat with tools ("native" function calling), the title behind it, the end of a chat."""
    headers = {"Authorization": "Bearer none", "X-OpenWebUI-User-Name": "Ann", "X-OpenWebUI-User-Id": "1", "X-OpenWebUI-User-Email": "a@example.org",
               "X-OpenWebUI-User-Role": "admin", "X-OpenWebUI-Chat-Id": "c1"}
    with test.serve():
        models = test.server.ask("GET", "/v1/models", None, headers).json()
        expect({m["id"] for m in models["data"]} >= {"scripted", "embed"} and all(m["object"] == "model" for m in models["data"]), models)
        body = {"stream": True, "model": "scripted", "messages": [{"role": "system", "content": "You are kind."}, {"role": "user", "content": "look c"}],
                "tools": [WEATHER], "stream_options": {"include_usage": True}, "temperature": 0, "max_tokens": 128, "chat_id": "c1", "session_id": "s1",
                "tool_servers": [], "features": {"web_search": False}, "user": {"name": "Ann", "id": "1"}}
        chunks = chunks_of(test.post("/v1/chat/completions", body, headers))
        calls = calls_of(chunks)
        expect(text_of(chunks) == "I look." and [json.loads(c["function"]["arguments"]) for c in calls] == [{"place": "Paris"}], chunks)
        expect(chunks[-1]["choices"] == [] and chunks[-1]["usage"]["completion_tokens"] > 0, chunks[-1])
        body["messages"] += [{"role": "assistant", "content": "I look.", "tool_calls": [{"index": 0, **c} for c in calls]},
                             {"role": "tool", "tool_call_id": calls[0]["id"], "content": "4 degrees a"}]
        expect(text_of(chunks_of(test.post("/v1/chat/completions", body, headers))) == HELLO, "the turn behind the call")
        task = {"model": "scripted", "messages": [{"role": "user", "content": "### Task:\nGenerate a concise title.\n### Chat:\nuser: a"}],
                "stream": False, "max_completion_tokens": 1000, "temperature": 0, "metadata": {"task": "title_generation", "chat_id": "c1"}}
        title = test.post("/v1/chat/completions", task, headers).json()
        expect(title["choices"][0]["message"]["content"] == HELLO and title["choices"][0]["finish_reason"] == "stop", title)
        vectors = test.post("/v1/embeddings", {"model": "embed", "input": ["a b", "b"]}, headers).json()
        expect([v["index"] for v in vectors["data"]] == [0, 1], vectors)


def open_webui_ollama(test):
    """A connection of Ollama's kind."""
    with test.serve():
        ask = test.server.ask
        expect(ask("GET", "/", None).status == 200, "whether somebody is there")
        expect(ask("GET", "/api/version", None).json()["version"].count(".") == 2, "version")
        tags = ask("GET", "/api/tags", None).json()["models"]
        expect({m["model"] for m in tags} >= {"scripted:latest", "embed:latest"} and all({"name", "digest", "size", "details"} <= m.keys() for m in tags), tags)
        ask("GET", "/api/ps", None).json()["models"]
        body = {"model": "scripted:latest", "messages": [{"role": "user", "content": "look c"}], "stream": True, "tools": [WEATHER], "keep_alive": "5m",
                "options": {"temperature": 0, "num_ctx": 4096, "num_keep": 24, "num_batch": 512, "use_mmap": True, "mirostat": 0, "repeat_last_n": 64}}
        lines = lines_of(test.post("/api/chat", body))
        calls = [c for line in lines for c in line["message"].get("tool_calls") or []]
        expect("".join(line["message"]["content"] for line in lines) == "I look." and calls[0]["function"]["arguments"] == {"place": "Paris"}, lines)
        expect(lines[-1]["done"] and lines[-1]["eval_count"] > 0 and lines[-1]["total_duration"] > 0, lines[-1])
        body["messages"] += [{"role": "assistant", "content": "I look.", "tool_calls": calls}, {"role": "tool", "content": "4 degrees a"}]
        lines = lines_of(test.post("/api/chat", body))
        expect("".join(line["message"]["content"] for line in lines) == HELLO, lines)
        vectors = test.post("/api/embed", {"model": "embed:latest", "input": ["a b", "b"], "truncate": True}).json()
        expect(len(vectors["embeddings"]) == 2, vectors)


def continue_ollama(test):
    """Continue with the provider `ollama`: facts about the model, chat in agent mode, and completion at the cursor."""
    settings = {"temperature": 0, "num_predict": 200, "num_ctx": 2000, "stop": ["\n\n\n"], "top_k": 40, "top_p": 1, "min_p": 0, "num_thread": 4,
                "use_mmap": True, "mirostat": 0, "num_gpu": 99}
    with test.serve():
        shown = test.post("/api/show", {"name": "scripted"}).json()
        context = [v for k, v in shown["model_info"].items() if k.endswith(".context_length")]
        expect(context == [2000] and "tools" in shown["capabilities"] and isinstance(shown["template"], str), shown)
        body = {"model": "scripted", "messages": [{"role": "system", "content": "<important_rules>Agent mode.</important_rules>"},
                                                  {"role": "user", "content": "look c"}],
                "options": settings, "keep_alive": 1800, "stream": True, "tools": [WEATHER]}
        lines = lines_of(test.post("/api/chat", body))
        calls = [c for line in lines for c in line["message"].get("tool_calls") or []]
        expect([c["function"]["name"] for c in calls] == ["weather"] and lines[-1]["done_reason"] == "stop", lines)
        body["messages"] += [{"role": "assistant", "content": "I look.", "tool_calls": [{"function": calls[0]["function"]}]},
                             {"role": "tool", "content": "4 degrees a"}]
        expect("".join(line["message"]["content"] for line in lines_of(test.post("/api/chat", body))) == HELLO, "the turn behind the call")
        raw = {"model": "scripted", "prompt": "<|fim_prefix|>x = <|fim_suffix|>\n<|fim_middle|>a", "raw": True, "keep_alive": 1800, "stream": True,
               "options": {**settings, "stop": ["<|fim_prefix|>", "<|endoftext|>", "/src/"]}}
        expect("".join(line["response"] for line in lines_of(test.post("/api/generate", raw))) == HELLO, "a completion")


def continue_openai(test):
    """Continue with the providers `openai` and `llama.cpp`, and its `/v1/completions` for completion at the cursor."""
    headers = {"Authorization": "Bearer none", "api-key": "none"}
    with test.serve():
        body = {"messages": [{"role": "system", "content": "Agent mode."}, {"role": "user", "content": [{"type": "text", "text": "look c"}]}],
                "model": "scripted", "max_tokens": 300, "temperature": 0, "top_p": 1, "frequency_penalty": 0, "presence_penalty": 0, "stop": ["\n\n\n"],
                "stream": True, "tools": [WEATHER], "parallel_tool_calls": False, "stream_options": {"include_usage": True}}
        chunks = chunks_of(test.post("/v1/chat/completions", body, headers))
        calls = calls_of(chunks)
        expect([json.loads(c["function"]["arguments"]) for c in calls] == [{"place": "Paris"}], chunks)
        body["messages"] += [{"role": "assistant", "content": " ", "tool_calls": calls},
                             {"role": "tool", "tool_call_id": calls[0]["id"], "content": "4 degrees a"}]
        expect(text_of(chunks_of(test.post("/v1/chat/completions", body, headers))) == HELLO, "the turn behind the call")
        body = {"prompt": "x = a", "model": "scripted", "max_tokens": 300, "temperature": 0, "stop": ["\n\n"], "stream": True}
        chunks = chunks_of(test.post("/v1/completions", body, headers))
        expect("".join(c["choices"][0]["text"] for c in chunks if c["choices"]) == HELLO, chunks)
        body = {"prompt": "x = a", "n_predict": 300, "temperature": 0, "top_k": 40, "top_p": 1, "min_p": 0, "mirostat": 0, "frequency_penalty": 0,
                "presence_penalty": 0, "stop": ["\n\n"], "stream": True}
        answer = test.post("/completion", {**body, "model": "scripted"}, headers)
        expect(answer.status == 200, answer.body)
        events = [json.loads(line[6:]) for line in answer.body.decode().splitlines() if line.startswith("data: ")]
        expect("".join(e["content"] for e in events) == HELLO and events[-1]["stop"], events)


if __name__ == "__main__":
    interfaces.main([open_webui_openai, open_webui_ollama, continue_ollama, continue_openai])
