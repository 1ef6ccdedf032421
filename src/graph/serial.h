#pragma once
// Graphs to bytes and back, with their inferred types: for files that only this build of the program reads again.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "graph/graph.h"

namespace sdx {

// Stores the contents of constants and of tensors in attributes: returns a number for each, and gives it back.
using PutTensor = std::function<std::uint64_t(const Tensor&)>;
using GetTensor = std::function<Tensor(std::uint64_t)>;

// ValueIds and NodeIds stay; extents that are expressions come back as symbols of that name. Throws Error(invalid_argument) for a
// graph with removed nodes or operators of a user's library.
std::string encode_graph(const Graph& graph, const PutTensor& put);

// Throws Error(invalid_model) for bytes that encode_graph() did not write; the result passes Graph::verify().
Graph decode_graph(std::string_view bytes, const GetTensor& get);

}  // namespace sdx
