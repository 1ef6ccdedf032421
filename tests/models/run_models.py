"""Real models against recorded answers, and broken ones against limits: run_models.py SDX answers|malformed|half.

The models are no part of the repository: SDX_TEST_MODELS names their folder. Without it the test is skipped (exit code 77). An SDX that
ends in .exe runs under Wine, whose memory has no limit.

answers:   every *.case.json must verify three times: as users run it, with --no-optimize, and with the reference kernels.
malformed: every file must end in exit code 0 or 1, never by a signal, within 10 seconds and 1 GB of memory, and a failure must explain
           itself on standard error. With SDX_SANITIZED=1, which says that the program was built with sanitizers, memory has no limit
           and time ten times as much.
half:      every float32 model, converted to float16, must give the recorded answers as far as that type allows.
"""

import os
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from emulator import command_of, is_for_windows  # noqa: E402
from model_files import SKIPPED, find_models  # noqa: E402
from scratch import scratch  # noqa: E402

ANSWER_LIMIT_S = 300
SANITIZED = os.environ.get("SDX_SANITIZED") == "1"
MALFORMED_LIMIT_S = 100 if SANITIZED else 10
MEMORY_LIMIT = 1 << 30
MOST_LINES = 12  # of an explanation: the error, its context, and lists of inputs


def run(command, limit_s, **settings):
    """(exit code or None after `limit_s`, output, seconds)"""
    start = time.monotonic()
    try:
        done = subprocess.run([*command_of(command[0]), *command[1:]], capture_output=True, text=True, errors="replace", timeout=limit_s, **settings)
    except subprocess.TimeoutExpired:
        return None, "", limit_s
    return done.returncode, done.stdout + done.stderr, time.monotonic() - start


def answers(sdx, models):
    ways = [("as is", [], {}), ("--no-optimize", ["--no-optimize"], {}), ("reference kernels", [], {"SDX_CPU_KERNEL": "reference"})]
    cases = sorted(models.rglob("*.case.json"))
    failures = 0
    for case in cases:
        for way, flags, environment in ways:
            code, output, seconds = run([sdx, "verify", "-q", *flags, case], ANSWER_LIMIT_S, env={**os.environ, **environment})
            if code != 0:
                failures += 1
                print(f"FAIL {case.relative_to(models)} ({way}): " + (f"exit code {code}" if code is not None else "too slow"), output)
            elif seconds > 20:
                print(f"slow {case.relative_to(models)} ({way}): {seconds:.1f} s")
    print(f"{len(cases)} cases in {len(ways)} ways, {failures} failures")
    return failures


# Models whose answers move further than 1 % of the largest magnitude when their weights alone are rounded to float16: by how much.
SENSITIVE = {"yolox_nano.case.json": 1.0, "ch_PP-OCRv4_det_infer.case.json": 0.05, "ch_PP-OCRv4_rec_infer.case.json": 0.03}


def half(sdx, models):
    cases = sorted(c for c in models.rglob("*.case.json") if "ort_testdata_expected" not in c.parts)
    failures = converted = 0
    for case in cases:
        flags = ["--atol", str(SENSITIVE[case.name])] if case.name in SENSITIVE else []
        code, output, _ = run([sdx, "verify", "-q", "--dtype", "float16", "--no-cache", *flags, case], ANSWER_LIMIT_S)
        if code == 1 and ("can compute in float16" in output or "to compute in float16" in output):
            continue  # classical and quantised models
        converted += 1
        if code != 0:
            failures += 1
            print(f"FAIL {case.relative_to(models)}: exit code {code}", output)
    print(f"{converted} of {len(cases)} models converted, {failures} failures")
    return failures + (converted < len(cases) // 2)


def limit_memory():
    # Address space, which is more than memory in use: a program within it is certainly within the limit.
    if not SANITIZED:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT, MEMORY_LIMIT))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def what_is_wrong(code, output, expects_deadline):
    if code is None:
        return f"did not end within {MALFORMED_LIMIT_S} s"
    if code not in (0, 1):
        return f"ended by signal {-code}" if code < 0 else f"exit code {code}"
    if code == 0:
        return None
    lines = [line for line in output.splitlines() if line.strip()]
    if not any(line.startswith("error: ") and len(line) > len("error: ") + 10 for line in lines):
        return "no explanation"
    if len(lines) > MOST_LINES:
        return f"an explanation of {len(lines)} lines"
    if "internal" in output.lower() or "std::" in output:
        return "an explanation for programmers"
    if expects_deadline and "deadline" not in output:
        return "no word of the deadline"
    return None


def malformed(sdx, models):
    source = models / "malformed"
    if not source.is_dir():
        return None
    failures = 0
    with scratch() as outside:
        folder = outside / "inside"
        shutil.copytree(source, folder)
        secret = outside / "secret.bin"
        secret.write_bytes(bytes(4096))
        link = folder / "ext_symlink.bin"
        link.unlink(missing_ok=True)
        link.symlink_to(secret)
        files = sorted(folder.glob("*.onnx"))
        for file in files:
            # An endless loop also ends by the limit on turns, after 3 to 5 s: the deadline is to come well before.
            endless = "infinite" in file.name
            for command in (["run", file, "--random", "--timeout", "0.3" if endless else "3"], ["inspect", file]):
                code, output, _ = run([sdx, *map(str, command)], MALFORMED_LIMIT_S, env={**os.environ, "SDX_THREADS": "2"},
                                      preexec_fn=None if is_for_windows(sdx) else limit_memory)
                wrong = what_is_wrong(code, output, endless and command[0] == "run")
                if wrong is None and code == 0 and command[0] == "run" and any(
                        w in file.name for w in ("escape", "traversal", "absolute", "arbitrary")):
                    wrong = "a file outside the model's folder was read"
                if wrong:
                    failures += 1
                    print(f"FAIL {command[0]} {file.name}: {wrong}", output[:2000])
    print(f"{len(files)} malformed files, {failures} failures")
    return failures


def main():
    sdx, what = str(Path(sys.argv[1]).resolve()), sys.argv[2]
    models = find_models()
    failures = None if models is None else {"answers": answers, "half": half, "malformed": malformed}[what](sdx, models)
    if failures is None:
        print("skipped: no models")
        return SKIPPED
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
