# Between the installation into a temporary folder and the packing: stage.py completes the folder of each package and writes what they
# depend on.
set(made ${CPACK_SDX_BINARY}/packaging/deb/dependencies.cmake)
execute_process(COMMAND python3 -B ${CPACK_SDX_SOURCE}/packaging/deb/stage.py --source ${CPACK_SDX_SOURCE} --build ${CPACK_SDX_BINARY}
                        --root ${CPACK_TEMPORARY_DIRECTORY} --libdir ${CPACK_SDX_LIBDIR} --maintainer ${CPACK_PACKAGE_CONTACT}
                        --version ${CPACK_PACKAGE_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE} --out ${made} ${CPACK_SDX_NAMES}
                COMMAND_ERROR_IS_FATAL ANY)
include(${made})
# Else the project's description would stand above each package's own.
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")
