#pragma once
// Graphs drawn at random, as text, with the point at which their gradients are compared.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <sdx/tensor.hpp>

namespace sdx::gradient_tests {

// One node, or one constant. What it reads, also in its graphs, comes from inputs or from statements before it.
struct Statement {
  std::vector<std::string> outputs, reads;
  std::string text;  // whole lines
};

struct RandomGraph {
  std::vector<std::string> inputs;  // float64
  std::vector<Statement> statements;
  std::vector<std::string> outputs;
  std::map<std::string, Tensor> values;  // of all inputs and, as they were when the graph was drawn, of all statements' outputs

  // In the form of support/graph_text.h.
  std::string text() const;
  // Without what the outputs do not need.
  RandomGraph pruned() const;
};

// Every number stands for one graph, for good.
RandomGraph draw_graph(std::uint64_t number);

}  // namespace sdx::gradient_tests
