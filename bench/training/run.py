"""Steps of training beside ONNX Runtime's training package and PyTorch on the CPU, in turns.

    run.py --sdx SDX --peer-python PYTHON [--torch-python PYTHON] [--rounds N] [--threads 1 2] [--by cpu] [--case CASE]... [--folder DIR]
           [--markdown FILE]

PYTHON of the peers: interpreters with onnxruntime-training-cpu and with PyTorch. Each library trains each case in a process of its own;
rounds alternate, and the least counts. Artifacts are those of ONNX Runtime itself for it, and those of `sdx artifacts` for us.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
LIBRARIES = ("sardonyx", "onnxruntime", "pytorch")
CASES = ("mlp", "mlp_large", "cnn", "resnet18", "mobilenet_head", "transformer", "transformer_large")
Figures = dict[str, float]


def prepare(args: argparse.Namespace, cases: list[str]) -> dict[str, str]:
    """Models, batches and artifacts that are not there yet; what each case is."""
    missing = [c for c in cases if not (args.folder / c / "sdx" / "checkpoint").exists()]
    quiet = {"stdout": subprocess.DEVNULL, "check": True}
    if missing:
        subprocess.run([args.torch_python, "-B", str(HERE / "models.py"), str(args.folder), *missing], **quiet)
        subprocess.run([args.peer_python, "-B", str(HERE / "ort_artifacts.py"), *(str(args.folder / c) for c in missing)], **quiet)
    for case in missing:
        optimizer, *frozen = (args.folder / case / "training.txt").read_text().split()
        kept = ["--requires-grad", "head.*"] if frozen else []
        settings = ["--optimizer", optimizer, *kept]
        subprocess.run([args.sdx, "artifacts", args.folder / case / "model.onnx", "-o", args.folder / case / "sdx", *settings], **quiet)
    about = [args.torch_python, "-B", "-c", "import json, models; print(json.dumps({k: c.about for k, c in models.CASES.items()}))"]
    return json.loads(subprocess.run(about, check=True, stdout=subprocess.PIPE, text=True, cwd=HERE).stdout)


def measure(args: argparse.Namespace, library: str, case: str, threads: int) -> Figures:
    python = {"sardonyx": sys.executable, "onnxruntime": args.peer_python, "pytorch": args.torch_python}[library]
    command = [python, "-B", str(HERE / "worker.py"), library, case, str(args.folder), str(threads)]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return json.loads(output.splitlines()[-1])


def shown(value: float) -> str:
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


def table(best: dict[str, dict[str, Figures]], about: dict[str, str]) -> list[str]:
    lines = ["| case | | sardonyx | onnxruntime | pytorch | peers / sardonyx |", "|---|---|--:|--:|--:|--:|"]
    for case, of in best.items():
        for row, (figure, unit) in enumerate((("step", "ms"), ("start", "ms"), ("memory", "MB"))):
            values = [of[library][figure] for library in LIBRARIES]
            name = f"{case}: {about[case]}" if row == 0 else ""
            cells = " | ".join(shown(v) for v in values)
            lines.append(f"| {name} | {figure}, {unit} | {cells} | {values[1] / values[0]:.2f}, {values[2] / values[0]:.2f} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sdx", required=True)
    parser.add_argument("--peer-python", required=True)
    parser.add_argument("--torch-python", default="/usr/bin/python3")
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("build/bench-training"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--case", action="append", choices=CASES)
    parser.add_argument("--by", choices=("wall", "cpu"), default="wall", help="cpu: for a machine with other work, and one thread")
    parser.add_argument("--markdown", type=pathlib.Path)
    args = parser.parse_args()
    os.environ["BENCH_BY"] = args.by
    cases = args.case or list(CASES)
    about = prepare(args, cases)
    lines = []
    for threads in args.threads:
        best: dict[str, dict[str, Figures]] = {case: {} for case in cases}
        for _ in range(args.rounds):
            for case in cases:
                for library in LIBRARIES:
                    figures = measure(args, library, case, threads)
                    kept = best[case].get(library, figures)
                    best[case][library] = {f: min(kept[f], v) for f, v in figures.items()}
        lines += ["", f"## {threads} thread{'s' if threads > 1 else ''}", "", *table(best, about)]
        print("\n".join(lines[-3 * len(cases) - 4 :]), flush=True)
    if args.markdown:
        args.markdown.write_text("\n".join(lines).lstrip() + "\n")


main()
