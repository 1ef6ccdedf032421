#!/bin/sh
# clang.sh TOOL: prints where the program TOOL of LLVM is (clang++, clang-tidy, llvm-symbolizer, ...). All programs are of one version: the
# newest from 16 on that has compiler, clang-tidy, symbolizer and the sanitizers' run-time library; if none has all, the newest compiler's.
set -eu
tool=$1

# program VERSION NAME: beside others of the version, in its own folder, or without a number.
program() {
  command -v "$2-$1" && return
  own=$(dirname "$(readlink -f "$(command -v "clang++-$1" || command -v clang++)")")
  [ -x "$own/$2" ] && echo "$own/$2" && return
  [ "$1" = "$unnumbered" ] && command -v "$2"
}

has_all() {
  for part in clang++ clang-tidy llvm-symbolizer; do
    program "$1" "$part" >/dev/null || return 1
  done
  for library in "$("$(program "$1" clang++)" -print-resource-dir)"/lib/*/libclang_rt.asan*; do
    [ -e "$library" ] && return
  done
  return 1
}

unnumbered=$(clang++ -dumpversion 2>/dev/null | cut -d. -f1)
versions=$(
  {
    echo "$unnumbered"
    echo "$PATH" | tr ':' '\n' | while read -r folder; do
      for compiler in "$folder"/clang++-[0-9]*; do
        [ ! -x "$compiler" ] || echo "${compiler##*-}"
      done
    done
  } | grep -E '^[0-9]+$' | sort -rnu | awk '$1 >= 16'
)
chosen=""
for version in $versions; do
  if has_all "$version"; then
    chosen=$version
    break
  fi
done
chosen=${chosen:-$(echo "$versions" | head -n 1)}
[ -n "$chosen" ] || { echo "clang.sh: no Clang from version 16 on is installed; tools/setup.sh installs one" >&2; exit 1; }
program "$chosen" "$tool" || { echo "clang.sh: there is no $tool beside Clang $chosen; tools/setup.sh installs what is missing" >&2; exit 1; }
