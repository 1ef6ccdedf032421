"""Completes the folders of which cpack makes Debian's packages, and writes what the packages depend on (packages.cmake, stage.cmake).

--root has a folder for each COMPONENT, with what `cmake --install` copied; COMPONENT=PACKAGE names the packages. Adds what Debian's policy
asks for: copyright, changelogs, compressed manual pages, lintian's exceptions. Libraries of formats that few need are recommendations:
the modules that link them are loaded when such a file is met."""

import argparse
import datetime
import email.utils
import gzip
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "tools"))
import sbom  # noqa: E402

# Modules without which the rest of a package works: what they link is recommended.
OPTIONAL = re.compile(r"libsdx_(tiff|heif|jxl|raw|color|sndfile|onig|serve_grpc)\.so$")
# What no binary says: {component: {field: packages}}. {v} is the version of these packages.
FIELDS = {
    "command": {"DEPENDS": "libsardonyx0 (= {v})", "RECOMMENDS": "libonig5, libedit2, libsqlite3-0, ca-certificates", "SUGGESTS": "libsardonyx-onnxruntime1"},
    "libraries": {"RECOMMENDS": "libonig5"},
    "development": {"DEPENDS": "libsardonyx0 (= {v})", "SUGGESTS": "pkgconf | pkg-config, cmake"},
    "dropin": {"DEPENDS": "libsardonyx0 (= {v})"},
    "python": {"DEPENDS": "python3 (>= 3.9), python3-numpy (>= 1:1.23)", "SUGGESTS": "python3-torch, python3-ml-dtypes"},
}


def compressed(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "wb") as raw, gzip.GzipFile(filename="", mode="wb", compresslevel=9, fileobj=raw, mtime=0) as file:
        file.write(data)


def is_elf(path):
    if path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def soname(path):
    headers = subprocess.run(["readelf", "-d", path], capture_output=True, text=True, check=True).stdout
    found = re.search(r"SONAME.*\[(.+)\]", headers)
    return found and found[1]


def needed(work, libraries, binaries):
    """Packages with the libraries that the binaries link, as dpkg-shlibdeps knows them: all but our own."""
    if not binaries:
        return []
    (work / "debian").mkdir(parents=True, exist_ok=True)
    (work / "debian" / "control").write_text("Source: sardonyx\n\nPackage: sardonyx\nArchitecture: any\n")
    done = subprocess.run(["dpkg-shlibdeps", "-O", "--ignore-missing-info", *(f"-l{folder}" for folder in libraries), *binaries],
                          cwd=work, capture_output=True, text=True)  # fmt: skip
    if done.returncode != 0:
        sys.exit(f"dpkg-shlibdeps: {done.stderr}")
    packages = done.stdout.strip().removeprefix("shlibs:Depends=")
    return [name.strip() for name in packages.split(",") if name.strip()]


def name_of(relation):
    return relation.split()[0]


def changelog(version, maintainer, epoch):
    date = email.utils.format_datetime(datetime.datetime.fromtimestamp(epoch, datetime.timezone.utc))
    return f"sardonyx ({version}) bookworm; urgency=medium\n\n  * Packages of this release; changelog.gz lists its changes.\n\n -- {maintainer}  {date}\n"


def copyright_file(source, package, third_party):
    holder = re.search(r"^Copyright \(c\) (.+)$", (source / "LICENSE").read_text(), re.M)[1]
    terms = (source / "LICENSE").read_text().split(holder, 1)[1].strip().splitlines()
    text = "".join(f" {line}\n" if line else " .\n" for line in terms)
    comment = ""
    if third_party:
        listed = "".join(f"  {part.title} {part.version} ({part.licence})\n" for part in third_party)
        comment = f"Comment:\n The binaries contain code of these libraries:\n{listed} Their notices are in /usr/share/doc/{package}/third-party.txt.gz.\n"
    return (f"Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: Sardonyx\n{comment}\n"
            f"Files: *\nCopyright: {holder}\nLicense: Expat\n\nLicense: Expat\n{text}")  # fmt: skip


