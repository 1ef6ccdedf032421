"""What answers of `sdx serve` are held to, and settings of language models: held_test.py SDX PROJECT WHAT, with PyPI's `openai`, `anthropic` and
`ollama`. WHAT is one of the functions at the end."""

import json
import struct
import sys
from pathlib import Path

import interfaces
from interfaces import expect

PROJECT = Path(sys.argv[2]).resolve()
interfaces.enter(PROJECT)
import anthropic  # noqa: E402
import jsonschema  # noqa: E402
import ollama  # noqa: E402
import openai  # noqa: E402
import scripted  # noqa: E402
import tiny_models  # noqa: E402

SCHEMA = {"type": "object", "properties": {"place": {"type": "string", "maxLength": 20}}, "required": ["place"], "additionalProperties": False}
FORM = {"type": "json_schema", "json_schema": {"name": "place", "schema": SCHEMA}}
THINKS = scripted.TEMPLATE + "{# <think></think> #}"
SCRIPTS = {
    **scripted.SCRIPTS,
    "s": ["<tool_call>\n", '{"name": "weather", "arguments": ', '{"place": "Rome"}', "}\n</tool_call>"],
    "w": ["<tool_call>\n{", '"name": "weather", ', '"arguments": {"place": ', "5}}", "\n</tool_call>"],
    "h": ["<|channel|>analysis<|message|>", "Hm.", "<|end|><|start|>assistant", "<|channel|>final<|message|>", "Yes."],
    "g": ["<|channel|>analysis<|message|>", "So.", "<|end|><|start|>assistant", "<|channel|>final<|message|>", '{"place":', ' "Ulm"}'],
    "k": ["<think>", "Let <me> {see}.", "</think>", '{"place":', ' "Bonn"}'],
}


def tool(strict=False):
    return {"type": "function", "function": {"name": "weather", "parameters": SCHEMA, **({"strict": True} if strict else {})}}


def serve(test, *more, template=scripted.TEMPLATE):
    (test.folder / "scripted.gguf").write_bytes(scripted.scripted(SCRIPTS, template=template))
    test.words = [f"scripted={test.folder / 'scripted.gguf'}"]
    return test.serve(*more)


def chat(test, text, **options):
    messages = text if isinstance(text, list) else [{"role": "user", "content": text}]
    client = openai.OpenAI(base_url=test.url + "/v1", api_key="none", max_retries=0, timeout=120)
    return client.chat.completions.create(**{"model": "scripted", "messages": messages, "temperature": 0, "max_tokens": 100, **options})


def message(test, text, **options):
    return chat(test, text, **options).choices[0].message


