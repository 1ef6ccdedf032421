#!/bin/sh
# install_elsewhere.sh NAME PACKAGE...: for systems without apt-get. Says which packages are missing, by the names of tools/packages_elsewhere.txt,
# with the command that installs them, and ends with exit code 1; with 0 if all are there. PACKAGE and NAME are those of tools/install.sh.
set -eu
name=$1
shift
names=$(dirname "$0")/packages_elsewhere.txt
os_release=${OS_RELEASE:-/etc/os-release}

# value KEY: that of /etc/os-release.
value() {
  [ ! -r "$os_release" ] || sed -n "s/^$1=//p" "$os_release" | tr -d "\"'" | head -n 1
}
system=$(value PRETTY_NAME)
system=${system:-$(value NAME)}
for like in $(value ID) $(value ID_LIKE) other; do
  case $like in
    fedora) column=2 install="dnf install" ;;
    arch) column=3 install="pacman -S --needed" ;;
    alpine) column=4 install="apk add" ;;
    other) column="" ;;
    *) continue ;;
  esac
  break
done

# Debian's names, of alternatives the first.
debian=$(for package in "$@"; do package=${package%%|*}; echo "${package%%>=*}"; done)
if [ -z "$column" ]; then
  {
    echo "$name: ${system:-this system} has no apt-get, and the names of its packages are not known here. Install what these packages of Debian"
    echo "contain:"
    echo "  $(echo "$debian" | tr '\n' ' ')"
    echo "Then \`make SETUP=: TARGET\` goes on without this check; CMake names what it does not find."
  } >&2
  exit 1
fi

is_installed() {
  case $column in
    2) rpm -q --whatprovides "$1" ;;
    3) pacman -T "$1" ;;
    4) apk info -e "$1" ;;
  esac >/dev/null 2>&1
}

missing=""
for package in $debian; do
  for other in $(awk -v package="$package" -v column="$column" '$1 == package { print $column }' "$names" | tr ',' ' '); do
    case " $missing " in *" $other "*) continue ;; esac
    [ "$other" = - ] || is_installed "$other" || missing="$missing $other"
  done
done
[ -n "$missing" ] || exit 0
root=""
[ "$(id -u)" -eq 0 ] || root="sudo "
{
  echo "$name: packages are missing, and this script installs packages with apt-get alone. On ${system:-this system}:"
  echo "  $root$install$missing"
} >&2
exit 1
