#!/bin/sh
# tidy.sh [COMMIT]: runs clang-tidy on the project's C++ sources, or on those that differ from COMMIT. Exit code 1 if it finds something.
set -eu
cmake --preset clang >/dev/null
# Generated headers must exist before a source that includes one is checked.
ninja -C build/clang -t targets all | sed -n 's/^\([^:]*\(_generated\.h\|\.pb\.h\)\): CUSTOM_COMMAND$/\1/p' | xargs -r ninja -C build/clang >/dev/null
if [ -n "${1:-}" ]; then
  files=$(git diff --name-only --diff-filter=d "$1" -- '*.cc')
else
  files=$(git ls-files '*.cc')
fi
compiled=$(mktemp)
trap 'rm -f "$compiled"' EXIT
python3 -c 'import json, os; root = os.getcwd() + "/"; print("\n".join(sorted({e["file"].removeprefix(root) for e in json.load(open("build/clang/compile_commands.json"))})))' >"$compiled"
# Skips sources of examples and fuzzers that this configuration does not compile.
printf '%s\n' $files | grep -Fxf "$compiled" | xargs -r -P "$(nproc)" -n 4 clang-tidy-16 --quiet --warnings-as-errors='*' -p build/clang
