#!/usr/bin/env python3
"""run.py [--system bookworm|trixie|sid] [--way WAY ...] [--packages FOLDER]: how long it takes from an empty machine to the first answer.

Each WAY runs in a throw-away copy of a bare Debian, which debootstrap makes once in build/bare-install/SYSTEM, with nothing but git, make and
ca-certificates. `package` and `pip` install what `make packages` made (FOLDER, build/packages); `demo`, `native`, `build` and `test` clone this
checkout's commit and run `make demo`, `make build` and `make test`; `native` is `make build PRESET=native`. Times are those of the wall clock, with all downloads. They become rows of
bench/results/install.md, which keeps the other rows. Needs root, debootstrap, unshare and a connection, and a machine without other work."""

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
RESULTS = PROJECT / "bench/results/install.md"
ROOTS = PROJECT / "build/bare-install"
SYSTEMS = {"bookworm": "Debian 12, s", "trixie": "Debian 13, s", "sid": "Debian sid, s"}
WAYS = {
    "package": ("download of a package to the first answer", "`apt-get install ./sardonyx_….deb ./libsardonyx0_….deb`, `sdx run`"),
    "pip": ("pip install to the first answer", "`python3 -m venv`, `pip install sardonyx-….whl`, `python -c …`"),
    "demo": ("source build to the first answer", "`git clone`, `make demo`"),
    "native": ("source build of the whole command for the machine", "`git clone`, `make build PRESET=native`"),
    "build": ("source build of the whole command", "`git clone`, `make build`"),
    "test": ("source build and all tests", "`git clone`, `make test`"),
}
INSIDE = {
    "package": "apt-get update -qq && apt-get install -qq -y /packages/sardonyx_*.deb /packages/libsardonyx0_*.deb >/dev/null && sdx run --random /answer/model.onnx",
    "pip": "python3 -m venv /root/venv && /root/venv/bin/pip install -q /packages/sardonyx-*manylinux*.whl && /root/venv/bin/python /answer/run.py",
}
# What a user of Python has before, and so is not part of the time.
BEFORE = {"pip": "apt-get update -qq && apt-get install -qq -y --no-install-recommends python3-venv >/dev/null"}
MOUNTS = """
set -eu
mount -t overlay overlay -o "lowerdir=$1,upperdir=$2/up,workdir=$2/work" "$2/root"
cp /etc/resolv.conf "$2/root/etc/resolv.conf"
mount -t proc proc "$2/root/proc"
mount --rbind /dev "$2/root/dev"
mkdir -p "$2/root/sources" "$2/root/packages" "$2/root/answer"
mount --bind "$3" "$2/root/sources"
[ -z "$4" ] || mount --bind "$4" "$2/root/packages"
mount --bind "$5" "$2/root/answer"
root=$2/root
shift 5
exec chroot "$root" "$@"
"""


def bare(system):
    root = ROOTS / system
    if (root / "made").exists():
        return root
    shutil.rmtree(root, ignore_errors=True)
    ROOTS.mkdir(parents=True, exist_ok=True)
    subprocess.run(["debootstrap", "--variant=minbase", "--include=git,make,ca-certificates", system, root], check=True, stdout=subprocess.DEVNULL)
    # A machine's own certificates, where it reaches packages through a proxy that has one.
    shutil.copy("/etc/ssl/certs/ca-certificates.crt", root / "etc/ssl/certs/ca-certificates.crt")
    (root / "made").touch()
    return root


def answer(folder):
    """A model of one operator, and the program that runs it in Python."""
    sys.path.append(str(PROJECT / "tests/cli"))
    import tiny_models

    folder.mkdir(exist_ok=True)
    inputs = [tiny_models.value_info(name, tiny_models.FLOAT, [2, 3]) for name in ("x", "y")]
    model = tiny_models.model([tiny_models.node("Add", ["x", "y"], ["z"])], inputs, [tiny_models.value_info("z", tiny_models.FLOAT, [2, 3])])
    (folder / "model.onnx").write_bytes(model)
    (folder / "run.py").write_text(
        "import numpy, sardonyx\n"
        "session = sardonyx.InferenceSession('/answer/model.onnx')\n"
        "print(session.run(None, {name: numpy.ones([2, 3], numpy.float32) for name in ('x', 'y')}))\n"
    )
    return folder


