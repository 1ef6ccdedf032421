# SDX_GLIBC: what is built runs on that version of glibc and newer ones, whatever this system has (docs/design/portable.md).
set(SDX_GLIBC "" CACHE STRING "Oldest glibc that the programs run on (2.28); empty: that of this system")
if(NOT SDX_GLIBC)
  return()
endif()
find_package(Python3 COMPONENTS Interpreter REQUIRED)
file(GLOB made_from CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*.py ${CMAKE_CURRENT_LIST_DIR}/*.c)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${made_from})
# The folder's name changes with its contents, so that all is linked again.
set(contents "")
foreach(file IN LISTS made_from)
  file(SHA256 ${file} hash)
  string(APPEND contents ${hash})
endforeach()
string(SHA256 hash "${contents}")
string(SUBSTRING ${hash} 0 12 hash)
set(stubs ${CMAKE_BINARY_DIR}/stubs-${hash})
separate_arguments(command UNIX_COMMAND "${CMAKE_C_COMPILER} ${CMAKE_C_FLAGS}")
if(CMAKE_SYSROOT)
  list(APPEND command --sysroot=${CMAKE_SYSROOT})
endif()
execute_process(COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_LIST_DIR}/stubs.py ${SDX_GLIBC} ${stubs} ${command} COMMAND_ERROR_IS_FATAL ANY)
# What nothing defines is an error here, and not when the module is loaded; bindings/python makes an exception for Python's own functions.
add_link_options(@${stubs}/flags -Wl,-z,defs)

# Libraries that Debian has as static ones go in. OpenSSL is found so; a library with C++ inside that is not position-independent needs the
# C++ library in the same file, of which nothing is visible outside.
set(OPENSSL_USE_STATIC_LIBS TRUE)
set(SDX_OWN_LIBSTDCXX -static-libstdc++ -Wl,--exclude-libs,ALL)
set(SDX_PORTABLE_SOURCES ${PROJECT_SOURCE_DIR}/build/portable-sources)
if(NOT EXISTS ${SDX_PORTABLE_SOURCES}/cpp-httplib/httplib.h)
  message(FATAL_ERROR "The source of cpp-httplib is missing: tools/portable_sources.sh fetches it.")
endif()

# sdx_portable_target(): the target sdx_portable, which is all that can be installed, checked for what it needs.
function(sdx_portable_target)
  add_custom_target(sdx_portable
    COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/check.py ${SDX_GLIBC} ${CMAKE_READELF}
            ${CMAKE_RUNTIME_OUTPUT_DIRECTORY} ${CMAKE_LIBRARY_OUTPUT_DIRECTORY} ${CMAKE_BINARY_DIR}/python
    VERBATIM)
  add_executable(sdx_portable_probe ${PROJECT_SOURCE_DIR}/tests/wheel/portable_probe.cc)
  target_link_libraries(sdx_portable_probe PRIVATE sardonyx::sdx Threads::Threads)
  add_dependencies(sdx_portable sdx_portable_probe sdx_installed)
  if(TARGET sdx_python)
    add_dependencies(sdx_portable sdx_python)
  endif()
endfunction()
