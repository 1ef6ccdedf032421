"""sdx doctor on copies of an installation with something broken: broken_installation.py SDX

The copy has the command in bin/, and links to the libraries of the build in lib/, of which each test replaces some.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from scratch import scratch  # noqa: E402

faults = []


def expect(truth, what):
    if not truth:
        faults.append(what)
        print("FAIL", what)


class Installation:
    def __init__(self, sdx, folder):
        self.folder = folder
        self.lib = folder / "lib"
        (folder / "bin").mkdir(parents=True)
        (self.lib / "sardonyx").mkdir(parents=True)
        self.sdx = shutil.copy(sdx, folder / "bin")
        built = sdx.parent.parent / "lib"
        for file in [*built.glob("libsdx*.so*"), *built.glob("sardonyx/*.so*")]:
            (self.lib / file.relative_to(built)).symlink_to(file.resolve())

    def doctor(self, *words, before=(), **variables):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("SDX_")}
        environment.update({"LD_LIBRARY_PATH": str(self.lib), "SDX_ORT_LIB": "none", "SDX_OPENVINO_LIB": "none",
                            "SDX_HOME": str(self.folder / "home"), "SDX_CACHE_DIR": str(self.folder / "cache"), **variables})
        return subprocess.run([*before, self.sdx, "doctor", *words], cwd=self.folder, env=environment, capture_output=True, text=True,
                              timeout=60, check=False)

    def facts(self, **options):
        """The exit code, the whole answer, and the libraries by name."""
        result = self.doctor("--json", **options)
        expect(result.stdout.startswith("{"), f"no JSON: exit code {result.returncode}: {result.stderr[-500:]}")
        facts = json.loads(result.stdout or "{}")
        return result.returncode, facts, {p["name"]: p for p in facts.get("libraries", [])}

    def replace(self, name, content):
        path = self.lib / name
        path.unlink()
        path.write_bytes(content)


def check_whole(i):
    code, facts, parts = i.facts()
    expect(code == 0 and facts["ok"] and not facts["problems"], f"a whole installation: exit code {code}: {facts['problems']}")
    expect(facts["libsdx"]["same_build"], "libsdx is of another build")
    for name in ("text", "speech", "vision", "quantize", "train", "serve", "grpc", "faces page", "hub", "yaml"):
        expect(parts[name]["state"] == "works", f"{name} of a whole installation: {parts[name]}")
    expect(not any((i.folder / name).exists() for name in ("home", "cache")), "it made a folder")
    for columns in ("80", "100"):
        text = i.doctor(COLUMNS=columns).stdout
        lines = [line for line in text.splitlines() if " absent " not in line]  # of a build with parts left out
        expect(len(lines) <= 24, f"{len(lines)} lines in {columns} columns:\n{text}")
    return facts


def check_parts(i):
    """A missing, a damaged, a mistaken, and a needy library."""
    (i.lib / "sardonyx/libsdx_yaml.so").unlink()
    code, facts, parts = i.facts()
    expect(code == 0 and parts["yaml"]["state"] == "absent", f"without yaml: exit code {code}: {parts['yaml']}")

    quantize = (i.lib / "libsdx_quantize.so.0").read_bytes()
    i.replace("libsdx_quantize.so.0", quantize[:len(quantize) // 2])
    shutil.copy(i.lib / "sardonyx/libsdx_hub.so", i.lib / "sardonyx/libsdx_yaml.so")
    code, facts, parts = i.facts()
    expect(code == 1 and not facts["ok"] and len(facts["problems"]) == 2, f"two broken libraries: exit code {code}: {facts['problems']}")
    expect(parts["quantize"]["state"] == "fails" and parts["quantize"]["reason"], f"half a library: {parts['quantize']}")
    expect(parts["yaml"]["reason"] == "it has no function sdx_yaml_module", f"another library: {parts['yaml']}")
    expect(all(parts[name]["state"] == "works" for name in ("hub", "serve", "grpc")), "others do not work")
    text = i.doctor(COLUMNS="300").stdout
    expect("yaml       fails " in text and "it has no function sdx_yaml_module. To fix it: install all files of this release" in text, text)

    tiff = i.lib / "sardonyx/libsdx_tiff.so"
    if tiff.exists():
        needed = b"\0libtiff.so."
        expect(needed in tiff.read_bytes(), "libsdx_tiff.so needs no libtiff.so")
        i.replace("sardonyx/libsdx_tiff.so", tiff.read_bytes().replace(needed, b"\0libtifx.so."))
        part = i.facts()[2]["tiff"]
        expect(part["state"] == "absent" and "libtifx.so." in part["reason"] and "package" in part["hint"], f"without libtiff: {part}")


def check_builds(i, build):
    engine = (i.lib / "libsdx.so.0").read_bytes()
    expect(engine.count(build.encode()) == 1, "libsdx.so has not its build")
    i.replace("libsdx.so.0", engine.replace(build.encode(), build[::-1].encode()))
    code, facts, _ = i.facts()
    expect(code == 1 and facts["libsdx"]["same_build"] is False and "libsdx" in facts["problems"][0],
           f"two builds: exit code {code}: {facts['problems']}")


def check_cache(i):
    """A folder that cannot be written: root can write to all but those that are mounted so."""
    folder = i.folder / "closed"
    folder.mkdir()
    before = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs -o ro none "$0" && exec "$@"', str(folder)]
    if os.geteuid() != 0:
        before = []
        folder.chmod(0o555)
    elif subprocess.run([*before, "true"], capture_output=True, check=False).returncode != 0:
        print("no folder that root cannot write to: unshare or mount is not allowed")
        return
    code, facts, _ = i.facts(before=before, SDX_CACHE_DIR=str(folder / "cache"))
    expect(code == 1 and "cannot write to" in (facts["cache"]["problem"] or ""), f"a closed folder: exit code {code}: {facts['cache']}")


def main():
    sdx = Path(sys.argv[1]).resolve()
    with scratch() as folder:
        facts = check_whole(Installation(sdx, folder / "whole"))
        check_parts(Installation(sdx, folder / "parts"))
        check_builds(Installation(sdx, folder / "builds"), facts["libsdx"]["build"])
        check_cache(Installation(sdx, folder / "cache"))
    print(f"{len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
