#pragma once
// YAML text as a series of events. yaml-cpp is used only here: programs link it statically, libsdx.so loads it as libsdx_yaml.so
// at the first YAML file, because Debian's static yaml-cpp is not position-independent and the shared one would have to be loaded
// at every start. Plain C types: nothing is thrown and nothing is freed across the border.

#include <cstddef>

#include "base/module/module.h"

namespace sdx {

enum class YamlEventKind : int { document_start, null, alias, scalar, list_start, list_end, map_start, map_end };

struct YamlEvent {
  YamlEventKind kind;
  int line, column;    // from 1
  std::size_t anchor;  // 0: none
  const char* tag;     // of `tag_size` bytes, may be empty
  std::size_t tag_size;
  const char* text;  // of a scalar
  std::size_t text_size;
};

struct YamlEventRequest {
  const char* text;
  std::size_t size;
  void* context;
  bool (*on_event)(void* context, const YamlEvent* event);  // false ends it; must not throw
  // Out: of a syntax error, where and what (cut to the buffer's size).
  int line, column;
  char message[512];
};

enum class YamlOutcome : int { ok = 0, syntax = 1, stopped = 2 };

struct YamlModule {
  static constexpr ModuleName kModule{"sardonyx/libsdx_yaml.so", "sdx_yaml_module", "SDX_YAML_LIB", "reading YAML files"};

  ModuleHead head;
  YamlOutcome (*events)(YamlEventRequest* request);
};

}  // namespace sdx

extern "C" {
// Exported by libsdx_yaml.so, and by programs that link yaml-cpp.
__attribute__((visibility("default"))) const sdx::ModuleHead* sdx_yaml_module();
}
