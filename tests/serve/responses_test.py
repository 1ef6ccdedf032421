"""PyPI's `openai`, unchanged, against /v1/responses of `sdx serve`: responses_test.py SDX PROJECT WHAT. WHAT is one of the functions at the end."""

import json
import sys
from pathlib import Path

import interfaces
from interfaces import attack, events_of, expect

PROJECT = Path(sys.argv[2]).resolve()
interfaces.enter(PROJECT)
import jsonschema  # noqa: E402
import openai  # noqa: E402
import pydantic  # noqa: E402

HELLO = "Hello there, my friend."
WEATHER = {"type": "function", "name": "weather", "description": "Of a place.", "parameters": {
    "type": "object", "properties": {"place": {"type": "string", "maxLength": 20}}, "required": ["place"], "additionalProperties": False}}


class Place(pydantic.BaseModel):
    place: str = pydantic.Field(max_length=12)


DESCRIPTION = json.loads((PROJECT / "docs" / "openapi" / "openai.json").read_text())


def fits(value, schema):
    """An answer is what docs/openapi/openai.json says."""
    jsonschema.validate(value, {"$ref": f"#/components/schemas/{schema}", "components": DESCRIPTION["components"]})


def client(test, **options):
    return openai.OpenAI(**{"base_url": test.url + "/v1", "api_key": "none", "max_retries": 0, "timeout": 120, **options})


def whole(test):
    with test.serve():
        ask = client(test).responses.create
        told = ask(model="scripted", input="hi a", metadata={"a": "b"})
        expect(told.output_text == HELLO and told.status == "completed" and told.id.startswith("resp_") and told.object == "response", told)
        expect([(i.type, i.role, i.status) for i in told.output] == [("message", "assistant", "completed")], told)
        expect(told.usage.input_tokens == len("user:hi a\n=a") and told.usage.output_tokens == 5 and told.usage.total_tokens == 17, told.usage)
        expect(told.metadata == {"a": "b"} and told.tools == [] and told.tool_choice == "auto" and told.error is None, told)
        items = [{"role": "developer", "content": "Be kind."}, {"role": "user", "content": [{"type": "input_text", "text": "hi a"}]}]
        told = ask(model="scripted", instructions="Be brief.", input=items, store=False, temperature=0.3, top_p=0.9)
        expect(told.usage.input_tokens == len("system:Be brief.\n\nBe kind.\nuser:hi a\n=a") and told.instructions == "Be brief.", told)
        cut = ask(model="scripted", input="hi a", max_output_tokens=2)
        expect((cut.status, cut.incomplete_details.reason, cut.output_text) == ("incomplete", "max_output_tokens", "Hello there,"), cut)
        thought = ask(model="scripted", input="hi t", reasoning={"effort": "low"})
        expect([i.type for i in thought.output] == ["reasoning", "message"] and thought.output[0].content[0].text == "Let me see.", thought)
        expect(thought.output_text == "It is four." and thought.usage.output_tokens_details.reasoning_tokens > 0, thought)
        expect(ask(model="scripted", input="hi a", reasoning={"effort": "none"}).usage.input_tokens == len("[plain]user:hi a\n=a"), "effort none")
        parsed = client(test).responses.parse(model="letters", input="x", text_format=Place, temperature=0)
        expect(isinstance(parsed.output_parsed, Place), parsed)
        held = ask(model="letters", input="x", text={"format": {"type": "json_object"}}, temperature=0)
        expect(isinstance(json.loads(held.output_text), dict), held)
        count = client(test).responses.input_tokens.count(model="scripted", input="hi a")
        expect(count.input_tokens == len("user:hi a\n=a"), count)


def stream(test):
    with test.serve():
        with client(test).responses.stream(model="scripted", input="hi r", tools=[WEATHER]) as events:
            types = [e.type for e in events]
            final = events.get_final_response()
        expect(types[0] == "response.created" and types[-1] == "response.completed", types)
        expect([i.type for i in final.output] == ["reasoning", "function_call"] and final.output[1].arguments == '{"place": "Paris"}', final)
        with client(test).responses.stream(model="scripted", input="hi u") as events:
            text = "".join(e.delta for e in events if e.type == "response.output_text.delta")
        expect(text == "gr\u00fc\u00dfe \U0001f600", text)
        answer = test.post("/v1/responses", {"model": "scripted", "input": "hi t", "stream": True})
        events = events_of(answer.body)
        expect(all(name == data["type"] for name, data in events), events)
        expect([data["sequence_number"] for _, data in events] == list(range(len(events))), events)
        kinds = [name for name, _ in events if not name.endswith(".delta")]
        part = ["response.output_item.added", "response.content_part.added", "response.{}.done", "response.content_part.done",
                "response.output_item.done"]
        expect(kinds == ["response.created", "response.in_progress", *(p.format("reasoning_text") for p in part),
                         *(p.format("output_text") for p in part), "response.completed"], kinds)
        added = [data for name, data in events if name == "response.output_item.added"]
        done = [data for name, data in events if name == "response.output_item.done"]
        expect([d["output_index"] for d in added] == [0, 1] and [d["item"]["id"] for d in added] == [d["item"]["id"] for d in done], events)
        last = events[-1][1]["response"]
        expect(last["output"] == [d["item"] for d in done] and last["usage"]["output_tokens"] == 7, last)
        cut = events_of(test.post("/v1/responses", {"model": "scripted", "input": "hi a", "stream": True, "max_output_tokens": 2}).body)
        expect(cut[-1][0] == "response.incomplete" and cut[-1][1]["response"]["output"][0]["status"] == "incomplete", cut[-1])


