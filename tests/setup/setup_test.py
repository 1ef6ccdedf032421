"""tools/setup.sh, install.sh, clang.sh and clang_format.sh on machines that do not exist: the programs that they call are stand-ins in a
folder that is all of PATH. setup_test.py SOURCE"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

REAL = "sh env awk sed grep tr head sort cut dirname readlink cat cmp mkdir rm mv cp".split()
SOURCE = pathlib.Path(sys.argv[1]).resolve()
LINES = [line.split() for line in (SOURCE / "tools" / "packages.txt").read_text().splitlines() if line[0] != "#"]
# What apt of two releases of Debian knows of packages with alternatives.
DEBIAN_12 = {"clang": "1:14.0-55", "clang-tidy": "1:14.0-55", "libclang-rt-dev": "1:14.0-55", "llvm": "1:14.0-55", "pkg-config": "1.8",
             "clang-16": "1:16.0.6", "clang-tidy-16": "1:16.0.6", "libclang-rt-16-dev": "1:16.0.6", "llvm-16": "1:16.0.6",
             "clang-format-16": "1:16.0.6"}
DEBIAN_13 = {"clang": "1:19.0-63", "clang-tidy": "1:19.0-63", "libclang-rt-dev": "1:19.0-63", "llvm": "1:19.0-63", "pkgconf": "1.8",
             "libheif-plugin-aomenc": "1.19.8"}


def check(condition, *what):
    if not condition:
        raise AssertionError(what)


class Machine:
    """PATH, and a log of what was called: apt-get, sudo."""

    def __init__(self, folder):
        self.bin = pathlib.Path(folder) / "bin"
        self.bin.mkdir()
        self.log = pathlib.Path(folder) / "log"
        for name in REAL:
            (self.bin / name).symlink_to(shutil.which(name))
        self.program("id", "echo 0")

    def program(self, name, script):
        path = self.bin / name
        path.write_text("#!/bin/sh\n" + script + "\n")
        path.chmod(0o755)
        return path

    def debian(self, installed=None, known=None, update="exit 0", install="exit 0"):
        self.program("dpkg-query", f"cat <<'X'\n{lines('installed {}={}', installed or {})}\nX")
        self.program("apt-cache", f"cat <<'X'\n{lines('{}:' + chr(10) + '  Candidate: {}', known or {})}\nX")
        self.program("apt-get", f'echo "apt-get $*" >>{self.log}\ncase $1 in update) {update} ;; *) {install} ;; esac')
        # As dpkg compares versions of equal form.
        self.program("dpkg", '[ "$(printf "%s\\n" "$4" "$2" | sort -V | head -n 1)" = "$4" ]')
        return self

    def run(self, *command, **environment):
        self.log.write_text("")
        done = subprocess.run([str(c) for c in command], env={"PATH": str(self.bin), **environment}, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        return done.returncode, done.stdout, done.stderr, self.log.read_text()

    def setup(self, *purposes, **environment):
        return self.run(SOURCE / "tools" / "setup.sh", *purposes, **environment)


def lines(form, packages):
    return "\n".join(form.format(*item) for item in packages.items())


def asked(log):
    """The packages of the one call of apt-get install."""
    calls = [line for line in log.splitlines() if " install " in line]
    check(len(calls) == 1, log)
    return set(word for word in calls[0].split() if word[0] != "-" and "::" not in word) - {"apt-get", "install", "sudo", "env"}


def names(purpose=None):
    return {line[0] for line in LINES if purpose is None or purpose in line[1].split(",")}


def a_purpose_installs_its_packages(machine):
    code, _, said, log = machine.debian(known=DEBIAN_12).setup("demo")
    check(code == 0 and asked(log) == names("demo"), said, log)
    check({"g++", "cmake", "python3-venv"} <= names("demo"), names("demo"))
    check(not names("demo") & {"libgrpc++-dev", "libssl-dev", "golang-go", "ccache", "libgtest-dev"}, names("demo"))
    check("--no-install-recommends" in log and log.index("update") < log.index("install"), log)
    code, _, said, log = machine.setup("command", "python")
    check(code == 0 and asked(log) == names("command") - {"pkg-config|pkgconf", "libheif-plugin-aomenc|"} | names("python") | {"pkg-config"}, said, log)
    check(names("demo") <= names("command"), names("demo") - names("command"))


def alternatives_are_what_the_system_has(machine):
    for arguments in (), ("tests",), ("demo", "tests"):
        code, _, said, log = machine.debian(known=DEBIAN_12).setup(*arguments)
        check(code == 0 and {"clang-16", "clang-tidy-16", "libclang-rt-16-dev", "llvm-16", "clang-format-16", "pkg-config"} <= asked(log), said, log)
        check(not asked(log) & {"clang", "llvm"} and names("arm") <= asked(log), log)
        code, _, said, log = machine.debian(known=DEBIAN_13).setup(*arguments)
        check(code == 0 and set(DEBIAN_13) <= asked(log), said, log)
        check(not any(name.endswith("-16") or "|" in name or name in ("clang-format", "pkg-config") for name in asked(log)), log)


def nothing_is_done_where_all_is_there(machine):
    plain = {name: "1" for name in names() if "|" not in name}
    for known in DEBIAN_12, DEBIAN_13:
        code, _, said, log = machine.debian(installed={**plain, **known}, known=known).setup()
        check(code == 0 and not said and not log, said, log)
    # An old version is no alternative.
    old = {**plain, **DEBIAN_13, "clang": "1:14.0-55"}
    code, _, said, log = machine.debian(installed=old, known=DEBIAN_13).setup()
    check(code == 0 and asked(log) == {"clang"}, said, log)


def what_cannot_be_had_is_named(machine):
    code, _, said, log = machine.debian(known={**DEBIAN_13, "clang": "1:14.0-55"}).setup()
    check(code == 1 and "clang>=1:16|clang-16" in said and "llvm" not in said and " install " not in log, said, log)
    code, _, said, log = machine.debian(known=DEBIAN_13, update="exit 100").setup("demo")
    check(code == 0 and "update failed" in said and asked(log) == names("demo"), said, log)
    code, _, said, log = machine.debian(known=DEBIAN_13, install="exit 100").setup("demo")
    check(code == 1 and "apt-get install --no-install-recommends cmake ninja-build" in said, said)
    code, _, said, log = machine.setup("dmeo")
    check(code == 2 and "unknown purpose dmeo" in said and not log, said, log)


def others_than_root_need_sudo(machine):
    machine.program("id", "echo 1000")
    code, _, said, log = machine.debian(installed={name: "1" for name in names("demo") if name != "g++"}, known=DEBIAN_13).setup("demo")
    check(code == 1 and "  apt-get update && apt-get install --no-install-recommends g++\n" in said and not log, said, log)
    machine.program("sudo", f'echo "sudo $*" >>{machine.log}\nexec "$@"')
    code, _, said, log = machine.setup("demo")
    check(code == 0 and "sudo apt-get update" in log and "sudo env DEBIAN_FRONTEND=noninteractive apt-get install" in log, said, log)


def other_systems_get_one_message(machine):
    for system, query, command, some, other in (
            ('ID=fedora\nPRETTY_NAME="Fedora Linux 43"', "rpm", "dnf install", "gcc-c++ make python3 highway-devel", "grpc-devel"),
            ("ID=rocky\nID_LIKE='rhel centos fedora'\nNAME=Rocky", "rpm", "dnf install", "gcc-c++ make python3 highway-devel", "clang"),
            ("ID=arch\nPRETTY_NAME='Arch Linux'", "pacman", "pacman -S --needed", "base-devel python highway protozero", "grpc"),
            ("ID=alpine\nPRETTY_NAME='Alpine Linux v3.22'", "apk", "apk add", "samurai build-base python3 highway-dev", "grpc-dev")):
        os_release = machine.bin.parent / "os-release"
        os_release.write_text(system + "\n")
        machine.program(query, "exit 1")
        code, _, said, _ = machine.setup("demo", OS_RELEASE=str(os_release))
        check(code == 1 and f"\n  {command} cmake " in said and some in said and other not in said, system, said)
        check(" - " not in said and len(said.splitlines()) == 2, said)
        code, _, said, _ = machine.setup(OS_RELEASE=str(os_release))
        check(code == 1 and other in said, said)
        machine.program(query, "exit 0")
        check(machine.setup(OS_RELEASE=str(os_release))[:3] == (0, "", ""), system)
        machine.program(query, '[ "${2#*libpng}" = "$2" ] && [ "${3#*libpng}" = "${3-}" ]')
        machine.program("id", "echo 1000")
        code, _, said, _ = machine.setup("demo", OS_RELEASE=str(os_release))
        package = {"rpm": "libpng-devel", "pacman": "libpng", "apk": "libpng-dev"}[query]
        check(code == 1 and said.endswith(f"  sudo {command} {package}\n"), said)
        machine.program("id", "echo 0")
    os_release.write_text("ID=nixos\nNAME=NixOS\n")
    code, _, said, _ = machine.setup("demo", OS_RELEASE=str(os_release))
    check(code == 1 and "NixOS" in said and "cmake ninja-build g++" in said and "make SETUP=:" in said, said)
    code, _, said, _ = machine.setup("demo", OS_RELEASE="/nonexistent")
    check(code == 1 and "this system" in said, said)


def every_package_has_its_other_names(_):
    rows = [line.split() for line in (SOURCE / "tools" / "packages_elsewhere.txt").read_text().splitlines() if line[0] != "#"]
    check(all(len(row) == 4 for row in rows), [row for row in rows if len(row) != 4])
    debian = [line[0].split("|")[0].split(">=")[0] for line in LINES]
    check([row[0] for row in rows] == debian, set(debian) ^ {row[0] for row in rows})


def llvm(machine, version, *parts, number=True):
    """Programs of a version, and with `runtime` the sanitizers' library."""
    resources = machine.bin.parent / f"llvm-{version}"
    if "runtime" in parts:
        (resources / "lib" / "linux").mkdir(parents=True)
        (resources / "lib" / "linux" / "libclang_rt.asan-x86_64.a").write_text("")
    for part in ("clang++", *parts):
        machine.program(f"{part}-{version}" if number else part,
                        f'case $1 in -dumpversion) echo {version}.1.0 ;; -print-resource-dir) echo {resources} ;; esac')


