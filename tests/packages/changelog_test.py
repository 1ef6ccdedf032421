"""changelog_test.py PROJECT: tools/changelog.py on good and bad files, and that CHANGELOG.md is a good one."""

import sys
from pathlib import Path

PROJECT = Path(sys.argv[1])
sys.path.insert(0, str(PROJECT / "tools"))
import changelog  # noqa: E402

GOOD = """# Changelog

About this file.

## [Unreleased]

### Added

- One thing
  on two lines.

### Fixed

- A fault.

## [0.10.0] - 2026-03-01

### Changed

- Another thing.

## [0.9.1] - 2025-12-31

### Security

- The oldest.
"""

# What replaces what in GOOD, and a part of the message.
BAD = [
    ("## [Unreleased]\n", "## Unreleased\n", "line 5: '## Unreleased' is neither"),
    ("## [Unreleased]\n", "## [Unreleased] - 2026-01-01\n", "line 5: a release has a date"),
    ("[0.10.0] - 2026-03-01", "[0.10.0]", "line 16: a release has a date"),
    ("[0.10.0] - 2026-03-01", "[0.10] - 2026-03-01", "line 16:"),
    ("[0.10.0] - 2026-03-01", "[0.10.0] - March 2026", "line 16:"),
    ("[0.10.0]", "[0.9.0]", "newest first"),
    ("[0.10.0]", "[0.9.1]", "newest first"),
    ("[0.9.1] - 2025-12-31", "[Unreleased]", "listed once each"),
    ("### Fixed", "### Repaired", "line 12: 'Repaired' is no kind of change"),
    ("### Fixed", "### Added", "line 12: 'Added' is no kind of change, or there twice"),
    ("### Added\n", "### Security\n", "not in the order"),
    ("### Added\n\n", "", "line 7: an entry above the first kind"),
    ("  on two lines.", "on two lines.", "line 10: neither an entry"),
    ("- Another thing.\n", "", "release 0.10.0 has no entries"),
    ("# Changelog\n", "# Changes\n", "the file begins with"),
    ("## [Unreleased]\n", "", "the file begins with"),
]


def check(condition, *what):
    if not condition:
        raise AssertionError(what)


def refused(function, *arguments):
    try:
        function(*arguments)
    except changelog.Malformed as e:
        return str(e)
    return None


def forms():
    check(changelog.check(GOOD))
    for old, new, message in BAD:
        check(GOOD.count(old) >= 1, old)
        said = refused(changelog.check, GOOD.replace(old, new, 1))
        check(said and message in said, old, new, said)


def releases():
    released = changelog.release(GOOD, "0.11.0", "2026-04-05")
    check("## [Unreleased]\n\n## [0.11.0] - 2026-04-05\n\n### Added\n\n- One thing\n" in released, released)
    check(released.replace("\n## [0.11.0] - 2026-04-05\n", "", 1) == GOOD, released)
    check(changelog.section(released, "0.11.0") == "### Added\n\n- One thing\n  on two lines.\n\n### Fixed\n\n- A fault.\n")
    check(changelog.section(released, "0.10.0") == "### Changed\n\n- Another thing.\n")
    for arguments, message in [
        (("0.10.0", "2026-04-05"), "there is a section 0.10.0 already"),
        (("0.10", "2026-04-05"), "0.10 is no version"),
        (("0.11.0", "tomorrow"), "tomorrow no date"),
        (("0.9.9", "2026-04-05"), "newest first"),
    ]:
        said = refused(changelog.release, GOOD, *arguments)
        check(said and message in said, arguments, said)
    # Nothing was changed since.
    said = refused(changelog.release, released, "0.12.0", "2026-05-05")
    check(said and "nothing is under Unreleased" in said, said)
    check("there is no section 7.0.0" in refused(changelog.section, GOOD, "7.0.0"))


if __name__ == "__main__":
    forms()
    releases()
    changelog.check((PROJECT / "CHANGELOG.md").read_text())
    print("changelog: ok")
