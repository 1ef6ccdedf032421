#pragma once
// Facts about a model file, without running it.

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <sdx/session.hpp>

#include "graph/graph.h"

namespace sdx::inspect {

struct ModelFacts {
  std::uint64_t file_bytes = 0;
  std::int64_t ir_version = 0;
  std::string producer_name, producer_version, domain, description, graph_name;
  std::int64_t model_version = 0;
  std::map<std::string, int> opsets;              // "ai.onnx" for the default domain
  std::map<std::string, std::int64_t> operators;  // "Conv" -> how many; other domains in front: "com.microsoft.Gelu"
  std::int64_t nodes = 0;                         // subgraphs included
  std::int64_t functions = 0;
  std::int64_t parameters = 0;  // elements of all initializers
  std::int64_t parameter_bytes = 0;
  std::int64_t flops = 0;                // of one run, as far as shapes are known
  std::int64_t nodes_without_flops = 0;  // because a shape is not known before a run
  std::vector<std::pair<std::string, std::string>> metadata;
  std::vector<std::string> warnings;
};

// Reads the file, checks it and infers shapes; `options.dimensions` fixes symbols. Throws as Session::open does.
ModelFacts model_facts(const std::filesystem::path& path, const SessionOptions& options);

// Floating-point (or integer) operations of a node: two for each multiply-accumulate of convolutions, matrix products and
// recurrent layers, one for each output element of everything else that computes, none for what only moves data.
// -1 when it depends on a shape that is not known.
std::int64_t node_flops(const Graph& graph, const Node& node);

}  // namespace sdx::inspect
