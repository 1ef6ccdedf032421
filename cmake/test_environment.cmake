# ctest reads this file before the first test: it sets the environment of all tests.

# glibc fills memory when it is allocated and when it is freed, so that reads of uninitialised or freed memory show. This does not affect
# benchmarks, which ctest does not run.
if(NOT DEFINED ENV{MALLOC_PERTURB_})
  set(ENV{MALLOC_PERTURB_} 137)
endif()

# In builds with sanitizers, a report must differ from an ordinary error, for which the command exits with code 1.
if(NOT DEFINED ENV{ASAN_OPTIONS})
  set(ENV{ASAN_OPTIONS} "exitcode=99:detect_stack_use_after_return=0:allocator_may_return_null=1:max_allocation_size_mb=4096")
endif()
if(NOT DEFINED ENV{UBSAN_OPTIONS})
  set(ENV{UBSAN_OPTIONS} "exitcode=99:print_stacktrace=1")
endif()

# Models that are no part of the repository: docs/environment.md.
get_filename_component(beside "${CMAKE_CURRENT_LIST_DIR}/../../shared/models" ABSOLUTE)
if(NOT DEFINED ENV{SDX_TEST_MODELS} AND EXISTS "${beside}")
  set(ENV{SDX_TEST_MODELS} "${beside}")
endif()
