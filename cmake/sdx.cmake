# Flags and helpers shared by every target.

include(${CMAKE_CURRENT_LIST_DIR}/isa.cmake)
add_library(sdx_flags INTERFACE)
target_compile_definitions(sdx_flags INTERFACE ${SDX_ISA_DEFINITIONS})
target_compile_options(sdx_flags INTERFACE -Wall -Wextra -Wpedantic)
if(SDX_WARNINGS_AS_ERRORS)
  target_compile_options(sdx_flags INTERFACE -Werror)
endif()
if(SDX_SANITIZE)
  # The preset `asan` uses Clang without optimisation: it compiles in 15 minutes of processor time, where GCC at -O1 takes over 40, and the
  # tests still run in minutes. With SDX_ISA=avx2: the widest register tiles would add minutes, and SSE4 adds no code path that SSE2 and AVX2 lack.
  # Views into a mapped file may be unaligned and are copied before typed access, so the alignment check stays on.
  target_compile_options(sdx_flags INTERFACE -fsanitize=${SDX_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  # We call tables of C functions with our own names for their incomplete types.
  target_compile_options(sdx_flags INTERFACE $<$<CXX_COMPILER_ID:Clang>:-fno-sanitize=function>)
  target_link_options(sdx_flags INTERFACE -fsanitize=${SDX_SANITIZE})
endif()
if(SDX_FUZZ)
  target_compile_options(sdx_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  # The baseline of other processors has fused multiply-add, which GCC uses at will: a reference kernel would then round differently from
  # the operator's definition. (x86-64's baseline has none; the kernels' own targets set this everywhere.)
  target_compile_options(sdx_flags INTERFACE -ffp-contract=off)
endif()
target_include_directories(sdx_flags INTERFACE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
if(SDX_INCLUDES)
  target_include_directories(sdx_flags SYSTEM INTERFACE ${SDX_INCLUDES})
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12's warnings below report impossible paths inside libstdc++ at -O2.
  target_compile_options(sdx_flags INTERFACE -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread -Wno-restrict
                                             -Wno-maybe-uninitialized)
  # GCC collects garbage whenever its heap has doubled: later, which takes 7 % less time and 12 % more memory. The code stays the same.
  target_compile_options(sdx_flags INTERFACE --param=ggc-min-expand=400 --param=ggc-min-heapsize=700000)
endif()

# Each function in its own section, so that a library contains only what it uses.
target_compile_options(sdx_flags INTERFACE $<$<CONFIG:Release>:-ffunction-sections -fdata-sections>)

# Precompiled headers read the standard library once instead of 600 times: each file takes 0.8 s less, of 3 to 10 s. Folders with the same
# flags share one, which costs 2 to 4 s. The preset `clang` has none, so that one build notices files that lack an include.
option(SDX_PRECOMPILE "Precompile the standard library's headers" ON)
set(SDX_PRECOMPILED <algorithm> <atomic> <cmath> <cstring> <filesystem> <functional> <limits> <map> <memory> <mutex> <optional> <set>
                    <span> <string> <unordered_map> <vector> <fmt/format.h>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_BUILD_TYPE STREQUAL "Debug" AND CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  # {fmt} turns optimisation on for itself. GCC 14 precompiles it as if it stayed on, and then takes, for intrinsics, functions that fail without.
  list(PREPEND SDX_PRECOMPILED <immintrin.h>)
endif()
# sdx_precompile(TARGET [FROM OTHER] [HEADER ...]): gives TARGET its own precompiled header, which also contains these headers, or OTHER's.
# Headers are given in <>: CMake includes others by their whole path, and other checkouts then cannot use what ccache stores (cmake/ccache.sh).
function(sdx_precompile target)
  cmake_parse_arguments(ARG "" "FROM" "" ${ARGN})
  if(NOT SDX_PRECOMPILE OR SDX_FUZZ)
    return()
  endif()
  if(ARG_FROM)
    target_precompile_headers(${target} REUSE_FROM ${ARG_FROM})
  else()
    target_precompile_headers(${target} PRIVATE ${SDX_PRECOMPILED} ${ARG_UNPARSED_ARGUMENTS})
  endif()
  # Without a time stamp in the header, ccache can cache files that use it.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:Clang>:SHELL:-Xclang -fno-pch-timestamp>)
endfunction()

# Folders that compute little are compiled for size: a fifth smaller, and compiled sooner. Not used for code on the path of a start or a run.
set(SDX_SMALL_OPTIMIZATION -Os CACHE STRING "Optimisation of a release's code that computes little")
set(SDX_KERNEL $<$<CONFIG:Release>:${SDX_KERNEL_OPTIMIZATION}>)
set(SDX_SMALL $<$<CONFIG:Release>:${SDX_SMALL_OPTIMIZATION}>)

# Compiles several files as one: a first build takes less than two thirds of the time, and less than 40 % without optimisation, as in `asan`. A
# change to one of the files then recompiles all of its group; who changes much turns this off (docs/building.md).
option(SDX_UNITY "Compile several files of a target together" ON)
if(SDX_UNITY)
  find_package(Python3 COMPONENTS Interpreter)
endif()
# sdx_unity(TARGET SOURCE ...)
function(sdx_unity target)
  if(NOT SDX_UNITY OR NOT Python3_FOUND)
    return()
  endif()
  set(sources)
  foreach(source IN LISTS ARGN)
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} OUTPUT_VARIABLE path)
    list(APPEND sources ${path})
  endforeach()
  set_property(GLOBAL APPEND PROPERTY SDX_UNITY_TARGETS ${target})
  set_property(GLOBAL PROPERTY SDX_UNITY_SOURCES_OF_${target} ${sources})
  # GCC assumes that a class with members of a file's internal types is visible to several files, unless it is in the main file.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/unity_groups.py ${sources})
endfunction()

# Those of a target's sources that no option of their own keeps from being compiled with others.
function(sdx_unity_sources variable target)
  get_property(sources GLOBAL PROPERTY SDX_UNITY_SOURCES_OF_${target})
  set(found)
  foreach(source IN LISTS sources)
    set(alone)
    foreach(property COMPILE_OPTIONS COMPILE_DEFINITIONS COMPILE_FLAGS SKIP_PRECOMPILE_HEADERS SKIP_UNITY_BUILD_INCLUSION)
      get_source_file_property(value ${source} TARGET_DIRECTORY ${target} ${property})
      if(value)
        set(alone ON)
      endif()
    endforeach()
    if(NOT alone)
      list(APPEND found ${source})
    endif()
  endforeach()
  set(${variable} ${found} PARENT_SCOPE)
endfunction()

# The groups of all targets, at the end of the configuration: one process reads the headers that they share once.
function(sdx_unity_groups)
  get_property(targets GLOBAL PROPERTY SDX_UNITY_TARGETS)
  if(NOT targets)
    return()
  endif()
  set(groups ${PROJECT_BINARY_DIR}/unity_groups.cmake)
  set(one_set "")
  if(SDX_ISA_BASELINE)
    set(one_set --one-set)
  endif()
  set(lines "")
  foreach(target IN LISTS targets)
    sdx_unity_sources(sources ${target})
    string(APPEND lines "${target};${sources}\n")
  endforeach()
  file(WRITE ${groups}.in "${lines}")
  execute_process(COMMAND ${CMAKE_COMMAND} -E env PYTHONDONTWRITEBYTECODE=1 ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/cmake/unity_groups.py
                          ${one_set} ${groups} ${PROJECT_BINARY_DIR}/Unity
                          ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/apps ${PROJECT_SOURCE_DIR}/tests
                  INPUT_FILE ${groups}.in COMMAND_ERROR_IS_FATAL ANY)
  include(${groups})
endfunction()
cmake_language(DEFER DIRECTORY ${PROJECT_SOURCE_DIR} CALL sdx_unity_groups)

# The two headers that folders share.
file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/precompiled.cc "")
set(SDX_PRECOMPILED_SMALL precompiled)
if(NOT SDX_SMALL_OPTIMIZATION STREQUAL SDX_OPTIMIZATION)
  set(SDX_PRECOMPILED_SMALL precompiled_small)
endif()
foreach(name precompiled ${SDX_PRECOMPILED_SMALL})
  if(TARGET sdx_${name})
    continue()
  endif()
  add_library(sdx_${name} OBJECT ${CMAKE_CURRENT_BINARY_DIR}/precompiled.cc)
  target_link_libraries(sdx_${name} PUBLIC sdx_flags)
  sdx_precompile(sdx_${name})
endforeach()
target_compile_options(sdx_${SDX_PRECOMPILED_SMALL} PRIVATE ${SDX_SMALL})

# Removes from LIST the sources whose path within the checkout matches: the checkout may be in a folder of any name.
function(sdx_leave_out list regex)
  set(kept)
  foreach(source IN LISTS ${list})
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE path)
    if(NOT "/${path}" MATCHES "${regex}")
      list(APPEND kept ${source})
    endif()
  endforeach()
  set(${list} ${kept} PARENT_SCOPE)
endfunction()

# What a folder has for systems of another kind: in base/system, and unit tests of what Windows has not (links, limits of a process,
# permissions of POSIX).
if(WIN32)
  set(SDX_OTHER_SYSTEM "/system/posix/|/(cache/folder|providers/ort/plugins|providers/vendor/vendor|train/checkpoint/full_disk)_test\\.cc$")
else()
  set(SDX_OTHER_SYSTEM "/system/windows/")
endif()

# sdx_folder(NAME [SMALL | OPTIONS ... | HEADERS ... | LIKE FOLDER] [DEPENDS ...] [EXCLUDE REGEX] [TESTS PROGRAM]): one static library sdx_<name> from every
# .cc of the current folder and its subfolders except unit tests (*_test.cc), which join the unit-test program, or with TESTS their own.
# OPTIONS: additional compiler options. HEADERS: headers of the project to precompile as well; LIKE uses another folder's.
function(sdx_folder name)
  cmake_parse_arguments(ARG "SMALL" "EXCLUDE;LIKE;TESTS" "DEPENDS;SOURCES;LINK;OPTIONS;HEADERS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  sdx_leave_out(sources ${SDX_OTHER_SYSTEM})
  if(ARG_EXCLUDE)
    sdx_leave_out(sources ${ARG_EXCLUDE})
  endif()
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  add_library(sdx_${name} STATIC ${sources} ${ARG_SOURCES})
  target_link_libraries(sdx_${name} PUBLIC sdx_flags Threads::Threads ${ARG_LINK})
  foreach(dependency IN LISTS ARG_DEPENDS)
    target_link_libraries(sdx_${name} PUBLIC sdx_${dependency})
  endforeach()
  if(NOT ARG_TESTS)
    set_property(GLOBAL APPEND PROPERTY SDX_FOLDERS sdx_${name})
  endif()
  if(ARG_SMALL)
    target_compile_options(sdx_${name} PRIVATE ${SDX_SMALL})
    sdx_precompile(sdx_${name} FROM sdx_${SDX_PRECOMPILED_SMALL})
  elseif(ARG_OPTIONS)
    target_compile_options(sdx_${name} PRIVATE ${ARG_OPTIONS})
    sdx_precompile(sdx_${name})
  elseif(ARG_HEADERS)
    sdx_precompile(sdx_${name} ${ARG_HEADERS})
  elseif(ARG_LIKE)
    get_property(options GLOBAL PROPERTY SDX_OPTIONS_LIKE_${ARG_LIKE})  # a precompiled header serves those with the same options
    target_compile_options(sdx_${name} PRIVATE ${options})
    sdx_precompile(sdx_${name} FROM sdx_${ARG_LIKE})
  else()
    sdx_precompile(sdx_${name} FROM sdx_precompiled)
  endif()
  sdx_leave_out(sources "/system/windows/")  # Windows' own headers define too many words
  sdx_unity(sdx_${name} ${sources})
  if(ARG_TESTS)
    set_property(GLOBAL APPEND PROPERTY SDX_TEST_PROGRAMS ${ARG_TESTS})
    set_property(GLOBAL APPEND PROPERTY SDX_TESTS_OF_${ARG_TESTS} ${tests})
    set_property(GLOBAL APPEND PROPERTY SDX_FOLDERS_OF_${ARG_TESTS} sdx_${name})
  elseif(tests)
    set_property(GLOBAL APPEND PROPERTY SDX_UNIT_TESTS ${tests})
  endif()
endfunction()

# sdx_always_poisoned(TEST...): runs these tests with uninitialised memory filled (docs/environment.md), so `make test-poisoned` skips them.
# For tests that compute the same as others in another way, and for long ones: a poisoned run finds whatever another one does.
function(sdx_always_poisoned)
  foreach(test IN LISTS ARGN)
    set_property(TEST ${test} APPEND PROPERTY ENVIRONMENT SDX_POISON=1)
    set_property(TEST ${test} APPEND PROPERTY LABELS poisoned)
  endforeach()
endfunction()

# sdx_page(HEADER NAMESPACE VARIABLE SCRIPT...): writes assets.cc in the binary folder: a page in one string, from the current folder's
# assets (cmake/page.cmake).
function(sdx_page header namespace variable)
  file(GLOB assets CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/assets/*)
  string(REPLACE ";" "," scripts "${ARGN}")
  add_custom_command(
    OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/assets.cc
    COMMAND ${CMAKE_COMMAND} -DFOLDER=${CMAKE_CURRENT_SOURCE_DIR}/assets -DOUTPUT=${CMAKE_CURRENT_BINARY_DIR}/assets.cc -DHEADER=${header}
            -DNAMESPACE=${namespace} -DVARIABLE=${variable} -DSCRIPTS=${scripts} -P ${PROJECT_SOURCE_DIR}/cmake/page.cmake
    DEPENDS ${assets} ${PROJECT_SOURCE_DIR}/cmake/page.cmake)
endfunction()
