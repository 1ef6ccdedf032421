"""static_test.py SDX [EMULATOR]: the static command (SDX_STATIC) in a root that has nothing but it, small models, /tmp and the programs
that the emulator of another processor needs. Needs root or user namespaces; without both, exit code 77. An SDX that ends in .exe runs under
Wine instead, which knows no such roots, in a folder with the same models."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent
for folder in ("cli", "support"):
    sys.path.insert(0, str(TESTS / folder))
import tiny_models  # noqa: E402
from emulator import command_of, is_for_windows, with_slashes  # noqa: E402
from scratch import scratch  # noqa: E402

# Command line, exit code, parts of the output and of the messages. Texts are compared without regard to line ends.
CASES = [
    ("--version", 0, ["0.1.0"]),
    ("doctor", 0, ["part of the command", "libraries works text, speech, vision, quantize, train, yaml, onig", "this program is one static file", "All that is installed works."]),
    ("inspect /models/add.onnx", 0, ["Add"]),
    ("explain /models/add.onnx", 0, ["Add", "cpu"]),
    ("run /models/add.onnx -i A=[1,2] -i B=[3,4]", 0, ["{4, 6}"]),
    ("run /models/add.onnx --random --threads 4 --benchmark --runs 3", 0, ["ms"]),
    ("run /models/missing.onnx --random", 1, ["missing.onnx"]),
    ("run /models/broken.onnx --random", 1, ["broken.onnx"]),
    ("run /models/project -i /models/red.png", 0, ["{-1, -1, -1, -1, -1, -1, -1, -1, 1, 1, 1, 1}"]),
    ("convert /models/add.onnx -o /tmp/add.onnx", 0, []),
    ("quantize /models/classifier.onnx -o /tmp/quantized.onnx", 0, []),
    ("faces crop /models/light.png -m /models/faces.onnx -o /tmp/crops", 0, ["1 face"]),
    ("inspect /tmp/quantized.onnx", 0, ["MatMulInteger"]),
    ("tokenize /models/letters/tokenizer.json ab", 0, ["1 4 2"]),
    ("generate /models/talker.gguf -p ab --max-tokens 3 --greedy", 0, []),
    ("providers", 0, ["cpu", "one static file"]),
    ("run /models/add.onnx --random --provider ort:cpu", 0, ["using cpu: this program is one static file"]),
    ("run /models/add.onnx --random --custom-ops /sdx", 1, ["one static file"]),
    ("serve /models/add.onnx", 1, ["one static file"]),
    ("no-such-command", 2, []),
]
# What Windows' command, which can load libraries, says instead.
ON_WINDOWS = {
    "providers": (0, ["cpu"]),
    "run /models/add.onnx --random --provider ort:cpu": (0, ["using cpu"]),
    "run /models/add.onnx --random --custom-ops /sdx": (1, ["/sdx"]),
}


def make_root(sdx: Path, root: Path) -> None:
    for name in ("models", "tmp", "dev", "proc"):
        (root / name).mkdir()
    shutil.copy(sdx, root / "sdx")
    tiny_models.write_all(root / "models")


def command_in(root: Path, emulator: str) -> list[str]:
    inside = ["/sdx"]
    if emulator:
        found = shutil.which(emulator)
        if found is None:
            sys.exit(f"static_test: there is no {emulator}")
        ldd = subprocess.run(["ldd", found], capture_output=True, text=True)
        needed = [word for word in ldd.stdout.split() if word.startswith("/")]
        for file in [found, *needed]:
            to = root / file[1:]
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, to)
        inside = [found, "/sdx"]
    enter = ["chroot", str(root)] if os.getuid() == 0 else ["unshare", "--map-root-user", "chroot", str(root)]
    return [*enter, *inside]


def cases_for(sdx: Path, root: Path) -> list[tuple]:
    if not is_for_windows(sdx):
        return CASES
    cases = []
    for line, code, parts in CASES:
        code, parts = ON_WINDOWS.get(line, (code, parts))
        cases.append((" ".join(f"{root}{word}" if word.startswith("/") else word for word in line.split()), code, parts))
    return cases


def main() -> int:
    sdx, emulator = Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else ""
    environment = {"PATH": os.environ["PATH"] + ":/usr/sbin:/sbin", "HOME": "/tmp", "XDG_CACHE_HOME": "/tmp/cache"}
    failures = 0
    with scratch() as root:
        make_root(sdx, root)
        command = command_of(sdx) if is_for_windows(sdx) else command_in(root, emulator)
        if subprocess.run([*command, "--version"], env=environment, capture_output=True).returncode in (125, 126, 127) and os.getuid() != 0:
            print("static_test: neither root nor user namespaces; not tested")
            return 77
        cases = cases_for(sdx, root)
        for line, code, parts in cases:
            done = subprocess.run([*command, *line.split()], env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=300)
            said = " ".join((done.stdout + done.stderr).split())
            if is_for_windows(sdx):
                said = with_slashes(said)
            missing = [part for part in parts if part not in said]
            if done.returncode != code or missing:
                failures += 1
                print(f"sdx {line}: exit code {done.returncode} instead of {code}, without {missing}:\n{done.stdout}{done.stderr}")
    print(f"static_test: {len(cases) - failures} of {len(cases)} commands work {'under Wine' if is_for_windows(sdx) else 'in an empty root'}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
