"""PyPI's `openai`, unchanged, against `sdx serve`: openai_test.py SDX PROJECT WHAT

WHAT is one of the functions at the end. The client comes from build/serving-venv, which tools/clients_env.sh makes: exit code 77 without it.
Models are tiny ones, made here; SDX_TEST_MODELS and SDX_TEST_SMOLLM2 name real ones, which are left out where they are not there.
"""

import base64
import json
import math
import os
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Annotated

SKIPPED = 77
PROJECT = Path(sys.argv[2]).resolve()
PYTHON = PROJECT / "build" / "serving-venv" / "bin" / "python"
if not PYTHON.exists():
    print(f"{PYTHON} is missing: tools/clients_env.sh makes it")
    sys.exit(SKIPPED)
if Path(sys.prefix).resolve() != PYTHON.parent.parent.resolve():
    os.execv(PYTHON, [str(PYTHON), "-B", *sys.argv])

sys.path[:0] = [str(PROJECT / "tests" / folder) for folder in ("cli", "serve", "support")]
import jsonschema  # noqa: E402
import openai  # noqa: E402
import pydantic  # noqa: E402
from scratch import scratch  # noqa: E402
import tiny_models  # noqa: E402
from model_files import find_models  # noqa: E402
from serve_process import Serve  # noqa: E402

DESCRIPTION = json.loads((PROJECT / "docs" / "openapi" / "openai.json").read_text())
HI = [{"role": "user", "content": "hi"}]
WEATHER = {"type": "function", "function": {"name": "weather", "description": "Of a place.", "strict": True, "parameters": {
    "type": "object", "properties": {"place": {"type": "string", "maxLength": 20}, "days": {"type": "integer", "minimum": 0, "maximum": 9}},
    "required": ["place", "days"], "additionalProperties": False}}}
TIME = {"type": "function", "function": {"name": "time", "parameters": {"type": "object", "properties": {}, "additionalProperties": False}}}


class Place(pydantic.BaseModel):
    name: str = pydantic.Field(max_length=20)
    visits: int
    tags: list[Annotated[str, pydantic.Field(max_length=10)]] = pydantic.Field(max_length=3)


def expect(condition, what):
    if not condition:
        sys.exit(f"wrong: {what}")


def fits(value, schema):
    """An answer is what docs/openapi/openai.json says."""
    jsonschema.validate(value, {"$ref": f"#/components/schemas/{schema}", "components": DESCRIPTION["components"]})


def write_models(folder):
    refusing = "{% if messages[0].role == 'system' %}{{ raise_exception('no system here') }}{% endif %}{{ messages[0].content }}"
    tiny_models.write_served(folder, 600)
    (folder / "strict.gguf").write_bytes(tiny_models.gguf([*tiny_models.alphabet(), "<end>"], 32, refusing))
    (folder / "reranker" / "config.json").write_text(json.dumps({"architectures": ["BertForSequenceClassification"]}))


class Server(Serve):
    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def request(self, method, path, body=None):
        answer = self.ask(method, path, body, {"Content-Type": "application/json"})
        return answer.status, answer.headers, answer.body


class Test:
    def __init__(self, sdx, folder):
        self.sdx, self.folder = Path(sdx).resolve(), folder
        write_models(folder)
        self.words = [f"{name}={folder / file}" for name, file in
                      (("letters", "letters.gguf"), ("strict", "strict.gguf"), ("embed", "embedder"), ("rank", "reranker"))]

    def serve(self, *words):
        self.server = Server(self.sdx, *(words or self.words))
        return self.server

    def client(self, **options):
        return openai.OpenAI(base_url=self.server.url + "/v1", api_key="none", max_retries=0, timeout=120, **options)


def models(test):
    with test.serve():
        client = test.client()
        names = [m.id for m in client.models.list()]
        expect(names == ["embed", "letters", "rank", "strict"], f"models: {names}")
        expect(client.models.retrieve("letters").object == "model", "one model")
        try:
            client.models.retrieve("nobody")
            sys.exit("wrong: a model that is not there")
        except openai.NotFoundError as error:
            expect(error.code == "model_not_found" and error.param == "model", f"{error}")
        status, _, body = test.server.request("GET", "/v1/models")
        fits(json.loads(body), "Models")


