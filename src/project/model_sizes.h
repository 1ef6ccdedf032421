#pragma once
// How large a model is, for reports of what was done to it.

#include <cstdint>
#include <filesystem>

#include "graph/graph.h"

namespace sdx::project {

// Those in subgraphs included.
std::int64_t count_nodes(const Graph& graph);
// Of all constants together.
std::uint64_t constant_bytes(const Graph& graph);
// 0 where there is no such file.
std::uint64_t file_bytes(const std::filesystem::path& path);

}  // namespace sdx::project
