# Writes a source file that calls one registration function per source file, named after it.
# In: SDX_LIST_SOURCES, SDX_LIST_OUTPUT, SDX_LIST_HEADER, SDX_LIST_NAMESPACE, SDX_LIST_PREFIX (before the file's stem),
# SDX_LIST_ARGUMENT ("Table& table"), SDX_LIST_FUNCTION (what is defined).
set(declarations "")
set(calls "")
foreach(source IN LISTS SDX_LIST_SOURCES)
  get_filename_component(stem "${source}" NAME_WE)
  string(APPEND declarations "void ${SDX_LIST_PREFIX}${stem}(${SDX_LIST_ARGUMENT});\n")
  string(APPEND calls "  ${SDX_LIST_PREFIX}${stem}(table);\n")
endforeach()
set(content "// Generated from the file names; do not edit.\n#include \"${SDX_LIST_HEADER}\"\n\nnamespace ${SDX_LIST_NAMESPACE} {\n\n${declarations}\nvoid ${SDX_LIST_FUNCTION}(${SDX_LIST_ARGUMENT}) {\n${calls}}\n\n}  // namespace ${SDX_LIST_NAMESPACE}\n")
file(CONFIGURE OUTPUT "${SDX_LIST_OUTPUT}" CONTENT "${content}" @ONLY)