def chat(test):
    with test.serve():
        client = test.client()
        raw = client.chat.completions.with_raw_response.create(model="letters", messages=HI, max_tokens=5, temperature=0)
        fits(json.loads(raw.text), "ChatAnswer")
        answer = raw.parse()
        expect(answer.id.startswith("chatcmpl-") and answer.system_fingerprint.startswith("fp_"), answer)
        expect(answer.choices[0].message.content == '"' * 5 and answer.choices[0].finish_reason == "length", answer)
        expect(answer.usage.completion_tokens == 5 and answer.usage.prompt_tokens == len("user: hi\n"), answer.usage)
        expect(answer.usage.prompt_tokens_details.cached_tokens >= 0, "cached tokens")
        several = client.chat.completions.create(model="letters", messages=HI, max_tokens=4, n=3, seed=5, temperature=1)
        again = client.chat.completions.create(model="letters", messages=HI, max_tokens=4, n=3, seed=5, temperature=1)
        texts = [c.message.content for c in several.choices]
        expect(len(set(texts)) == 3 and texts == [c.message.content for c in again.choices], f"a seed: {texts}")
        stopped = client.chat.completions.create(model="letters", messages=HI, temperature=0, stop=['"""'], max_tokens=9)
        expect(stopped.choices[0].finish_reason == "stop" and stopped.choices[0].message.content == "", stopped)
        biased = client.chat.completions.create(model="letters", messages=HI, temperature=0, max_tokens=2, logit_bias={"7": 100})
        expect(biased.choices[0].message.content == tiny_models.alphabet()[7] * 2, biased)
        shares = client.chat.completions.create(model="letters", messages=HI, max_tokens=2, temperature=0, logprobs=True, top_logprobs=2)
        tokens = shares.choices[0].logprobs.content
        expect(len(tokens) == 2 and tokens[0].bytes == [34] and len(tokens[0].top_logprobs) == 2, tokens)
        expect(abs(tokens[0].logprob + math.log(257)) < 1e-3, f"log probability {tokens[0].logprob}")
        parts = [{"role": "developer", "content": [{"type": "text", "text": "a"}]}, *HI]
        expect(client.chat.completions.create(model="letters:1", messages=parts, max_tokens=1).usage.completion_tokens == 1, "parts")


def stream(test):
    with test.serve():
        client = test.client()
        options = {"model": "letters", "messages": HI, "max_tokens": 6, "seed": 3, "temperature": 1, "n": 2}
        whole = client.chat.completions.create(**options)
        texts, reasons, usage, roles = ["", ""], [None, None], None, []
        for chunk in client.chat.completions.create(**options, stream=True, stream_options={"include_usage": True}):
            fits(chunk.model_dump(exclude_unset=True), "ChatChunk")
            usage = chunk.usage or usage
            for choice in chunk.choices:
                texts[choice.index] += choice.delta.content or ""
                roles += [choice.delta.role] if choice.delta.role else []
                reasons[choice.index] = choice.finish_reason or reasons[choice.index]
        expect(texts == [c.message.content for c in whole.choices], f"streamed {texts}, whole {whole.choices}")
        expect(reasons == ["length", "length"] and roles == ["assistant"] * 2, f"{reasons} {roles}")
        expect(usage.completion_tokens == 12, usage)
        four = {"guided_regex": "a{4}"}
        with client.chat.completions.stream(model="letters", messages=HI, temperature=0, logprobs=True, extra_body=four) as events:
            kinds = [event.type for event in events]
            final = events.get_final_completion()
        expect(final.choices[0].message.content == "aaaa" and len(final.choices[0].logprobs.content) == 4, final)
        expect("content.delta" in kinds and kinds.count("content.done") == 1, f"events {kinds}")
        text = "".join(c.choices[0].text for c in client.completions.create(model="letters", prompt="ab", max_tokens=3, stream=True, echo=True))
        expect(text.startswith("ab") and len(text) > 2, f"streamed completion {text!r}")
        # Whoever goes away frees the engine.
        # The model is tiny: now and then it has answered before the client is gone, and there is nothing to cancel.
        end = time.monotonic() + 120
        while test.server.metric("sdx_engine_cancelled_total") == 0:
            expect(time.monotonic() < end, "no answer is cancelled whose reader goes away")
            endless = client.chat.completions.create(model="letters", messages=HI, stream=True, n=128, logprobs=True,
                                                     top_logprobs=20, extra_body={"ignore_eos": True})
            next(iter(endless))
            endless.close()
            while test.server.metric("sdx_engine_requests_running") > 0:
                expect(time.monotonic() < end, "an answer goes on that nobody reads")
                time.sleep(0.05)


