"""stubs.py GLIBC FOLDER COMPILER [FLAG ...]: writes into FOLDER what programs are linked with that have to run on GLIBC (2.28) and newer:
stub libraries of the C and C++ run-time libraries that COMPILER finds, without the versions of symbols which came later, liblater.a,
which defines what is missing then, and `flags`, a file of options for the compiler that links (@FOLDER/flags). A program needs the newest
version of each symbol that its linker knows, so it needs none that is too new. docs/design/portable.md explains the rest."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent

# What systems with a glibc have beside it: the oldest libstdc++ and libgcc_s, by the names of their versions (PEP 600's policies).
BESIDE = {"2.28": {"GLIBCXX": "3.4.24", "CXXABI": "1.3.11", "GCC": "7.0.0"}}

# Libraries of which libc.so.6 became part in 2.34, and which of its symbols they had. A program names the library again.
MOVED = {
    "libpthread.so.0": re.compile(r"(pthread|sem)_|(call_once|(cnd|mtx|thrd|tss)_\w+)$"),
    "libdl.so.2": re.compile(r"dl(open|mopen|close|sym|vsym|error|addr|addr1|info)$"),
    "librt.so.1": re.compile(r"(aio|mq|timer)_|lio_listio|shm_(open|unlink)$"),
}
PARTS = ["libc.so.6", "libm.so.6", *MOVED, "libstdc++.so.6", "libgcc_s.so.1"]
LOADERS = ["ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"]


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def number(version):
    return tuple(int(part) for part in version.split("."))


class Symbol:
    """A version of a symbol that a library defines: a row of `readelf --dyn-syms`."""

    def __init__(self, row):
        self.value, self.size, self.kind, self.weak = int(row[1], 16), int(row[2], 0), row[3], row[4] == "WEAK"
        self.name, at, self.version = row[7].partition("@")
        self.default = at != "" and self.version.startswith("@")
        self.version = self.version.lstrip("@")


class Library:
    def __init__(self, path, readelf):
        self.symbols, self.nodes = [], set()
        for line in output(readelf, "--dyn-syms", "-W", str(path)).splitlines():
            row = line.split()
            if len(row) < 8 or not row[0].endswith(":") or not row[0][:-1].isdigit() or "@" not in row[7] and row[6] != "ABS":
                continue
            if row[6] == "ABS":  # stands for a version itself
                self.nodes.add(row[7].split("@")[0])
            elif row[6] != "UND":
                self.symbols.append(Symbol(row))
        self.nodes |= {s.version for s in self.symbols}


class Limits:
    def __init__(self, glibc):
        self.newest = {"GLIBC": glibc, **BESIDE[glibc]}

    def allow(self, version):
        """Whether all systems have it. GLIBC_PRIVATE and its like are for the libraries among themselves."""
        family, _, rest = version.partition("_")
        return family in self.newest and re.fullmatch(r"[\d.]+", rest) is not None and number(rest) <= number(self.newest[family])


def order(version):
    family, _, rest = version.partition("_")
    return family, number(rest)


def kept(symbols, limits):
    """The symbols without versions that are too new; the newest of what is left is the one that a linker takes."""
    by_name = {}
    for symbol in symbols:
        if limits.allow(symbol.version):
            by_name.setdefault(symbol.name, []).append(symbol)
    for versions in by_name.values():
        if not any(s.default for s in versions):
            max(versions, key=lambda s: order(s.version)).default = True
    return [s for versions in by_name.values() for s in versions]


SECTIONS = {"TLS": '.section .tbss,"awT",@nobits', "OBJECT": ".data"}


def assembler(symbols):
    """Symbols with one address keep that in common, and stay weak: where a program copies a variable (`environ`), the linker moves the
    strong name at its address (`__environ`) too, which the library itself uses, but looks for it only for weak names."""
    lines, places = [], {}
    for number_of, symbol in enumerate(symbols):
        kind = symbol.kind if symbol.kind in SECTIONS else "FUNC"
        places.setdefault((kind, symbol.value), []).append((number_of, symbol))
    for (kind, _), here in sorted(places.items(), key=lambda item: item[0]):
        size = max(max(s.size for _, s in here), 1)
        lines += [SECTIONS.get(kind, ".text"), ".balign 32"]
        for number_of, symbol in here:
            label = f"stub_of_{number_of}"
            kind_name = {"TLS": "tls_object", "OBJECT": "object"}.get(kind, "function")
            lines += [f"{'.weak' if symbol.weak else '.globl'} {label}", f".type {label},%{kind_name}", f".size {label},{symbol.size if kind != 'FUNC' else 1}", f"{label}:",
                      f".symver {label},{symbol.name}{'@@' if symbol.default else '@'}{symbol.version}"]
        lines.append(f".zero {size if kind != 'FUNC' else 1}")
    return "\n".join(lines) + '\n.section .note.GNU-stack,"",%progbits\n'


class Writer:
    def __init__(self, folder, command):
        self.folder, self.command = folder, command

    def stub(self, name, symbols):
        source, versions, made = self.folder / f"{name}.s", self.folder / f"{name}.map", self.folder / name
        source.write_text(assembler(symbols))
        nodes = sorted({s.version for s in symbols}, key=order) or ["NOTHING"]
        versions.write_text("".join(f"{node} {{{' local: stub_of_*;' if node == nodes[0] else ''} }};\n" for node in nodes))
        subprocess.run([*self.command, "-shared", "-nostdlib", f"-Wl,-soname,{name}", f"-Wl,--version-script,{versions}", "-o", str(made), str(source)],
                       check=True)
        return made

    def later(self, start):
        """liblater.a: functions and variables that glibc has only in later versions, and the start of programs."""
        objects = []
        for name in ("later", "start"):
            made = self.folder / f"{name}.o"
            subprocess.run([*self.command, "-std=gnu11", "-O2", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra", "-Werror", f'-DSTART_VERSION="{start}"', "-c",
                            str(HERE / f"{name}.c"), "-o", str(made)], check=True)
            objects.append(str(made))
        made = self.folder / "liblater.a"
        made.unlink(missing_ok=True)
        subprocess.run([output(*self.command, "-print-prog-name=ar").strip(), "rcsD", str(made), *objects], check=True)
        return made

    def script(self, name, *parts):
        (self.folder / name).write_text(f"GROUP ( {' '.join(str(part) for part in parts)} )\n")


def find(command, name):
    path = Path(output(*command, f"-print-file-name={name}").strip())
    if not path.is_absolute():
        sys.exit(f"stubs: {command[0]} finds no {name}: the option SDX_GLIBC needs GNU's C and C++ libraries of version 2.34 or newer")
    return path


def separate(symbols, nodes):
    """Symbols of libc.so.6 by the library that had them. `nodes`: versions which that library has; another one would not be found there."""
    parts = {name: [] for name in ("libc.so.6", *MOVED)}
    for symbol in symbols:
        had = (name for name, what in MOVED.items() if what.match(symbol.name) and symbol.version in nodes[name])
        parts[next(had, "libc.so.6")].append(symbol)
    return parts


def main():
    glibc, folder, command = sys.argv[1], Path(sys.argv[2]), sys.argv[3:]
    if glibc not in BESIDE:
        sys.exit(f"stubs: SDX_GLIBC is {glibc}; known are {', '.join(BESIDE)}")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    limits, writer, readelf = Limits(glibc), Writer(folder, command), output(*command, "-print-prog-name=readelf").strip()
    loader = next(name for name in LOADERS if Path(output(*command, f"-print-file-name={name}").strip()).is_absolute())
    libraries = {name: Library(find(command, name), readelf) for name in [*PARTS, loader]}
    symbols = {name: kept(library.symbols, limits) for name, library in libraries.items()}
    symbols.update(separate(symbols["libc.so.6"], {name: libraries[name].nodes for name in MOVED}))
    start = next((s for s in symbols["libc.so.6"] if s.name == "__libc_start_main"), None)
    if start is None or not any(s.name == "__libc_start_main" and not limits.allow(s.version) for s in libraries["libc.so.6"].symbols):
        sys.exit(f"stubs: this system's glibc is older than 2.34, so that SDX_GLIBC={glibc} is not supported")
    start.default = False  # start.c takes its place
    made = {name: writer.stub(name, of) for name, of in symbols.items()}

    nonshared = find(command, "libc_nonshared.a")
    if_needed = " ".join(str(made[name]) for name in (*MOVED, loader))
    writer.script("libc.so", made["libc.so.6"], writer.later(start.version), nonshared, f"AS_NEEDED ( {if_needed} )")
    writer.script("libm.so", made["libm.so.6"])
    writer.script("libstdc++.so", made["libstdc++.so.6"], find(command, "libstdc++.a"))
    writer.script("libgcc_s.so", made["libgcc_s.so.1"], "-lgcc")
    for name in MOVED:
        writer.script(name.split(".so")[0] + ".so", made[name])
    # The linker looks here first. What of libstdc++.a goes into a binary stays inside. An older libstdc++ starts threads only where
    # libpthread is loaded, even if it alone calls that.
    (folder / "flags").write_text(f"-L{folder} -Wl,--exclude-libs,libstdc++.a -Wl,--push-state,--no-as-needed {made['libpthread.so.0']} -Wl,--pop-state\n")


if __name__ == "__main__":
    main()
