#!/bin/sh
# release.sh [--dry-run | --tagged] VERSION: makes the release VERSION (1.2.3) of what is committed. It runs the checks, gives CHANGELOG.md
# its section and the sources their version, commits both, builds all packages into build/packages, tests them, and tags the commit
# vVERSION. It pushes nothing.
#
# --dry-run checks what can be checked in a second and says what would happen. --tagged builds the packages of a commit that has the tag, as
# .github/workflows/release.yml does. RELEASE_CHECKS names the command that checks (`.ci/run`), RELEASE_PACKAGES the one that makes and tests
# the packages (`make packages packages-check`).
set -eu
cd "$(dirname "$0")/.."
mode=""
case "${1:-}" in
  --dry-run | --tagged) mode=${1#--} && shift ;;
esac
version=${1:-}
checks=${RELEASE_CHECKS:-.ci/run}
packages=${RELEASE_PACKAGES:-make packages packages-check}
tag=v$version
date=$(date -u +%Y-%m-%d)

refuse() {
  echo "release: $1" >&2
  exit 1
}

[ $# -eq 1 ] || refuse "usage: tools/release.sh [--dry-run | --tagged] VERSION"
echo "$version" | grep -Eqx '(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)' || refuse "'$version' is no version such as 1.2.3"
[ -z "$(git status --porcelain)" ] || refuse "there are changes that are not committed: $(git status --porcelain | head -n 3 | tr '\n' ' ')"

if [ "$mode" = tagged ]; then
  [ "$(git rev-parse -q --verify "refs/tags/$tag^{commit}")" = "$(git rev-parse HEAD)" ] || refuse "this commit does not have the tag $tag"
  python3 -B tools/changelog.py section "$version" >/dev/null
  grep -q "^project(sardonyx VERSION $version " CMakeLists.txt || refuse "CMakeLists.txt has another version than $version"
  $packages
  exit 0
fi

git rev-parse -q --verify "refs/tags/$tag" >/dev/null && refuse "the tag $tag exists already"
newest=$(git tag -l 'v*' | sed -n 's/^v\([0-9.]*\)$/\1/p' | sort -V | tail -n 1)
[ -z "$newest" ] || [ "$(printf '%s\n%s\n' "$newest" "$version" | sort -V | tail -n 1)" = "$version" ] ||
  refuse "version $newest is newer than $version"
new=$(mktemp)
trap 'rm -f "$new"' EXIT
cp CHANGELOG.md "$new"
python3 -B tools/changelog.py --file "$new" release "$version" "$date" || refuse "CHANGELOG.md has to be corrected first"

if [ "$mode" = dry-run ]; then
  echo "release: would run '$checks', commit the version $version with this section of CHANGELOG.md, run '$packages' and tag $tag:"
  python3 -B tools/changelog.py --file "$new" section "$version"
  exit 0
fi

# Until all of it is checked, nothing stays changed.
trap 'rm -f "$new"; git checkout -q -- CHANGELOG.md CMakeLists.txt bindings/rust' EXIT
trap 'exit 1' INT TERM HUP
cp "$new" CHANGELOG.md
sed -i "s/^project(sardonyx VERSION [0-9.]* /project(sardonyx VERSION $version /" CMakeLists.txt
# Rust's packages have the version too, and one of them names the other's.
sed -i "s/^version = \"[0-9.]*\"$/version = \"$version\"/; s/^\(sardonyx-sys = .*version = \)\"[0-9.]*\"/\1\"$version\"/" bindings/rust/*/Cargo.toml
[ ! -e bindings/rust/Cargo.lock ] || sed -i "/^name = \"sardonyx/{n;s/^version = .*/version = \"$version\"/}" bindings/rust/Cargo.lock
grep -q "^project(sardonyx VERSION $version " CMakeLists.txt || refuse "CMakeLists.txt has no line with the version"
$checks
git commit -q -m "Release $version" -- CHANGELOG.md CMakeLists.txt bindings/rust
trap 'rm -f "$new"' EXIT
if ! $packages; then
  git reset -q --hard HEAD~1
  refuse "the packages could not be made, or do not work: nothing is tagged, and the commit is withdrawn"
fi
{ echo "Sardonyx $version" && echo && python3 -B tools/changelog.py section "$version" | sed 's/^### //'; } >"$new"
git tag -a --cleanup=verbatim -F "$new" "$tag"
echo "release: $tag is tagged and build/packages has its packages; git push origin HEAD $tag publishes it"