def tools(test):
    with test.serve():
        client = test.client()
        options = {"model": "letters", "messages": HI, "temperature": 0, "tools": [WEATHER, TIME]}
        for choice, name in (("required", None), ({"type": "function", "function": {"name": "time"}}, "time")):
            answer = client.chat.completions.create(**options, tool_choice=choice, parallel_tool_calls=False)
            calls = answer.choices[0].message.tool_calls
            expect(len(calls) == 1 and answer.choices[0].finish_reason == "tool_calls", answer)
            expect(calls[0].function.name == (name or calls[0].function.name) and calls[0].id, calls)
            arguments = json.loads(calls[0].function.arguments)
            tool = WEATHER if calls[0].function.name == "weather" else TIME
            jsonschema.validate(arguments, tool["function"]["parameters"])
            pieces, found, reason = {}, None, None
            for chunk in client.chat.completions.create(**options, tool_choice=choice, parallel_tool_calls=False, stream=True):
                reason = chunk.choices[0].finish_reason or reason
                for call in chunk.choices[0].delta.tool_calls or []:
                    found = call.function.name or found
                    pieces[call.index] = pieces.get(call.index, "") + (call.function.arguments or "")
            expect(found == calls[0].function.name and reason == "tool_calls", f"{found} {reason}")
            expect(list(pieces) == [0] and json.loads(pieces[0]) == arguments, f"{pieces} {arguments}")
        answer = client.chat.completions.create(model="letters", messages=[
            *HI, {"role": "assistant", "content": None, "tool_calls": [c.model_dump() for c in calls]},
            {"role": "tool", "tool_call_id": calls[0].id, "content": "rain"}], tools=[WEATHER, TIME], tool_choice="none", max_tokens=2)
        expect(answer.choices[0].message.tool_calls is None, answer)
        with client.chat.completions.stream(**options, tool_choice={"type": "function", "function": {"name": "weather"}}) as events:
            final = events.get_final_completion()
        expect(set(final.choices[0].message.tool_calls[0].function.parsed_arguments) == {"place", "days"}, final)


def forms(test):
    with test.serve():
        client = test.client()
        parsed = client.chat.completions.parse(model="letters", messages=HI, temperature=0, response_format=Place)
        expect(isinstance(parsed.choices[0].message.parsed, Place), parsed)
        with client.chat.completions.stream(model="letters", messages=HI, seed=1, response_format=Place, max_tokens=500) as events:
            final = events.get_final_completion()
        expect(isinstance(final.choices[0].message.parsed, Place), final)
        answer = client.chat.completions.create(model="letters", messages=HI, temperature=0, response_format={"type": "json_object"})
        expect(isinstance(json.loads(answer.choices[0].message.content), dict), answer)
        for extra, wanted in (({"guided_regex": "[ab]{3}c"}, None), ({"grammar": 'root ::= "xyz"'}, "xyz"),
                              ({"guided_choice": ["north.", "south"]}, None), ({"guided_json": {"const": 7}}, "7")):
            text = client.chat.completions.create(model="letters", messages=HI, extra_body=extra).choices[0].message.content
            expect(text == wanted or (wanted is None and text in ("north.", "south") or set(text) <= set("abc")), f"{extra}: {text!r}")
            told = client.completions.create(model="letters", prompt="a", max_tokens=50, extra_body=extra).choices[0].text
            expect(wanted is None or told.strip() == wanted, f"{extra}: {told!r}")
        try:
            client.chat.completions.create(model="letters", messages=HI, response_format={
                "type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object", "not": {}}}})
            sys.exit("wrong: a schema that cannot be kept to")
        except openai.BadRequestError as error:
            expect(error.param == "response_format", f"{error}")


def completions(test):
    with test.serve():
        client = test.client()
        raw = client.completions.with_raw_response.create(model="letters", prompt="ab", max_tokens=2, temperature=0, echo=True, logprobs=2)
        fits(json.loads(raw.text), "Completion")
        answer = raw.parse()
        shares = answer.choices[0].logprobs
        expect(answer.choices[0].text == 'ab""' and shares.tokens == ["a", "b", '"', '"'], answer)
        expect(shares.token_logprobs[0] is None and shares.text_offset == [0, 1, 2, 3], shares)
        expect(all(abs(p + math.log(257)) < 1e-3 for p in shares.token_logprobs[1:]), shares.token_logprobs)
        scored = client.completions.create(model="letters", prompt=["abc", "de"], max_tokens=0, echo=True, logprobs=0)
        expect([len(c.logprobs.tokens) for c in scored.choices] == [3, 2] and scored.usage.completion_tokens == 0, scored)
        tokens = client.completions.create(model="letters", prompt=[[6, 7], [8]], max_tokens=1, n=2, temperature=0)
        expect([c.index for c in tokens.choices] == [0, 1, 2, 3] and tokens.usage.prompt_tokens == 3, tokens)
        best = client.completions.create(model="letters", prompt="a", max_tokens=3, best_of=4, n=2)
        expect(len(best.choices) == 2 and best.usage.completion_tokens <= 12, best)
        expect(client.completions.create(model="letters", prompt="a").usage.completion_tokens <= 16, "16 tokens where nothing is said")


