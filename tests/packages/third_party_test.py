"""third_party_test.py PROJECT BUILD: packaging/third_party.txt and NOTICE.md name every library that the build's binaries contain, link or
load, and static ones have notices. Exit code 77 where that cannot be told: without dpkg, Ninja or Debian 12."""

import re
import shutil
import sys
from pathlib import Path

PROJECT, BUILD = Path(sys.argv[1]), Path(sys.argv[2])
sys.path.insert(0, str(PROJECT / "tools"))
import sbom  # noqa: E402

# Parts of every system.
NOT_NAMED = {"gcc", "glibc", "linux", "python"}


def check(condition, *what):
    if not condition:
        raise AssertionError(what)


def main():
    release = Path("/etc/os-release")
    if not shutil.which("dpkg-query") or not (BUILD / "build.ninja").exists() or "VERSION_CODENAME=bookworm" not in release.read_text():
        print("needs Debian 12 and a build by Ninja")
        sys.exit(77)
    parts = sbom.parts_of(BUILD)
    notice = (PROJECT / "NOTICE.md").read_text().lower()
    missing = [part.title for part in parts if part.source not in NOT_NAMED and part.title.lower() not in notice]
    check(not missing, f"NOTICE.md does not name {missing}")
    inside = [part for part in parts if part.inside]
    check({"fmtlib", "highway", "protozero"} <= {part.source for part in inside}, inside)
    notices = sbom.notices(inside)
    for part in inside:
        check(f"\n{part.title} {part.version} ({part.licence})\n" in notices, part)
    for source, (title, licence, role) in sbom.table().items():
        check(title and re.fullmatch(r"[\w.()+ -]+", licence) and role in ("", "interface", "loaded", "shared"), source, title, licence, role)


if __name__ == "__main__":
    main()
    print("third party: ok")
