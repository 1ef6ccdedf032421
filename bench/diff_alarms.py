"""How often `sdx diff` is wrong on this machine: diff_alarms.py SDX [--pairs 100] [--runs N] [--json FILE]

Measures a small model again and again. Every benchmark is compared with the one before it: nothing has changed, so whatever is not
NEUTRAL is a false alarm. Every few benchmarks a model with 10 % more of the same work is measured and compared with its neighbour: a
planted slowdown, which should be a REGRESSION. Needs the standard library only.
"""

import argparse
import json
import os
import random
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "cli"))
import tiny_models as tm  # noqa: E402  writes ONNX files without further packages


def chain(layers, width):
    """x -> MatMul -> Relu -> MatMul -> … : `layers` times the same work."""
    rng = random.Random(1)
    raw = b"".join(struct.pack("<f", rng.uniform(-1, 1) / width) for _ in range(width * width))
    nodes, value = [], "x"
    for i in range(layers):
        product = tm.node("MatMul", [value, "w"], [f"m{i}"]).replace(b"MatMul_0", b"M%07d" % i)  # ONNX Runtime wants names to differ
        nodes += [product, tm.node("Relu", [f"m{i}"], [f"r{i}"]).replace(b"Relu_0", b"R%05d" % i)]
        value = f"r{i}"
    return tm.model(nodes, [tm.value_info("x", tm.FLOAT, [64, width])], [tm.value_info(value, tm.FLOAT, [64, width])],
                    [tm.tensor("w", tm.FLOAT, [width, width], raw)])


def measure(sdx, model, out, args):
    command = [sdx, "bench", model, "-b", "cpu", "-t", "1", "-n", str(args.runs), "--json", out]
    if args.processes:
        command += ["--processes", str(args.processes)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def processes(path):
    return json.loads(path.read_text())["results"][0]["processes"]


def compare(sdx, base, current):
    result = subprocess.run([sdx, "diff", base, current, "--different-models", "--json", "--no-fail"], check=True, capture_output=True, text=True)
    return json.loads(result.stdout)["results"][0]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("sdx")
    parser.add_argument("--pairs", type=int, default=100)
    parser.add_argument("--planted", type=int, default=25, help="pairs with a slowdown of 10 %%")
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--processes", type=int, default=0, help="0: what sdx bench does by itself")
    parser.add_argument("--width", type=int, default=192)
    parser.add_argument("--json", help="write what was found")
    args = parser.parse_args()
    alarms, found, changes, slow_changes, plain_processes, slow_processes = [], [], [], [], [], []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        plain, slow = folder / "plain.onnx", folder / "slow.onnx"
        plain.write_bytes(chain(10, args.width))
        slow.write_bytes(chain(11, args.width))
        files = [folder / "a.json", folder / "b.json"]
        measure(args.sdx, plain, files[0], args)
        plain_processes.append(processes(files[0]))
        for i in range(args.pairs):
            base, current = files[i % 2], files[(i + 1) % 2]
            measure(args.sdx, plain, current, args)
            plain_processes.append(processes(current))
            entry = compare(args.sdx, base, current)
            alarms.append(entry["verdict"])
            changes.append(entry["change_percent"])
            if entry["verdict"] != "NEUTRAL":
                print(f"pair {i}: {entry['verdict']} {entry['change_percent']:+.1f} % p={entry['p_value']:.3g} {entry['why']}", flush=True)
            if (i + 1) * args.planted // args.pairs > i * args.planted // args.pairs:
                measure(args.sdx, slow, folder / "slow.json", args)
                entry = compare(args.sdx, current, folder / "slow.json")
                found.append(entry["verdict"])
                slow_processes.append({"after": i + 1, "processes": processes(folder / "slow.json")})
                slow_changes.append(entry["change_percent"])
                print(f"planted: {entry['verdict']} {entry['change_percent']:+.1f} % {entry['why']}", flush=True)
    false = sum(v != "NEUTRAL" for v in alarms)
    hits = sum(v == "REGRESSION" for v in found)
    spread = sorted(abs(c) for c in changes)
    print(f"{false} false alarms in {len(alarms)} reruns; {hits} of {len(found)} planted slowdowns of 10 % found; reruns differed by "
          f"{spread[len(spread) // 2]:.1f} % (median), {spread[int(len(spread) * 0.95)]:.1f} % (95th percentile); load average "
          f"{os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    if args.json:
        Path(args.json).write_text(json.dumps({"false_alarms": false, "reruns": len(alarms), "found": hits, "planted": len(found),
                                               "changes": changes, "planted_changes": slow_changes,
                                               "plain_processes": plain_processes, "slow_processes": slow_processes}) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