def embeddings(test):
    with test.serve():
        client = test.client()
        texts = ["a", "ab a", "a a ab"]
        default = client.embeddings.create(model="embed", input=texts)  # base64 on the wire
        status, _, body = test.server.request("POST", "/v1/embeddings", {"model": "embed", "input": texts})
        plain = json.loads(body)
        fits(plain, "Embeddings")
        expect([d.embedding for d in default.data] == [struct.unpack(f"<{len(d['embedding'])}f", struct.pack(
            f"<{len(d['embedding'])}f", *d["embedding"])) and d["embedding"] for d in plain["data"]], "two encodings")
        raw = json.loads(test.server.request("POST", "/v1/embeddings", {"model": "embed", "input": "a", "encoding_format": "base64"})[2])
        expect(len(base64.b64decode(raw["data"][0]["embedding"])) == 4 * len(plain["data"][0]["embedding"]), raw)
        expect(default.usage.prompt_tokens == default.usage.total_tokens == sum(len(t.split()) + 2 for t in texts), default.usage)
        tokens = client.embeddings.create(model="embed", input=[[3], [4, 3]], encoding_format="float")
        expect([d.embedding for d in tokens.data] == [d["embedding"] for d in plain["data"][:2]], "tokens")
        short = client.embeddings.create(model="embed", input="a", dimensions=1).data[0].embedding
        expect(len(short) == 1 and abs(abs(short[0]) - 1) < 1e-6, f"dimensions: {short}")
        no_tokens = [-1, 3.5, 100257, 1 << 31, (1 << 32) + 3, 1 << 63, -1 << 63, 1 << 64, 1e30, None, True, "3"]
        for bad in ({"input": ""}, {"input": "a", "dimensions": 5000}, {"input": [[99]]}, *({"input": [[3, token]]} for token in no_tokens)):
            status, _, body = test.server.request("POST", "/v1/embeddings", {"model": "embed", **bad})
            expect(status == 400, f"{bad}: {body}")
        own = client.embeddings.create(model="embed", input=[[1, 4, 3, 2]], encoding_format="float").data[0].embedding
        expect(own == plain["data"][1]["embedding"], "tokens with the special ones around them")
        for path in ("/v1/rerank", "/rerank"):
            status, _, body = test.server.request("POST", path, {"model": "rank", "query": "a", "documents": ["ab", {"text": "a"}], "top_n": 1})
            ranking = json.loads(body)
            fits(ranking, "Ranking")
            expect(status == 200 and len(ranking["results"]) == 1 and ranking["results"][0]["document"]["text"] in ("ab", "a"), ranking)
        # Logits of 20, 26, 23 and 11: all but the last are 1 in float32.
        documents = [" ".join("a" * n) for n in (4, 6, 5, 1)]
        ranking = json.loads(test.server.request("POST", "/rerank", {"model": "rank", "query": "a", "documents": documents})[2])
        scores = [r["relevance_score"] for r in ranking["results"]]
        expect([r["index"] for r in ranking["results"]] == [1, 2, 0, 3] and len(set(scores)) == 4, ranking)
        counted = test.server.metric("sdx_prompt_tokens_total", model="rank")
        status, _, body = test.server.request("POST", "/rerank", {"model": "rank:1", "query": "a b " * 400, "documents": ["a"] * 600})
        ranking = json.loads(body)
        expect(status == 200 and sorted(r["index"] for r in ranking["results"]) == list(range(600)), body[:300])
        more = test.server.metric("sdx_prompt_tokens_total", model="rank") - counted
        expect(more == ranking["usage"]["prompt_tokens"] > 600, f"{more} tokens, {ranking['usage']}")
        expect(test.server.metric("sdx_prompt_tokens_total", model="rank:1") == 0, "a label is the catalogue's name")
        status, _, body = test.server.request("POST", "/rerank", {"model": "rank:" + "0" * 400 + "1", "query": "a", "documents": ["a"]})
        expect(status == 404, body)


def write_classifier(folder):
    """Three classes, whose logits are the sum of the tokens (`<s>` 1, `</s>` 2, `a` 3, `ab` 4) times 0.5, 0.25 and -1."""
    made = tiny_models.model([tiny_models.node("Cast", ["input_ids"], ["numbers"], to=tiny_models.FLOAT),
                              tiny_models.node("ReduceSum", ["numbers", "axes"], ["sum"]), tiny_models.node("MatMul", ["sum", "weights"], ["logits"])],
                             [tiny_models.value_info(name, tiny_models.INT64, ["texts", "tokens"]) for name in ("input_ids", "attention_mask")],
                             [tiny_models.value_info("logits", tiny_models.FLOAT, ["texts", 3])],
                             [tiny_models.tensor("axes", tiny_models.INT64, [1], struct.pack("<q", 1)),
                              tiny_models.tensor("weights", tiny_models.FLOAT, [1, 3], struct.pack("<3f", 0.5, 0.25, -1))])
    folder.mkdir()
    (folder / "model.onnx").write_bytes(made)
    (folder / "tokenizer.json").write_bytes((folder.parent / "reranker" / "tokenizer.json").read_bytes())
    (folder / "config.json").write_text(json.dumps({"architectures": ["BertForSequenceClassification"], "id2label": {"0": "good", "1": "fair", "2": "bad"}}))