def tools(test):
    with test.serve():
        ask = client(test).responses.create
        told = ask(model="scripted", input="hi c", tools=[WEATHER])
        call = told.output[1]
        expect([i.type for i in told.output] == ["message", "function_call"] and json.loads(call.arguments) == {"place": "Paris"}, told)
        result = {"type": "function_call_output", "call_id": call.call_id, "output": "4 degrees a"}
        wanted = len('[1 tools]user:hi c\nassistant:I look.<weather{"place": "Paris"}>\ntool:4 degrees a\n=a')
        # As its documents show: the output's own objects, or the id.
        again = ask(model="scripted", input=[{"role": "user", "content": "hi c"}, *told.output, result], tools=[WEATHER])
        expect(again.output_text == HELLO and again.usage.input_tokens == wanted, again)
        again = ask(model="scripted", previous_response_id=told.id, input=[result], tools=[WEATHER])
        expect(again.output_text == HELLO and again.usage.input_tokens == wanted and again.previous_response_id == told.id, again)
        two = ask(model="scripted", input="hi p", tools=[WEATHER])
        expect([i.type for i in two.output] == ["function_call"] * 2, two)
        one = ask(model="scripted", input="hi p", tools=[WEATHER], parallel_tool_calls=False)
        expect([i.type for i in one.output] == ["function_call"], one)
        other = {"type": "function", "name": "other", "parameters": {"type": "object", "properties": {}, "additionalProperties": False}}
        for choice in ("required", {"type": "function", "name": "weather"},
                       {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "weather"}]}):
            told = ask(model="letters", input="x", tools=[WEATHER, other] if isinstance(choice, dict) else [WEATHER], tool_choice=choice,
                       temperature=0, max_output_tokens=150)
            expect(told.output[-1].name == "weather" and isinstance(json.loads(told.output[-1].arguments)["place"], str), told)
        none = ask(model="scripted", input="hi a", tools=[WEATHER], tool_choice="none")
        expect(none.usage.input_tokens == len("user:hi a\n=a"), none)
        raw = client(test).responses.with_raw_response.create(model="scripted", input="hi a", tools=[WEATHER, {"type": "web_search"}])
        expect(raw.headers["Sdx-Ignored"] == "tools[].web_search" and raw.parse().output_text == HELLO, raw.headers)
        # A tool whose input is a text: the model writes an object around it.
        patch = {"type": "custom", "name": "patch", "description": "Changes files.", "format": {"type": "grammar", "syntax": "lark", "definition": "x"}}
        for streaming in (False, True):
            body = {"model": "letters", "input": "x", "tools": [patch], "tool_choice": {"type": "custom", "name": "patch"}, "temperature": 0,
                    "max_output_tokens": 150, "stream": streaming}
            answer = test.post("/v1/responses", body)
            told = events_of(answer.body)[-1][1]["response"] if streaming else answer.json()
            item = told["output"][-1]
            expect(item["type"] == "custom_tool_call" and isinstance(item["input"], str) and "arguments" not in item, told)
        turns = [{"role": "user", "content": "q"}, item, {"type": "custom_tool_call_output", "call_id": item["call_id"], "output": "done a"}]
        expect(ask(model="scripted", input=turns, tools=[patch]).output_text == HELLO, "a custom tool's output")


