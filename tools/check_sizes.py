#!/usr/bin/env python3
"""Checks that folders have at most 40 files, source files at most 600 lines, and functions at most 80.

Functions are recognised by clang-format's layout, from a line that contains a parenthesis and ends with `{` to the `}` with the same
indentation; so format first. Prints every violation; the exit code is 1 if there is one.
"""

import ast
import collections
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
MOST_FILES, MOST_LINES, MOST_FUNCTION_LINES = 40, 600, 80
NOT_A_FUNCTION = re.compile(r"(namespace|class|struct|enum|union|extern|switch|if|for|while|else|do|try|case|\})\b")


def functions(lines: list[str]):
    """Name, first line (from 1) and number of lines of each function, at namespace or class level."""
    for first, line in enumerate(lines):
        text = line.lstrip(" ")
        indent = len(line) - len(text)
        if indent > 2 or not line.endswith("{") or ")" not in line or NOT_A_FUNCTION.match(text) or line.startswith("#"):
            continue
        closing = " " * indent + "}"
        for last in range(first + 1, len(lines)):
            if lines[last].startswith(closing):
                yield text, first + 1, last - first + 1
                break


def python_functions(source: str):
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.name, node.lineno, node.end_lineno - node.lineno + 1


def main() -> int:
    names = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    names = [n for n in names if n and (ROOT / n).is_file()]
    found = []
    folders = collections.Counter(str(pathlib.PurePosixPath(n).parent) for n in names)
    for folder, count in folders.items():
        if count > MOST_FILES:
            found.append(f"{folder}: {count} files")
    for name in names:
        if not name.endswith((".cc", ".h", ".hpp", ".py")):
            continue
        source = (ROOT / name).read_text()
        lines = source.split("\n")
        if len(lines) - 1 > MOST_LINES:
            found.append(f"{name}: {len(lines) - 1} lines")
        for what, at, count in python_functions(source) if name.endswith(".py") else functions(lines):
            if count > MOST_FUNCTION_LINES:
                found.append(f"{name}:{at}: {count} lines: {what[:80]}")
    for line in found:
        print(line)
    print(f"size check: {len(found)} violation(s)" if found else "size check: ok", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