def clang_is_one_version(machine):
    clang = SOURCE / "tools" / "clang.sh"
    code, _, said, _ = machine.run(clang, "clang++")
    check(code == 1 and "no Clang from version 16 on" in said, said)
    llvm(machine, 15, "clang-tidy", "llvm-symbolizer", "runtime")
    check(machine.run(clang, "clang++")[0] == 1)
    llvm(machine, 16, "clang-tidy", "llvm-symbolizer", "runtime")
    llvm(machine, 19, "clang-tidy", "llvm-symbolizer")
    for tool in "clang++", "clang-tidy", "llvm-symbolizer":  # 19 has no runtime
        check(machine.run(clang, tool)[1] == f"{machine.bin}/{tool}-16\n", tool)
    llvm(machine, 22, "clang-tidy", "llvm-symbolizer", "runtime", number=False)
    for tool in "clang++", "clang-tidy", "llvm-symbolizer":
        check(machine.run(clang, tool)[1] == f"{machine.bin}/{tool}\n", tool)
    code, out, said, _ = machine.run(clang, "clang-doc")
    check(code == 1 and not out and "no clang-doc beside Clang 22" in said, out, said)


def clang_without_its_tools(machine):
    llvm(machine, 17)
    llvm(machine, 18)
    clang = SOURCE / "tools" / "clang.sh"
    check(machine.run(clang, "clang++")[1] == f"{machine.bin}/clang++-18\n")
    check(machine.run(clang, "llvm-symbolizer")[0] == 1)


