#!/bin/sh
# clang-tidy over the project's C++ sources, or over those that differ from a commit: tidy.sh [COMMIT [MINUTES]]. Exit code 1 where it finds
# something. After MINUTES no further source is begun; what is left out is named.
set -eu
since=${1:-} minutes=${2:-}
if [ -n "$since" ]; then
  files=$(git diff --name-only --diff-filter=d "$since" -- '*.cc')
else
  files=$(git ls-files '*.cc')
fi
[ -n "$files" ] || { echo "tidy: no source differs from $since"; exit 0; }
cmake --preset clang >/dev/null
# Generated headers have to be there before a source that includes one is looked at.
ninja -C build/clang -t targets all | sed -n 's/^\([^:]*\(_generated\.h\|\.pb\.h\)\): CUSTOM_COMMAND$/\1/p' | xargs -r ninja -C build/clang >/dev/null
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -c 'import json, os; root = os.getcwd() + "/"; print("\n".join(sorted({e["file"].removeprefix(root) for e in json.load(open("build/clang/compile_commands.json"))})))' >"$folder/compiled"
# Sources of examples and fuzzers that this configuration does not compile are left out.
printf '%s\n' $files | grep -Fxf "$folder/compiled" >"$folder/sources" || { echo "tidy: nothing that is compiled here differs from $since"; exit 0; }
end=$(($(date +%s) + ${minutes:-100000} * 60))
left=$folder/left
: >"$left"
export end left
failed=0
xargs -r -P "$(nproc)" -n 1 sh -c '
  if [ "$(date +%s)" -ge "$end" ]; then echo "  $0" >>"$left"; exit 0; fi
  exec clang-tidy-16 --quiet --warnings-as-errors="*" -p build/clang "$0"' <"$folder/sources" || failed=1
if [ -s "$left" ]; then
  echo "tidy: $(wc -l <"$left") of $(wc -l <"$folder/sources") sources left out after $minutes minutes:"
  cat "$left"
fi
exit $failed