def inside(root, scratch, packages, command):
    environment = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"}
    environment |= {name: os.environ[name] for name in ("http_proxy", "https_proxy", "PIP_INDEX_URL") if name in os.environ}
    words = [f"{name}={value}" for name, value in environment.items()]
    subprocess.run(
        ["unshare", "--mount", "--propagation", "private", "sh", "-c", MOUNTS, "sh", root, scratch, ROOTS / "sources.git", packages or "", ROOTS / "answer",
         "/usr/bin/env", "-i", *words, "sh", "-euc", command],
        check=True, stdout=subprocess.DEVNULL)  # fmt: skip


def measure(system, way, packages):
    root, scratch = bare(system), ROOTS / f"run-{system}-{way}"
    shutil.rmtree(scratch, ignore_errors=True)
    for part in ("up", "work", "root"):
        (scratch / part).mkdir(parents=True)
    command = INSIDE.get(way, f"git clone -q /sources /root/sardonyx && cd /root/sardonyx && make {'build PRESET=native' if way == 'native' else way}")
    if way in BEFORE:
        inside(root, scratch, packages, BEFORE[way])
    start = time.monotonic()
    inside(root, scratch, packages, command)
    took = time.monotonic() - start
    shutil.rmtree(scratch)
    return took


def table(text):
    """{(way, system): cell} of the table in the results."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    systems = [cell.strip() for cell in lines[0].strip("|").split("|")][1:] if lines else []
    cells = {}
    for line in lines[2:]:
        name, *values = (cell.strip() for cell in line.strip("|").split("|"))
        if len(values) != len(systems) or name not in {title for title, _ in WAYS.values()}:
            break
        cells |= {(name, system): value for system, value in zip(systems, values)}
    return cells


def processor():
    found = re.search(r"model name\s*:\s*(.*)", Path("/proc/cpuinfo").read_text())
    return found[1] if found else "unknown"


def written(cells):
    systems = list(SYSTEMS.values())
    rows = [f"| {title} | " + " | ".join(cells.get((title, system), "–") for system in systems) + " |" for title, _ in WAYS.values()]
    commands = [f"| {title} | {shown} |" for title, shown in WAYS.values()]
    return "\n".join([
        "# From an empty machine to the first answer", "",
        f"{os.cpu_count()} cores, {processor()}. The machine is a chroot that `debootstrap` made, with nothing but `git`, `make` and",
        "`ca-certificates`. The first answer is that of `sdx run` (`InferenceSession.run` in Python, where Python is there already) with a small",
        "model that is there already; of the sources, the pictures of `make demo`. Times include downloads of what the system lacks. A dash: not",
        "measured. `make bench-install` measures them ([run.py](../install/run.py)).", "",
        "| way | " + " | ".join(systems) + " |", "|---|" + "--:|" * len(systems), *rows, "",
        "| way | commands |", "|---|---|", *commands, ""])  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--system", choices=SYSTEMS, default="bookworm")
    parser.add_argument("--way", choices=WAYS, nargs="+", default=list(WAYS))
    parser.add_argument("--packages", type=Path, default=PROJECT / "build/packages")
    given = parser.parse_args()
    packages = given.packages.resolve() if {"package", "pip"} & set(given.way) else None
    if packages and not any(packages.glob("*.deb")):
        sys.exit(f"run.py: there are no packages in {packages}; `make packages` makes them")
    ROOTS.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(ROOTS / "sources.git", ignore_errors=True)
    subprocess.run(["git", "clone", "-q", "--bare", "--no-hardlinks", PROJECT, ROOTS / "sources.git"], check=True)
    answer(ROOTS / "answer")
    cells = table(RESULTS.read_text()) if RESULTS.exists() else {}
    for way in given.way:
        took = measure(given.system, way, packages)
        print(f"{given.system} {way}: {took:.0f} s", flush=True)
        cells[(WAYS[way][0], SYSTEMS[given.system])] = f"{took:.0f}"
        RESULTS.write_text(written(cells))


if __name__ == "__main__":
    main()