def stored(test):
    (test.folder / "keys").write_text("sk-one name=one\nsk-two name=two\n")
    with test.serve("--api-keys", test.folder / "keys"):
        one, two = client(test, api_key="sk-one").responses, client(test, api_key="sk-two").responses
        first = one.create(model="scripted", input="hi t")
        second = one.create(model="scripted", input="and a", previous_response_id=first.id)
        expect(second.usage.input_tokens == len("user:hi t\nassistant:It is four.(Let me see.)\nuser:and a\n=a"), second)
        third = one.create(model="scripted", input="then a", previous_response_id=second.id, instructions="new")
        expect(third.usage.input_tokens == len("system:new\nuser:hi t\nassistant:It is four.(Let me see.)\nuser:and a\n"
                                               f"assistant:{HELLO}\nuser:then a\n=a"), third)
        got = one.retrieve(first.id)
        expect(got.output == first.output and got.id == first.id, got)
        items = list(one.input_items.list(second.id))
        expect([(i.type, i.content[0].text) for i in items] == [("message", "and a")], items)
        reference = {"type": "item_reference", "id": first.output[1].id}
        asked = one.create(model="scripted", input=[{"role": "user", "content": "hi t"}, reference, {"role": "user", "content": "so a"}])
        expect(asked.usage.input_tokens == len("user:hi t\nassistant:It is four.\nuser:so a\n=a"), asked)
        streamed = list(one.create(model="scripted", input="hi a", stream=True))[-1].response
        expect(one.retrieve(streamed.id).output_text == HELLO, "a stream is stored")
        hidden = one.create(model="scripted", input="hi a", store=False)
        for call in (lambda: one.retrieve(hidden.id), lambda: two.retrieve(first.id), lambda: one.retrieve("resp_none"),
                     lambda: two.delete(first.id)):
            fails(openai.NotFoundError, call)
        for responses, id in ((two, first.id), (one, hidden.id)):
            error = fails(openai.BadRequestError, lambda: responses.create(model="scripted", input="a", previous_response_id=id))
            expect(error.code == "previous_response_not_found", error)
        one.delete(first.id)
        fails(openai.NotFoundError, lambda: one.retrieve(first.id))
        # What builds on it goes on.
        expect(one.create(model="scripted", input="a", previous_response_id=second.id).output_text == HELLO, "after the first is deleted")
        fails(openai.BadRequestError, lambda: one.cancel(second.id))


def description(test):
    page = (PROJECT / "docs" / "serve" / "interfaces.md").read_text()
    for field in DESCRIPTION["components"]["schemas"]["ResponseRequest"]["properties"]:
        expect(f"`{field}`" in page, f"docs/serve/interfaces.md does not speak of {field}")
    with test.serve():
        for letter in "acrp":
            body = {"model": "scripted", "input": "hi " + letter, "tools": [WEATHER], "include": ["message.output_text.logprobs"], "top_logprobs": 1}
            fits(body, "ResponseRequest")
            fits(test.post("/v1/responses", body).json(), "Response")
            for _, event in events_of(test.post("/v1/responses", {**body, "stream": True}).body):
                fits(event, "ResponseEvent")


def logprobs(test):
    """Log probabilities of texts, where the request includes them."""
    with test.serve():
        ask = client(test).responses.create
        asked = {"model": "scripted", "include": ["message.output_text.logprobs"], "top_logprobs": 2, "temperature": 0}
        # Marks and reasoning are no text.
        for letter, words in (("a", ["Hello", " there,", " my", " friend."]), ("t", ["It is", " four."]), ("c", ["I look."]),
                              ("u", ["gr\u00fc\u00df", "e \U0001f600"])):
            told = ask(**asked, input="hi " + letter, tools=[WEATHER])
            found = next(i for i in told.output if i.type == "message").content[0].logprobs
            expect([t.token for t in found] == words and told.top_logprobs == 2, told)
            for token in found:
                expect(token.logprob <= 0 and len(token.top_logprobs) == 2 and bytes(token.bytes).decode() == token.token, token)
                expect(token.top_logprobs[0].token == token.token and token.top_logprobs[0].logprob == token.logprob, token)
            events = events_of(test.post("/v1/responses", {**asked, "input": "hi " + letter, "tools": [WEATHER], "stream": True}).body)
            deltas = [t["token"] for name, data in events if name == "response.output_text.delta" for t in data["logprobs"]]
            done = [t["token"] for name, data in events if name == "response.output_text.done" for t in data["logprobs"]]
            item = next(data["item"] for name, data in events if name == "response.output_item.done" and data["item"]["type"] == "message")
            expect(deltas == done == [t["token"] for t in item["content"][0]["logprobs"]] == words, events)
        only = ask(model="scripted", input="hi a", include=["message.output_text.logprobs"]).output[0].content[0].logprobs
        expect([t.top_logprobs for t in only] == [[]] * 4, only)
        expect(ask(model="scripted", input="hi a", top_logprobs=2).output[0].content[0].logprobs == [], "not included")
        chosen = client(test).chat.completions.create(model="letters", messages=[{"role": "user", "content": "x"}], logprobs=True, temperature=0, max_tokens=9)
        same = ask(**{**asked, "model": "letters"}, input="x", max_output_tokens=9).output[-1].content[0].logprobs
        expect([(t.token, t.logprob) for t in same] == [(t.token, t.logprob) for t in chosen.choices[0].logprobs.content], "as in chats")


