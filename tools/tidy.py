"""clang-tidy over the project's C++ sources, or over those that differ from a commit: tidy.py [COMMIT [MINUTES]]. Exit code 1 where it finds
something. After MINUTES nothing further is begun; what is left out is named.

Most of clang-tidy's time goes into headers, so sources that may be compiled together (cmake/unity_groups.py) are looked at together, also
those of different libraries. They are copied into one file, not included: Clang's analyzer looks at functions of the main file only.
"""

import json
import os
import re
import shlex
import subprocess
import sys
import time
from bisect import bisect_right
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "cmake"))
from unity_groups import Reader, groups_of  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "tidy"
TOGETHER = BUILD / "together"
LARGEST = 24  # sources in a group
GENERATED = re.compile(r"^([^/:][^:]*(?:_generated\.h|\.pb\.h|/spirv/\w+\.inc)): CUSTOM_COMMAND$", re.M)
# Definitions that make no difference to what clang-tidy sees.
HARMLESS = re.compile(r"-D(\w+_EXPORTS|HWY_IS_DEBUG_BUILD=.*|GTEST_HAS_PTHREAD=.*)$")
# Programs, and sources whose system headers contradict the C library's.
ALONE = re.compile(r"^int main\(|^#include <linux/", re.M)
FINDING = re.compile(r"^(/[^:\n]+):(\d+):\d+: (?:warning|error|note): ", re.M)


def output_of(*command, cwd=ROOT):
    return subprocess.run(command, cwd=cwd, check=True, stdout=subprocess.PIPE, text=True).stdout


CLANG, CLANG_TIDY = (output_of("tools/clang.sh", tool).strip() for tool in ("clang++", "clang-tidy"))


def configure():
    output_of("cmake", "--preset", "clang", "-B", str(BUILD))
    # Only the commands that write the headers: as targets, they would wait for the libraries that their targets link to.
    commands = {output_of("ninja", "-t", "commands", "-s", header, cwd=BUILD) for header in GENERATED.findall(output_of("ninja", "-t", "targets", "all", cwd=BUILD))}
    for command in commands:
        subprocess.run(command, cwd=BUILD, shell=True, check=True)


class Unit:
    """Sources that are looked at together. Reads them; `starts` holds the line of `file` before each source's first."""

    def __init__(self, options, sources):
        self.sources, self.starts = sources, []
        self.arguments = [CLANG, *options, *(f"-iquote{folder}" for folder in sorted({str(s.parent) for s in sources}))]
        self.size = sum(s.stat().st_size for s in sources)
        self.file = sources[0]

    def join(self, number):
        """Writes the sources into one file, if there are several."""
        if len(self.sources) == 1:
            return
        self.file = TOGETHER / f"{number}.cc"
        text, lines = "", 0
        for source in self.sources:
            part = f'#line 1 "{source}"\n{source.read_text()}\n'
            self.starts.append(lines + 1)
            text, lines = text + part, lines + part.count("\n")
        self.file.write_text(text)

    def entry(self):
        return {"directory": str(BUILD), "file": str(self.file), "arguments": [*self.arguments, "-c", str(self.file)]}

    def origin(self, match):
        """A finding's place in the source that it comes from."""
        if match[1] != str(self.file) or not self.starts:
            return match[0]
        line = int(match[2])
        part = bisect_right(self.starts, line) - 1
        return match[0].replace(f"{match[1]}:{line}:", f"{self.sources[part]}:{line - self.starts[part]}:", 1)


def options_of(command):
    """The options that decide what the compiler sees: definitions, folders of headers, language, warnings; and the key by which sources may
    share them."""
    arguments = shlex.split(command)
    options, take = [], False
    for argument in arguments[1:arguments.index("-o")]:
        if take:
            options[-1] += argument
        elif argument == "-isystem" or argument.startswith(("-D", "-I", "-std", "-W")):
            options.append(argument)
        take = argument == "-isystem"
    key = frozenset(o for o in options if o.startswith(("-D", "-std")) and not HARMLESS.match(o))
    return dict.fromkeys(options), key


def units(chosen):
    """The project's sources in groups, the largest first. `chosen`: their paths, or None for all. What this configuration does not compile,
    as fuzzers, is left out."""
    alike = defaultdict(lambda: ({}, set()))
    for entry in json.loads((BUILD / "compile_commands.json").read_text()):
        source = Path(entry["file"])
        if source.suffix == ".cc" and BUILD not in source.parents and (chosen is None or source in chosen):
            options, key = options_of(entry["command"])
            alike[key][0].update(options)
            alike[key][1].add(source)
    found = []
    for options, sources in alike.values():
        together = [str(source) for source in sources if not ALONE.search(source.read_text())]
        groups = [[Path(f) for f in group] for group in groups_of(together, Reader([ROOT / part for part in ("src", "include", "apps", "tests")]), LARGEST)]
        alone = sources.difference(*groups)
        found += [Unit(options, group) for group in [*groups, *([source] for source in alone)]]
    return sorted(found, key=lambda unit: -unit.size)


def look_at(unit, end):
    """What clang-tidy says about a unit, None where there is no time left."""
    if time.time() >= end:
        return None
    command = [CLANG_TIDY, "--quiet", "--warnings-as-errors=*", "-p", str(TOGETHER), str(unit.file)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, errors="replace")
    said = done.stdout if done.returncode == 0 or done.stdout.strip() else done.stderr
    return FINDING.sub(unit.origin, said), done.returncode != 0


def findings(text):
    """Each finding with its notes and lines of code."""
    starts = [m.start() for m in FINDING.finditer(text) if ": note: " not in m[0]]
    return [text[a:b] for a, b in zip(starts, [*starts[1:], len(text)])] or [text]


def main(since="", minutes=""):
    chosen = None
    if since:
        names = output_of("git", "diff", "--name-only", "--diff-filter=d", since, "--", "*.cc").split()
        if not names:
            print(f"tidy: no source differs from {since}")
            return 0
        chosen = {ROOT / name for name in names}
    configure()
    TOGETHER.mkdir(exist_ok=True)
    every = units(chosen)
    for number, unit in enumerate(every):
        unit.join(number)
    (TOGETHER / "compile_commands.json").write_text(json.dumps([unit.entry() for unit in every]))
    end = time.time() + float(minutes or 1e6) * 60
    seen, failed, left = set(), False, []  # a header's finding comes with each unit that includes it
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for unit, result in zip(every, pool.map(lambda u: look_at(u, end), every)):
            if result is None:
                left += unit.sources
                continue
            failed |= result[1]
            for finding in findings(result[0]):
                if finding not in seen:
                    seen.add(finding)
                    print(finding, end="", flush=True)
    if left:
        print(f"tidy: {len(left)} of {sum(len(u.sources) for u in every)} sources left out after {minutes} minutes:")
        print("\n".join(f"  {source.relative_to(ROOT)}" for source in left))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
