# sdx_find_archive(VARIABLE NAME): finds the static library libNAME.a, so that installed files need only the C and C++ libraries; the shared
# library if there is no static one, or none that can be linked into a shared library.
#
# Debian compiles static libraries for programs, in which `stdout` and `stderr` are copied into the program; such code cannot be linked into a
# shared library. These two names are the only obstacle, so a copy of the archive is linked that reads sdx_NAME_stdout and sdx_NAME_stderr
# instead. The caller of the library defines them.
#
# SDX_STATIC_LIBRARIES=OFF links shared libraries, as packages of a distribution do: its corrections of a library then reach us.
option(SDX_STATIC_LIBRARIES "Link static libraries where there are any" ON)
function(sdx_find_archive variable name)
  sdx_library_names(names ${name})
  find_library(${variable}_FOUND NAMES ${names} PATHS ${SDX_LIBRARY_DIRS} REQUIRED)
  set(found ${${variable}_FOUND})
  if(found MATCHES "\\.a$" AND CMAKE_OBJCOPY AND NOT SDX_STATIC AND NOT WIN32)
    set(copy ${CMAKE_BINARY_DIR}/archives/lib${name}.a)
    if(NOT EXISTS ${copy} OR ${found} IS_NEWER_THAN ${copy})
      sdx_copy_archive(${found} ${copy} ${name})
    endif()
    set(found ${copy})
  endif()
  if(NOT EXISTS ${found})
    find_library(${variable}_SHARED NAMES ${name} PATHS ${SDX_LIBRARY_DIRS} REQUIRED)
    set(found ${${variable}_SHARED})
  endif()
  set(${variable} ${found} PARENT_SCOPE)
endfunction()

# sdx_library_names(VARIABLE NAME): what find_library looks for.
function(sdx_library_names variable name)
  if(SDX_STATIC_LIBRARIES)
    set(${variable} lib${name}.a ${name} PARENT_SCOPE)
  else()
    set(${variable} ${name} PARENT_SCOPE)
  endif()
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
