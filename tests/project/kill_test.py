"""Kills builds, pulls and folder runs at random moments: kill_test.py SDX [KILLS]

Afterwards no file is half written, what was there before still works, and the same command completes.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent.parent / part) for part in ("cli", "support")]
from scratch import scratch  # noqa: E402
import tiny_models as tiny  # noqa: E402

FILES = 40


class Fault(Exception):
    pass


def expect(condition, what):
    if not condition:
        raise Fault(what)


def large_model(value):
    """Long enough in the writing that a kill can hit it: 24 MiB of weights."""
    count = 6 << 20
    weights = tiny.tensor("w", tiny.FLOAT, [count], tiny.floats(value) * count)
    return tiny.model([tiny.node("Add", ["X", "w"], ["Y"])], [tiny.value_info("X", tiny.FLOAT, [1])],
                      [tiny.value_info("Y", tiny.FLOAT, [count])], [weights])


def sdx(program, folder, *words, check=True):
    result = subprocess.run([program, *words], cwd=folder, capture_output=True, text=True, timeout=120,
                            env={**os.environ, "SDX_HOME": str(folder / "home")})
    if check:
        expect(result.returncode == 0, f"{words}: exit code {result.returncode}: {result.stderr}")
    return result


def duration(program, folder, words):
    start = time.monotonic()
    sdx(program, folder, *words)
    return time.monotonic() - start


def kill_at_random(program, folder, words, longest):
    process = subprocess.Popen([program, *words], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               env={**os.environ, "SDX_HOME": str(folder / "home")})
    time.sleep(random.uniform(0, longest))
    process.send_signal(signal.SIGKILL)
    return process.wait() == -signal.SIGKILL


def check_build(program, folder):
    """Whatever is in .sdx works, and there is nothing else in it once a build has completed."""
    info = folder / ".sdx" / "model_info.json"
    if info.exists():
        said = json.loads(info.read_text())
        expect((folder / ".sdx" / said["compiled"]).stat().st_size > 20 << 20, "the compiled model is cut off")
    if (folder / ".sdx" / "provider_info.json").exists():
        json.loads((folder / ".sdx" / "provider_info.json").read_text())
    first = sdx(program, folder, "run", "net", "-i", "[1]", "--json", "-o", "out.npy")
    expect(first.returncode == 0, first.stderr)


def builds(program, folder, kills):
    (folder / "net.onnx").write_bytes(large_model(1.0))
    sdx(program, folder, "init", "net.onnx", "--name", "net")
    longest = duration(program, folder, ["build"]) * 1.1
    killed = 0
    for i in range(kills):
        if i % 10 == 0:
            (folder / "net.onnx").write_bytes(large_model(float(i)))
        killed += kill_at_random(program, folder, ["build"], longest)
        if i % 5 == 0 or i == kills - 1:
            check_build(program, folder)
    sdx(program, folder, "build")
    check_build(program, folder)
    left = sorted(p.name for p in (folder / ".sdx").iterdir() if p.name != "cache")
    compiled = json.loads((folder / ".sdx" / "model_info.json").read_text())["compiled"]
    expect(left == sorted([compiled, "model_info.json", "provider_info.json"]), f"files left in .sdx: {left}")
    result = sdx(program, folder, "run", "net", "-i", "[1]", "--json")
    expect(".sdx/model-" in result.stdout and "out of date" not in result.stderr, "the build is not used")
    return killed


def pulls(program, folder, kills):
    (folder / "there.onnx").write_bytes(large_model(3.0))
    target = folder / "home" / "models" / "net"
    words = ["pull", "there.onnx", "--name", "net"]
    longest = duration(program, folder, words) * 1.1
    killed = 0
    for i in range(kills):
        if i % 10 == 0:
            shutil.rmtree(target, ignore_errors=True)
        killed += kill_at_random(program, folder, words, longest)
        if target.exists():
            expect((target / "there.onnx").stat().st_size == (folder / "there.onnx").stat().st_size, "a half-written model")
    sdx(program, folder, *words)
    expect((target / "there.onnx").read_bytes() == (folder / "there.onnx").read_bytes(), "another model than the source")
    left = [p.name for p in target.parent.iterdir()]
    expect(left == ["net"], f"files left beside the model: {left}")
    return killed


def folder_runs(program, folder, kills):
    tiny.write_all(folder)
    (folder / "in").mkdir()
    for i in range(FILES):
        (folder / "in" / f"{i:03}.json").write_text(json.dumps([i, i + 1]))
    words = ["run", "scale.onnx", "-i", "in", "-o", "out"]
    longest = duration(program, folder, words) * 1.1
    killed = 0
    for i in range(kills):
        if i % 4 == 0:
            shutil.rmtree(folder / "out", ignore_errors=True)
        killed += kill_at_random(program, folder, words, longest)
        for path in (folder / "out").glob("*.json") if (folder / "out").exists() else []:
            said = json.loads(path.read_text())
            expect(said["outputs"]["Y"]["data"] == [10 * int(path.stem), 10 * int(path.stem) + 10], f"{path.name}: {said}")
    sdx(program, folder, *words)
    left = sorted(p.name for p in (folder / "out").iterdir())
    expect(left == [f"{i:03}.json" for i in range(FILES)], f"files in out: {left}")
    return killed


def lines_runs(program, folder, kills):
    tiny.write_all(folder)
    (folder / "in.jsonl").write_text("".join(json.dumps([i, i + 1]) + "\n" for i in range(20 * FILES)))
    words = ["run", "scale.onnx", "-i", "in.jsonl", "-o", "out.jsonl"]
    longest = duration(program, folder, words) * 1.1
    killed = 0
    for i in range(kills):
        if i % 4 == 0:
            (folder / "out.jsonl").unlink(missing_ok=True)
        killed += kill_at_random(program, folder, words, longest)
        if (folder / "out.jsonl").exists():
            expect(len((folder / "out.jsonl").read_text().splitlines()) == 20 * FILES, "a half-written out.jsonl")
    sdx(program, folder, *words)
    lines = [json.loads(line) for line in (folder / "out.jsonl").read_text().splitlines()]
    expect([line["outputs"]["Y"]["data"][0] for line in lines] == [10 * i for i in range(20 * FILES)], "wrong lines")
    left = sorted(p.name for p in folder.iterdir() if p.name.startswith("out.jsonl"))
    expect(left == ["out.jsonl"], f"files left: {left}")
    return killed


def main():
    program = str(Path(sys.argv[1]).resolve())
    kills = int(sys.argv[2]) if len(sys.argv) > 2 else 100
    only = sys.argv[3:]
    failed = False
    for test in (builds, pulls, folder_runs, lines_runs):
        if only and test.__name__ not in only:
            continue
        with scratch() as folder:
            try:
                killed = test(program, folder, kills)
                print(f"{test.__name__}: {killed} of {kills} killed before they were done, nothing half written")
            except Fault as fault:
                failed = True
                print(f"FAIL {test.__name__}: {fault}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