def the_format_is_that_of_16(machine):
    tool = SOURCE / "tools" / "clang_format.sh"
    machine.program("clang-format", "echo 'Debian clang-format version 16.0.6 (1)'")
    check(machine.run(tool)[1] == f"{machine.bin}/clang-format\n")
    machine.program("clang-format-16", "echo 'clang-format version 16.0.6'")
    machine.program("clang-format", "echo 'clang-format version 14.0.16'")
    check(machine.run(tool)[1] == f"{machine.bin}/clang-format-16\n")
    # Without one, and without Python that could install it. In a copy, which has no environment in build/.
    (machine.bin / "clang-format-16").unlink()
    copy = machine.bin.parent / "copy" / "tools"
    copy.mkdir(parents=True)
    for name in "clang_format.sh", "venv.sh", "format_requirements.txt":
        shutil.copy(SOURCE / "tools" / name, copy)
    machine.program("python3", "exit 1")
    code, out, said, _ = machine.run(copy / "clang_format.sh")
    check(code == 1 and not out and "clang-format 16" in said, out, said)


def the_compiler_runs_without_ccache(machine):
    launcher = SOURCE / "cmake" / "ccache.sh"
    machine.program("g++", 'echo "compiled $*"')
    check(machine.run(launcher, "g++", "-c", "a b.cc")[:2] == (0, "compiled -c a b.cc\n"))
    machine.program("ccache", 'echo "cached $*"')
    check(machine.run(launcher, "g++", "-c", "a b.cc")[:2] == (0, "cached g++ -c a b.cc\n"))


def main():
    for test in (a_purpose_installs_its_packages, alternatives_are_what_the_system_has, nothing_is_done_where_all_is_there,
                 what_cannot_be_had_is_named, others_than_root_need_sudo, other_systems_get_one_message, every_package_has_its_other_names,
                 clang_is_one_version, clang_without_its_tools, the_format_is_that_of_16, the_compiler_runs_without_ccache):
        with tempfile.TemporaryDirectory() as folder:
            test(Machine(folder))
        print(test.__name__.replace("_", " "))


if __name__ == "__main__":
    main()
