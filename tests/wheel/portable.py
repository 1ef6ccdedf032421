"""portable.py PROJECT BUILD SUITE: installs a portable build (docs/design/portable.md) into a bare Debian (bullseye, bookworm, trixie: tools/bare_root.sh
makes it) and runs there, with that system's Python, all cases of tests/cli but those of what portable builds lack, the program
portable_probe.cc, and a speed test of starting. Exit code 77: skipped, with the reason."""

import json
import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from scratch import scratch  # noqa: E402

SKIPPED = 77

# In a namespace of its own, which ends with this command.
INSIDE = """set -e
mount --make-rprivate /
mount -t tmpfs none "$ROOT/mnt"
mount -t tmpfs none "$ROOT/tmp"
mkdir "$ROOT/mnt/sardonyx" "$ROOT/mnt/tests"
mount --bind "$INSTALLED" "$ROOT/mnt/sardonyx"
mount --bind "$TESTS" "$ROOT/mnt/tests"
mount -t proc none "$ROOT/proc"
mount --rbind /dev "$ROOT/dev"
exec chroot "$ROOT" /usr/bin/env -i PATH=/usr/bin:/bin HOME=/mnt LC_ALL=C.UTF-8 /bin/sh -c "cd /mnt && $COMMAND"
"""


def skip(why):
    print(why)
    sys.exit(SKIPPED)


def inside(root, installed, tests, command):
    env = {**os.environ, "ROOT": str(root), "INSTALLED": str(installed), "TESTS": str(tests), "COMMAND": command}
    own_names = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    return subprocess.run(["unshare", *own_names, "--mount", "sh", "-c", INSIDE], env=env, capture_output=True, text=True)


def expect(what, done, *lines):
    missing = [line for line in lines if line not in done.stdout]
    if done.returncode != 0 or missing:
        sys.exit(f"{what} failed ({done.returncode}); expected {missing}\n{done.stdout[-6000:]}\n{done.stderr[-6000:]}")
    print(f"{what}: {done.stdout.strip().splitlines()[-1]}")


def main():
    project, build, suite = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve(), sys.argv[3]
    root = project / "build" / ("bare-debian" if suite == "bookworm" else f"bare-{suite}")
    if not (root / "made-of.txt").exists():
        skip(f"{root} is missing: tools/bare_root.sh {suite} makes it")
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode != 0:
        skip("this machine allows no mount namespaces")
    probe = build / "bin" / "sdx_portable_probe"
    # A bare system has no libsndfile.
    cases = [case for case in sorted((project / "tests" / "cli").glob("*.txt")) if case.name != "sound.txt"]
    with scratch(build) as work:
        subprocess.run(["cmake", "--install", str(build), "--prefix", str(work), "--strip"], check=True, stdout=subprocess.DEVNULL)
        (work / "bin" / probe.name).write_bytes(probe.read_bytes())
        (work / "bin" / probe.name).chmod(0o755)

        def run(command):
            return inside(root, work, project / "tests", command)

        libc = run("getconf GNU_LIBC_VERSION; sardonyx/bin/sdx --version")
        expect(suite, libc, "glibc ", "sdx")
        expect("probe", run("sardonyx/bin/sdx_portable_probe"), "right\nfarewell\n")
        names = " ".join(f"tests/cli/{case.name}" for case in cases)
        expect("command line", run(f"python3 -B tests/cli/run_cases.py sardonyx/bin/sdx {names}"), f"{len(cases)} case files, 0 failures")
    print(json.dumps({"suite": suite, "libc": libc.stdout.split()[1]}))


if __name__ == "__main__":
    main()
