# Cross-compiling for 64-bit Windows with Debian's mingw-w64 and the libraries that tools/windows.sh builds; the programs run under Wine.
set(CMAKE_SYSTEM_NAME Windows)
set(CMAKE_SYSTEM_PROCESSOR AMD64)
# The variant `posix` has std::thread. Its vector moves are unaligned (Debian's patch), as Windows' stacks need.
set(CMAKE_C_COMPILER x86_64-w64-mingw32-gcc-posix)
set(CMAKE_CXX_COMPILER x86_64-w64-mingw32-g++-posix)
set(CMAKE_RC_COMPILER x86_64-w64-mingw32-windres)
get_filename_component(sdx_root ${CMAKE_CURRENT_LIST_DIR} DIRECTORY)
set(sdx_windows_libraries ${sdx_root}/build/windows-libraries)
set(CMAKE_FIND_ROOT_PATH ${sdx_windows_libraries} /usr/x86_64-w64-mingw32)
set(CMAKE_PREFIX_PATH ${sdx_windows_libraries})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_LIBDIR} ${sdx_windows_libraries}/lib/pkgconfig)
set(CMAKE_CROSSCOMPILING_EMULATOR ${sdx_root}/tools/wine.sh)
# Windows 10: what is newer is looked for at run time.
# gmtime_r() and localtime_r() come with _POSIX_C_SOURCE.
set(CMAKE_C_FLAGS_INIT "-D_WIN32_WINNT=0x0A00 -D_POSIX_C_SOURCE=200809L")
set(CMAKE_CXX_FLAGS_INIT "-D_WIN32_WINNT=0x0A00 -D_POSIX_C_SOURCE=200809L")
# A program needs no libraries of the compiler beside it, takes text as UTF-8, and paths of any length.
set(CMAKE_EXE_LINKER_FLAGS_INIT "-static ${sdx_root}/build/windows-libraries/manifest.o")
