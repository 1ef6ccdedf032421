#pragma once
// Sizes of a model, for reports of changes to it.

#include <cstdint>
#include <filesystem>

#include "graph/graph.h"

namespace sdx::project {

// Includes nodes in subgraphs.
std::int64_t count_nodes(const Graph& graph);
// The bytes of all constants together.
std::uint64_t constant_bytes(const Graph& graph);
// 0 where there is no such file.
std::uint64_t file_bytes(const std::filesystem::path& path);

}  // namespace sdx::project
