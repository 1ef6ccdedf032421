#!/bin/sh
# The compilers' launcher: ccache, if it is installed, set up for precompiled headers. While one is compiled, GCC's preprocessor reads the one that it will
# replace, so a hash of its output says nothing of the headers: these are hashed instead (CCACHE_DEPEND). Other files keep the hash of the
# output, in which the paths of a checkout count relative to CCACHE_BASEDIR.
command -v ccache >/dev/null || exec "$@"
case " $* " in
  *" c++-header "*) export CCACHE_DEPEND=1 ;;
esac
# They change how long GCC takes, not what it writes.
export CCACHE_IGNOREOPTIONS='--param=ggc-min-*'
export CCACHE_SLOPPINESS=pch_defines,time_macros
exec ccache "$@"
