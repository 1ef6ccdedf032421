#!/usr/bin/env python3
"""Checks the direction of includes: a file may include its own folder and folders with a lower number.

Folders with the same number do not see each other. What is an operating system's own stays in src/base/system: in folders that are free of
it, no file includes its headers or asks which system it is. Prints every violation; exit code 1 if there is one.
"""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Longest prefix wins. The numbers are those of docs/map.md.
LAYERS = {
    "include/sdx": 0,
    "examples": 1,  # nothing but the public interface
    "tests/outside": 1,
    "src/base": 1,
    "src/tensor": 2,
    "src/graph": 3,
    "src/kernels/cpu": 3,
    "src/kernels/vulkan": 3,
    "src/media": 3,
    "src/ops": 4,
    "src/onnx": 5,
    "src/passes": 5,
    "src/cache": 6,
    "src/providers/interface": 7,
    "src/plan": 8,
    "src/providers": 8,
    "src/session": 9,
    "src/project": 10,
    "src/hub": 10,
    "src/inputs": 10,
    "src/inspect": 10,
    "src/serve": 10,  # module_api.h
    "src/serve/http": 10,
    "src/serve/monitor": 10,
    "src/serve/page": 11,
    "src/compare": 11,
    "src/benchmark": 11,
    "src/benchmark/report": 12,
    "src/vision": 11,
    "src/vision/page": 12,
    "src/text": 11,
    "src/speech": 12,
    "src/speech/tools.h": 11,  # its functions are in a library that is loaded
    "src/array": 11,
    "src/quantize": 11,
    "src/train": 11,
    "src/dropin": 11,
    "src/train/loop": 12,
    "src/serve/models": 12,
    "src/serve/openai": 13,
    "src/serve/inference": 13,
    "src/serve/anthropic": 14,
    "src/serve/llama": 14,
    "src/serve/vllm": 14,
    "src/serve/ollama": 14,
    "src/serve/responses": 14,
    "src/serve/server": 15,
    "apps": 13,
    "bindings": 13,
    "tests": 14,
    "bench": 14,
    "fuzz": 16,
}

# Folders whose files call operating systems through src/base/system alone.
FREE_OF_SYSTEMS = (
    "src/base/",
    "src/tensor/",
    "src/graph/",
    "src/kernels/cpu/",
    "src/media/",
    "src/ops/",
    "src/onnx/",
    "src/passes/",
    "src/plan/",
)
# The same apart from their unit tests.
FREE_BUT_FOR_TESTS = (
    "apps/cli/",
    "src/array/",
    "src/benchmark/",
    "src/cache/",
    "src/compare/",
    "src/hub/",
    "src/inputs/",
    "src/inspect/",
    "src/project/",
    "src/providers/",
    "src/quantize/",
    "src/serve/",
    "src/session/",
    "src/speech/",
    "src/text/",
    "src/train/",
    "src/vision/batch/",
)
SYSTEM_HEADER = re.compile(
    r"(unistd|dlfcn|fcntl|poll|pthread|signal|termios|sched|dirent|glob|fnmatch|spawn|pwd|grp|link|netdb|io|direct|process|psapi|malloc)\.h|csignal|"
    r"(sys|linux|arpa|netinet|net)/.*|(windows|win\w+|shl\w+|ws2tcpip)\.h"
)
SYSTEM_MACRO = re.compile(r"\s*#\s*(if|ifdef|ifndef|elif)\b.*\b(_WIN32|_WIN64|WIN32|__linux__|__unix__|__APPLE__|__MINGW\w+)\b")


def is_free_of_systems(path: str) -> bool:
    if path.startswith("src/base/system/"):
        return False
    return path.startswith(FREE_OF_SYSTEMS) or (path.startswith(FREE_BUT_FOR_TESTS) and not path.endswith(("_test.cc", "_test_support.h")))


def folder_of(path: str) -> str | None:
    matches = [f for f in LAYERS if path == f or path.startswith(f + "/")]
    return max(matches, key=len) if matches else None


def resolve(included: str, quoted: bool, here: pathlib.PurePosixPath) -> str | None:
    if included.startswith("sdx/"):
        return "include/" + included
    if not quoted:
        return None
    for candidate in (f"src/{included}", f"tests/{included}", str(here.parent / included), included):
        if (ROOT / candidate).is_file():
            return candidate
    return None


def main() -> int:
    listed = subprocess.run(["git", "ls-files", "*.h", "*.hpp", "*.cc"], cwd=ROOT, capture_output=True, text=True, check=True)
    bad = 0
    for name in listed.stdout.split():
        folder = folder_of(name)
        if not (ROOT / name).is_file():
            continue
        text = (ROOT / name).read_text()
        # {fmt} 9 has join() in fmt/format.h, too; 11 has not.
        if "fmt::join(" in text and "#include <fmt/ranges.h>" not in text:
            print(f"{name}: fmt::join() needs <fmt/ranges.h>")
            bad += 1
        if folder is None:
            continue
        for number, line in enumerate(text.splitlines(), 1):
            if is_free_of_systems(name) and SYSTEM_MACRO.match(line):
                print(f"{name}:{number}: asks which system it is; what differs belongs in src/base/system")
                bad += 1
            match = re.match(r'\s*#\s*include\s+([<"])([^>"]+)[>"]', line)
            if not match:
                continue
            if is_free_of_systems(name) and match[1] == "<" and SYSTEM_HEADER.fullmatch(match[2]):
                print(f"{name}:{number}: {match[2]} is a system's own; call it through src/base/system")
                bad += 1
            target = resolve(match[2], match[1] == '"', pathlib.PurePosixPath(name))
            other = folder_of(target) if target else None
            # Unit tests lie beside their source and share what is in tests/support.
            if target and target.startswith("tests/support/") and name.endswith("_test.cc"):
                continue
            if other is None or other == folder or LAYERS[other] < LAYERS[folder]:
                continue
            # src/providers/table.cc and the providers it lists are one room.
            if folder == "src/providers" and target.startswith("src/providers/"):
                continue
            print(f"{name}:{number}: {folder} [{LAYERS[folder]}] must not include {target} of {other} [{LAYERS[other]}]")
            bad += 1
    print(f"include check: {bad} violation(s)" if bad else "include check: ok", file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
