# Debian's packages, which cpack makes of what `cmake --install` copies: a component of the installation is a package. tools/packages.sh
# calls it in the build of the preset `debian`; stage.py adds what only such packages have, and finds out what they depend on.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME sardonyx)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_VENDOR "The Sardonyx authors")
set(SDX_MAINTAINER "The Sardonyx authors <maintainers@users.noreply.github.com>" CACHE STRING "Whom Debian's packages name as their maintainer")
set(CPACK_PACKAGE_CONTACT ${SDX_MAINTAINER})
set(CPACK_SET_DESTDIR ON)  # files that name the prefix then name /usr
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_COMPONENTS_ALL command libraries development dropin)
if(TARGET sdx_python)
  list(APPEND CPACK_COMPONENTS_ALL python)
endif()
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 0sardonyx1)  # older than one that Debian makes, which would end in -1
set(CPACK_DEBIAN_PACKAGE_SOURCE sardonyx)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

# sdx_package(COMPONENT NAME SECTION SUMMARY TEXT): SUMMARY begins in lower case, as Debian's policy wants.
macro(sdx_package component name section summary text)
  string(TOUPPER ${component} upper)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${name})
  set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION ${section})
  set(CPACK_DEBIAN_${upper}_DESCRIPTION "${summary}\n${text}")
  set(CPACK_SDX_NAMES ${CPACK_SDX_NAMES} ${component}=${name})
endmacro()
set(about "Sardonyx is an inference engine for ONNX models with interfaces for C++, C\nand Python. It starts in milliseconds, reports what ran where and why, and\n\
treats every model file as untrusted.\n.\n")
sdx_package(command sardonyx science "run, examine, serve and train ONNX models (command)"
            "${about}This package contains the command sdx: it runs and examines models, crops\nfaces, talks to language models, serves them over HTTP and gRPC, quantises\n\
and trains.")
sdx_package(libraries libsardonyx0 libs "inference engine for ONNX models (libraries)"
            "${about}This package contains the engine and the libraries for pictures, language\nmodels, arrays, quantisation and training.")
sdx_package(development libsardonyx-dev libdevel "inference engine for ONNX models (development files)"
            "${about}This package contains the headers, a CMake package and a file for pkg-config.")
sdx_package(dropin libsardonyx-onnxruntime1 libs "inference engine for ONNX models (ONNX Runtime's C interface)"
            "${about}This package contains a library with the C interface of ONNX Runtime, in a\nfolder of its own: programs that were written for ONNX Runtime run with it\n\
when they are told to look there.")
sdx_package(python python3-sardonyx python "inference engine for ONNX models (Python 3)"
            "${about}This package contains the Python package sardonyx, whose names are those of\nONNX Runtime's package, and arrays with the interface of MLX.")

set(folder ${CMAKE_CURRENT_SOURCE_DIR}/deb)
set(CPACK_DEBIAN_COMMAND_PACKAGE_CONTROL_EXTRA ${folder}/command/postinst ${folder}/command/prerm ${folder}/command/postrm)
set(CPACK_DEBIAN_LIBRARIES_PACKAGE_CONTROL_EXTRA ${folder}/libraries/triggers ${CMAKE_CURRENT_BINARY_DIR}/deb/shlibs)
set(CPACK_DEBIAN_PYTHON_PACKAGE_CONTROL_EXTRA ${folder}/python/postinst ${folder}/python/prerm)
set(CPACK_SDX_SOURCE ${PROJECT_SOURCE_DIR})
set(CPACK_SDX_BINARY ${PROJECT_BINARY_DIR})
set(CPACK_SDX_LIBDIR ${CMAKE_INSTALL_LIBDIR})
set(CPACK_PRE_BUILD_SCRIPTS ${folder}/stage.cmake)
include(CPack)
