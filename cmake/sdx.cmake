# Flags and helpers shared by every target.

add_library(sdx_flags INTERFACE)
target_compile_options(sdx_flags INTERFACE -Wall -Wextra -Wpedantic)
if(SDX_WARNINGS_AS_ERRORS)
  target_compile_options(sdx_flags INTERFACE -Werror)
endif()
if(SDX_SANITIZE)
  # The preset `asan` is Clang without optimisation: 15 minutes of processor time for what takes GCC at -O1 over 40, and the tests still
  # run in minutes. The widest register tiles alone would take minutes more, and SSE4 adds no code path that SSE2 and AVX2 lack.
  target_compile_definitions(sdx_flags INTERFACE SDX_NO_AVX512)
  # Views into a mapped file may be unaligned and are copied before typed access, so the alignment check stays on.
  target_compile_options(sdx_flags INTERFACE -fsanitize=${SDX_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  # Tables of C functions that hand out incomplete types are called with our own names for these.
  target_compile_options(sdx_flags INTERFACE $<$<CXX_COMPILER_ID:Clang>:-fno-sanitize=function>)
  target_link_options(sdx_flags INTERFACE -fsanitize=${SDX_SANITIZE})
endif()
if(SDX_FUZZ)
  target_compile_options(sdx_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  # The baseline of other processors has fused multiply-add, and GCC fuses where it likes: a reference kernel would round otherwise than
  # the operator's definition says. (x86-64's baseline has none; the kernels' own targets set this everywhere.)
  target_compile_options(sdx_flags INTERFACE -ffp-contract=off)
endif()
target_include_directories(sdx_flags INTERFACE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12's warnings below report impossible paths inside libstdc++ at -O2.
  target_compile_options(sdx_flags INTERFACE -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread -Wno-restrict
                                             -Wno-maybe-uninitialized)
endif()

# Each function by itself, so that what a library does not use stays out of it.
target_compile_options(sdx_flags INTERFACE $<$<CONFIG:Release>:-ffunction-sections -fdata-sections>)

# The standard library read once instead of 600 times: 0.8 s less for each file, of 3 to 10. Not in the preset `clang`, so that one
# build notices a file that does not name what it uses; not for a few files, whose precompiled header costs more (2 to 4 s) than it saves.
option(SDX_PRECOMPILE "Precompile the standard library's headers" ON)
set(SDX_PRECOMPILED <algorithm> <atomic> <cmath> <cstring> <filesystem> <functional> <limits> <map> <memory> <mutex> <optional> <set>
                    <span> <string> <unordered_map> <vector> <fmt/format.h>)
function(sdx_precompile target)
  get_target_property(sources ${target} SOURCES)
  list(LENGTH sources count)
  if(SDX_PRECOMPILE AND NOT SDX_FUZZ AND count GREATER 7)
    target_precompile_headers(${target} PRIVATE ${SDX_PRECOMPILED} ${ARGN})
    # Without its time of day in the header ccache can keep what uses it.
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:Clang>:SHELL:-Xclang -fno-pch-timestamp>)
  endif()
endfunction()

# Of folders that compute little: a fifth smaller, and sooner compiled. Not for what a start or a run passes through.
function(sdx_small)
  foreach(target IN LISTS ARGN)
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-Os>)
  endforeach()
endfunction()

# sdx_folder(NAME [DEPENDS ...] [EXCLUDE REGEX]): one static library sdx_<name> from every .cc of the current folder and its
# sub-folders, unit tests (*_test.cc) apart: those join the unit-test program.
function(sdx_folder name)
  cmake_parse_arguments(ARG "" "EXCLUDE" "DEPENDS;SOURCES;LINK" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  if(ARG_EXCLUDE)
    list(FILTER sources EXCLUDE REGEX ${ARG_EXCLUDE})
  endif()
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  add_library(sdx_${name} STATIC ${sources} ${ARG_SOURCES})
  target_link_libraries(sdx_${name} PUBLIC sdx_flags Threads::Threads ${ARG_LINK})
  foreach(dependency IN LISTS ARG_DEPENDS)
    target_link_libraries(sdx_${name} PUBLIC sdx_${dependency})
  endforeach()
  set_property(GLOBAL APPEND PROPERTY SDX_FOLDERS sdx_${name})
  sdx_precompile(sdx_${name})
  if(tests)
    set_property(GLOBAL APPEND PROPERTY SDX_UNIT_TESTS ${tests})
  endif()
endfunction()
