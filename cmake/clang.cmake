# The toolchain of the presets that compile with Clang: the version that tools/clang.sh chooses, unless another is named.
if(NOT CMAKE_CXX_COMPILER)
  foreach(variable_and_tool "CMAKE_C_COMPILER clang" "CMAKE_CXX_COMPILER clang++")
    separate_arguments(pair UNIX_COMMAND "${variable_and_tool}")
    list(POP_FRONT pair variable tool)
    execute_process(COMMAND ${CMAKE_CURRENT_LIST_DIR}/../tools/clang.sh ${tool} OUTPUT_VARIABLE found ERROR_VARIABLE why RESULT_VARIABLE failed
                    OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(failed)
      message(FATAL_ERROR "${why}")
    endif()
    set(${variable} ${found} CACHE FILEPATH "A version of Clang that another does not replace later")
  endforeach()
endif()
