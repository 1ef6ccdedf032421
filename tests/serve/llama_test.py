"""llama.cpp's own interface of `sdx serve`, asked as its documents show: llama_test.py SDX PROJECT WHAT. WHAT is one of the functions at the end."""

import json
import sys
from pathlib import Path

import interfaces
from interfaces import attack, expect

PROJECT = Path(sys.argv[2]).resolve()
interfaces.enter(PROJECT)

HELLO = "Hello there, my friend."


def asked(test, path, **body):
    answer = test.post(path, {"model": "scripted", **body})
    expect(answer.status == 200, f"{path} {body}: {answer.status} {answer.body[:300]}")
    return answer.json()


def completion(test):
    with test.serve():
        told = asked(test, "/completion", prompt="hi a", n_predict=50, temperature=0, cache_prompt=True, return_tokens=True)
        expect(told["content"] == HELLO and told["stop"] is True and told["stop_type"] == "eos" and told["stopping_word"] == "", told)
        expect(told["tokens_evaluated"] == 4 and told["tokens_predicted"] == 5 == len(told["tokens"]) and told["prompt"] == "hi a", told)
        expect(told["generation_settings"]["temperature"] == 0 and told["timings"]["predicted_n"] == 5 and told["model"] == "scripted", told)
        cut = asked(test, "/completion", prompt="hi a", n_predict=2)
        expect((cut["content"], cut["stop_type"]) == ("Hello there,", "limit"), cut)
        word = asked(test, "/completions", prompt="hi a", stop=["my"])
        expect((word["content"], word["stop_type"], word["stopping_word"]) == ("Hello there, ", "word", "my"), word)
        likely = asked(test, "/completion", prompt="hi r", n_predict=50, n_probs=2, return_tokens=True)
        chances = likely["completion_probabilities"]
        expect([c["id"] for c in chances] == likely["tokens"][:-1] and "".join(c["token"] for c in chances) == likely["content"], likely)
        expect(all(len(c["top_logprobs"]) == 2 and c["top_logprobs"][0]["id"] == c["id"] and bytes(c["bytes"]).decode() == c["token"]
                   and c["logprob"] == c["top_logprobs"][0]["logprob"] <= 0 for c in chances), chances)
        expect("completion_probabilities" not in asked(test, "/completion", prompt="hi a", n_probs=0), "no probabilities")
        answer = test.post("/completion", {"model": "scripted", "prompt": "hi r", "stream": True, "n_probs": 2})
        parts = [json.loads(line[6:]) for line in answer.body.decode().split("\n\n") if line]
        expect([c for part in parts[:-1] for c in part["completion_probabilities"]] == chances, parts)
        # Thinking and calls are text here.
        expect(asked(test, "/completion", prompt="hi r")["content"].startswith("<think>A tool.</think><tool_call>"), "text as it is")
        tokens = asked(test, "/tokenize", content="hi ")["tokens"]
        expect(asked(test, "/completion", prompt=[*tokens, "a"])["content"] == HELLO, "tokens and text")
        expect(asked(test, "/completion", prompt=[*tokens, *asked(test, "/tokenize", content="a")["tokens"]])["prompt"] == "hi a", "tokens")
        held = asked(test, "/completion", model="letters", prompt="x", json_schema={"type": "object", "properties": {"a": {"type": "integer", "minimum": 0, "maximum": 9}},
                                                                                    "required": ["a"], "additionalProperties": False}, temperature=0)
        expect(isinstance(json.loads(held["content"])["a"], int), held)
        expect(asked(test, "/completion", model="letters", prompt="x", grammar='root ::= "yes"')["content"] == "yes", "a grammar")
        answer = test.post("/completion", {"model": "scripted", "prompt": "hi u", "stream": True})
        expect(answer.headers["Content-Type"].startswith("text/event-stream"), answer.headers)
        events = [json.loads(line[6:]) for line in answer.body.decode().split("\n\n") if line]
        expect("".join(e["content"] for e in events) == "gr\u00fc\u00dfe \U0001f600", events)
        expect([e["stop"] for e in events] == [False] * (len(events) - 1) + [True] and events[-1]["tokens_predicted"] == 3, events)


def infill(test):
    import openai
    import scripted

    scripts = {**scripted.SCRIPTS, "y": ["<fim_prefix>", "<fim_suffix>"], "z": ["<fim_middle>", "x = 1"]}
    (test.folder / "scripted.gguf").write_bytes(scripted.scripted(scripts))
    with test.serve():
        told = asked(test, "/infill", input_prefix="def f():<end> ", input_suffix=" return x", n_predict=9, temperature=0)
        expect(told["content"] == "x = 1" and told["tokens_evaluated"] == len("def f():<end>  return x") + 3, told)
        more = asked(test, "/infill", input_prefix="a", input_suffix="b", input_extra=[{"filename": "f", "text": "t"}], prompt="hi a")
        expect(more["content"] == HELLO and more["tokens_evaluated"] == len("ab") + 3 + len("f\nt\n") + len("hi a"), more)
        client = openai.OpenAI(base_url=test.url + "/v1", api_key="none", max_retries=0)
        told = client.completions.create(model="scripted", prompt="def f(): ", suffix=" return x", temperature=0)
        expect(told.choices[0].text == "x = 1" and told.usage.prompt_tokens == len("def f():  return x") + 3, told)
        told = asked(test, "/api/generate", prompt="def f(): ", suffix=" return x", stream=False, options={"temperature": 0})
        expect(told["response"] == "x = 1" and told["prompt_eval_count"] == len("def f():  return x") + 3, told)
        expect(test.post("/infill", {"model": "letters", "input_prefix": "a", "input_suffix": "b"}).status == 400, "a model without such tokens")
        body = {"model": "scripted", "input_prefix": "a", "input_suffix": "b", "input_extra": [{"filename": "f", "text": "t"}], "prompt": "p", "n_predict": 2}
        attack(test, "/infill", body, lambda e: e["error"]["message"])


