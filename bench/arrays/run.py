"""Sardonyx's arrays beside NumPy, MLX and JAX on the CPU, in turns: run.py [--rounds N] [--threads 1 2] [--by cpu] [--case CASE]...
                                                                                 [--markdown FILE]

Each library computes each case in a process of its own; rounds alternate, and the least time counts.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
LIBRARIES = ("sardonyx", "numpy", "mlx", "jax")


def worker(library: str, threads: int, cases: list[str]) -> dict[str, float | None]:
    command = [sys.executable, "-B", str(HERE / "worker.py"), library, str(threads), *cases]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()[-1])


def table(best: dict[str, dict[str, float | None]]) -> list[str]:
    lines = [f"| case | {' | '.join(LIBRARIES)} | fastest other / sardonyx |", "|---|" + "--:|" * (len(LIBRARIES) + 1)]
    for case in best[LIBRARIES[0]]:
        times = [best[library][case] for library in LIBRARIES]
        others = [t for t in times[1:] if t is not None]
        ratio = f"{min(others) / times[0]:.2f}" if times[0] and others else ""
        shown = " | ".join("" if t is None else f"{t:.3g}" if t < 100 else f"{t:.0f}" for t in times)
        lines.append(f"| {case} | {shown} | {ratio} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--case", action="append", default=[])
    parser.add_argument("--by", choices=("wall", "cpu"), default="wall", help="cpu: for a machine with other work, and one thread")
    parser.add_argument("--markdown", type=pathlib.Path)
    args = parser.parse_args()
    os.environ["BENCH_BY"] = args.by
    lines = []
    for threads in args.threads:
        best: dict[str, dict[str, float | None]] = {library: {} for library in LIBRARIES}
        for _ in range(args.rounds):
            for library in LIBRARIES:
                for case, time in worker(library, threads, args.case).items():
                    kept = best[library].get(case)
                    best[library][case] = time if kept is None or (time is not None and time < kept) else kept
        lines += ["", f"## {threads} thread{'s' if threads > 1 else ''}", "", *table(best)]
        print("\n".join(lines[-len(best[LIBRARIES[0]]) - 4 :]), flush=True)
    if args.markdown:
        args.markdown.write_text("\n".join(lines).lstrip() + "\n")


main()
