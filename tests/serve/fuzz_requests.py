"""Random requests to the interfaces of `sdx serve`: fuzz_requests.py SDX PROJECT SECONDS [SEED].

Bodies that programs send are changed at random: values for others of any type, parts of other bodies in their place, members and elements away,
twice or under other names, texts of odd characters. Every request must get an answer with a status below 500 (501 apart: something that there is
not) or a stream that ends, and afterwards the server must answer as before and have grown by little. One line for each path says how many
requests were taken and refused.
"""

import collections
import copy
import http.client
import json
import random
import sys
import time
from pathlib import Path

import interfaces

PROJECT = Path(sys.argv[2]).resolve()
interfaces.enter(PROJECT)

SCHEMA = {"type": "object", "properties": {"place": {"type": "string", "maxLength": 9}, "n": {"type": "integer", "minimum": 0}}, "required": ["place"]}
TOOL = {"name": "weather", "description": "Of a place.", "parameters": SCHEMA}
FUNCTION = {"type": "function", "function": TOOL}
CALL = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": "{\"place\": \"a\"}"}}
TALK = [{"role": "system", "content": "s"}, {"role": "user", "content": [{"type": "text", "text": "look c"}]},
        {"role": "assistant", "content": "I look.", "tool_calls": [CALL]}, {"role": "tool", "tool_call_id": "call_1", "content": "4 a"}]
BODIES = {
    "/v1/responses": [
        {"model": "scripted", "input": "hi a", "instructions": "s", "max_output_tokens": 20, "temperature": 0.5, "stream": True, "store": False},
        {"model": "scripted", "tools": [{"type": "function", **TOOL, "strict": True}, {"type": "custom", "name": "p", "format": {"type": "text"}}],
         "tool_choice": "auto", "parallel_tool_calls": False, "reasoning": {"effort": "low"}, "text": {"format": {"type": "json_schema", "name": "x",
                                                                                                               "schema": SCHEMA}},
         "input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "look c"}]},
                   {"type": "reasoning", "id": "r", "summary": [], "content": [{"type": "reasoning_text", "text": "t"}]},
                   {"type": "function_call", "call_id": "1", "name": "weather", "arguments": "{}"},
                   {"type": "function_call_output", "call_id": "1", "output": "4 a"}], "include": ["message.output_text.logprobs"], "top_logprobs": 2}],
    "/v1/messages": [
        {"model": "scripted", "max_tokens": 20, "system": [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}], "stream": True,
         "tools": [{"name": "weather", "input_schema": SCHEMA}], "tool_choice": {"type": "auto", "disable_parallel_tool_use": True},
         "thinking": {"type": "enabled", "budget_tokens": 1024}, "stop_sequences": ["x"], "top_k": 3, "metadata": {"user_id": "u"},
         "messages": [{"role": "user", "content": "look c"},
                      {"role": "assistant", "content": [{"type": "thinking", "thinking": "t", "signature": ""},
                                                        {"type": "tool_use", "id": "t1", "name": "weather", "input": {"place": "a"}}]},
                      {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "4 a"}]}]}]},
        {"model": "letters", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}], "output_config": {"format": {"type": "json_schema",
                                                                                                                          "schema": SCHEMA}}}],
    "/v1/messages/count_tokens": [{"model": "scripted", "messages": [{"role": "user", "content": "hi a"}], "system": "s",
                                   "tools": [{"name": "w", "input_schema": SCHEMA}]}],
    "/api/chat": [
        {"model": "scripted", "messages": TALK, "tools": [FUNCTION], "stream": True, "think": True, "keep_alive": "5m", "logprobs": True,
         "top_logprobs": 2, "options": {"temperature": 0.5, "top_k": 3, "seed": 1, "stop": ["x"], "num_predict": 9, "num_ctx": 99}},
        {"model": "letters", "messages": [{"role": "user", "content": "x"}], "format": SCHEMA, "options": {"num_predict": 9}, "stream": False}],
    "/api/generate": [{"model": "scripted", "prompt": "hi a", "system": "s", "stream": True, "options": {"num_predict": 9}, "raw": False},
                      {"model": "letters", "prompt": "hi", "format": "json", "suffix": "", "options": {"num_predict": 9}, "think": "low"}],
    "/api/embed": [{"model": "embed", "input": ["a", "b"], "truncate": True, "dimensions": 1}],
    "/api/embeddings": [{"model": "embed", "prompt": "a"}],
    "/api/show": [{"model": "scripted", "verbose": True}],
    "/api/pull": [{"model": "scripted", "stream": False, "insecure": True}],
    "/completion": [{"model": "scripted", "prompt": ["hi ", 3, "a"], "n_predict": 9, "stream": True, "n_probs": 2, "stop": ["x"], "return_tokens": True,
                     "logit_bias": [[1, 0.5], [2, False]], "min_p": 0.1, "ignore_eos": False},
                    {"model": "letters", "prompt": "a", "n_predict": 9, "json_schema": SCHEMA}, {"model": "letters", "prompt": "a", "n_predict": 9,
                                                                                                "grammar": "root ::= [a-c]+"}],
    "/infill": [{"model": "scripted", "input_prefix": "a", "input_suffix": "b", "input_extra": [{"filename": "f", "text": "t"}], "n_predict": 4}],
    "/tokenize": [{"model": "scripted", "content": "hi \u00fc", "add_special": True, "with_pieces": True}],
    "/detokenize": [{"model": "scripted", "tokens": [1, 2, 3]}],
    "/apply-template": [{"model": "scripted", "messages": TALK, "tools": [FUNCTION], "chat_template_kwargs": {"enable_thinking": False}}],
    "/embedding": [{"model": "embed", "content": ["a", [1, 2]], "embd_normalize": 2}],
    "/v1/score": [{"model": "embed", "text_1": "a", "text_2": ["a", "b"], "truncate_prompt_tokens": -1}],
    "/v1/chat/completions": [{"model": "scripted", "messages": TALK, "tools": [FUNCTION], "stream": True, "stream_options": {"include_usage": True},
                              "max_tokens": 9, "logprobs": True, "top_logprobs": 2, "n": 2, "seed": 1, "stop": "x", "tool_choice": "auto"}],
}
ODD = [None, True, False, 0, 1, -1, 2, 0.5, -0.0, 1e308, -1e-308, 2**31, 2**63, -2**63, 2**64, "", " ", "a", "auto", "none", "required", "text", "json_object",
       "user", "assistant", "tool", "system", "\u0000", "\ud83d\ude00" * 3, "\u202e", "<|im_end|>", "x" * 5000, "[" * 100, [], {}, [[]], [{}], [None] * 50,
       {"type": "text"}, {"type": "text", "text": "a"}, {"type": "image"}, {"$ref": "#"}, {"anyOf": [{"$ref": "#/a"}]}, {"type": ["string", "null"]}]


