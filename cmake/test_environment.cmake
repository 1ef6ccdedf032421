# Read by ctest before the first test: the environment of them all. glibc fills memory when it is given out and when it is taken back, so
# that reading what is not there, or no longer, shows. Not for benchmarks, which ctest does not run.
if(NOT DEFINED ENV{MALLOC_PERTURB_})
  set(ENV{MALLOC_PERTURB_} 137)
endif()
