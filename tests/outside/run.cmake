# cmake -DSOURCE=… -DBUILD=… -DWORK=… -P run.cmake: installs the build to a fresh prefix, then configures, builds and runs the outside
# project against it.
function(must)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "failed (${result}): ${ARGV}")
  endif()
endfunction()

file(REMOVE_RECURSE ${WORK})
must(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix)
must(${CMAKE_COMMAND} -S ${SOURCE} -B ${WORK}/build -G Ninja -DCMAKE_PREFIX_PATH=${WORK}/prefix)
must(${CMAKE_COMMAND} --build ${WORK}/build)
must(${WORK}/build/outside_cpp)
must(${WORK}/build/outside_c)
must(${WORK}/build/outside_project)
