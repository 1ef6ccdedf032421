"""Models of ONNX Runtime's own tests against answers recorded with it: ort_testdata.py SDX [WAY]

The models are no part of the repository: see run_models.py; without them the test is skipped (exit code 77). Every recorded answer that
is deterministic and finite must be met as users run the model ("as is"), with --no-optimize and with the reference kernels, or stand in
ort_testdata_ignore.txt with its reason. WAY: one of these alone.
"""

import json
import os
import sys
from pathlib import Path

from run_models import ANSWER_LIMIT_S, SKIPPED, find_models, run

IGNORED = Path(__file__).with_name("ort_testdata_ignore.txt")
WAYS = [("as is", [], {}), ("--no-optimize", ["--no-optimize"], {}), ("reference kernels", [], {"SDX_CPU_KERNEL": "reference"})]


def recorded(models):
    """Paths of models with answers, below both folders."""
    report = json.loads((models / "ort_testdata_expected" / "report.json").read_text())
    return sorted(r["model"] for r in report if r["status"] == "ok" and not r.get("nondeterministic") and not r.get("nonfinite"))


def first_failure(sdx, models, model, ways):
    """"" when every way gives the recorded answers."""
    case = models / "ort_testdata_expected" / model / "case.json"
    for way, flags, environment in ways:
        command = [sdx, "verify", "-q", *flags, "--model", models / "ort_testdata" / model, case]
        code, output, _ = run(command, ANSWER_LIMIT_S, env={**os.environ, **environment})
        if code != 0:
            return f"({way}) " + ("too slow" if code is None else f"exit code {code}: {output.strip()}")
    return ""


def main():
    sdx, *only = sys.argv[1:]
    ways = [w for w in WAYS if not only or w[0] in only]
    models = find_models()
    if not models or not (models / "ort_testdata_expected" / "report.json").is_file():
        print("no models")
        return SKIPPED
    lines = [line.strip() for line in IGNORED.read_text().splitlines()]
    ignored = dict(line.split(" ", 1) for line in lines if line and not line.startswith("#"))
    names = recorded(models)
    problems = [f"{name}: listed in {IGNORED.name}, but has no recorded answer" for name in sorted(set(ignored) - set(names))]
    for name in names:
        failure = first_failure(sdx, models, name, ways)
        if failure and name not in ignored:
            problems.append(f"{name} {failure}")
        elif not failure and name in ignored and len(ways) == len(WAYS):
            problems.append(f"{name}: agrees now: remove it from {IGNORED.name}")
    for problem in problems:
        print("FAIL", problem)
    print(f"{len(names)} models in {len(ways)} ways, {len(ignored)} of them ignored, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
