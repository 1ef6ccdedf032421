"""Sardonyx's language models beside onnxruntime-genai, and its sentence vectors beside onnxruntime with tokenizers, in turns.

    run.py --gguf SmolLM2.gguf --minilm FOLDER [--only generate|bandwidth|embed] [--rounds N] [--by cpu] [--markdown FILE]

generate: the same int4 folder in both (`sdx convert --dtype int4`), and the .gguf file here alone: the first token of an answer to 512 tokens, tokens
per second after it, opening, memory. bandwidth: decoding a model of a billion random weights, as a share of what memory can be read with.
embed: sentences per second at several lengths. Each measurement is a process of its own; rounds alternate; the best of them counts.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
BASE = ("The history of the city begins long before the first written records. Settlers came along the river and built houses of wood and "
        "clay, and traded salt, furs and grain with people from the coast. ")  # fmt: skip


def run(*command: object, **more) -> str:
    return subprocess.run([str(c) for c in command], check=True, stdout=subprocess.PIPE, text=True, **more).stdout


def tokens_of(sdx: str, model: pathlib.Path, text: str) -> int:
    return len(json.loads(run(sdx, "tokenize", model, "-", "--json", input=text))["ids"])


def prompt_of(sdx: str, model: pathlib.Path, count: int) -> str:
    """A text of exactly so many tokens."""
    words = (BASE * (count // 30 + 1)).split(" ")
    low, high = 1, len(words)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if tokens_of(sdx, model, " ".join(words[:middle])) <= count else (low, middle - 1)
    text = " ".join(words[:low])
    while tokens_of(sdx, model, text) < count:
        text += "!"
    return text


class Turns:
    """Results of workers that take turns: the least of each time, over the rounds."""

    def __init__(self, by: str):
        self.at, self.best = {"wall": 0, "cpu": 1}[by], {}

    def add(self, name: str, result: dict):
        kept = self.best.setdefault(name, dict(result))
        for key, value in result.items():
            if isinstance(value, list) and len(value) == 2 and all(isinstance(v, float) for v in value):
                kept[key] = [min(a, b) for a, b in zip(kept[key], value)]
            elif isinstance(value, float):
                kept[key] = min(kept[key], value)

    def seconds(self, name: str, lap: str) -> float:
        return self.best[name][lap][self.at]


def common(a: list, b: list) -> int:
    return next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))


def generate(args: argparse.Namespace, work: pathlib.Path) -> list[str]:
    folder = work / "int4"
    run(args.sdx, "convert", args.gguf, "-o", folder, "--dtype", "int4")
    prompt = work / "prompt.txt"
    prompt.write_text(prompt_of(args.sdx, folder, 512))
    lines = ["| threads | | first token, ms | prompt, tokens/s | decode, tokens/s | open, ms | open and first answer, ms | memory, MB | greedy tokens alike |",
             "|--:|---|--:|--:|--:|--:|--:|--:|--:|"]  # fmt: skip
    cases = [("genai", folder), ("sardonyx", folder), ("sardonyx", pathlib.Path(args.gguf))]
    for threads in args.threads:
        turns = Turns(args.by)
        for _ in range(args.rounds):
            for engine, model in cases:
                result = json.loads(run(sys.executable, HERE / "worker.py", engine, model, threads, args.tokens, prompt))
                turns.add(f"{engine} {model.name}", result)
        peer = f"genai {folder.name}"
        rows = {}
        for name, best in turns.best.items():
            first, decode = turns.seconds(name, "first"), turns.seconds(name, "decode")
            load, ready = turns.seconds(name, "load"), turns.seconds(name, "load") + turns.seconds(name, "ready")
            rows[name] = [first * 1e3, best["prompt_tokens"] / first, (len(best["tokens"]) - 1) / decode, load * 1e3, ready * 1e3, best["peak_mb"]]
            same = common(best["tokens"], turns.best[peer]["tokens"])
            lines.append(f"| {threads} | {name} | " + " | ".join(f"{v:.1f}" for v in rows[name]) + f" | {same} of {len(best['tokens'])} |")
        a, b = rows[peer], rows[f"sardonyx {folder.name}"]
        ratios = [a[0] / b[0], b[1] / a[1], b[2] / a[2], a[3] / b[3], a[4] / b[4], b[5] / a[5]]
        lines.append(f"| {threads} | **int4: ratio** | " + " | ".join(f"**{v:.2f}**" for v in ratios) + " | |")
    return lines


def bandwidth(args: argparse.Namespace, work: pathlib.Path) -> list[str]:
    sys.path.insert(0, str(HERE))
    import large

    model = work / "large"
    large.write_model(model)
    run(args.sdx, "convert", model, "-o", work / "large4", "--dtype", "int4")
    read = large.bytes_of_a_step()
    small = work / "small.onnx"
    large.write_small_model(small)
    lines = ["| threads | decode, tokens/s | reads, GB/s | memory can be read with, GB/s | share |", "|--:|--:|--:|--:|--:|"]
    for threads in args.threads:
        turns, speed = Turns(args.by), 0.0
        for _ in range(args.rounds):
            report = json.loads(run(args.sdx, "bench", small, "--profile", "--json", "-", "--threads", threads))
            speed = max(speed, report["results"][0]["limits"]["read_gbytes_per_s"])
            turns.add("large", json.loads(run(sys.executable, HERE / "large.py", "decode", work / "large4", threads, 33)))
        rate = 32 / turns.seconds("large", "decode")
        lines.append(f"| {threads} | {rate:.1f} | {rate * read * 1e-9:.1f} | {speed:.1f} | {rate * read * 1e-9 / speed:.2f} |")
    return lines


def embed(args: argparse.Namespace, work: pathlib.Path) -> list[str]:
    lines = ["| threads | words | onnxruntime, sentences/s | Sardonyx, sentences/s | ratio | largest difference |", "|--:|--:|--:|--:|--:|--:|"]
    import numpy as np

    for threads in args.threads:
        for words in ("5", "20", "100", "mixed"):
            turns, vectors = Turns(args.by), {}
            for _ in range(args.rounds):
                for engine in ("onnxruntime", "sardonyx"):
                    out = work / f"{engine}.npy"
                    turns.add(engine, json.loads(run(sys.executable, HERE / "embed_worker.py", engine, args.minilm, threads, words, out)))
                    vectors[engine] = np.load(out)
            rates = {e: best["sentences"] / turns.seconds(e, "embed") for e, best in turns.best.items()}
            apart = np.abs(vectors["onnxruntime"] - vectors["sardonyx"]).max()
            lines.append(f"| {threads} | {words} | {rates['onnxruntime']:.1f} | {rates['sardonyx']:.1f} | "
                         f"{rates['sardonyx'] / rates['onnxruntime']:.2f} | {apart:.1e} |")  # fmt: skip
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    build = HERE.parent.parent / "build" / "release"
    parser.add_argument("--sdx", default=str(build / "bin" / "sdx"))
    parser.add_argument("--gguf", default=str(build / "demo" / "SmolLM2-135M-Instruct.Q4_1.gguf"))
    parser.add_argument("--minilm", default="", help="a folder with model.onnx and tokenizer.json of all-MiniLM-L6-v2")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=65)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--by", choices=["wall", "cpu"], default="wall")
    parser.add_argument("--only", choices=["generate", "bandwidth", "embed"])
    parser.add_argument("--markdown", type=pathlib.Path)
    args = parser.parse_args()
    text = ""
    for name, measure in {"generate": generate, "bandwidth": bandwidth, "embed": embed}.items():
        if args.only not in (None, name):
            continue
        if name == "embed" and not args.minilm:
            print("embed: skipped, --minilm names no folder", flush=True)
            continue
        with tempfile.TemporaryDirectory(prefix="sdx-bench-text-") as work:
            text += f"## {name}\n\n" + "\n".join(measure(args, pathlib.Path(work))) + "\n\n"
        print(text.rsplit("## ", 1)[-1], flush=True)
    if args.markdown:
        args.markdown.write_text(text)
    return 0


if __name__ == "__main__":
    os.environ["TOKENIZERS_PARALLELISM"] = "true"
    sys.exit(main())
