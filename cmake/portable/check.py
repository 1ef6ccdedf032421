"""check.py GLIBC READELF FOLDER ...: fails where a program or library below a FOLDER needs more than GLIBC (2.28) and what systems with it
have beside it: a newer version of a symbol, relocations that its loader does not read, or another library."""

import re
import subprocess
import sys
from pathlib import Path

from stubs import LOADERS, PARTS, Limits

VERSION_NEEDED = re.compile(r"Name: (\S+)\s+Flags:")
LIBRARY_NEEDED = re.compile(r"\(NEEDED\).*\[(\S+)\]")
# Modules that read rare formats may need the system's library for that (docs/design/portable.md). auditwheel copies Oniguruma into the wheel.
OF_MODULES = {"libsdx_color.so": "liblcms2.so.2", "libsdx_heif.so": "libheif.so.1", "libsdx_jxl.so": "libjxl.so.0.7",
              "libsdx_raw.so": "libraw.so.20", "libsdx_sndfile.so": "libsndfile.so.1", "libsdx_onig.so": "libonig.so.5"}
UNVERSIONED = re.compile(r"GLOBAL\s+DEFAULT\s+UND (\w+)$", re.MULTILINE)
OWN = re.compile(r"lib(sdx\w*|onnxruntime)\.so")


def is_elf(path):
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def binaries(folders):
    seen = {}
    for folder in folders:
        for path in sorted(Path(folder).rglob("*")):
            if path.is_file() and path.suffix not in {".o", ".a"} and is_elf(path):
                seen.setdefault(path.resolve(), path)
    return list(seen.values())


def faults(path, limits, readelf):
    def read(*flags):
        return subprocess.run([readelf, "-W", *flags, str(path)], check=True, capture_output=True, text=True).stdout

    needed = read("-V").partition("Version needs section")[2]
    too_new = sorted({name for name in VERSION_NEEDED.findall(needed) if known(name) and not limits.allow(name)})
    dynamic = read("-d")
    there = {*PARTS, *LOADERS, OF_MODULES.get(path.name)}
    found = [f"the library {name}" for name in LIBRARY_NEEDED.findall(dynamic) if name not in there and not OWN.match(name)]
    if not too_new and "(RELR)" in dynamic:
        found.append("relative relocations of the form DT_RELR, which glibc has read since 2.36")
    symbols = read("--dyn-syms")
    if path.name.startswith("_"):  # an extension, which is linked without -z defs
        loose = [name for name in UNVERSIONED.findall(symbols) if not name.startswith(("Py", "_Py"))]
        found += [f"a function that nothing defines: {name}" for name in loose]
    for version in too_new:
        users = re.findall(rf"UND (\S+)@{re.escape(version)}(?=\s)", symbols)
        found.append(f"{version}: {', '.join(users[:5])}{' …' if len(users) > 5 else ''}")
    return found


def known(version):
    return version.partition("_")[0] in {"GLIBC", "GLIBCXX", "CXXABI", "GCC"}


def main():
    glibc, readelf, folders = sys.argv[1], sys.argv[2], sys.argv[3:]
    limits = Limits(glibc)
    paths = binaries(folders)
    if not paths:
        sys.exit(f"check: there are no programs or libraries in {', '.join(folders)}")
    wrong = [f"{path}: needs {fault}" for path in paths for fault in faults(path, limits, readelf)]
    for line in wrong:
        print(line, file=sys.stderr)
    if wrong:
        sys.exit(f"check: these do not run on glibc {glibc}")
    print(f"{len(paths)} programs and libraries run on glibc {glibc} and newer")


if __name__ == "__main__":
    main()
