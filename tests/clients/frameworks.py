"""frameworks.py SDX PROJECT WHICH: one of the published frameworks that talk to OpenAI's interface, unchanged, against `sdx serve`. WHICH is one
of the functions at the end. The frameworks come from build/frameworks-venv, which tools/clients_env.sh makes: exit code 77 without it. Models
are tiny ones with random weights, so answers have a form but no sense. Temperature is 0 everywhere: a drawn answer may be empty or end anywhere."""

import asyncio
import json
import math
import os
import sys
from pathlib import Path
from typing import Annotated, Literal

SKIPPED = 77
PROJECT = Path(sys.argv[2]).resolve()
PYTHON = PROJECT / "build" / "frameworks-venv" / "bin" / "python"
if not PYTHON.exists():
    print(f"{PYTHON} is missing: tools/clients_env.sh makes it")
    sys.exit(SKIPPED)
if Path(sys.prefix).resolve() != PYTHON.parent.parent.resolve():
    os.execv(PYTHON, [str(PYTHON), "-B", *sys.argv])

sys.path[:0] = [str(PROJECT / "tests" / folder) for folder in ("cli", "serve", "support")]
import pydantic  # noqa: E402
from scratch import scratch  # noqa: E402
import scripted  # noqa: E402
import tiny_models  # noqa: E402
from serve_process import Serve  # noqa: E402

HI = [{"role": "user", "content": "hi"}]
HELLO = "Hello there, my friend."  # of scripted.py


class Place(pydantic.BaseModel):
    """A place that somebody visited."""

    name: str = pydantic.Field(max_length=12)
    visits: int = pydantic.Field(ge=0, le=9)
    tags: list[Annotated[str, pydantic.Field(max_length=6)]] = pydantic.Field(max_length=2)


def expect(condition, what):
    if not condition:
        sys.exit(f"wrong: {what}")


def is_unit(vector):
    return len(vector) > 0 and abs(math.sqrt(sum(x * x for x in vector)) - 1) < 1e-3


def litellm(base):
    import litellm

    asked = {"api_base": base, "api_key": "none", "num_retries": 0}
    spoken = {**asked, "model": "openai/letters", "messages": HI, "temperature": 0}
    answer = litellm.completion(max_tokens=8, **spoken)
    expect(answer.choices[0].message.content and answer.usage.completion_tokens == 8, answer)
    parts = list(litellm.completion(max_tokens=8, stream=True, **spoken))
    expect("".join(p.choices[0].delta.content or "" for p in parts), "a stream without text")
    answer = litellm.completion(max_tokens=200, response_format=Place, **spoken)
    Place.model_validate_json(answer.choices[0].message.content)
    vectors = litellm.embedding(model="openai/embed", input=["one", "two"], **asked).data
    expect(len(vectors) == 2 and all(is_unit(v["embedding"]) for v in vectors), "embeddings")


