"""dropin.py PROJECT BUILD: packs the wheel sardonyx-onnxruntime and installs it, with the wheel of wheel.pack, in a fresh environment, then a
package that depends on onnxruntime, and runs that. Exit code 77: skipped, with the reason."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from scratch import scratch  # noqa: E402

SKIPPED = 77
# What packages ask of an installed ONNX Runtime.
CLIENT = '''
import ctypes, glob, importlib.metadata, importlib.util, json, os
import numpy as np
import onnxruntime as ort
from onnxruntime.capi import _pybind_state
from onnxruntime.datasets import get_example

session = ort.InferenceSession(get_example("mul_1.onnx"), providers=["CPUExecutionProvider"])
x = np.arange(6, dtype=np.float32).reshape(3, 2)
class Base(ctypes.Structure):
    _fields_ = [("api", ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint32)), ("version", ctypes.CFUNCTYPE(ctypes.c_char_p))]
folder = importlib.util.find_spec("onnxruntime").submodule_search_locations[0]
library = ctypes.CDLL(glob.glob(os.path.join(folder, "capi", "libonnxruntime.so*"))[0])
library.OrtGetApiBase.restype = ctypes.POINTER(Base)
base = library.OrtGetApiBase().contents
import sardonyx
print(json.dumps({
    "sums": session.run(None, {"X": x})[0].tolist(),
    "distribution": importlib.metadata.version("onnxruntime"),
    "package": ort.__version__,
    "library": base.version().decode(),
    "table": base.api(22) is not None,
    "real": [p["name"] for p in sardonyx.providers() if "ort" in str(p.get("runtime", "")) and p.get("available")],
    "place": folder,
}))
'''


def make_client(path):
    about = "needs_onnxruntime-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("needs_onnxruntime/__main__.py", CLIENT)
        wheel.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: needs-onnxruntime\nVersion: 1.0\nRequires-Dist: onnxruntime>=1.19\n")
        wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nGenerator: dropin.py\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{about}/RECORD", f"needs_onnxruntime/__main__.py,,\n{about}/METADATA,,\n{about}/WHEEL,,\n{about}/RECORD,,\n")


def run(*command):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "LD_", "PIP_"))}
    done = subprocess.run([str(c) for c in command], env=env, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} failed ({done.returncode})\n{done.stdout}\n{done.stderr}")
    return done.stdout


def fresh_environment(folder):
    """With this interpreter's NumPy, by links, and nothing else of it."""
    run(sys.executable, "-m", "venv", folder)
    site = next(folder.glob("lib/python3*/site-packages"))
    here = Path(np.__file__).parent.parent
    for part in (*here.glob("numpy"), *here.glob("numpy.libs"), *here.glob("numpy-*.dist-info")):
        (site / part.name).symlink_to(part)
    return folder / "bin" / "python", site


def main():
    project, build = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    wheels, ours = project / "build" / "wheel", project / "build" / "dropin-wheel"
    if not list(wheels.glob("sardonyx-*.whl")):
        print("no wheel is packed: tools/wheel.sh makes one")
        return SKIPPED
    code = subprocess.run([project / "tools" / "dropin_wheel.sh", build, ours]).returncode
    if code != 0:
        return code
    with scratch(build) as work:
        python, site = fresh_environment(work / "venv")
        pip = (python, "-m", "pip", "--disable-pip-version-check", "-q")
        client = work / "needs_onnxruntime-1.0-py3-none-any.whl"
        make_client(client)
        run(*pip, "install", "--no-index", "--find-links", wheels, *ours.glob("*.whl"))
        run(*pip, "install", "--no-index", client)
        run(*pip, "check")
        found = json.loads(run(python, "-m", "needs_onnxruntime").splitlines()[-1])
        run(*pip, "uninstall", "-y", "sardonyx-onnxruntime")
        left = [p.name for p in site.glob("*onnxruntime*") if not p.name.startswith("needs")]
    print(found)
    if found["sums"] != [[0.0, 2.0], [6.0, 12.0], [20.0, 30.0]]:
        sys.exit("the answer is wrong")
    if {found["distribution"], found["package"], found["library"]} != {found["package"]} or not found["table"]:
        sys.exit("versions differ, or there is no table of functions")
    if not found["place"].startswith(str(site)):
        sys.exit("another onnxruntime ran")
    if found["real"]:
        sys.exit("our library was taken for a real ONNX Runtime")
    if left:
        sys.exit(f"after uninstalling there are still {left}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
