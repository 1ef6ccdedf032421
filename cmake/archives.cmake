# sdx_find_archive(VARIABLE NAME): the static library libNAME.a, so that what is installed needs the C and C++ libraries alone; the shared one
# where there is no static one, or none that a shared library can take in.
#
# Debian builds static libraries for programs, which keep a copy of `stdout` and `stderr` at a place of their own: code compiled so cannot go
# into a shared library. Nothing else in these libraries is of that kind. So a copy of the archive is linked, which reads sdx_NAME_stdout and
# sdx_NAME_stderr instead; who calls the library defines them.
function(sdx_find_archive variable name)
  find_library(${variable}_FOUND NAMES lib${name}.a ${name} REQUIRED)
  set(found ${${variable}_FOUND})
  if(found MATCHES "\\.a$" AND CMAKE_OBJCOPY)
    set(copy ${CMAKE_BINARY_DIR}/archives/lib${name}.a)
    if(NOT EXISTS ${copy} OR ${found} IS_NEWER_THAN ${copy})
      sdx_copy_archive(${found} ${copy} ${name})
    endif()
    set(found ${copy})
  endif()
  if(NOT EXISTS ${found})
    find_library(${variable}_SHARED NAMES ${name} REQUIRED)
    set(found ${${variable}_SHARED})
  endif()
  set(${variable} ${found} PARENT_SCOPE)
endfunction()

# Leaves no copy where a shared library cannot be made of it.
function(sdx_copy_archive archive copy name)
  string(MAKE_C_IDENTIFIER sdx_${name} prefix)
  file(REMOVE ${copy})
  file(WRITE ${copy}.cc "extern \"C\" { __attribute__((visibility(\"hidden\"))) void *${prefix}_stdout, *${prefix}_stderr; }\n")
  separate_arguments(flags UNIX_COMMAND "${CMAKE_CXX_FLAGS}")
  execute_process(COMMAND ${CMAKE_OBJCOPY} --redefine-sym stdout=${prefix}_stdout --redefine-sym stderr=${prefix}_stderr ${archive} ${copy}.new
                  RESULT_VARIABLE failed OUTPUT_QUIET ERROR_VARIABLE why)
  if(NOT failed)
    execute_process(COMMAND ${CMAKE_CXX_COMPILER} ${flags} -fPIC -shared -o ${copy}.so -Wl,--exclude-libs,ALL -Wl,--unresolved-symbols=ignore-all
                            ${copy}.cc -Wl,--whole-archive ${copy}.new -Wl,--no-whole-archive
                    RESULT_VARIABLE failed OUTPUT_QUIET ERROR_VARIABLE why)
  endif()
  if(failed)
    message(STATUS "lib${name}.a cannot go into a shared library; the shared one is linked: ${why}")
  else()
    file(RENAME ${copy}.new ${copy})
  endif()
  file(REMOVE ${copy}.cc ${copy}.new ${copy}.so)
endfunction()
