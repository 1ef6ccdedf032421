"""Two engines in turns: what packages_in_turns.py and native.py share."""

import os
import subprocess

import run

SECONDS = 600  # for one turn
FIGURES = ("start_ms", "work_ms", "peak_mb")
HEAD = """| client | same results | start, ms: ONNX Runtime | Sardonyx | start ratio | work, ms: ONNX Runtime | Sardonyx | work ratio | peak, MB: ONNX Runtime | Sardonyx | peak ratio |
|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|
"""


def arguments(parser):
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--by", choices=("wall", "cpu"), default="wall", help="cpu: CPU time, with one core to run on, for a machine with other load")
    parser.add_argument("--markdown", help="a file for the table")


def environment(**more):
    """Without user's packages and settings."""
    return {**{k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "LD_", "SDX_"))}, **more}


def one_core():
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def output_of(command, env, by, cwd=None):
    """What the program prints last; or why there is nothing."""
    try:
        done = subprocess.run(command, env=env, cwd=cwd, capture_output=True, text=True, timeout=SECONDS, preexec_fn=one_core if by == "cpu" else None)
    except subprocess.TimeoutExpired:
        return None, f"{' '.join(command)} takes longer than {SECONDS} s"
    if done.returncode != 0:
        return None, f"{' '.join(command)} failed ({done.returncode})\n{done.stdout[-1000:]}\n{done.stderr[-2000:]}"
    return done.stdout.splitlines()[-1], None


def in_turns(name, rounds, turn):
    """The least figures of both, and what is wrong. turn(ours) gives a dictionary of FIGURES, `ours`: which engine it was, and `found`; or a
    text that says what went wrong."""
    best, wrong = {}, []
    for _ in range(rounds):
        turns = [turn(ours) for ours in (False, True)]
        failed = [t for t in turns if isinstance(t, str)]
        if failed:
            return best, failed
        if [t["ours"] for t in turns] != [False, True]:
            return best, [f"{name} ran on {' and '.join('Sardonyx' if t['ours'] else 'ONNX Runtime' for t in turns)}"]
        if not any(turns[0]["found"]["texts"]):
            return best, [f"{name} finds nothing at all"]
        wrong = run.differences(turns[0]["found"], turns[1]["found"], 0, name)
        for key, figures in zip(("real", "ours"), turns):
            before = best.setdefault(key, figures)
            best[key] = {f: min(before[f], figures[f]) for f in FIGURES}
    return best, wrong


def row(title, best, wrong):
    def cells(figure):
        a, b = best["real"][figure], best["ours"][figure]
        return f"{a:.{int(a < 10)}f} | {b:.{int(b < 10)}f} | {a / b:.2f}" if a and b else "– | – | –"

    return f"| {title} | {'no' if wrong else 'yes'} | {' | '.join(cells(f) for f in FIGURES)} |"


def report(clients, rounds, markdown):
    """clients: (name, title, turn). Prints the table, and what is wrong; the exit code."""
    lines, problems = [], []
    for name, title, turn in clients:
        best, wrong = in_turns(name, rounds, turn)
        problems += wrong
        if "ours" in best:
            lines.append(row(title, best, wrong))
            print(lines[-1], flush=True)
        for w in wrong:
            print(w, flush=True)
    if markdown:
        with open(markdown, "w") as f:
            f.write(HEAD + "\n".join(lines) + "\n")
    return 1 if problems else 0
