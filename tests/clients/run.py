"""run.py CLIENT PROJECT PACKAGE: runs one of the published programs (clients.py) twice, on ONNX Runtime and, with the shim before it on the
path, on Sardonyx (PACKAGE: the folder that holds the package), and compares what it finds: texts to the letter, boxes to a pixel, scores to
a thousandth. Exit code 77 where tools/clients_env.sh could not install the programs."""

import json
import os
import subprocess
import sys
from pathlib import Path

TOLERANCES = {"boxes": 1.0, "scores": 1e-3}
SKIPPED = 77


def findings(python, script, client, path):
    # Without user's packages and settings; a Python that warns of everything must not matter.
    env = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    env["PYTHONPATH"] = os.pathsep.join(path)
    done = subprocess.run([python, "-B", script, client], env=env, capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        sys.exit(f"{client} failed ({done.returncode}) with PYTHONPATH={env['PYTHONPATH']}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def differences(wanted, found, tolerance, where):
    if isinstance(wanted, dict) and isinstance(found, dict) and wanted.keys() == found.keys():
        return [d for k in wanted for d in differences(wanted[k], found[k], TOLERANCES.get(k, tolerance), f"{where}.{k}")]
    if isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        return [d for i, (a, b) in enumerate(zip(wanted, found)) for d in differences(a, b, tolerance, f"{where}[{i}]")]
    numbers = isinstance(wanted, (int, float)) and isinstance(found, (int, float))
    same = abs(wanted - found) <= tolerance if numbers else wanted == found
    return [] if same else [f"{where}: ONNX Runtime {wanted!r}, Sardonyx {found!r}"]


def main():
    client, project, package = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
    here = project / "tests" / "clients"
    python = project / "build" / "clients-venv" / "bin" / "python"
    if not python.exists():
        print(f"{python} is missing: tools/clients_env.sh makes it")
        return SKIPPED
    wanted = findings(python, here / "clients.py", client, [])
    found = findings(python, here / "clients.py", client, [str(here / "shim"), package])
    engines = wanted.pop("engine"), found.pop("engine")
    if engines != ("onnxruntime", "sardonyx"):
        sys.exit(f"ran on {engines}")
    if not any(wanted["texts"]):
        sys.exit(f"{client} finds nothing at all")
    wrong = differences(wanted, found, 0, client)
    print("\n".join(wrong) if wrong else f"{client}: the same on both")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
