# SDX_STATIC: what the command links in place of libsdx.so and the products' libraries. Their tables are found as modules that are part of the
# program (base/module/module.h).
set(modules sdx_text_tools sdx_speech_tools sdx_vision_tools sdx_quantize_tools sdx_quantize_at_load sdx_train_tools sdx_train_loop_tools sdx_yaml_module)
set(text "// Generated; do not edit.\n#include \"base/module/module.h\"\n#include \"base/module/one_file.h\"\n\nextern \"C\" {\n")
foreach(module IN LISTS modules)
  string(APPEND text "const sdx::ModuleHead* ${module}();\n")
endforeach()
string(APPEND text "}\n\nnamespace {\n\n")
foreach(module IN LISTS modules)
  string(APPEND text "const sdx::LinkedModule k_${module}(\"${module}\", &${module});\n")
endforeach()
string(APPEND text "const sdx::LinkedModule k_one_file(sdx::kOneFile, nullptr);\n\n}  // namespace\n")
set(linked ${CMAKE_CURRENT_BINARY_DIR}/linked_modules.cc)
file(CONFIGURE OUTPUT ${linked} CONTENT "${text}" @ONLY)

add_library(sdx_tools INTERFACE)
target_sources(sdx_tools INTERFACE ${linked})
target_link_libraries(sdx_tools INTERFACE sdx_flags sdx_benchmark_report sdx_compare sdx_benchmark sdx_inspect sdx_inputs sdx_hub sdx_speech sdx_text
                                          sdx_vision_batch sdx_quantize sdx_train_loop sdx_project Threads::Threads)
