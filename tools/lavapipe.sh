#!/bin/sh
# Unpacks into build/lavapipe Mesa's Vulkan driver for CPUs, lavapipe, with the Vulkan loader, for tests of providers for GPUs on machines without
# one: Debian's packages mesa-vulkan-drivers and libvulkan1 and what they need beyond the system's. Debian 12 itself has Mesa 22, in which WebGPU
# finds no adapter: there the packages come from its backports. Where they cannot be had, a message says so and the tests are skipped.
# Programs use it with VK_DRIVER_FILES=build/lavapipe/driver.json and LD_LIBRARY_PATH=build/lavapipe/usr/lib/TRIPLET.
set -eu
cd "$(dirname "$0")/.."
into=$PWD/build/lavapipe
packages="mesa-vulkan-drivers libvulkan1"

left_out() {
  echo "lavapipe: $1; the tests on a software driver of Vulkan are skipped" >&2
  rm -rf "$into.new" "$into.apt"
  exit 0
}

ID='' VERSION_CODENAME=''
[ ! -r /etc/os-release ] || . /etc/os-release
suite=$VERSION_CODENAME
[ "$suite" != bookworm ] || suite=bookworm-backports
[ "$(cat "$into/made-of.txt" 2>/dev/null)" != "$suite $packages" ] || exit 0
{ [ "$ID" = debian ] && [ -n "$suite" ] && command -v apt-get >/dev/null; } || left_out "the packages of Debian are not at hand"

echo "lavapipe: fetching $packages of $suite" >&2
rm -rf "$into.new" "$into.apt"
mkdir -p "$into.apt/parts" "$into.apt/lists/partial" "$into.apt/cache/archives/partial" "$into.new"
# The servers from which the system gets its own packages, asked for these suites alone.
apt-get indextargets --format '$(REPO_URI) $(RELEASE)' 2>/dev/null | sort -u >"$into.apt/servers.txt"
key=/usr/share/keyrings/debian-archive-keyring.gpg
options=""
[ ! -e "$key" ] || options="[signed-by=$key] "
while read -r uri release; do
  [ "$release" = "$VERSION_CODENAME" ] || continue
  echo "deb $options$uri $release main"
  [ "$suite" = "$release" ] || echo "deb $options$uri $suite main"
done <"$into.apt/servers.txt" >"$into.apt/parts/servers.list"
[ -s "$into.apt/parts/servers.list" ] || left_out "no server for $VERSION_CODENAME is configured"

apt_here() {
  apt-get -qq -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$into.apt/parts" -o Dir::State::Lists="$into.apt/lists" \
    -o Dir::Cache="$into.apt/cache" -o Debug::NoLocking=1 -o APT::Sandbox::User=root -o Acquire::Retries=2 "$@"
}
# Of packages that the system has in these versions nothing is downloaded, and nothing is needed.
# shellcheck disable=SC2086
apt_here update && apt_here --yes -t "$suite" --no-install-recommends --download-only --reinstall install $packages >"$into.apt/log.txt" 2>&1 ||
  left_out "the packages cannot be fetched (no connection?)"
for package in "$into.apt"/cache/archives/*.deb; do
  dpkg-deb --extract "$package" "$into.new"
done
driver=$(find "$into.new" -name libvulkan_lvp.so | head -n 1)
[ -n "$driver" ] || left_out "mesa-vulkan-drivers of $suite has no lavapipe"
version=$(sed -n 's/.*"api_version": *"\([^"]*\)".*/\1/p' "$into.new"/usr/share/vulkan/icd.d/lvp_icd*.json | head -n 1)
printf '{"file_format_version": "1.0.0", "ICD": {"library_path": ".%s", "api_version": "%s"}}\n' "${driver#"$into.new"}" "$version" >"$into.new/driver.json"
find "$into.new" -name 'libvulkan_*.so' ! -name libvulkan_lvp.so -delete
echo "$suite $packages" >"$into.new/made-of.txt"
rm -rf "$into" "$into.apt"
mv "$into.new" "$into"
