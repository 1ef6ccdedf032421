# Writes op_list.cc: one call of register_<name>() for every src/ops/<area>/<name>.cc.
# Included by src/ops/CMakeLists.txt with SDX_OP_SOURCES set.
set(declarations "")
set(calls "")
foreach(source IN LISTS SDX_OP_SOURCES)
  get_filename_component(stem "${source}" NAME_WE)
  string(APPEND declarations "void register_${stem}(OpTable& table);\n")
  string(APPEND calls "  register_${stem}(table);\n")
endforeach()
set(content "// Generated from the file names in src/ops; do not edit.\n#include \"ops/op.h\"\n\nnamespace sdx::ops {\n\n${declarations}\nvoid register_all(OpTable& table) {\n${calls}}\n\n}  // namespace sdx::ops\n")
file(CONFIGURE OUTPUT "${SDX_OP_LIST}" CONTENT "${content}" @ONLY)
