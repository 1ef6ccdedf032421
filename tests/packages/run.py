"""run.py PROJECT PACKAGES ROOT [PART...]: tests the packages in the folder PACKAGES (tools/packages.sh), in copies of the bare Debian in the
folder ROOT (tests/packages/root.sh), as root.

PARTs: lintian; contents (what is and is not inside, checksums, the list of what is inside); tarball (two places); static (the static command in
an empty root); deb (installing, running, compiling, removing); sdist. Without PARTs, all of them."""

import gzip
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

PROJECT, PACKAGES, ROOT = (Path(word).resolve() for word in sys.argv[1:4])
sys.path += [str(PROJECT / "tests/support"), str(PROJECT / "tests/cli"), str(PROJECT / "tools")]
import tiny_models  # noqa: E402
from scratch import scratch  # noqa: E402

DEBS = ["sardonyx", "libsardonyx0", "libsardonyx-dev", "libsardonyx-onnxruntime1", "python3-sardonyx"]


def check(condition, *what):
    if not condition:
        raise AssertionError(what)


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, **options)
    check(done.returncode == 0, command, done.stdout[-4000:], done.stderr[-4000:])
    return done.stdout


def one(pattern):
    found = sorted(PACKAGES.glob(pattern))
    check(len(found) == 1, f"there are {len(found)} files {pattern} in {PACKAGES}")
    return found[0]


def deb(name):
    return one(f"{name}_*.deb")


def lintian():
    debs = [deb(name) for name in DEBS]
    # With --show-overrides, what is overridden would fail, too.
    done = subprocess.run(["lintian", "--fail-on", "error,warning", "--allow-root", *debs], capture_output=True, text=True)
    print(done.stdout, end="")
    check(done.returncode == 0, done.stdout, done.stderr)


def unpacked(folder):
    """{name of the package: its folder}"""
    folders = {}
    for name in DEBS:
        folders[name] = folder / name
        run("dpkg-deb", "-x", deb(name), folder / name)
    folders["tarball"] = folder / "tarball"
    folders["tarball"].mkdir()
    run("tar", "--zstd", "-xf", one("sardonyx-[0-9]*.tar.zst"), "-C", folder / "tarball", "--strip-components=1")
    folders["static"] = unpacked_static(folder / "static")
    return folders


def unpacked_static(folder):
    """The static command of this machine's processor."""
    folder.mkdir()
    run("tar", "--zstd", "-xf", one(f"sardonyx-static-*-linux-{os.uname().machine}.tar.zst"), "-C", folder, "--strip-components=1")
    return folder


def files_of(folder):
    return {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file() or path.is_symlink()}


def no_paths_of_the_build(folders):
    """Paths of the checkout would differ from one build to the next, and say where it was made."""
    for name, folder in folders.items():
        for shown, path in files_of(folder).items():
            if not path.is_symlink():
                check(str(PROJECT).encode() not in path.read_bytes(), f"{name}: {shown} names {PROJECT}")


def documents(folders):
    for name, folder in folders.items():
        docs = folder / {"tarball": "share/doc/sardonyx", "static": "."}.get(name, f"usr/share/doc/{name}")
        wanted = ["NOTICE.md", *(["LICENSE", "third-party.txt", "CHANGELOG.md"] if name in ("tarball", "static") else ["copyright", "changelog.gz", "changelog.Debian.gz"])]
        for file in wanted:
            check((docs / file).stat().st_size > 0, name, file)
    command, archive = folders["sardonyx"] / "usr", folders["tarball"]
    for prefix, manual, zsh in ((command, "sdx.1.gz", "vendor-completions"), (archive, "sdx.1", "site-functions")):
        for file in (f"man/man1/{manual}", "bash-completion/completions/sdx", f"zsh/{zsh}/_sdx", "fish/vendor_completions.d/sdx.fish"):
            check((prefix / "share" / file).stat().st_size > 1000, prefix, file)
    service = (folders["sardonyx"] / "lib/systemd/system/sdx-serve.service") if (folders["sardonyx"] / "lib/systemd").exists() else \
        command / "lib/systemd/system/sdx-serve.service"  # fmt: skip
    check("\nExecStart=/usr/bin/sdx serve " in service.read_text(), service.read_text())


