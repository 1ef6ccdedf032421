#!/usr/bin/env python3
"""sbom.py --build BUILD [--out FILE.spdx.json] [--notices FILE.txt [--copied LIBRARY]...] [ARTIFACT...]: what a build consists of besides our own code.

Ninja knows which headers, archives and shared libraries went into the binaries of BUILD, and dpkg which package, of which version, each of
them belongs to; packaging/third_party.txt gives the licences. A library that the table lacks is an error. --out writes a list in the
format SPDX 2.3 (JSON) with the artifacts (packages) and their checksums; --notices writes the copyright notices of what is inside."""

import argparse
import dataclasses
import datetime
import hashlib
import json
import os
import re
import subprocess
import sys
import uuid
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(SOURCE / "tools/cross"))
import parts as cross  # noqa: E402

FETCHED = "build/portable-sources"  # tools/portable_sources.sh
BINARIES = ("bin/sdx", "bin/sdx.exe", "lib/*.so.*", "lib/sardonyx/*.so*", "python/sardonyx/*.so")


@dataclasses.dataclass
class Part:
    """A library, by the name of its Debian source package, without the number at its end."""

    source: str
    title: str
    licence: str
    role: str  # static: linked from an archive; header: compiled in; shared; interface: nothing but declarations; loaded: if installed
    packages: list
    version: str
    debian_version: str  # empty: not from a package of Debian
    notice: str

    @property
    def inside(self):
        return self.role in ("static", "header")