def tokens(test):
    with test.serve():
        ids = asked(test, "/tokenize", content="h\u00e9<end>")["tokens"]
        expect(len(ids) == 4 and all(isinstance(i, int) for i in ids), ids)
        pieces = asked(test, "/tokenize", content="h\u00e9<end>", with_pieces=True, add_special=True)["tokens"]
        expect([p["id"] for p in pieces] == ids and [p["piece"] for p in pieces] == ["h", [0xC3], [0xA9], "<end>"], pieces)
        expect(asked(test, "/detokenize", tokens=ids)["content"] == "h\u00e9<end>", "there and back")
        prompt = asked(test, "/apply-template", messages=[{"role": "user", "content": "hi a"}])["prompt"]
        expect(prompt == "user:hi a\n=a", prompt)


def embedding(test):
    with test.serve():
        texts = ["a", "ab a"]
        plain = [d["embedding"] for d in test.post("/v1/embeddings", {"model": "embed", "input": texts}).json()["data"]]
        for path in ("/embedding", "/embeddings"):
            for field in ("content", "input"):
                told = test.post(path, {field: texts}).json()  # the only one need not be named
                expect(told == [{"index": i, "embedding": [vector]} for i, vector in enumerate(plain)], told)
        expect(asked(test, "/embedding", model="embed", content="a")[0]["embedding"] == plain[:1], "one text")
        expect(asked(test, "/embedding", model="embed", content=[4, 3])[0]["embedding"] == plain[1:], "tokens")
        expect(test.post("/embedding", {"model": "scripted", "content": "a"}).status == 404, "a language model")
        attack(test, "/embedding", {"model": "embed", "content": ["a", "b"], "embd_normalize": 2}, lambda e: e["error"]["message"])


def server(test):
    with test.serve():
        several = test.server.get("/props")
        expect(several.status == 400 and "name one" in several.json()["error"]["message"], several.body)
        props = test.server.get("/props?model=scripted").json()
        expect(props["default_generation_settings"]["n_ctx"] == 2000 and "messages" in props["chat_template"] and props["eos_token"] == "<end>", props)
        slots = test.server.get("/slots?model=scripted").json()
        expect(len(slots) == props["total_slots"] and slots[0]["n_ctx"] == 2000 and not slots[0]["is_processing"], slots)
        expect(props["total_slots"] == 16, "as many answers at once as the server computes by default")
        listed = {m["id"]: m for m in test.server.get("/v1/models").json()["data"]}
        expect(listed["scripted"]["max_model_len"] == 2000 == listed["scripted"]["meta"]["n_ctx_train"], listed)
        expect(listed["scripted"]["meta"]["n_vocab"] > 257 and listed["scripted"]["meta"]["size"] < 1 << 24 and "meta" not in listed["embed"], listed)
        expect(test.server.get("/v1/models/scripted").json() == listed["scripted"], "one model")
    test.words = test.words[:1] + test.words[2:]
    with test.serve("--parallel", "3"):
        expect(test.server.get("/props").json()["total_slots"] == 3, "--parallel")
        expect([s["id"] for s in test.server.get("/slots").json()] == [0, 1, 2], "a slot for each answer at once")
    with test.serve():  # one language model need not be named
        told = test.post("/completion", {"prompt": "hi a"}).json()
        expect(told["content"] == HELLO and test.server.get("/props").status == 200, told)
        expect(test.post("/apply-template", {"messages": [{"role": "user", "content": "a"}]}).json()["prompt"] == "user:a\n=a", "apply-template")


def errors(test):
    with test.serve():
        is_error = lambda e: isinstance(e["error"]["code"], int) and e["error"]["message"] and e["error"]["type"]
        missing = test.post("/completion", {"model": "nobody", "prompt": "a"})
        expect(missing.status == 404 and is_error(missing.json()), missing.body)
        long = test.post("/completion", {"model": "scripted", "prompt": "b" * 3000})
        expect(long.status == 400 and "context length" in long.json()["error"]["message"], long.body)
        beyond = test.post("/completion", {"model": "scripted", "prompt": [99999999]})
        expect(beyond.status == 400 and is_error(beyond.json()), beyond.body)
        attack(test, "/completion", {"model": "scripted", "prompt": ["a", 3], "n_predict": 4, "temperature": 1, "top_k": 3, "seed": 3, "stop": ["q"],
                                     "logit_bias": [[3, 1]], "grammar": "", "stream": False, "return_tokens": True, "ignore_eos": False, "n_probs": 1}, is_error)
        attack(test, "/tokenize", {"model": "scripted", "content": "a", "add_special": True, "with_pieces": True}, is_error)
        attack(test, "/detokenize", {"model": "scripted", "tokens": [1, 2]}, is_error)
        attack(test, "/apply-template", {"model": "scripted", "messages": [{"role": "user", "content": "a"}]}, is_error)


interfaces.main([completion, infill, tokens, embedding, server, errors])