def sums():
    listed = dict(reversed(line.split("  ")) for line in (PACKAGES / "SHA256SUMS").read_text().splitlines())
    there = {path.name for path in PACKAGES.iterdir() if path.is_file()} - {"SHA256SUMS", "sizes.md"}
    check(set(listed) == there, set(listed) ^ there)
    for name, digest in listed.items():
        check(hashlib.sha256((PACKAGES / name).read_bytes()).hexdigest() == digest, name)
    return listed


def materials(listed):
    """The lists of what is inside are valid SPDX, and name every file; NOTICE.md names every library."""
    documents = {path: json.loads(path.read_text()) for path in PACKAGES.glob("*.spdx.json")}
    packages = [package for document in documents.values() for package in document["packages"]]
    artifacts = {p["name"]: p["checksums"][0]["checksumValue"] for p in packages if "packageFileName" in p}
    check(artifacts == {name: digest for name, digest in listed.items() if not name.endswith(".spdx.json")}, artifacts)
    notice = (PROJECT / "NOTICE.md").read_text().lower()
    for part in packages:
        if part["SPDXID"].startswith("SPDXRef-part-") and not re.search(r"GCC|GNU C library|Linux|^Python$", part["name"]):
            check(part["name"].lower() in notice, f"NOTICE.md does not name {part['name']}")
    environment = PROJECT / "build/spdx-venv"
    if subprocess.run([PROJECT / "tools/venv.sh", environment, PROJECT / "tests/packages/requirements.txt"]).returncode != 0:
        print("contents: spdx-tools cannot be installed; the lists are not validated")
        return
    for path in documents:
        run(environment / "bin/python", "-m", "spdx_tools.spdx.clitools.pyspdxtools", "--infile", path)


def notices(folders):
    """What is compiled in or linked statically has its notice beside it."""
    for file, place in (("*-debian.spdx.json", folders["libsardonyx0"] / "usr/share/doc/libsardonyx0/third-party.txt.gz"),
                        ("sardonyx-[0-9]*[0-9].spdx.json", folders["tarball"] / "share/doc/sardonyx/third-party.txt"),
                        (f"sardonyx-static-*-{os.uname().machine}.spdx.json", folders["static"] / "third-party.txt")):  # fmt: skip
        document = json.loads(one(file).read_text())
        text = (gzip.decompress(place.read_bytes()) if place.suffix == ".gz" else place.read_bytes()).decode()
        inside = {r["relatedSpdxElement" if r["relationshipType"] == "CONTAINS" else "spdxElementId"] for r in document["relationships"]
                  if r["relationshipType"] in ("CONTAINS", "STATIC_LINK")}  # fmt: skip
        check(len(inside) > 5, file, inside)
        for part in document["packages"]:
            if part["SPDXID"] in inside:
                check(f"\n{part['name']} {part['versionInfo']} (" in text, f"{place} lacks {part['name']}")


def contents():
    with scratch(PACKAGES) as folder:
        folders = unpacked(folder)
        no_paths_of_the_build(folders)
        documents(folders)
        notices(folders)
    materials(sums())


