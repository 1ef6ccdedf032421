#include <algorithm>

#include "dropin/objects.h"
#include "dropin/status.h"
#include "dropin/table.h"

namespace sdx::dropin {
namespace {

OrtStatus* create(const OrtSession* session, OrtModelMetadata** out) {
  return guarded([&] {
    require(out, "out");
    *out = new OrtModelMetadata(require(session, "session").metadata);
  });
}
void release(OrtModelMetadata* metadata) { delete metadata; }

template <auto member>
OrtStatus* get_text(const OrtModelMetadata* metadata, OrtAllocator* allocator, char** out) {
  return guarded([&] {
    require(out, "value");
    *out = copy_text(allocator, require(metadata, "model_metadata").*member);
  });
}
OrtStatus* get_version(const OrtModelMetadata* metadata, std::int64_t* out) {
  return guarded([&] { require(out, "value") = require(metadata, "model_metadata").version; });
}

// NULL for a key that is not there.
OrtStatus* look_up(const OrtModelMetadata* metadata, OrtAllocator* allocator, const char* key, char** out) {
  return guarded([&] {
    const auto& custom = require(metadata, "model_metadata").custom;
    const std::string_view wanted = &require(key, "key");
    const auto it = std::find_if(custom.begin(), custom.end(), [&](const auto& pair) { return pair.first == wanted; });
    require(out, "value") = it == custom.end() ? nullptr : copy_text(allocator, it->second);
  });
}

OrtStatus* get_keys(const OrtModelMetadata* metadata, OrtAllocator* allocator, char*** keys, std::int64_t* count) {
  return guarded([&] {
    const auto& custom = require(metadata, "model_metadata").custom;
    require(keys, "keys") = nullptr;
    require(count, "num_keys") = static_cast<std::int64_t>(custom.size());
    if (custom.empty()) return;
    auto* const list = static_cast<char**>(allocate(allocator, custom.size() * sizeof(char*)));
    for (std::size_t i = 0; i < custom.size(); ++i) list[i] = copy_text(allocator, custom[i].first);
    *keys = list;
  });
}

}  // namespace

void fill_metadata(Table& table) {
  using M = OrtModelMetadata;
  table.set(Slot::SessionGetModelMetadata, &create);
  table.set(Slot::ReleaseModelMetadata, &release);
  table.set(Slot::ModelMetadataGetProducerName, &get_text<&M::producer>);
  table.set(Slot::ModelMetadataGetGraphName, &get_text<&M::graph_name>);
  table.set(Slot::ModelMetadataGetDomain, &get_text<&M::domain>);
  table.set(Slot::ModelMetadataGetDescription, &get_text<&M::description>);
  table.set(Slot::ModelMetadataGetGraphDescription, &get_text<&M::graph_description>);
  table.set(Slot::ModelMetadataGetVersion, &get_version);
  table.set(Slot::ModelMetadataLookupCustomMetadataMap, &look_up);
  table.set(Slot::ModelMetadataGetCustomMetadataMapKeys, &get_keys);
}

}  // namespace sdx::dropin
