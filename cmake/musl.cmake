# Compiling for Linux with musl as its C library, for programs of one static file. tools/static.sh makes the compilers and libraries and sets
# SDX_MUSL to the processor.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR ${SDX_MUSL})
get_filename_component(sdx_root ${CMAKE_CURRENT_LIST_DIR} DIRECTORY)
set(sdx_tools ${sdx_root}/build/static-tools/${SDX_MUSL})
set(CMAKE_C_COMPILER ${sdx_tools}/clang)
set(CMAKE_CXX_COMPILER ${sdx_tools}/clang++)
set(CMAKE_AR ${sdx_tools}/ar CACHE FILEPATH "")
set(CMAKE_RANLIB ${sdx_tools}/ranlib CACHE FILEPATH "")
set(sdx_libraries ${sdx_root}/build/static-libraries-${SDX_MUSL})
set(CMAKE_FIND_ROOT_PATH ${sdx_libraries})
set(CMAKE_PREFIX_PATH ${sdx_libraries})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_LIBDIR} ${sdx_libraries}/lib/pkgconfig)
# Programs link mimalloc whole, as an object file: musl's own malloc() takes 25 times as long for blocks of 200 kB to 5 MB. Libraries are made
# without it.
if(EXISTS ${sdx_libraries}/lib/mimalloc.o)
  set(CMAKE_EXE_LINKER_FLAGS_INIT ${sdx_libraries}/lib/mimalloc.o)
endif()