def sound(test):
    with test.serve(f"whisper={test.folder / 'whisper'}", f"letters={test.folder / 'letters.gguf'}"):
        client, recording = test.client(), test.folder / "speech.wav"
        asked = {"model": "whisper", "file": recording}
        raw = client.audio.transcriptions.with_raw_response.create(**asked)
        fits(json.loads(raw.text), "Transcription")
        said = raw.parse()
        expect(said.text == "hello world" and said.usage.seconds == 0.6, said)
        expect(client.audio.transcriptions.create(**asked, response_format="srt", language="de").startswith("1\n00:00:00,000 --> 00:00:00,500\n"), "srt")
        raw = client.audio.transcriptions.with_raw_response.create(
            model="whisper", file=("talk.mp3", recording.read_bytes()), response_format="verbose_json", timestamp_granularities=["segment", "word"],
            temperature=0, prompt="names")
        fits(json.loads(raw.text), "Transcription")
        whole = raw.parse()
        expect([(w.word, w.start, w.end) for w in whole.words] == [("hello", 0, 0.2), ("world", 0.2, 0.4)], whole)
        expect(whole.duration == 0.6 and whole.segments[0].end == 0.4 and whole.segments[0].text.strip() == "hello world", whole)
        expect(client.audio.translations.create(**asked).text == "world", "translation")
        events = list(client.audio.transcriptions.create(model="whisper", file=test.folder / "long.wav", stream=True))
        for event in events:
            fits(event.model_dump(exclude_none=True), "TranscriptionEvent")
        expect([e.type for e in events] == ["transcript.text.delta"] * (len(events) - 1) + ["transcript.text.done"], events)
        expect(len(events) > 2 and "".join(e.delta for e in events[:-1]) == events[-1].text, events)
        for wrong in ({"language": "xx"}, {"timestamp_granularities": ["letter"]}, {"model": "letters"}, {"file": b"no sound"}):
            try:
                client.audio.transcriptions.create(**{**asked, **wrong})
                sys.exit(f"wrong: {wrong} is not refused")
            except openai.APIStatusError as error:
                expect(error.status_code == (404 if "model" in wrong else 400), error)


def scores(test):
    """vLLM's paths for pairs and classes of texts."""
    write_classifier(test.folder / "mood")
    with test.serve(*test.words, f"mood={test.folder / 'mood'}"):
        def ask(path, status=200, **body):
            got, _, answer = test.server.request("POST", path, body)
            expect(got == status, f"{path} {body}: {got} {answer}")
            return json.loads(answer)

        documents = ["ab", "a", "a ab"]
        ranking = {r["index"]: r["relevance_score"] for r in ask("/v1/rerank", model="rank", query="a", documents=documents)["results"]}
        tokens = len(documents) * 4 + 4  # the query and the special ones, and the words
        for path in ("/v1/score", "/score"):
            told = ask(path, model="rank", text_1="a", text_2=documents)
            fits(told, "Scores")
            expect([(d["index"], d["object"], d["score"]) for d in told["data"]] == [(i, "score", ranking[i]) for i in range(3)], told)
            expect(told["object"] == "list" and told["id"].startswith("score-") and told["usage"]["prompt_tokens"] == told["usage"]["total_tokens"] >= tokens, told)
        pairs = ask("/score", model="rank", text_1=["a", "ab", "a"], text_2=documents)
        alone = [ask("/score", model="rank", queries=q, documents=d)["data"][0]["score"] for q, d in zip(["a", "ab", "a"], documents)]
        expect([d["score"] for d in pairs["data"]] == alone and alone[0] == ranking[0], pairs)
        # An embedding model: the cosine of two vectors, which have one number here.
        near = ask("/score", model="embed", text_1="a", text_2=["ab", "a a"])
        expect([round(d["score"], 6) for d in near["data"]] == [1, 1] and near["usage"]["prompt_tokens"] == 3 + 3 + 4, near)
        expect("1:N" in ask("/score", 400, model="rank", text_1=["a", "b"], text_2=documents)["error"]["message"], "lengths")
        ask("/score", 404, model="letters", text_1="a", text_2="b")
        ask("/score", 404, model="nobody", text_1="a", text_2="b")
        ask("/score", 400, model="rank", text_1="a")
        told = ask("/classify", model="mood", input=["a", "a ab ab"])
        for entry, total in zip(told["data"], (6, 14)):
            powers = [math.exp(total * w - total * 0.5) for w in (0.5, 0.25, -1)]
            expect(entry["num_classes"] == 3 and all(math.isclose(p, x / sum(powers), rel_tol=1e-5) for p, x in zip(entry["probs"], powers)), told)
            expect(entry["label"] == "good", told)
        expect([d["index"] for d in told["data"]] == [0, 1] and told["usage"]["prompt_tokens"] == 3 + 5, told)
        one = ask("/classify", model="rank", input="a")["data"][0]  # one label: its sigmoid
        expect(one["label"] == "LABEL_0" and one["num_classes"] == 1 and math.isclose(one["probs"][0], 1 / (1 + math.exp(-6)), rel_tol=1e-6), one)
        expect("one or two" in ask("/v1/rerank", 400, model="mood", query="a", documents=["a"])["error"]["message"], "three classes rank nothing")
        ask("/classify", 404, model="embed", input="a")
        ask("/classify", 400, model="mood", input=[["a"]])
        expect(test.server.metric("sdx_prompt_tokens_total", model="mood") == 8, "counted")