def places(value, here=()):
    yield here
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from places(inner, (*here, key))


def at(value, where):
    for key in where:
        value = value[key]
    return value


class Mutator:
    def __init__(self, seed):
        self.r = random.Random(seed)
        all_bodies = [b for bodies in BODIES.values() for b in bodies]
        self.parts = [at(b, w) for b in all_bodies for w in places(b)]
        self.keys = sorted({k for p in self.parts if isinstance(p, dict) for k in p})

    def text(self):
        ranges = ((32, 127), (0, 32), (0x80, 0x3000), (0x1F300, 0x1F600))
        return "".join(chr(self.r.randrange(*self.r.choice(ranges))) for _ in range(self.r.randrange(12)))

    def value(self):
        choice = self.r.random()
        if choice < 0.5:
            return copy.deepcopy(self.r.choice(ODD))
        if choice < 0.85:
            return copy.deepcopy(self.r.choice(self.parts))
        return self.text() if choice < 0.95 else self.r.randrange(-5, 3000)

    def change(self, body):
        where = self.r.choice(list(places(body))[1:] or [()])
        if not where:
            return self.value()
        holder, key = at(body, where[:-1]), where[-1]
        choice = self.r.random()
        if choice < 0.55:
            holder[key] = self.value()
        elif choice < 0.7:
            del holder[key]
        elif isinstance(holder, list):
            holder.insert(self.r.randrange(len(holder) + 1), copy.deepcopy(holder[key]) if choice < 0.9 else self.value())
        elif choice < 0.85:
            holder[self.r.choice(self.keys)] = holder.pop(key)
        else:
            holder[self.r.choice(self.keys)] = self.value()
        return body

    def body(self, path):
        body = copy.deepcopy(self.r.choice(BODIES[path]))
        for _ in range(self.r.choice([1, 1, 2, 3, 5])):
            body = self.change(body)
        raw = json.dumps(body, ensure_ascii=self.r.random() < 0.5).encode("utf-8", "surrogatepass")
        if self.r.random() < 0.02:
            cut = self.r.randrange(len(raw) + 1)
            raw = raw[:cut] + bytes(self.r.randrange(256) for _ in range(3)) + raw[cut + 1:]
        return raw


def resident(process):
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0


def ask(test, path, body):
    connection = http.client.HTTPConnection("127.0.0.1", test.server.port, timeout=60)
    try:
        connection.request("POST", path, body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def sound(test):
    """What it answered before, it answers after."""
    status, body = ask(test, "/api/chat", json.dumps({"model": "scripted", "messages": [{"role": "user", "content": "hi a"}], "stream": False}))
    return status == 200 and json.loads(body)["message"]["content"] == "Hello there, my friend."


def main():
    from scratch import scratch

    seconds, seed = float(sys.argv[3]), int(sys.argv[4]) if len(sys.argv) > 4 else 1
    mutator, counts, findings = Mutator(seed), collections.Counter(), []
    paths = list(BODIES)
    with scratch() as folder:
        test = interfaces.Test(sys.argv[1], folder)
        with test.serve("--context", "400", "--prompt-cache", "8MB", "--queue", "64"):
            before, begun, number, warm = sound(test), time.monotonic(), 0, 0.0
            while time.monotonic() - begun < seconds and len(findings) < 10:
                path = paths[number % len(paths)]
                body = mutator.body(path)
                number += 1
                try:
                    status, answer = ask(test, path, body)
                except OSError as error:
                    findings.append((path, body, repr(error)))
                    continue
                counts[path, "taken" if status == 200 else "refused"] += 1
                if status >= 500 and status != 501:
                    findings.append((path, body, f"{status} {answer[:300]}"))
                elif status != 200 and b"error" not in answer:
                    findings.append((path, body, f"{status} {answer[:300]}"))
                if number == 2000:
                    warm = resident(test.server.process.pid)
            grown = resident(test.server.process.pid) - warm if warm else 0.0
            if not (before and sound(test)):
                findings.append(("", b"", "it does not answer as before"))
            if grown > 200:
                findings.append(("", b"", f"it has grown by {grown:.0f} MB"))
    for path in paths:
        print(f"{path}: {counts[path, 'taken']} taken, {counts[path, 'refused']} refused")
    for path, body, what in findings:
        print(f"FAIL {path}: {what}\n  {body[:2000]!r}")
    print(f"{number} requests, {len(findings)} findings, {grown:.0f} MB more after the first 2000")
    return 1 if findings or number < 20 else 0


if __name__ == "__main__":
    sys.exit(main())