class System:
    """A copy of the bare system, with a folder /mnt/work that has small models and the packages."""

    def __init__(self, folder):
        self.root = folder / "root"
        run("cp", "-a", "--reflink=auto", ROOT, self.root)
        self.work = self.root / "mnt/work"
        self.work.mkdir()
        (self.work / "models").mkdir()
        tiny_models.write_all(self.work / "models")
        for path in PACKAGES.iterdir():
            if path.is_file():
                shutil.copy(path, self.work)
        shutil.copytree(PROJECT / "tests/outside", self.work / "outside")
        shutil.copytree(PROJECT / "examples", self.work / "examples")

    def __call__(self, script, fails=False):
        inside = 'mount --make-rprivate / && mount -t proc none "$0/proc" && mount --bind /dev "$0/dev" && exec chroot "$0" /bin/sh -euc "$1"'
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive",
                       **{key: value for key, value in os.environ.items() if key.lower().endswith("_proxy")}}  # fmt: skip
        done = subprocess.run(["unshare", "--mount", "sh", "-c", inside, self.root, f"cd /mnt/work; {script}"], env=environment, capture_output=True, text=True)
        check((done.returncode != 0) == fails, script, done.returncode, done.stdout[-4000:], done.stderr[-4000:])
        return done.stdout + done.stderr

    def files(self):
        """What is there besides what the package system keeps for itself and what tests wrote."""
        skipped = r"^(mnt|proc|sys|dev|run|tmp|root|var/(cache|log|lib/(apt|dpkg)|tmp)|etc/ld\.so\.cache)(/|$)"
        found = set()
        for folder, folders, files in os.walk(self.root):
            here = Path(folder).relative_to(self.root)
            folders[:] = [name for name in folders if not re.match(skipped, str(here / name))]
            found.update(str(here / name) for name in files + folders)
        return {path for path in found if not re.match(skipped, path)}


USE = """sdx={sdx}
$sdx --version
$sdx run models/add.onnx -i A=[1,2] -i B=[3,4] | grep -F 'C: float32[2] = {{4, 6}}'
$sdx inspect models/add.onnx >/dev/null
$sdx explain models/add.onnx | grep -q Add
$sdx quantize --help >/dev/null
$sdx faces crop 2>&1 | grep -qv 'cannot be loaded'
"""


def tarball():
    """In a bare system, at two places, one of them with a space in its name; the folder is moved after the first run."""
    name = one("sardonyx-[0-9]*.tar.zst").name
    folder = name.removesuffix(".tar.zst")
    with scratch(PACKAGES) as scratched:
        system = System(scratched)
        with tarfile.open(fileobj=subprocess.Popen(["zstd", "-dcq", PACKAGES / name], stdout=subprocess.PIPE).stdout, mode="r|") as tar:
            tar.extractall(system.root / "opt", filter="tar")
        system(USE.format(sdx=f"/opt/{folder}/bin/sdx"))
        system(f"mkdir -p '/home/some body' && mv /opt/{folder} '/home/some body/first' && cp -a '/home/some body/first' /srv/second")
        system(USE.format(sdx="'/home/some body/first/bin/sdx'").replace("$sdx", '"$sdx"'))
        system(USE.format(sdx="/srv/second/bin/sdx"))
        system("PATH=$PATH:/srv/second/bin; cd models; " + USE.format(sdx="sdx").replace("models/", ""))
        said = (system.root / "srv/second/lib/pkgconfig/sdx.pc").read_text()
        check("prefix=${pcfiledir}/../..\n" in said, said)


PYTHON = """
import importlib.metadata, sys
import numpy as np
import sardonyx as ort
import sardonyx.array as mx
session = ort.InferenceSession('models/add.onnx', providers=['cpu'])
out, = session.run(None, {'A': np.array([1, 2], np.float32), 'B': np.array([3, 4], np.float32)})
assert out.tolist() == [4, 6], out
assert mx.sum(mx.array([1.0, 2.0])).item() == 3
assert importlib.metadata.version('sardonyx') == ort.__version__
assert ort.__file__.startswith('/usr/lib/python3/dist-packages/'), ort.__file__
import sardonyx.as_onnxruntime
sardonyx.as_onnxruntime.install()
import onnxruntime
assert onnxruntime.InferenceSession('models/add.onnx').run(None, {'A': np.ones(2, np.float32), 'B': np.ones(2, np.float32)})[0].tolist() == [2, 2]
"""

DROPIN = """
import ctypes, ctypes.util
library = ctypes.CDLL('libonnxruntime.so.1')
library.OrtGetApiBase.restype = ctypes.POINTER(ctypes.c_void_p)
base = library.OrtGetApiBase()
version = ctypes.CFUNCTYPE(ctypes.c_char_p)(base[1])()
assert version.startswith(b'1.'), version
"""


