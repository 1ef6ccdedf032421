// Any bytes, read as a project file, a registry and a list of backends. Only sdx::Error may come out, and nothing may be
// `internal`.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <sdx/registry.hpp>
#include <string>

#include "base/error.h"
#include "project/backends.h"
#include "project/config.h"

namespace {

template <class Read>
void attempt(Read&& read) {
  try {
    read();
  } catch (const sdx::Error& e) {
    if (e.code() != sdx::ErrorCode::internal) return;
    std::fprintf(stderr, "BROKEN: an internal error\n%s\n", e.what());
    std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  attempt([&] {
    sdx::YamlDocument document = sdx::YamlDocument::parse(text, "sdx.yml");
    document.expand_environment();
    sdx::session_options_of(sdx::parse_project(document, "/nowhere").config);
  });
  attempt([&] {
    sdx::Registry registry = sdx::Registry::parse(text, "models.yaml");
    sdx::RegistryEntry entry;
    entry.name = "new";
    entry.path = "x.onnx";
    registry.add(entry);
    registry.remove("new");
  });
  attempt([&] { sdx::parse_backends(sdx::YamlDocument::parse(text, "backends.yaml")); });
  return 0;
}
