# Writes a source file that calls the registration functions of source files, one each, named after the file. A file without one is a
# part of others; one whose function has another name is an error.
# In: SDX_LIST_SOURCES, SDX_LIST_OUTPUT, SDX_LIST_HEADER, SDX_LIST_NAMESPACE, SDX_LIST_PREFIX (before the file's stem),
# SDX_LIST_ARGUMENT ("Table& table"), SDX_LIST_FUNCTION (what is defined).
set(declarations "")
set(calls "")
foreach(source IN LISTS SDX_LIST_SOURCES)
  get_filename_component(stem "${source}" NAME_WE)
  file(STRINGS "${source}" found REGEX "^void ${SDX_LIST_PREFIX}[a-z0-9_]+\\(")
  if(NOT found)
    continue()
  endif()
  if(NOT found MATCHES "^void ${SDX_LIST_PREFIX}${stem}\\(")
    message(FATAL_ERROR "${source} must define ${SDX_LIST_PREFIX}${stem}(); it has: ${found}")
  endif()
  string(APPEND declarations "void ${SDX_LIST_PREFIX}${stem}(${SDX_LIST_ARGUMENT});\n")
  string(APPEND calls "  ${SDX_LIST_PREFIX}${stem}(table);\n")
endforeach()
set(content "// Generated from the file names; do not edit.\n#include \"${SDX_LIST_HEADER}\"\n\nnamespace ${SDX_LIST_NAMESPACE} {\n\n${declarations}\nvoid ${SDX_LIST_FUNCTION}(${SDX_LIST_ARGUMENT}) {\n${calls}}\n\n}  // namespace ${SDX_LIST_NAMESPACE}\n")
file(CONFIGURE OUTPUT "${SDX_LIST_OUTPUT}" CONTENT "${content}" @ONLY)
