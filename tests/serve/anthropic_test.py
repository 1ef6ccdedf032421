"""PyPI's `anthropic`, unchanged, against `sdx serve`: anthropic_test.py SDX PROJECT WHAT. WHAT is one of the functions at the end."""

import json
import sys
from pathlib import Path

import interfaces
from interfaces import attack, events_of, expect

PROJECT = Path(sys.argv[2]).resolve()
interfaces.enter(PROJECT)
import anthropic  # noqa: E402

WEATHER = {"name": "weather", "description": "Of a place.",
           "input_schema": {"type": "object", "properties": {"place": {"type": "string", "maxLength": 20}}, "required": ["place"]}}


def hi(letter):
    return [{"role": "user", "content": "hi " + letter}]


def client(test, **options):
    return anthropic.Anthropic(**{"base_url": test.url, "api_key": "none", "max_retries": 0, "timeout": 120, **options})


def messages(test):
    with test.serve():
        ask = client(test).messages.create
        told = ask(model="scripted", max_tokens=50, messages=hi("a"))
        expect(told.type == "message" and told.role == "assistant" and told.id.startswith("msg_") and told.model == "scripted", told)
        expect([(b.type, b.text) for b in told.content] == [("text", "Hello there, my friend.")], told)
        expect(told.stop_reason == "end_turn" and told.stop_sequence is None, told)
        prompt = len("[plain]user:hi a\n=a")
        expect(told.usage.input_tokens + told.usage.cache_read_input_tokens == prompt and told.usage.output_tokens == 5, told.usage)
        again = ask(model="scripted", max_tokens=50, messages=hi("a"))
        expect(again.usage.input_tokens + again.usage.cache_read_input_tokens == prompt, again.usage)
        cut = ask(model="scripted", max_tokens=2, messages=hi("a"))
        expect(cut.stop_reason == "max_tokens" and cut.content[0].text == "Hello there,", cut)
        full = ask(model="letters", max_tokens=5000, messages=hi("a"), extra_body={"temperature": 0})
        expect(full.stop_reason == "model_context_window_exceeded", full.stop_reason)
        stopped = ask(model="scripted", max_tokens=50, messages=hi("a"), stop_sequences=["zz", " my"])
        expect((stopped.stop_reason, stopped.stop_sequence, stopped.content[0].text) == ("stop_sequence", " my", "Hello there,"), stopped)
        blocks = [{"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}, {"type": "text", "text": "a"}]
        told = ask(model="scripted", max_tokens=50, system=[{"type": "text", "text": "Be brief."}], messages=[{"role": "user", "content": blocks}],
                   metadata={"user_id": "1"}, extra_body={"temperature": 0.5, "top_p": 0.9, "top_k": 3})
        expect(told.content[0].text == "Hello there, my friend.", told)
        expect(told.usage.input_tokens + told.usage.cache_read_input_tokens == len("[plain]system:Be brief.\nuser:x\na\n=a"), told.usage)
        # A last message of the assistant is the answer's beginning.
        told = ask(model="scripted", max_tokens=50, messages=[*hi("x"), {"role": "assistant", "content": "I say: a"}])
        expect(told.content[0].text == "Hello there, my friend.", told)
        held = ask(model="letters", max_tokens=100, messages=hi("x"),
                   extra_body={"temperature": 0, "output_config": {"format": {"type": "json_schema", "schema": WEATHER["input_schema"]}}})
        expect("place" in json.loads(held.content[0].text), held)
        listed = client(test).models.list()
        expect([m.id for m in listed] == ["embed", "letters", "scripted"], listed)


def stream(test):
    with test.serve():
        with client(test).messages.stream(model="scripted", max_tokens=50, messages=hi("a")) as stream:
            expect("".join(stream.text_stream) == "Hello there, my friend.", "text")
            final = stream.get_final_message()
        expect(final.stop_reason == "end_turn" and final.usage.output_tokens == 5, final)
        with client(test).messages.stream(model="scripted", max_tokens=50, messages=hi("u")) as stream:
            expect("".join(stream.text_stream) == "gr\u00fc\u00dfe \U0001f600", "characters of several bytes")
        body = {"model": "scripted", "max_tokens": 50, "messages": hi("r"), "tools": [WEATHER], "stream": True, "thinking": {"type": "adaptive"}}
        answer = test.post("/v1/messages", body)
        expect(answer.headers["Content-Type"].startswith("text/event-stream"), answer.headers)
        events = events_of(answer.body)
        expect(all(name == data["type"] for name, data in events), events)
        kinds = [name for name, _ in events if name not in ("ping", "content_block_delta")]
        expect(kinds == ["message_start", "content_block_start", "content_block_stop", "content_block_start", "content_block_stop",
                         "message_delta", "message_stop"], kinds)
        started = [data["content_block"] for name, data in events if name == "content_block_start"]
        expect(started[0] == {"type": "thinking", "thinking": "", "signature": ""}, started)
        expect(started[1]["type"] == "tool_use" and started[1]["input"] == {} and started[1]["id"].startswith("toolu_"), started)
        deltas = [(data["index"], data["delta"]["type"]) for name, data in events if name == "content_block_delta"]
        expect(deltas[0] == (0, "thinking_delta") and (0, "signature_delta") in deltas and deltas[-1] == (1, "input_json_delta"), deltas)
        last = [data for name, data in events if name == "message_delta"][0]
        expect(last["delta"] == {"stop_reason": "tool_use", "stop_sequence": None} and last["usage"]["output_tokens"] > 3, last)


def tools(test):
    with test.serve():
        say = client(test).messages
        options = {"model": "scripted", "max_tokens": 100, "tools": [WEATHER]}
        told = say.create(**options, messages=hi("c"))
        expect([b.type for b in told.content] == ["text", "tool_use"] and told.stop_reason == "tool_use", told)
        call = told.content[1]
        expect((call.name, call.input) == ("weather", {"place": "Paris"}), call)
        with say.stream(**options, messages=hi("c")) as streamed:
            final = streamed.get_final_message()
        expect([b.type for b in final.content] == ["text", "tool_use"] and final.content[1].input == {"place": "Paris"}, final)
        two = say.create(**options, messages=hi("p"))
        expect([b.type for b in two.content] == ["tool_use"] * 2 and len({b.id for b in two.content}) == 2, two)
        one = say.create(**options, messages=hi("p"), tool_choice={"type": "auto", "disable_parallel_tool_use": True})
        expect([b.type for b in one.content] == ["tool_use"], one)
        # The client's own objects go back, with the result, as its documents show.
        turns = [*hi("c"), {"role": "assistant", "content": told.content},
                 {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": [{"type": "text", "text": "4 degrees"}]},
                                              {"type": "text", "text": "so? a"}]}]
        expect(say.create(**options, messages=turns).content[0].text == "Hello there, my friend.", "a result")
        count = say.count_tokens(model="scripted", messages=turns, tools=[WEATHER]).input_tokens
        expect(count == len('[1 tools][plain]user:hi c\nassistant:I look.<weather{"place": "Paris"}>\ntool:4 degrees\nuser:so? a\n=a'), count)
        for choice in ({"type": "any"}, {"type": "tool", "name": "weather"}):
            told = say.create(model="letters", max_tokens=200, messages=hi("x"), tools=[WEATHER], tool_choice=choice, extra_body={"temperature": 0})
            expect(told.content[0].type == "tool_use" and isinstance(told.content[0].input["place"], str), told)
        none = say.create(**options, messages=hi("a"), tool_choice={"type": "none"})
        expect(none.usage.input_tokens + none.usage.cache_read_input_tokens == len("[plain]user:hi a\n=a"), none.usage)


def thinking(test):
    with test.serve():
        say = client(test).messages
        plain = say.create(model="scripted", max_tokens=50, messages=hi("t"))
        expect([b.type for b in plain.content] == ["text"] and plain.content[0].text == "It is four.", plain)
        asked = {"model": "scripted", "max_tokens": 2000, "messages": hi("t"), "thinking": {"type": "enabled", "budget_tokens": 1024}}
        told = say.create(**asked)
        expect([(b.type, getattr(b, "thinking", None) or b.text) for b in told.content] == [("thinking", "Let me see."), ("text", "It is four.")], told)
        with say.stream(**asked) as stream:
            final = stream.get_final_message()
        expect([b.type for b in final.content] == ["thinking", "text"] and final.content[0].thinking == "Let me see.", final)
        turns = [*hi("t"), {"role": "assistant", "content": told.content}, *hi("a")]
        expect(say.create(model="scripted", max_tokens=50, messages=turns).content[0].text == "Hello there, my friend.", "thinking goes back")
        count = say.count_tokens(model="scripted", messages=turns, thinking={"type": "enabled", "budget_tokens": 1024}).input_tokens
        expect(count == len("user:hi t\nassistant:It is four.(Let me see.)\nuser:hi a\n=a"), count)


def claude_code(test):
    """A request as Claude Code makes it, and the turn that follows."""
    reads = {"name": "Read", "description": "Reads a file.", "input_schema": {"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
             "properties": {"file_path": {"type": "string"}, "limit": {"type": "number", "exclusiveMinimum": 0}}, "required": ["file_path"],
             "additionalProperties": False}}
    tools = [reads, WEATHER, {**WEATHER, "name": "mcp__server__find", "cache_control": {"type": "ephemeral"}}]
    cached = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
    body = {"model": "scripted", "max_tokens": 32000, "stream": True, "temperature": 1, "tools": tools, "tool_choice": {"type": "auto"},
            "system": [{"type": "text", "text": "x-anthropic-billing-header: cc_version=2"}, {"type": "text", "text": "You are an agent.", **cached}],
            "messages": [{"role": "user", "content": [{"type": "text", "text": "<system-reminder>\nToday\n</system-reminder>"},
                                                      {"type": "text", "text": "look c", **cached}]}],
            "thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": "medium"}, "metadata": {"user_id": "user_1"},
            "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}}
    headers = {"anthropic-version": "2023-06-01", "anthropic-beta": "claude-code-20250219,interleaved-thinking-2025-05-14", "x-app": "cli",
               "x-api-key": "none"}
    with test.serve():
        answer = test.post("/v1/messages?beta=true", body, headers)
        expect(answer.status == 200 and answer.headers["request-id"] == answer.headers["x-request-id"], answer.body)
        expect("Sdx-Ignored" not in answer.headers, answer.headers)
        events = events_of(answer.body)
        started = [data["content_block"] for name, data in events if name == "content_block_start"]
        expect([b["type"] for b in started] == ["text", "tool_use"], started)
        given = "".join(d["delta"]["partial_json"] for name, d in events if name == "content_block_delta" and d["delta"]["type"] == "input_json_delta")
        expect(json.loads(given) == {"place": "Paris"}, given)
        body["messages"] += [{"role": "assistant", "content": [{"type": "text", "text": "I look."}, {**started[1], "input": json.loads(given)}]},
                             {"role": "user", "content": [{"type": "tool_result", "tool_use_id": started[1]["id"], "content": "4", "is_error": False},
                                                          {"type": "text", "text": "so a", **cached}]}]
        again = events_of(test.post("/v1/messages?beta=true", body, headers).body)
        expect("".join(d["delta"]["text"] for name, d in again if name == "content_block_delta") == "Hello there, my friend.", again)
        counted = {k: body[k] for k in ("model", "messages", "tools", "system", "thinking")}
        count = test.post("/v1/messages/count_tokens?beta=true", counted, headers).json()["input_tokens"]
        usage = [d for name, d in again if name == "message_delta"][0]["usage"]
        expect(count == usage["input_tokens"] + usage["cache_read_input_tokens"], f"{count} {usage}")
        # A short question beside the conversation, without tools.
        short = {"model": "scripted", "max_tokens": 1, "messages": [{"role": "user", "content": "quota"}], "metadata": {"user_id": "user_1"}}
        expect(test.post("/v1/messages?beta=true", short, headers).json()["stop_reason"] in ("max_tokens", "end_turn"), "quota")


def refused(test, exception, words, **options):
    for streaming in (False, True):
        try:
            client(test).messages.create(**{"model": "scripted", "max_tokens": 5, "messages": hi("a"), **options}, stream=streaming)
        except exception as error:
            expect(error.body["type"] == "error" and words in error.body["error"]["message"], f"{options}: {error.body}")
            continue
        sys.exit(f"wrong: {options} is taken")


def errors(test):
    (test.folder / "keys").write_text("sk-right name=right\n")
    with test.serve():
        bad = anthropic.BadRequestError
        refused(test, anthropic.NotFoundError, "nobody", model="nobody")
        refused(test, anthropic.NotFoundError, "embed", model="embed")
        refused(test, bad, "prompt is too long: 2", messages=hi("b" * 2000))
        picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aaaa"}}
        refused(test, bad, "read only text", messages=[{"role": "user", "content": [picture]}])
        refused(test, bad, "web_search", tools=[{"type": "web_search_20250305", "name": "web_search"}])
        refused(test, bad, "tool_use_id", messages=[{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "x"}]}])
        used = {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "weather", "input": {}}]}
        refused(test, bad, "tool_result", messages=[*hi("a"), used, *hi("a")])
        refused(test, bad, "tool_result", messages=[*hi("a"), used])
        refused(test, bad, "no tool named", tools=[WEATHER], tool_choice={"type": "tool", "name": "other"})
        answer = test.post("/v1/messages", {"model": "scripted", "max_tokens": 5, "messages": hi("a"), "odd": 1})
        expect(answer.status == 200 and answer.headers["Sdx-Ignored"] == "odd", answer.headers)
        expect(test.post("/v1/messages", b" " * (17 << 20)).json()["error"]["type"] == "request_too_large", "17 MiB")
        body = {"model": "scripted", "max_tokens": 5, "messages": [*hi("x"), {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "t", "signature": ""}, {"type": "tool_use", "id": "t1", "name": "weather", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "4"}]}]}],
            "system": [{"type": "text", "text": "b"}], "tools": [WEATHER], "tool_choice": {"type": "auto"}, "stop_sequences": ["q"],
            "thinking": {"type": "enabled", "budget_tokens": 5}, "temperature": 1, "top_k": 3, "top_p": 0.5, "stream": False,
            "output_config": {"effort": "low"}}
        is_error = lambda e: e["type"] == "error" and e["error"]["type"] == "invalid_request_error" or e["error"]["type"] == "not_found_error"
        attack(test, "/v1/messages", body, is_error)
        attack(test, "/v1/messages/count_tokens", {k: v for k, v in body.items() if k != "stream"}, is_error)
    with test.serve("--api-keys", test.folder / "keys"):
        refused(test, anthropic.AuthenticationError, "does not know the API key")
        for options in ({"api_key": "sk-right"}, {"api_key": None, "auth_token": "sk-right"}):
            told = client(test, **options).messages.create(model="scripted", max_tokens=50, messages=hi("a"))
            expect(told.content[0].text == "Hello there, my friend.", told)


interfaces.main([messages, stream, tools, thinking, claude_code, errors])
