#!/usr/bin/env python3
"""changelog.py check | release VERSION DATE | section VERSION [--file CHANGELOG.md]

check: the file has the form of Keep a Changelog. release: what is under "Unreleased" becomes the section of VERSION, and "Unreleased" is
empty. section: prints the entries of VERSION, for a page of releases."""

import argparse
import re
import sys
from pathlib import Path

KINDS = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"]
NUMBER = r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)"
HEADING = re.compile(rf"## \[(?P<name>Unreleased|{NUMBER})\](?P<date> - \d{{4}}-\d\d-\d\d)?$")


class Malformed(Exception):
    """What is wrong with the file, with its line."""


def sections(text):
    """[(name, line number, lines)] of the second level, in the file's order."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("## "):
            heading = HEADING.match(line)
            if not heading:
                raise Malformed(f"line {number}: {line!r} is neither `## [Unreleased]` nor `## [1.2.3] - 2026-01-31`")
            if (heading["name"] == "Unreleased") == bool(heading["date"]):
                raise Malformed(f"line {number}: a release has a date, and what is unreleased has none")
            found.append((heading["name"], number, []))
        elif found:
            found[-1][2].append(line)
    return found


def check_entries(name, start, lines):
    kinds, entries = [], 0
    for number, line in enumerate(lines, start + 1):
        if line.startswith("### "):
            kind = line[4:]
            if kind not in KINDS or kind in kinds:
                raise Malformed(f"line {number}: {kind!r} is no kind of change, or there twice in {name}; the kinds are {', '.join(KINDS)}")
            kinds.append(kind)
        elif line.startswith("- "):
            entries += 1
            if not kinds:
                raise Malformed(f"line {number}: an entry above the first kind of change (### Added, …)")
        elif line and not line.startswith("  "):
            raise Malformed(f"line {number}: neither an entry (`- …`), nor its continuation, which begins with two spaces: {line!r}")
    if kinds != sorted(kinds, key=KINDS.index):
        raise Malformed(f"line {start}: the kinds of changes of {name} are not in the order {', '.join(KINDS)}")
    if name != "Unreleased" and not entries:
        raise Malformed(f"line {start}: release {name} has no entries")


def check(text):
    found = sections(text)
    if not text.startswith("# Changelog\n") or not found or found[0][0] != "Unreleased":
        raise Malformed("the file begins with `# Changelog`, and its first section is `## [Unreleased]`")
    versions = [tuple(map(int, name.split("."))) for name, _, _ in found[1:] if name != "Unreleased"]
    if len(versions) != len(found) - 1 or any(later <= earlier for later, earlier in zip(versions, versions[1:])):
        raise Malformed("the releases are not listed once each, the newest first")
    for section in found:
        check_entries(*section)
    return found


def release(text, version, date):
    found = check(text)
    if not re.fullmatch(NUMBER, version) or not re.fullmatch(r"\d{4}-\d\d-\d\d", date):
        raise Malformed(f"{version} is no version, or {date} no date")
    if version in [name for name, _, _ in found]:
        raise Malformed(f"there is a section {version} already")
    if not any(line.startswith("- ") for line in found[0][2]):
        raise Malformed(f"nothing is under Unreleased that could be in {version}")
    changed = text.replace("## [Unreleased]\n", f"## [Unreleased]\n\n## [{version}] - {date}\n", 1)
    check(changed)
    return changed


def section(text, version):
    for name, _, lines in check(text):
        if name == version:
            return "\n".join(lines).strip() + "\n"
    raise Malformed(f"there is no section {version}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--file", type=Path, default=Path(__file__).resolve().parent.parent / "CHANGELOG.md")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("check")
    for name in ("release", "section"):
        commands.add_parser(name).add_argument("version")
    commands.choices["release"].add_argument("date")
    args = parser.parse_args()
    text = args.file.read_text()
    try:
        if args.command == "check":
            check(text)
        elif args.command == "section":
            print(section(text, args.version), end="")
        else:
            args.file.write_text(release(text, args.version, args.date))
    except Malformed as e:
        sys.exit(f"{args.file.name}: {e}")


if __name__ == "__main__":
    main()
