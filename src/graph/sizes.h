#pragma once
// The size of a graph, for reports of changes to it.

#include <cstdint>

#include "graph/graph.h"

namespace sdx {

// Includes nodes in subgraphs.
inline std::int64_t count_nodes(const Graph& graph) {
  std::int64_t count = 0;
  for (const Node& n : graph.nodes()) {
    if (n.removed) continue;
    ++count;
    for (const Subgraph& s : n.subgraphs) count += count_nodes(*s.graph);
  }
  return count;
}

// The bytes of all constants together.
inline std::uint64_t constant_bytes(const Graph& graph) {
  std::uint64_t bytes = 0;
  for (const ValueInfo& v : graph.values()) bytes += v.constant ? v.constant->bytes() : 0;
  return bytes;
}

}  // namespace sdx
