#!/bin/sh
# find_python.sh VERSION: prints the interpreter of that version (3.12) which stands in a folder of its own, with pip: what pyenv or
# /opt has; exit code 1 without one. The system's is no such, and tested as Debian's own.
for python in "${PYENV_ROOT:-$HOME/.pyenv}/versions/$1".*/bin/python3 /opt/*/bin/"python$1"; do
  if [ -x "$python" ] && [ "$("$python" -c 'import pip, sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)" = "$1" ]; then
    echo "$python"
    exit 0
  fi
done
exit 1