def ignored(test):
    """What clients send beside the interface makes no difference, and is named."""
    with test.serve():
        client = test.client()
        chats = client.chat.completions.with_raw_response
        answer = chats.create(model="letters", messages=HI, max_tokens=2, extra_body={"keep_alive": "5m", "options": {"num_ctx": 4096}, "think": False})
        expect(answer.headers["Sdx-Ignored"] == "keep_alive, options, think", answer.headers)
        expect("Sdx-Ignored" not in chats.create(model="letters", messages=HI, max_tokens=2).headers, "nothing to name")
        # The message that parse() returned, as its documentation shows.
        said = client.chat.completions.parse(model="letters", messages=HI, temperature=0, response_format=Place, max_tokens=500).choices[0].message
        calls = client.chat.completions.parse(model="letters", messages=HI, tools=[WEATHER], tool_choice="required", parallel_tool_calls=False, temperature=0,
                                              max_tokens=500).choices[0].message
        done = [{"role": "tool", "tool_call_id": c.id, "content": "rain"} for c in calls.tool_calls]
        for messages in ([*HI, said, *HI], [*HI, calls, *done]):
            answer = chats.create(model="letters", messages=messages, tools=[WEATHER], max_tokens=2, stream=True)
            expect("parsed" in answer.headers["Sdx-Ignored"], answer.headers)
            for _ in answer.parse():
                pass
        # Conditions that a grammar cannot keep beside others.
        schema = {"type": "object", "properties": {"tags": {"type": "array", "items": {"type": "string", "maxLength": 2}, "uniqueItems": True}},
                  "required": ["tags"], "markdownDescription": "m"}
        answer = chats.create(model="letters", messages=HI, temperature=0, max_tokens=200,
                              response_format={"type": "json_schema", "json_schema": {"name": "n", "schema": schema}})
        expect(answer.headers["Sdx-Ignored"] == "response_format#/properties/tags/uniqueItems", answer.headers)
        tool = {"type": "function", "function": {"name": "f", "parameters": schema}}
        answer = chats.create(model="letters", messages=HI, temperature=0, max_tokens=200, tools=[tool], tool_choice="required")
        expect(answer.headers["Sdx-Ignored"] == "tools[f]#/properties/tags/uniqueItems", answer.headers)
        # With "strict", conditions that say which values are meant are kept or refused; without, they are left out and named.
        person = {"type": "object", "properties": {"s": {"type": "string", "maxLength": 2, "not": {"pattern": "^x"}}, "t": {"enum": ["a", "b"], "not": {"const": "b"}}},
                  "required": ["s", "t"], "additionalProperties": False}
        for where, extra in (("response_format", lambda strict, schema: {"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": schema, "strict": strict}}}),
                             ("tools[f]", lambda strict, schema: {"tools": [{"type": "function", "function": {"name": "f", "parameters": schema, "strict": strict}}], "tool_choice": "required", "parallel_tool_calls": False})):
            answer = chats.create(model="letters", messages=HI, temperature=0, max_tokens=300, **extra(False, person))
            expect(answer.headers["Sdx-Ignored"] == f"{where}#/properties/s/not", answer.headers)
            try:
                chats.create(model="letters", messages=HI, max_tokens=300, **extra(True, person))
                expect(False, "a condition is dropped although 'strict' is true")
            except openai.BadRequestError as error:
                expect(all(part in error.message for part in ("#/properties/s/not", "strict", where)), error.message)
            held = {**person, "properties": {**person["properties"], "s": {"type": "null"}}}
            message = chats.create(model="letters", messages=HI, temperature=0, max_tokens=300, **extra(True, held)).parse().choices[0].message
            text = message.content or message.tool_calls[0].function.arguments
            expect(json.loads(text) == {"s": None, "t": "a"}, text)
            expect("Sdx-Ignored" in chats.create(model="letters", messages=HI, temperature=0, max_tokens=300, **extra(True, schema)).headers, "a bound is named")
        # As long as fits.
        room = client.chat.completions.create(model="letters", messages=HI, max_tokens=32000, temperature=0, logit_bias={"9": 100})
        expect(room.usage.total_tokens == 600 and room.choices[0].finish_reason == "length", room.usage)
        for most in (-1, 5000):
            room = client.completions.create(model="letters", prompt="ab", max_tokens=most, temperature=0, logit_bias={"9": 100})
            expect(room.usage.total_tokens == 600, room.usage)


