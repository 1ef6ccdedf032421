"""The libraries that a static build (SDX_STATIC) contains: those that tools/cross/libraries.sh built, and the compiler's own."""

import dataclasses
import os
import re
import subprocess
from pathlib import Path

# The packages of what tools/windows.sh does not build: zlib and the compiler's own libraries.
OF_MINGW = ("libz-mingw-w64-dev", "g++-mingw-w64-x86-64-posix", "mingw-w64-x86-64-dev")
LICENCES = Path("/usr/share/common-licenses")


@dataclasses.dataclass
class Source:
    version: str
    debian_version: str  # empty: not from a package of Debian
    notice: str
    files: list


def bare_name(source):
    """The name of a source package without the number at its end, and without that of a compiler for other processors."""
    return re.sub(r"(-?\d[\d.]*)?(-cross)?$", "", source)


def bare_version(version):
    """The version of what Debian has packed."""
    return re.sub(r"^\d+:|(\+dfsg|\+ds|\.dfsg|[-+~]).*$", "", version)


def of_debian(name):
    """Debian's source package without the number at its end, and what Debian's package NAME says of it."""
    asked = ["dpkg-query", "-W", "-f", "${source:Package}\t${source:Version}\n", name]
    source, version = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.splitlines()[0].split("\t")
    notice = Path(f"/usr/share/doc/{name}/copyright")
    return bare_name(source), Source(bare_version(version), version, notice.read_text() if notice.exists() else "", [])


def on_this_system(path, project):
    """Where a file of another processor's libraries (tools/aarch64.sh) is on this system, which has the same packages."""
    found = re.match(r"build/(\w+)-sysroot/", str(path.relative_to(project))) if path.is_relative_to(project) else None
    if found is None:
        return path
    return Path("/" + str(path.relative_to(project))[found.end():].replace(f"{found[1]}-linux-gnu", f"{os.uname().machine}-linux-gnu"))


def built(folder):
    """{name: Source} of the libraries below FOLDER, which their own files list."""
    found = {}
    for stamp in sorted((folder / "built").iterdir()):
        source, *files = stamp.read_text().splitlines()
        debian = Path(source) / "debian"
        if not debian.exists():  # a library for tests
            continue
        package, version = re.match(r"(\S+) \((\S+)\)", (debian / "changelog").read_text()).groups()
        found[bare_name(package)] = Source(bare_version(version), version, (debian / "copyright").read_text(), files)
    return found


def of_the_compiler(zig, version):
    """What the package ziglang links into each program: musl; LLVM's libc++, libunwind and compiler-rt, of the compiler's VERSION."""
    package = next(zig.parent.glob("ziglang-*.dist-info")).name
    exception = (Path(__file__).parent / "llvm_exception.txt").read_text()
    return {
        "musl": Source(re.sub(r"ziglang-(.*)\.dist-info", r"in ziglang \1", package), "", (zig / "lib/libc/musl/COPYRIGHT").read_text(), []),
        "llvm-toolchain": Source(version, "", (LICENCES / "Apache-2.0").read_text() + "\n" + exception, []),
    }


def sources(build, project):
    """{name: Source} of what is inside the static command in the folder BUILD."""
    cache = (build / "CMakeCache.txt").read_text()
    toolchain = Path(re.search(r"^CMAKE_TOOLCHAIN_FILE:\w+=(.+)$", cache, re.M)[1])
    if toolchain.name == "windows.cmake":
        return {**built(project / "build/windows-libraries"), **dict(map(of_debian, OF_MINGW))}
    if toolchain.parent.name != "static-tools":
        raise SystemExit(f"{build} is no build of tools/static.sh or tools/windows.sh")
    version = re.search(r'CMAKE_CXX_COMPILER_VERSION "([\d.]+)"', next(build.glob("CMakeFiles/*/CMakeCXXCompiler.cmake")).read_text())[1]
    zig = next((project / "build/static-tools/venv/lib").glob("python*/site-packages/ziglang"))
    return {**built(project / f"build/static-libraries-{toolchain.stem}"), **of_the_compiler(zig, version)}