def forms(test):
    """A form together with tools: an answer is a call or has the form, in all interfaces."""
    with serve(test):
        for strict in (False, True):
            both = {"tools": [tool(strict)], "response_format": FORM}
            told = message(test, "j", **both)
            expect(json.loads(told.content) == {"place": "Paris"} and not told.tool_calls, told)
            told = message(test, "s", **both)
            expect(told.content is None and json.loads(told.tool_calls[0].function.arguments) == {"place": "Rome"}, told)
            told = message(test, "j", **both, tool_choice="none")
            expect(json.loads(told.content) == {"place": "Paris"}, told)
            jsonschema.validate(json.loads(message(test, "j", **both, tool_choice="required").tool_calls[0].function.arguments), SCHEMA)
        told = "".join(c.choices[0].delta.content or "" for c in chat(test, "j", tools=[tool()], response_format=FORM, stream=True) if c.choices)
        expect(json.loads(told) == {"place": "Paris"}, told)
        asked = {"model": "scripted", "max_tokens": 100}
        claude = anthropic.Anthropic(base_url=test.url, api_key="none", max_retries=0)
        offered = {"tools": [{"name": "weather", "input_schema": SCHEMA}],
                   "extra_body": {"temperature": 0, "output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}}}
        told = claude.messages.create(**asked, messages=[{"role": "user", "content": "j"}], **offered)
        expect(json.loads(told.content[0].text) == {"place": "Paris"}, told)
        told = claude.messages.create(**asked, messages=[{"role": "user", "content": "s"}], **offered)
        expect(told.content[0].type == "tool_use" and told.content[0].input == {"place": "Rome"}, told)
        # The beginning of the answer is part of its form.
        told = claude.messages.create(**asked, messages=[{"role": "user", "content": "x"}, {"role": "assistant", "content": '{"place": "j'}],
                                      extra_body=offered["extra_body"])
        jsonschema.validate(json.loads('{"place": "j' + told.content[0].text), SCHEMA)
        ask = ollama.Client(test.url).chat
        told = ask("scripted", [{"role": "user", "content": "j"}], tools=[tool()], format=SCHEMA, options={"temperature": 0, "num_predict": 100})
        expect(json.loads(told.message.content) == {"place": "Paris"}, told)
        client = openai.OpenAI(base_url=test.url + "/v1", api_key="none", max_retries=0)
        told = client.responses.create(model="scripted", input="s", temperature=0, tools=[{"type": "function", **tool()["function"]}],
                                       text={"format": {"type": "json_schema", "name": "place", "schema": SCHEMA}})
        expect([i.type for i in told.output] == ["function_call"], told)


def reasoning(test):
    """A model that reasons does so in front of a form and of calls; others never do."""
    with serve(test, template=THINKS):
        told = message(test, "k", response_format=FORM)
        expect(told.reasoning_content == "Let <me> {see}." and json.loads(told.content) == {"place": "Bonn"}, told)
        told = message(test, "k", response_format=FORM, tools=[tool(True)])
        expect(told.reasoning_content == "Let <me> {see}." and json.loads(told.content) == {"place": "Bonn"}, told)
        told = message(test, "j", response_format=FORM)
        expect(not hasattr(told, "reasoning_content") and json.loads(told.content) == {"place": "Paris"}, told)
    with serve(test, template=THINKS + "<think>\n"):  # the prompt begins the reasoning
        told = message(test, [{"role": "user", "content": "x"}], response_format=FORM, max_tokens=1000)
        expect(hasattr(told, "reasoning_content"), told)
    with serve(test, template=scripted.TEMPLATE + "{# <|channel|> <|message|> #}"):  # Harmony's channels, without tools
        told = message(test, "h")
        expect((told.reasoning_content, told.content) == ("Hm.", "Yes."), told)
        told = message(test, "g", response_format=FORM)
        expect(told.reasoning_content == "So." and json.loads(told.content) == {"place": "Ulm"}, told)
    with serve(test):
        told = message(test, "k", response_format=FORM)
        expect("<think>" not in told.content and not hasattr(told, "reasoning_content"), told)


def strict(test):
    """Strict tools: text is free, calls are not."""
    with serve(test):
        told = message(test, "w", tools=[tool()])
        expect(json.loads(told.tool_calls[0].function.arguments) == {"place": 5}, told)
        held = chat(test, "w", tools=[tool(True)], max_tokens=300).choices[0]
        expect(held.message.tool_calls and held.message.tool_calls[0].function.arguments.startswith('{"place": "'), held)
        for letter, text in (("a", "Hello there, my friend."), ("t", "It is four.")):
            told = message(test, letter, tools=[tool(True)])
            expect(told.content == text and not told.tool_calls, told)
        told = message(test, "s", tools=[tool(True)])
        expect(json.loads(told.tool_calls[0].function.arguments) == {"place": "Rome"}, told)
        odd = {"type": "function", "function": {"name": "odd", "parameters": {"type": "object", "$ref": "http://example.com/s"}}}
        told = message(test, "s", tools=[odd, tool(True)])
        expect(told.tool_calls[0].function.name == "weather", told)
        try:
            message(test, "s", tools=[{"type": "function", "function": {**odd["function"], "strict": True}}])
            expect(False, "a strict tool whose schema cannot be read")
        except openai.BadRequestError as error:
            expect(error.param == "tools" and "example.com" in error.message and "the tool 'odd'" in error.message, error)


def continued(test):
    """The last message may be the beginning of the answer."""
    with serve(test):
        messages = [{"role": "user", "content": "x"}, {"role": "assistant", "content": "It was a"}]
        told = message(test, messages, extra_body={"continue_final_message": True, "add_generation_prompt": False})
        expect(told.content == "Hello there, my friend.", told)
        told = message(test, [messages[0], {**messages[1], "prefix": True}])
        expect(told.content == "Hello there, my friend.", told)
        used = chat(test, messages, extra_body={"continue_final_message": True}).usage
        expect(used.prompt_tokens == len("user:x\n=xIt was a"), used)
        for messages in ([messages[0]], [messages[1]]):
            try:
                message(test, messages, extra_body={"continue_final_message": True})
                expect(False, messages)
            except openai.BadRequestError as error:
                expect(error.param in ("continue_final_message", "messages"), error)


def plain(test):
    """Names of special tokens in messages are text, unless the server is told otherwise."""
    text = "hi <end>a"
    with serve(test):
        expect(chat(test, text).usage.prompt_tokens == len(f"user:{text}\n=a"), "one token for each byte")
        raw = openai.OpenAI(base_url=test.url + "/v1", api_key="none").completions.create(model="scripted", prompt=text)
        expect(raw.usage.prompt_tokens == len(text) - 4, raw)
    with serve(test, "--allow-control-tokens"):
        expect(chat(test, text).usage.prompt_tokens == len(f"user:{text}\n=a") - 4, "the token <end>")


def settings(test):
    """Flags of language models, and the same of a model in a repository."""
    template = test.folder / "own.jinja"
    template.write_text("{{ messages[0].content }}!{{ messages[0].content[-1:] }}")
    with serve(test, "--context", "60", "--cache-type", "float16", "--chat-template", template, "--prompt-cache", "1MB", "--parallel", "2"):
        expect(chat(test, "hi a").usage.prompt_tokens == len("hi a!a"), "the flag's template")
        models = test.server.ask("GET", "/v1/models").json()["data"]
        expect(models[0]["max_model_len"] == 60, models)
        kept, limit = (test.server.metric(f"sdx_engine_prefix_cache_{name}") for name in ("bytes", "limit_bytes"))
        expect(0 <= kept <= limit <= 1e6 < limit + 1e5, f"--prompt-cache 1MB: {kept} of {limit}")
        try:
            chat(test, "b" * 70)
            expect(False, "a prompt beyond --context")
        except openai.BadRequestError as error:
            expect(error.code == "context_length_exceeded", error)
    with serve(test, "--memory-limit", "1GB"):
        for _ in range(2):
            chat(test, "hi a" + 200 * "b", max_tokens=1)
        kept, limit = (test.server.metric(f"sdx_engine_prefix_cache_{name}") for name in ("bytes", "limit_bytes"))
        expect(0 < kept < limit <= 1e8 < limit + 1e6, f"a tenth of the limit: {kept} of {limit}")
        expect(test.server.metric("sdx_engine_prefix_cache_hits") >= 64, "the second prompt finds the first one's")
    repository = test.folder / "repository"
    for name, parameters in (("own", {"context": "50", "chat_template": "own.jinja", "parallel": "3", "prompt_cache": "0"}), ("usual", {})):
        version = repository / name / "1"
        version.mkdir(parents=True)
        (version / "model.gguf").write_bytes(scripted.scripted(SCRIPTS))
        (version.parent / "own.jinja").write_text(template.read_text())
        (version.parent / "config.pbtxt").write_text("".join(
            f'parameters {{ key: "{key}" value: {{ string_value: "{value}" }} }}\n' for key, value in parameters.items()))
    test.words = ["--repository", repository]
    with test.serve():
        expect(chat(test, "hi a", model="own").usage.prompt_tokens == len("hi a!a"), "the model's template")
        expect(chat(test, "hi a", model="usual").usage.prompt_tokens == len("user:hi a\n=a"), "the usual template")
        contexts = {m["id"]: m.get("max_model_len") for m in test.server.ask("GET", "/v1/models").json()["data"]}
        expect(contexts == {"own": 50, "usual": 2000}, contexts)


def adapters(test):
    """An adapter is the model under another name."""
    folder = test.folder / "adapter"
    folder.mkdir()
    model = scripted.scripted(SCRIPTS)
    width = struct.unpack("<I", model.split(b"llama.embedding_length")[1][4:8])[0]
    # It makes the letter x the likeliest token everywhere.
    words = tiny_models.alphabet()
    vocabulary = struct.unpack("<Q", model.split(b"tokenizer.ggml.tokens")[1][8:16])[0]
    header, data = {}, b""
    for part, shape, values in (("lora_A", (1, width), [3.0] * width), ("lora_B", (vocabulary, 1), [9.0 * (i == words.index("x")) for i in range(vocabulary)])):
        packed = struct.pack(f"<{len(values)}f", *values)
        header[f"base_model.model.lm_head.{part}.weight"] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(packed)]}
        data += packed
    text = json.dumps(header).encode()
    (folder / "adapter_model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
    (folder / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA", "r": 1, "lora_alpha": 1, "target_modules": ["lm_head"]}))
    with serve(test, "--lora", f"fine={folder}", "--lora", f"none={folder}=0"):
        names = {m["id"] for m in test.server.ask("GET", "/v1/models").json()["data"]}
        expect(names == {"scripted", "fine", "none"}, names)
        told = {name: message(test, "hi a", model=name, max_tokens=8).content for name in names}
        expect(told["none"] == told["scripted"] == "Hello there, my friend." and told["fine"] == "xxxxxxxx", told)


interfaces.main([forms, reasoning, strict, continued, plain, settings, adapters])