def write_transformers_folder(folder):
    """As transformers writes it: all zeros, so that the first token, which only the tokenizer calls an end, comes first."""
    shapes = {"model.embed_tokens": (3, 32), "model.norm": (32,)}
    for name, shape in {"input_layernorm": (32,), "post_attention_layernorm": (32,), "self_attn.q_proj": (32, 32), "self_attn.k_proj": (16, 32),
                        "self_attn.v_proj": (16, 32), "self_attn.o_proj": (32, 32), "mlp.gate_proj": (32, 32), "mlp.up_proj": (32, 32),
                        "mlp.down_proj": (32, 32)}.items():
        shapes[f"model.layers.0.{name}"] = shape
    header, at = {}, 0
    for name, shape in shapes.items():
        size = 4 * math.prod(shape)
        header[name + ".weight"] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + size]}
        at += size
    head = json.dumps(header).encode()
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(head)) + head + b"\0" * at)
    template = "{% for m in messages %}{{ m.content }} {% endfor %}"
    for name, content in {
            "config.json": {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 32, "num_hidden_layers": 1,
                            "intermediate_size": 32, "num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 16,
                            "vocab_size": 3, "tie_word_embeddings": True},
            "generation_config.json": {"eos_token_id": 1},
            "tokenizer.json": {"added_tokens": [{"id": 0, "content": "<|im_end|>", "special": True, "normalized": False}],
                               "pre_tokenizer": {"type": "WhitespaceSplit"},
                               "model": {"type": "WordLevel", "unk_token": "b", "vocab": {"<|im_end|>": 0, "a": 1, "b": 2}}},
            "tokenizer_config.json": {"eos_token": "<|im_end|>", "chat_template": template}}.items():
        (folder / name).write_text(json.dumps(content))


def folders(test):
    """A folder of transformers, one with a projector beside the model, and parts of a split model."""
    write_transformers_folder(test.folder / "hf")
    repository = test.folder / "models"
    (repository / "vision").mkdir(parents=True)
    whole = (test.folder / "letters.gguf").read_bytes()
    for name in ("vision/model.gguf", "letters-00001-of-00002.gguf", "letters-00002-of-00002.gguf"):
        (repository / name).write_bytes(whole)
    for name in ("vision/mmproj.gguf", "mmproj-f16.gguf"):
        (repository / name).write_bytes(b"GGUF")
    with test.serve(f"hf={test.folder / 'hf'}", "--repository", str(repository)):
        client = test.client()
        expect([m.id for m in client.models.list()] == ["hf", "letters", "vision"], [m.id for m in client.models.list()])
        answer = client.chat.completions.create(model="hf", messages=HI, temperature=0)
        expect(answer.choices[0].finish_reason == "stop" and answer.usage.completion_tokens == 1, answer)
        expect(client.chat.completions.create(model="vision", messages=HI, max_tokens=2).usage.completion_tokens > 0, "beside a projector")


