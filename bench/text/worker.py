"""One engine, one model, one number of threads, in a process of its own: worker.py ENGINE MODEL THREADS TOKENS PROMPT_FILE. Prints JSON.

Times are of the wall clock and of the processor (all threads); memory is the process's peak less what it had before the engine was imported.
"""

import json
import os
import sys
import time

os.environ["ORT_DISABLE_TELEMETRY"] = "1"


def peak_mb() -> float:
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024


class Clock:
    def __init__(self):
        self.laps = {}
        self.reset()

    def reset(self):
        self.wall, self.cpu = time.perf_counter(), time.process_time()

    def lap(self, name: str):
        self.laps[name] = [time.perf_counter() - self.wall, time.process_time() - self.cpu]
        self.reset()


def genai(model: str, threads: int, tokens: int, prompt: str, clock: Clock) -> list:
    import onnxruntime_genai as og

    clock.reset()
    config = og.Config(model)
    config.overlay(json.dumps({"model": {"decoder": {"session_options": {"intra_op_num_threads": threads}}}}))
    loaded = og.Model(config)
    clock.lap("load")
    tokenizer = og.Tokenizer(loaded)

    def begin(text: str, tokens: int):
        ids = tokenizer.encode(text)
        parameters = og.GeneratorParams(loaded)
        parameters.set_search_options(max_length=len(ids) + tokens, min_length=len(ids) + tokens, do_sample=False)
        generator = og.Generator(loaded, parameters)
        generator.append_tokens(ids)
        generator.generate_next_token()
        return ids, generator

    begin("a", 1)
    clock.lap("ready")
    ids, generator = begin(prompt, tokens)
    clock.lap("first")
    out = [int(generator.get_next_tokens()[0])]
    while len(out) < tokens and not generator.is_done():
        generator.generate_next_token()
        out.append(int(generator.get_next_tokens()[0]))
    clock.lap("decode")
    return [len(ids), out]


def sardonyx(model: str, threads: int, tokens: int, prompt: str, clock: Clock) -> list:
    from sardonyx import SessionOptions
    from sardonyx.text import LanguageModel

    options = SessionOptions()
    options.intra_op_num_threads = threads
    clock.reset()
    loaded = LanguageModel(model, sess_options=options)
    clock.lap("load")
    count = 0

    def take(_choice: int, _token: int, _text: str) -> bool:
        nonlocal count
        count += 1
        if count == 1:
            clock.lap("first")
        return True

    loaded.generate("a", max_tokens=1, greedy=True)
    clock.lap("ready")
    answer = loaded.generate(prompt, max_tokens=tokens, min_tokens=tokens, greedy=True, on_token=take)
    clock.lap("decode")
    return [answer.prompt_tokens, answer.choices[0].tokens]


def main():
    engine, model, threads, tokens, prompt_file = sys.argv[1:]
    with open(prompt_file, encoding="utf-8") as file:
        prompt = file.read()
    import numpy  # noqa: F401, both need it

    before, clock = peak_mb(), Clock()
    prompt_tokens, out = {"genai": genai, "sardonyx": sardonyx}[engine](model, int(threads), int(tokens), prompt, clock)
    print(json.dumps({"prompt_tokens": prompt_tokens, "tokens": out, "peak_mb": peak_mb() - before, **clock.laps}))


main()