def litellm_interfaces(base):
    """The same calls over the other interfaces: Ollama's, Anthropic's, and OpenAI's responses."""
    import litellm

    root = base.removesuffix("/v1")
    tool = {"type": "function", "function": {"name": "weather", "description": "Of a place.", "parameters": {
        "type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]}}}
    for model, place in (("ollama_chat/scripted", root), ("anthropic/scripted", root), ("openai/scripted", base)):
        asked = {"model": model, "api_base": place, "api_key": "none", "num_retries": 0, "max_tokens": 60, "temperature": 0}
        answer = litellm.completion(messages=[{"role": "user", "content": "hi a"}], **asked)
        expect(answer.choices[0].message.content == HELLO and answer.usage.completion_tokens > 0, f"{model}: {answer}")
        parts = list(litellm.completion(messages=[{"role": "user", "content": "hi a"}], stream=True, **asked))
        expect("".join(p.choices[0].delta.content or "" for p in parts) == HELLO, f"{model}: {parts}")
        talk = [{"role": "user", "content": "look c"}]
        called = litellm.completion(messages=talk, tools=[tool], **asked).choices[0]
        call = called.message.tool_calls[0]
        expect(call.function.name == "weather" and json.loads(call.function.arguments) == {"place": "Paris"}, f"{model}: {called}")
        talk += [called.message, {"role": "tool", "tool_call_id": call.id, "name": "weather", "content": "4 degrees a"}]
        expect(litellm.completion(messages=talk, tools=[tool], **asked).choices[0].message.content == HELLO, f"{model}: the turn behind the call")
        parts = list(litellm.completion(messages=[{"role": "user", "content": "look c"}], tools=[tool], stream=True, **asked))
        given = "".join(c.function.arguments or "" for p in parts for c in p.choices[0].delta.tool_calls or [])
        expect(json.loads(given) == {"place": "Paris"}, f"{model}: {given}")
    asked = {"model": "openai/scripted", "api_base": base, "api_key": "none", "temperature": 0}
    answer = litellm.responses(input="hi a", **asked)
    expect(answer.output[0].content[0].text == HELLO and answer.status == "completed", answer)
    kinds = [e.type for e in litellm.responses(input="hi a", stream=True, **asked)]
    expect(kinds[0] == "response.created" and kinds[-1] == "response.completed" and "response.output_text.delta" in kinds, kinds)
    vectors = litellm.embedding(model="ollama/embed", input=["one", "two"], api_base=root).data
    expect(len(vectors) == 2 and all(is_unit(v["embedding"]) for v in vectors), "embeddings")


def langchain_openai(base):
    from langchain_core.messages import ToolMessage
    from langchain_openai import ChatOpenAI, OpenAIEmbeddings

    asked = {"base_url": base, "api_key": "none", "max_retries": 0}
    chat = ChatOpenAI(model="letters", max_tokens=8, temperature=0, **asked)
    expect(chat.invoke("hi").content, "invoke")
    expect("".join(part.content for part in chat.stream("hi")), "stream")
    long = ChatOpenAI(model="letters", max_tokens=300, temperature=0, **asked)
    for method in ("json_schema", "function_calling"):
        place = long.with_structured_output(Place, method=method).invoke("hi")
        expect(isinstance(place, Place), f"{method}: {place}")
    # Several calls may reach the bound of tokens, and a call that is cut has no answer in the next turn.
    called = long.bind_tools([Place], tool_choice="any", parallel_tool_calls=False).invoke("hi")
    expect({c["name"] for c in called.tool_calls} == {"Place"}, called)
    turns = [("human", "hi"), called, *(ToolMessage("twice", tool_call_id=c["id"]) for c in called.tool_calls)]
    expect(long.invoke(turns).content is not None, "a second turn")
    texts = OpenAIEmbeddings(model="embed", check_embedding_ctx_length=False, **asked)
    expect(is_unit(texts.embed_query("one")) and all(map(is_unit, texts.embed_documents(["one", "two"]))), "embeddings")
    sends_tokens(OpenAIEmbeddings(model="embed", **asked))


def sends_tokens(texts):
    """Without the option, the client sends tokens of OpenAI's models. A vocabulary of single bytes stands for theirs, which is on the network."""
    import openai
    import tiktoken

    names = {bytes([i]): 90_000 + i for i in range(256)}
    tiktoken.registry.ENCODINGS["cl100k_base"] = tiktoken.Encoding("cl100k_base", pat_str="(?s:.)", mergeable_ranks=names, special_tokens={})
    for ask in (lambda: texts.embed_query("one"), lambda: texts.embed_documents(["one", "two"])):
        try:
            ask()
            expect(False, "tokens of another model are refused")
        except openai.BadRequestError as error:
            expect("OpenAIEmbeddings(check_embedding_ctx_length=False)" in str(error) and "not in the model's vocabulary" in str(error), error)


def llama_index(base):
    from llama_index.core.llms import ChatMessage
    from llama_index.embeddings.openai_like import OpenAILikeEmbedding
    from llama_index.llms.openai_like import OpenAILike

    asked = {"api_base": base, "api_key": "none", "max_retries": 0}
    spoken = {**asked, "model": "letters", "max_tokens": 8, "context_window": 2000, "temperature": 0}
    model = OpenAILike(is_chat_model=True, **spoken)
    messages = [ChatMessage(role="user", content="hi")]
    expect(model.chat(messages).message.content, "chat")
    expect("".join(part.delta or "" for part in model.stream_chat(messages)), "stream")
    model = OpenAILike(is_chat_model=False, **spoken)
    expect(model.complete("hi").text, "complete")
    embed = OpenAILikeEmbedding(model_name="embed", **asked)
    expect(all(map(is_unit, embed.get_text_embedding_batch(["one", "two"]))), "embeddings")


def instructor(base):
    import instructor
    import openai

    client = openai.OpenAI(base_url=base, api_key="none", max_retries=0)
    for mode in (instructor.Mode.TOOLS, instructor.Mode.TOOLS_STRICT, instructor.Mode.JSON_SCHEMA):
        asked = instructor.from_openai(client, mode=mode)
        place = asked.chat.completions.create(model="letters", messages=HI, response_model=Place, max_tokens=300, max_retries=0, temperature=0)
        expect(isinstance(place, Place), f"{mode}: {place}")


def openai_agents(base):
    import agents
    import openai

    agents.set_tracing_disabled(True)
    asked = []

    @agents.function_tool
    def visits(place: Literal["Rome", "Oslo"]) -> str:
        """How often somebody was at a place."""
        asked.append(place)
        return "twice"

    async def work():
        model = agents.OpenAIChatCompletionsModel("letters", openai.AsyncOpenAI(base_url=base, api_key="none", max_retries=0))
        settings = agents.ModelSettings(max_tokens=300, temperature=0)
        plain = await agents.Runner.run(agents.Agent("plain", instructions="Be brief.", model=model, model_settings=settings), "hi")
        expect(plain.final_output, plain)
        typed = agents.Agent("typed", model=model, output_type=Place, model_settings=settings)
        expect(isinstance((await agents.Runner.run(typed, "hi")).final_output, Place), "a typed answer")
        must = agents.ModelSettings(max_tokens=300, temperature=0, tool_choice="required", parallel_tool_calls=False)
        await agents.Runner.run(agents.Agent("caller", model=model, tools=[visits], model_settings=must), "hi", max_turns=6)
        expect(asked, "the tool was not called")
        streamed = agents.Runner.run_streamed(agents.Agent("plain", model=model, model_settings=settings), "hi")
        expect([e async for e in streamed.stream_events()], "no events")

    asyncio.run(work())


def openai_agents_responses(base):
    """The interface that agents speak unless they are told otherwise: /v1/responses, with a tool, its stream, and a session on the server."""
    import agents
    import openai

    agents.set_tracing_disabled(True)
    asked = []

    @agents.function_tool(strict_mode=False)  # the script is not held to a grammar
    def weather(place: str) -> str:
        """Of a place."""
        asked.append(place)
        return "4 degrees a"

    async def work():
        model = agents.OpenAIResponsesModel("scripted", openai.AsyncOpenAI(base_url=base, api_key="none", max_retries=0))
        settings = agents.ModelSettings(max_tokens=60, temperature=0)
        agent = agents.Agent("caller", instructions="Be brief.", model=model, tools=[weather], model_settings=settings)
        result = await agents.Runner.run(agent, "look c", max_turns=4)
        expect(asked == ["Paris"] and result.final_output == HELLO, f"{asked} {result}")
        again = await agents.Runner.run(agent, "so a", previous_response_id=result.last_response_id)
        expect(again.final_output == HELLO and again.raw_responses[0].usage.input_tokens > result.raw_responses[0].usage.input_tokens, again)
        streamed = agents.Runner.run_streamed(agent, "look c", max_turns=4)
        kinds = [getattr(e, "name", None) or e.type async for e in streamed.stream_events()]
        expect(streamed.final_output == HELLO and {"tool_called", "tool_output", "message_output_created"} <= set(kinds), kinds)

    asyncio.run(work())


def litellm_sound(base):
    import litellm

    with open("speech.wav", "rb") as sound:
        said = litellm.transcription(model="openai/whisper", file=sound, api_base=base, api_key="none")
    expect(said.text == "hello world", said)


def main():
    os.environ.update(OPENAI_API_KEY="none", HF_HUB_OFFLINE="1", LITELLM_LOCAL_MODEL_COST_MAP="True", LANGSMITH_TRACING="false")
    with scratch() as folder:
        tiny_models.write_served(folder, 2000)
        (folder / "scripted.gguf").write_bytes(scripted.scripted())
        files = {"letters": "letters.gguf", "scripted": "scripted.gguf", "embed": "embedder", "whisper": "whisper"}
        models = [f"{name}={folder / file}" for name, file in files.items()]
        sdx = Path(sys.argv[1]).resolve()
        os.chdir(folder)
        with Serve(sdx, *models) as server:
            globals()[sys.argv[3]](f"http://127.0.0.1:{server.port}/v1")
    print(json.dumps({"framework": sys.argv[3], "result": "as expected"}))


if __name__ == "__main__":
    main()