def errors(test):
    with test.serve():
        client = test.client()
        long = [{"role": "user", "content": "x" * 700}]
        for exception, code, param, options in (
                (openai.NotFoundError, "model_not_found", "model", {"model": "nobody"}),
                (openai.NotFoundError, None, "model", {"model": "embed"}),
                (openai.BadRequestError, "context_length_exceeded", "messages", {"messages": long}),
                (openai.BadRequestError, "decimal_above_max_value", "temperature", {"temperature": 3}),
                (openai.BadRequestError, "invalid_value", "messages", {"model": "strict", "messages": [{"role": "system", "content": "x"}]}),
                (openai.BadRequestError, None, None, {"logit_bias": {"9999": 1}}),
                (openai.BadRequestError, "unsupported_content", "messages[0].content[0].type", {"messages": [
                    {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,"}}]}]})):
            for streaming in (False, True):
                try:
                    client.chat.completions.create(**{"model": "letters", "messages": HI, **options}, stream=streaming)
                    sys.exit(f"wrong: {options} is taken")
                except exception as error:
                    expect((error.code, error.param) == (code, param), f"{options}: {error.code} {error.param} {error}")
        status, _, body = test.server.request("POST", "/v1/chat/completions", {"model": "letters", "messages": long})
        expect(json.loads(body)["error"]["message"] == "This model's maximum context length is 600 tokens. However, your messages resulted "
               "in 707 tokens. Please reduce the length of the messages.", body)
        for path, field in (("chat/completions", {"messages": [{"role": "user", "content": "x" * 1_000_000}]}),
                            ("completions", {"prompt": "é" * 500_000}), ("embeddings", {"model": "embed", "input": "a " * 500_000})):
            status, _, body = test.server.request("POST", "/v1/" + path, {"model": "letters", **field})
            wanted = 200 if path == "embeddings" else 400  # the embedder's folder has no limit
            expect(status == wanted and (status == 200 or "more than" in json.loads(body)["error"]["message"]), f"{path}: {body[:300]}")
        for sent in (b"", b"{", b"[]", b"\xff\xfe", b"[" * 100000, b'{"model": "letters", "messages": [{"role": "user", "content": "\\ud800"}]}'):
            status, _, body = test.server.request("POST", "/v1/chat/completions", sent)
            expect(status == 400, f"{sent[:50]}: {status} {body}")
            fits(json.loads(body), "Error")
        for method, path, wanted in (("GET", "/v1/nothing", 404), ("GET", "/v1/chat/completions", 405), ("DELETE", "/v1/models/letters", 405)):
            status, _, body = test.server.request(method, path)
            expect(status == wanted, f"{method} {path}: {status}")
            fits(json.loads(body), "Error")
        status, _, body = test.server.request("POST", "/v1/chat/completions", b" " * (17 << 20))
        expect(status == 413, f"17 MiB: {status}")


def description(test):
    done = subprocess.run([sys.executable, "-B", "-m", "openapi_spec_validator", str(PROJECT / "docs" / "openapi" / "openai.json")],
                          capture_output=True, text=True)
    expect(done.returncode == 0, done.stdout + done.stderr)
    text = (PROJECT / "docs" / "serve" / "openai.md").read_text()
    for schema in ("ChatRequest", "CompletionRequest", "EmbeddingRequest", "RerankRequest", "SoundRequest"):
        for field in DESCRIPTION["components"]["schemas"][schema]["properties"]:
            expect(f"`{field}`" in text, f"docs/serve/openai.md does not speak of {field}")


def generated(test, model, prompt, count):
    done = subprocess.run([test.sdx, "generate", model, "-p", prompt, "--greedy", "--max-tokens", str(count), "--json"],
                          capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["choices"][0]


def real(test):
    """The answers of `sdx generate`, to the letter."""
    folder, words = find_models(), []
    if folder and (folder / "llm_stories260k").exists():
        words.append(f"stories={folder / 'llm_stories260k' / 'genai_fp32'}")
    smollm = os.environ.get("SDX_TEST_SMOLLM2", "")
    if smollm and Path(smollm).exists():
        words.append(f"smollm2={smollm}")
    if not words:
        print("SDX_TEST_MODELS and SDX_TEST_SMOLLM2 name no models")
        sys.exit(SKIPPED)
    with test.serve(*words):
        client = test.client()
        for word in words:
            name, _, path = word.partition("=")
            prompt = "Once upon a time"
            wanted = generated(test, path, prompt, 40)
            told = client.completions.create(model=name, prompt=prompt, max_tokens=40, temperature=0)
            expect(told.choices[0].text == wanted["text"], f"{name}: {told.choices[0].text!r}, sdx generate {wanted['text']!r}")
            expect(told.choices[0].finish_reason == wanted["finish_reason"], told)
            again = client.completions.create(model=name, prompt=prompt, max_tokens=40, temperature=0, echo=True, logprobs=1)
            expect(again.choices[0].text == prompt + wanted["text"], again)
        if not any(w.startswith("smollm2=") for w in words):
            return
        messages = [{"role": "system", "content": "You are brief."}, {"role": "user", "content": "What is the capital of France?"}]
        (test.folder / "messages.json").write_text(json.dumps(messages))
        prompt = subprocess.run([test.sdx, "chat", smollm, "--messages", test.folder / "messages.json", "--print-prompt"],
                                capture_output=True, text=True, check=True).stdout
        wanted = generated(test, smollm, prompt, 24)
        whole = client.chat.completions.create(model="smollm2", messages=messages, max_tokens=24, temperature=0, logprobs=True)
        expect(whole.choices[0].message.content == wanted["text"], f"{whole.choices[0].message.content!r}, sdx generate {wanted['text']!r}")
        streamed = client.chat.completions.create(model="smollm2", messages=messages, max_tokens=24, temperature=0, stream=True)
        expect("".join(c.choices[0].delta.content or "" for c in streamed) == wanted["text"], "streamed")
        parsed = client.chat.completions.parse(model="smollm2", messages=messages, temperature=0, response_format=Place, max_tokens=200)
        expect(isinstance(parsed.choices[0].message.parsed, Place), parsed)
        called = client.chat.completions.create(model="smollm2", messages=messages, temperature=0, tools=[WEATHER], tool_choice="required",
                                                parallel_tool_calls=False, max_tokens=200)
        jsonschema.validate(json.loads(called.choices[0].message.tool_calls[0].function.arguments), WEATHER["function"]["parameters"])


def main():
    started = time.monotonic()
    with scratch() as folder:
        globals()[sys.argv[3]](Test(sys.argv[1], folder))
    print(f"{sys.argv[3]}: {time.monotonic() - started:.1f} s")


if __name__ == "__main__":
    main()