def install(system, *names, recommends=False):
    files = " ".join(f"./{deb(name).name}" for name in names)
    return system(f"apt-get install -y -q {'' if recommends else '--no-install-recommends'} {files}")


def debian():
    with scratch(PACKAGES) as folder:
        system = System(folder)
        system("apt-get update -q")
        install(system, "sardonyx", "libsardonyx0")
        system(USE.format(sdx="sdx"))
        # What is only recommended is named when it is missing, and used where it is.
        lacking = "printf 'II*\\000\\010\\000\\000\\000' >x.tiff; sdx run models/add.onnx -i A=x.tiff -i B=[1,2]"
        check("Debian's package libtiff6" in system(lacking, fails=True), "no word of the missing library")
        install(system, "libsardonyx-onnxruntime1", "python3-sardonyx", "libsardonyx-dev")
        (system.work / "use.py").write_text(PYTHON)
        (system.work / "dropin.py").write_text(DROPIN)
        system("python3 use.py")
        system("LD_LIBRARY_PATH=$(echo /usr/lib/*/sardonyx) python3 dropin.py")
        print("deb: compiling")
        system("apt-get install -y -q --no-install-recommends g++ cmake ninja-build pkg-config")
        system("cc outside/main.c $(pkg-config --cflags --libs sdx) -o main && ./main")
        system("cmake -S outside -B out -G Ninja && cmake --build out --target outside_cpp outside_c && out/outside_cpp && out/outside_c")
        system("cmake -S examples -B ex -G Ninja && cmake --build ex --target sdx_example_faces sdx_example_face_crops_c sdx_example_train")
        system("ldd ex/sdx_example_train | grep -F libsdx_train.so.0")
        # Removing leaves nothing, also of what Python compiled when it ran as root.
        system("python3 -c 'import sardonyx.quantization, sardonyx.training'")
        system(f"apt-get remove -y -q {' '.join(DEBS)} && ! command -v sdx")
        system(f"dpkg --purge {' '.join(DEBS)}")
        left = {path for path in system.files() if re.search(r"sardonyx|\bsdx|libsdx", path)}
        check(not left, left)
        check("sardonyx" not in system("dpkg -l"))


def sdist():
    """It has what a build needs and nothing of this checkout's own: CMake finds all sources of the module."""
    path = one("sardonyx-*.tar.gz")
    with scratch(PACKAGES) as folder:
        run("tar", "-xzf", path, "-C", folder)
        source = folder / path.name.removesuffix(".tar.gz")
        there = {str(p.relative_to(source)) for p in source.rglob("*") if p.is_file()} - {"PKG-INFO"}
        tracked = set(run("git", "-C", PROJECT, "ls-files").splitlines())
        check(there <= tracked, sorted(there - tracked)[:20])
        check({"LICENSE", "NOTICE.md", "README.md", "CMakeLists.txt", "pyproject.toml", "tools/packages.txt"} <= there)
        information = (source / "PKG-INFO").read_text()
        for line in ("License-Expression: MIT", "License-File: LICENSE", "License-File: NOTICE.md"):
            check(f"\n{line}\n" in information, line)
        run("cmake", "-S", source, "-B", folder / "build", "-G", "Ninja", "-DSKBUILD=2", "-DSKBUILD_PROJECT_NAME=sardonyx", "-DSDX_BUILD_TESTS=OFF",
            "-DPython_EXECUTABLE=/usr/bin/python3")  # fmt: skip
        check("_sardonyx" in run("ninja", "-C", folder / "build", "-t", "query", "sdx_python"))


def static():
    with scratch(PACKAGES) as folder:
        print(run(sys.executable, "-B", PROJECT / "tests/packages/static_test.py", unpacked_static(folder / "static") / "sdx"), end="")


PARTS = {"lintian": lintian, "contents": contents, "sdist": sdist, "tarball": tarball, "static": static, "deb": debian}

if __name__ == "__main__":
    for part in sys.argv[4:] or PARTS:
        print(f"{part}: …", flush=True)
        PARTS[part]()
        print(f"{part}: ok", flush=True)
