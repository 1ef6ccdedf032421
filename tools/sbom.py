#!/usr/bin/env python3
"""sbom.py --build BUILD [--out FILE.spdx.json] [--notices FILE.txt] [ARTIFACT...]: what a build consists of besides our own code.

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
BINARIES = ("bin/sdx", "lib/*.so.*", "lib/sardonyx/*.so*", "python/sardonyx/*.so")


@dataclasses.dataclass
class Part:
    """A library, by the name of its Debian source package, without the number at its end."""

    source: str
    title: str
    licence: str
    role: str  # static: linked from an archive; header: compiled in; shared; interface: nothing but declarations; loaded: if installed
    packages: list
    version: str
    debian_version: str

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
    wanted = False
    for line in run("ninja", "-C", str(build), "-t", "deps").splitlines():
        if line and not line.startswith(" "):
            wanted = line.split(":", 1)[0] in made_from
        elif wanted and line.startswith("    /"):
            used.add(line.strip())
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
    """{package: its headers and libraries that the build used}"""
    copies = originals(build)
    here = build.resolve()
    paths = set()
    for path in inputs(build):
        path = Path(copies.get(path, path))
        path = Path(os.path.normpath(path if path.is_absolute() else here / path))
        if not path.is_relative_to(here) and not path.is_relative_to(SOURCE):
            paths.add(str(path))
    found = owners(paths)
    # Links of alternatives, and files that were installed by other names.
    for path in found.pop(None, []):
        package = next(iter(owners({os.path.realpath(path)})), None)
        found.setdefault(package, []).append(path)
    if None in found:
        sys.exit(f"sbom: no package owns {', '.join(found[None][:10])}: licences of such files are unknown")
    return found


def role_of(paths):
    for role, pattern in (("static", r"\.a$"), ("shared", r"\.so(\.\d+)*$")):
        if any(re.search(pattern, path) for path in paths):
            return role
    return "header"


def parts_of(build):
    rows, by_source, versions = table(), {}, {}
    for package, paths in packages_of(build).items():
        source, version = run("dpkg-query", "-W", "-f", "${source:Package}\t${source:Version}\n", package).splitlines()[0].split("\t")
        source = re.sub(r"-?\d[\d.]*$", "", source)
        used = by_source.setdefault(source, ([], []))
        used[0].append(package)
        used[1].extend(paths)
        versions[source] = version
    unknown = sorted(set(by_source) - set(rows))
    if unknown:
        sys.exit(f"sbom: packaging/third_party.txt lacks {', '.join(f'{s} ({by_source[s][1][0]})' for s in unknown)}")
    parts = []
    for source, (packages, paths) in sorted(by_source.items()):
        title, licence, known = rows[source]
        found = role_of(paths)
        role = found if found == "static" else known or found
        plain = re.sub(r"^\d+:|(\.dfsg|[-+~]).*$", "", versions[source])
        parts.append(Part(source, title, licence, role, sorted(packages), plain, versions[source]))
    return parts


def notices(parts):
    """The notices of what is inside, as Debian's packages hold them."""
    text = "The binaries of Sardonyx contain code of the following libraries, under the licences below.\n"
    for part in parts:
        path = next((p for p in (Path(f"/usr/share/doc/{name}/copyright") for name in part.packages) if p.exists()), None)
        if path is None:
            sys.exit(f"sbom: no package of {part.packages} has a copyright file")
        text += f"\n{'=' * 100}\n{part.title} {part.version} ({part.licence})\n{'=' * 100}\n\n{path.read_text().strip()}\n"
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
        packages.append({"SPDXID": name, "name": part.title, "versionInfo": part.version, "licenseConcluded": part.licence, "licenseDeclared": part.licence,
                         "supplier": "Organization: Debian", **unknown,
                         "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": purl}]})  # fmt: skip
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
    parser.add_argument("artifacts", nargs="*", type=Path)
    args = parser.parse_args()
    parts = parts_of(args.build)
    if args.out:
        args.out.write_text(json.dumps(document(parts, args.artifacts), indent=2) + "\n")
    if args.notices:
        args.notices.write_text(notices([part for part in parts if part.inside]))
    if not args.out and not args.notices:
        for part in parts:
            print(f"{part.role:9} {part.title} {part.version} ({part.licence}): {', '.join(part.packages)}")


if __name__ == "__main__":
    main()
