"""Runs sdx_conformance over one release of ONNX's test data: run_data.py RUNNER SOURCE_DIR BUILD_DIR RELEASE [arguments of RUNNER]

RELEASE  debian   Debian's libonnx-testdata
         wheel    the newest package of the Python index that carries its node data (requirements.txt), which tools/python_env.sh fetches
         archive  onnx_backend_tests.tar.xz beside the folder that SDX_TEST_MODELS names, unpacked into BUILD_DIR
         newest   the first of archive, wheel and debian that is there

Exit code 77 (skipped) where the data are not there. A RUNNER that ends in .exe runs under Wine.
"""

import fcntl
import os
import shutil
import sys
import tarfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from emulator import command_of  # noqa: E402
from model_files import SKIPPED, find_models  # noqa: E402

ARCHIVE = "onnx_backend_tests.tar.xz"


def debian(source, build):
    return Path("/usr/lib/python3/dist-packages/onnx/backend/test/data")


def wheel(source, build):
    return source / "build" / "python-venv" / "onnx-data" / "onnx" / "backend" / "test" / "data"


def archive(source, build):
    """Unpacked once; again when the archive is another one."""
    models = find_models()
    file = models.parent / ARCHIVE if models else None
    if not file or not file.is_file():
        return Path("/nonexistent")
    target = build / "onnx_backend_tests"
    stamp = target / "stamp"
    identity = f"{file.stat().st_size} {file.stat().st_mtime_ns}"
    build.mkdir(parents=True, exist_ok=True)
    with open(build / "onnx_backend_tests.lock", "w") as lock:  # tests run side by side
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not stamp.is_file() or stamp.read_text() != identity:
            shutil.rmtree(target, ignore_errors=True)
            with tarfile.open(file) as tar:
                tar.extractall(target, filter="data")
            stamp.write_text(identity)
    return target / "onnx_backend_tests"


RELEASES = {"archive": archive, "wheel": wheel, "debian": debian}
KINDS = ("node", "simple", "light", "pytorch-operator", "pytorch-converted")


def main():
    runner, source, build, release, *arguments = sys.argv[1:]
    source, build = Path(source), Path(build)
    for name in RELEASES if release == "newest" else [release]:
        data = RELEASES[name](source, build)
        folders = [data / kind for kind in KINDS if (data / kind).is_dir()]
        # A package without node data would pass by running next to nothing.
        if data / "node" in folders:
            print(f"data: {name}", flush=True)
            command = command_of(runner)
            os.execv(command[0], [*command, "--release", name, *arguments, *map(str, folders)])
    print(f"no data: {release}")
    return SKIPPED


if __name__ == "__main__":
    sys.exit(main())
