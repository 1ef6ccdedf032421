#include "providers/vendor/model_cache.h"

#include "base/hash.h"
#include "providers/vendor/region_bytes.h"

namespace sdx {
namespace {

// Weights outside of the model's file are in no hash of it.
void add_constants(const Graph& graph, ContentHash& hash) {
  for (const ValueInfo& v : graph.values()) {
    if (!v.constant || v.constant->dtype() == DataType::string) continue;
    hash.add(v.name);
    hash.add(std::span(static_cast<const std::byte*>(v.constant->data()), v.constant->bytes()));
  }
  for (const Node& n : graph.nodes()) {
    for (const Subgraph& s : n.subgraphs) add_constants(*s.graph, hash);
  }
}

void add_model(const Region& region, ContentHash& hash) {
  if (region.source != nullptr && !region.source->path.empty()) {
    hash.add_file(region.source->path);
    add_constants(*region.graph, hash);
  } else {
    const std::string bytes = region_bytes(region);
    hash.add(std::as_bytes(std::span(bytes.data(), bytes.size())));
  }
}

}  // namespace

std::shared_ptr<cache::CacheEntry> open_cache(const Region& region, const ProviderSettings& settings, std::string_view runtime) {
  if (settings.cache.empty()) return nullptr;
  ContentHash hash;
  hash.add(runtime);
  for (const auto& [key, value] : settings.options) {
    hash.add(key);
    hash.add(value);
  }
  hash.add(settings.optimize ? "optimised" : "as it is");
  add_model(region, hash);
  std::string label = region.model->path.empty() ? "(memory)" : std::filesystem::path(region.model->path).filename().string();
  if (region.source == nullptr) label += fmt::format(", {} of its nodes", region.graph->nodes().size());
  return cache::CacheEntry::open(settings.cache, hash.text(), label);
}

}  // namespace sdx