def codex(test):
    """A request as Codex makes it, and the turn that follows."""
    shell = {"type": "function", "name": "weather", "description": "Runs a command.", "strict": False,
             "parameters": {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"], "additionalProperties": False}}
    patch = {"type": "custom", "name": "apply_patch", "description": "Edits files.",
             "format": {"type": "grammar", "syntax": "lark", "definition": "start: begin_patch hunk+ end_patch"}}
    context = "<environment_context>\n  <cwd>/tmp</cwd>\n</environment_context>"

    def message(role, text):
        return {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}

    body = {"model": "scripted", "instructions": "You are a coding agent.", "tools": [shell, patch, {"type": "web_search", "external_web_access": False}],
            "input": [message("developer", "<permissions>read only</permissions>"), message("user", context), message("user", "look c")],
            "tool_choice": "auto", "parallel_tool_calls": False, "reasoning": {"effort": "medium", "summary": "auto"}, "store": False, "stream": True,
            "include": ["reasoning.encrypted_content"], "prompt_cache_key": "019a", "text": {"verbosity": "medium"}}
    headers = {"Accept": "text/event-stream", "session_id": "019a", "originator": "codex_cli_rs", "Authorization": "Bearer none"}
    with test.serve():
        answer = test.post("/v1/responses", body, headers)
        expect(answer.status == 200 and answer.headers["Sdx-Ignored"] == "tools[].web_search", answer.headers)
        events = events_of(answer.body)
        expect(events[-1][0] == "response.completed" and events[-1][1]["response"]["id"].startswith("resp_"), events[-1])
        items = [data["item"] for name, data in events if name == "response.output_item.done"]
        expect([i["type"] for i in items] == ["message", "function_call"] and json.loads(items[1]["arguments"]) == {"place": "Paris"}, items)
        body["input"] += [{k: v for k, v in i.items() if k not in ("id", "status")} for i in items]
        body["input"] += [{"type": "function_call_output", "call_id": items[1]["call_id"], "output": "Exit code: 0\nOutput:\na"}]
        again = events_of(test.post("/v1/responses", body, headers).body)
        expect("".join(d["delta"] for name, d in again if name == "response.output_text.delta") == HELLO, again)


def fails(kind, call):
    try:
        call()
    except kind as error:
        return error
    sys.exit(f"wrong: no {kind.__name__}")


def errors(test):
    with test.serve():
        ask = client(test).responses.create
        bad = openai.BadRequestError
        expect(fails(openai.NotFoundError, lambda: ask(model="nobody", input="a")).code == "model_not_found", "a model that is not there")
        for streaming in (False, True):
            expect(fails(bad, lambda: ask(model="scripted", input="b" * 3000, stream=streaming)).code == "context_length_exceeded", "too long")
        for options, param in (({"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}]}, "input[0].content[0].type"),
                               ({"input": [{"type": "function_call_output", "call_id": "x", "output": "y"}]}, "input"),
                               ({"input": [{"type": "item_reference", "id": "x"}]}, "input[0]"), ({"input": []}, "input"),
                               ({"background": True}, "background"), ({"extra_body": {"conversation": "c"}}, "conversation"),
                               ({"tool_choice": "required"}, "tool_choice"), ({"tools": [{"type": "web_search"}], "tool_choice": {"type": "web_search"}}, "tool_choice")):
            error = fails(bad, lambda: ask(**{"model": "scripted", "input": "a", **options}))
            expect(error.param == param, f"{options}: {error.param} {error}")
        body = {"model": "scripted", "input": [{"role": "user", "content": [{"type": "input_text", "text": "x"}]},
                                               {"type": "reasoning", "id": "r", "summary": [], "content": [{"type": "reasoning_text", "text": "t"}]},
                                               {"type": "function_call", "call_id": "c", "name": "weather", "arguments": "{}"},
                                               {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_text", "text": "4"}]},
                                               {"role": "user", "content": "x"}],
                "instructions": "i", "tools": [WEATHER], "tool_choice": "auto", "parallel_tool_calls": True, "max_output_tokens": 9, "temperature": 1,
                "top_p": 0.5, "reasoning": {"effort": "low"}, "text": {"format": {"type": "text"}}, "metadata": {"a": "b"}, "store": True,
                "truncation": "auto", "stream": False, "include": ["x"], "top_logprobs": 1, "previous_response_id": None}
        attack(test, "/v1/responses", body, lambda e: e["error"]["message"] and "type" in e["error"])
        attack(test, "/v1/responses/input_tokens", {"model": "scripted", "input": "x"}, lambda e: e["error"]["message"])


interfaces.main([whole, stream, tools, stored, logprobs, codex, description, errors])
