#include "project/model_sizes.h"

namespace sdx::project {

std::int64_t count_nodes(const Graph& graph) {
  std::int64_t count = 0;
  for (const Node& n : graph.nodes()) {
    if (n.removed) continue;
    ++count;
    for (const Subgraph& s : n.subgraphs) count += count_nodes(*s.graph);
  }
  return count;
}

std::uint64_t constant_bytes(const Graph& graph) {
  std::uint64_t bytes = 0;
  for (const ValueInfo& v : graph.values()) bytes += v.constant ? v.constant->bytes() : 0;
  return bytes;
}

std::uint64_t file_bytes(const std::filesystem::path& path) {
  std::error_code error;
  const std::uintmax_t bytes = std::filesystem::file_size(path, error);
  return error ? 0 : bytes;
}

}  // namespace sdx::project