def table():
    """{source package: (title, licence, role or empty)}"""
    rows = {}
    for line in (SOURCE / "packaging/third_party.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            source, title, licence, *role = (cell.strip() for cell in line.split("|"))
            rows[source] = (title, licence, role[0] if role else "")
    return rows


def run(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, check=True, **options).stdout


def binaries(build):
    found = {path.resolve() for pattern in BINARIES for path in build.glob(pattern)}
    return sorted(path.relative_to(build.resolve()) for path in found if path.is_file())


def inputs(build):
    """Headers, archives and shared libraries outside the project, of which the binaries are made."""
    outputs = [str(path) for path in binaries(build)]
    if not outputs:
        sys.exit(f"{build} has no binaries: the targets sdx_installed and sdx_python build them")
    made_from = set(run("ninja", "-C", str(build), "-t", "inputs", *outputs).splitlines()[0 if len(outputs) else 1:])
    made_from = {line for line in made_from if not line.startswith("ninja: ")}
    used = {path for path in made_from if re.search(r"\.(a|so)(\.\d+)*$", path) and not path.startswith("lib")}
    wanted, known = False, set()
    for line in run("ninja", "-C", str(build), "-t", "deps").splitlines():
        if line and not line.startswith(" "):
            known.add(line.split(":", 1)[0])
            wanted = line.split(":", 1)[0] in made_from
        elif wanted and line.startswith("    "):
            used.add(line.strip())
    if unknown := sorted(path for path in made_from - known if re.search(r"CMakeFiles/.*\.(c|cc|cxx)\.o(bj)?$", path)):
        sys.exit(f"sbom: Ninja has no list of the headers of {unknown[0]} and {len(unknown) - 1} others; remove {build} and build again")
    return used


def originals(build):
    """Archives that cmake/archives.cmake copied: {name of the copy: path of the original}."""
    cache = (build / "CMakeCache.txt").read_text()
    paths = re.findall(r"^\w+_FOUND:FILEPATH=(/.+\.a)$", cache, re.M)
    return {f"archives/{Path(path).name}": path for path in paths}


def owners(paths):
    """{package: paths}; paths of no package are under None."""
    found = {}
    paths = sorted(paths)
    known = {}
    for start in range(0, len(paths), 500):
        done = subprocess.run(["dpkg", "-S", *paths[start : start + 500]], capture_output=True, text=True)
        for line in done.stdout.splitlines():
            names, _, path = line.partition(": ")
            if not line.startswith("diversion "):
                known[path] = names.split(",")[0].split(":")[0]
    for path in paths:
        found.setdefault(known.get(path), []).append(path)
    return found


def packages_of(build):
    """{package: its headers and libraries that the build used}, and {name: cross.Source} of those that are none of this system's packages."""
    copies = originals(build)
    here = build.resolve()
    paths, found = set(), {}
    for path in inputs(build):
        path = Path(copies.get(path, path))
        path = cross.on_this_system(Path(os.path.normpath(path if path.is_absolute() else here / path)), SOURCE)
        if path.is_relative_to(SOURCE / FETCHED):
            found.setdefault(path.relative_to(SOURCE / FETCHED).parts[0], []).append(str(path))
        elif not path.is_relative_to(here) and not (real := path.resolve()).is_relative_to(SOURCE):
            paths.add(str(real if path.is_relative_to(SOURCE) else path))
    fetched = {name: fetched_source(name, files) for name, files in found.items()}
    if is_static(build):
        fetched.update(cross.sources(build, SOURCE))
        found.update({name: source.files for name, source in fetched.items()})
    found.update(owners(paths))
    # Links of alternatives, and files that were installed by other names.
    for path in found.pop(None, []):
        package = next(iter(owners({os.path.realpath(path)})), None)
        if package is None and "/include/python3." in path:  # the interface of a Python that no package brought: none of it is built in
            continue
        found.setdefault(package, []).append(path)
    if None in found:
        sys.exit(f"sbom: no package owns {', '.join(found[None][:10])}: licences of such files are unknown")
    return found, fetched


def is_static(build):
    return re.search(r"^SDX_STATIC:BOOL=ON", (build / "CMakeCache.txt").read_text(), re.M) is not None


def fetched_source(name, files):
    """What tools/portable_sources.sh fetched."""
    found = re.search(r'#define \w*VERSION "([\d.]+)"', "".join(Path(path).read_text() for path in files))
    version = found[1] if found else sys.exit(f"sbom: no header of {name} says its version")
    return cross.Source(version, "", (SOURCE / FETCHED / name / "LICENSE").read_text(), files)


def role_of(paths):
    for role, pattern in (("static", r"\.a$"), ("shared", r"\.so(\.\d+)*$")):
        if any(re.search(pattern, path) for path in paths):
            return role
    return "header"


def parts_of(build):
    rows, parts = table(), {}
    # Where an older glibc is asked for, what that system's C++ library lacks is linked statically.
    gcc_inside = re.search(r"^SDX_GLIBC:\w+=.", (build / "CMakeCache.txt").read_text(), re.M)
    found, fetched = packages_of(build)
    static = is_static(build)
    for name, paths in sorted(found.items()):
        source, facts = (name, fetched[name]) if name in fetched else cross.of_debian(name)
        title, licence, known = rows.get(source) or sys.exit(f"sbom: packaging/third_party.txt lacks {source} ({paths[0]})")
        part = parts.setdefault(source, Part(source, title, licence, known, [], facts.version, facts.debian_version, facts.notice))
        part.packages.append(name)
        role = "static" if static and name in fetched else role_of(paths)
        if role == "static" or (source == "gcc" and gcc_inside):
            part.role = "static"
        elif not known and part.role != "static":
            part.role = "shared" if "shared" in (part.role, role) else role
    return [parts[source] for source in sorted(parts)]


def notices(parts):
    """The notices of what is inside, as Debian's packages hold them."""
    text = "The binaries of Sardonyx contain code of the following libraries, under the licences below.\n"
    for part in parts:
        if not part.notice:
            sys.exit(f"sbom: the notices of {part.title}, which are in /usr/share/doc/{part.packages[0]}/copyright, are missing")
        text += f"\n{'=' * 100}\n{part.title} {part.version} ({part.licence})\n{'=' * 100}\n\n{part.notice.strip()}\n"
    return text


def identifier(name):
    return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", name)


def created():
    epoch = os.environ.get("SOURCE_DATE_EPOCH") or run("git", "-C", str(SOURCE), "log", "-1", "--format=%ct").strip()
    return datetime.datetime.fromtimestamp(int(epoch), datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


RELATIONS = {"static": ("{part}", "STATIC_LINK", "{product}"), "header": ("{product}", "CONTAINS", "{part}"), "shared": ("{part}", "DYNAMIC_LINK", "{product}"),
             "interface": ("{product}", "DEPENDS_ON", "{part}"), "loaded": ("{part}", "OPTIONAL_DEPENDENCY_OF", "{product}")}  # fmt: skip


def version():
    return re.search(r"project\(sardonyx VERSION ([0-9.]+)", (SOURCE / "CMakeLists.txt").read_text())[1]


def document(parts, artifacts):
    ours = version()
    unknown = {"filesAnalyzed": False, "downloadLocation": "NOASSERTION", "copyrightText": "NOASSERTION"}
    product = {"SPDXID": "SPDXRef-sardonyx", "name": "sardonyx", "versionInfo": ours, "licenseConcluded": "MIT", "licenseDeclared": "MIT",
               "supplier": "Organization: The Sardonyx authors", **unknown, "copyrightText": "Copyright (c) 2026 The Sardonyx authors"}  # fmt: skip
    packages, relations = [product], [("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-sardonyx")]
    for path in artifacts:
        name = identifier(f"file-{path.name}")
        sum_ = hashlib.sha256(path.read_bytes()).hexdigest()
        packages.append({"SPDXID": name, "name": path.name, "versionInfo": ours, "packageFileName": path.name, "licenseConcluded": "NOASSERTION",
                         "licenseDeclared": "MIT", "checksums": [{"algorithm": "SHA256", "checksumValue": sum_}], **unknown})  # fmt: skip
        relations += [("SPDXRef-DOCUMENT", "DESCRIBES", name), (name, "GENERATED_FROM", "SPDXRef-sardonyx")]
    for part in parts:
        name = identifier(f"part-{part.source}")
        purl = f"pkg:deb/debian/{part.source}@{part.debian_version.replace('+', '%2B').replace(':', '%3A')}?arch=source"
        reference = [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": purl}] if part.debian_version else []
        packages.append({"SPDXID": name, "name": part.title, "versionInfo": part.version, "licenseConcluded": part.licence, "licenseDeclared": part.licence,
                         **unknown, **({"supplier": "Organization: Debian", "externalRefs": reference} if reference else {})})  # fmt: skip
        relations.append(tuple(end.format(part=name, product="SPDXRef-sardonyx") for end in RELATIONS[part.role]))
    body = {"packages": packages, "relationships": [{"spdxElementId": a, "relationshipType": kind, "relatedSpdxElement": b} for a, kind, b in relations]}
    unique = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(body, sort_keys=True))
    return {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": f"sardonyx-{ours}",
            "documentNamespace": f"https://spdx.org/spdxdocs/sardonyx-{ours}-{unique}",
            "creationInfo": {"created": created(), "creators": ["Organization: The Sardonyx authors", "Tool: sbom.py"]}, **body}  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--notices", type=Path)
    parser.add_argument("--copied", action="append", default=[], help="a shared library (by its name in third_party.txt) of which a copy is packed, too")
    parser.add_argument("artifacts", nargs="*", type=Path)
    args = parser.parse_args()
    parts = parts_of(args.build)
    if args.out:
        args.out.write_text(json.dumps(document(parts, args.artifacts), indent=2) + "\n")
    if args.notices:
        args.notices.write_text(notices([part for part in parts if part.inside or part.source in args.copied]))
    if not args.out and not args.notices:
        for part in parts:
            print(f"{part.role:9} {part.title} {part.version} ({part.licence}): {', '.join(part.packages)}")


if __name__ == "__main__":
    main()