def complete(args, component, package, root, third_party, notices, epoch):
    docs = root / "usr/share/doc" / package
    docs.mkdir(parents=True, exist_ok=True)
    for file in (root / "usr/share/doc").rglob("LICENSE"):  # part of copyright
        file.unlink()
    with_code = third_party if any(is_elf(f) for f in root.rglob("*")) else []
    (docs / "copyright").write_text(copyright_file(args.source, package, with_code))
    if with_code:
        compressed(docs / "third-party.txt.gz", notices.encode())
    shutil.copy(args.source / "NOTICE.md", docs / "NOTICE.md")
    compressed(docs / "changelog.Debian.gz", changelog(args.version, args.maintainer, epoch).encode())
    compressed(docs / "changelog.gz", (args.source / "CHANGELOG.md").read_bytes())
    for page in root.glob("usr/share/man/man*/*.[0-9]"):
        compressed(page.with_name(page.name + ".gz"), page.read_bytes())
        page.unlink()
    zsh = root / "usr/share/zsh"
    if (zsh / "site-functions").is_dir():  # where Debian's zsh looks
        (zsh / "site-functions").rename(zsh / "vendor-completions")
    overrides = args.source / "packaging/deb" / component / "lintian-overrides"
    if overrides.exists():
        into = root / "usr/share/lintian/overrides"
        into.mkdir(parents=True, exist_ok=True)
        shutil.copy(overrides, into / package)
    for path in root.rglob("*"):
        if path.is_symlink():
            continue
        program = path.is_dir() or (is_elf(path) and path.parent.name == "bin")
        path.chmod(0o755 if program else 0o644)


def main():
    parser = argparse.ArgumentParser()
    for name in ("source", "build", "root", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    for name in ("libdir", "version", "maintainer"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("packages", nargs="+", help="COMPONENT=PACKAGE")
    args = parser.parse_args()
    packages = dict(pair.split("=") for pair in args.packages)
    epoch = int(os.environ["SOURCE_DATE_EPOCH"])
    third_party = [part for part in sbom.parts_of(args.build) if part.inside]
    notices = sbom.notices(third_party)
    libraries = [args.root / "libraries/usr" / args.libdir]
    lines = []
    for component, package in packages.items():
        root = args.root / component
        if not root.is_dir():
            continue
        complete(args, component, package, root, third_party, notices, epoch)
        binaries = sorted(path.resolve() for path in root.rglob("*") if is_elf(path))
        always = needed(args.build / "packaging/deb/shlibdeps", libraries, [b for b in binaries if not OPTIONAL.search(b.name)])
        sometimes = needed(args.build / "packaging/deb/shlibdeps", libraries, [b for b in binaries if OPTIONAL.search(b.name)])
        fields = {key: value.format(v=args.version).split(", ") for key, value in FIELDS.get(component, {}).items()}
        fields["DEPENDS"] = fields.get("DEPENDS", []) + always
        there = {name_of(relation) for relation in fields["DEPENDS"]}
        fields["RECOMMENDS"] = fields.get("RECOMMENDS", []) + sometimes
        fields["RECOMMENDS"] = sorted({name_of(r): r for r in fields["RECOMMENDS"] if name_of(r) not in there}.values())
        for key, value in fields.items():
            if value:
                lines.append(f'set(CPACK_DEBIAN_{component.upper()}_PACKAGE_{key} "{", ".join(value)}")\n')
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text("".join(lines))
    # Programs that link the libraries: the interface of C++ may change with the next minor version.
    major, minor = args.version.split(".")[:2]
    upstream = args.version.rpartition("-")[0]
    names = sorted(filter(None, (soname(f) for f in libraries[0].glob("*.so.*") if is_elf(f))))
    bounds = f"libsardonyx0 (>= {upstream}), libsardonyx0 (<< {major}.{int(minor) + 1}~)"
    (args.out.parent / "shlibs").write_text("".join(f"{name.split('.so.')[0]} {name.split('.so.')[1]} {bounds}\n" for name in names))


if __name__ == "__main__":
    main()
