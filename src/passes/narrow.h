#pragma once
// Graphs that compute in float32 become graphs that compute in float16 or bfloat16.

#include <cstdint>
#include <string>
#include <vector>

#include "base/tools_api.h"
#include "graph/graph.h"

namespace sdx {

struct NarrowOptions {
  DataType to = DataType::float16;        // or bfloat16
  bool keep_io = false;                   // inputs and outputs stay float32, with a Cast behind and before them
  std::vector<std::string> keep_ops{};    // operators that stay float32: "Conv", "com.microsoft.Attention"
  std::vector<std::string> keep_nodes{};  // nodes, by name
};

struct NarrowReport {
  struct Kept {
    std::string node, op, why;
  };
  std::int64_t converted = 0;  // nodes that read or make a value of the new type; Casts that were added apart
  std::vector<Kept> kept;      // nodes that stay in float32
  std::int64_t casts = 0;      // added
  std::int64_t constants = 0;  // converted
  std::int64_t clipped = 0;    // finite elements beyond the type's range, which became its largest
  std::int64_t raised = 0;     // elements that would have become 0, which became the smallest: a divisor stays one
  std::vector<std::string> clipped_in, raised_in;  // the constants with such elements
};

// `graph`: functions inlined, constants sunk, nodes in order, types inferred; `opset`: of ai.onnx, for the Casts. Types are to be
// inferred again afterwards. A node stays float32 where its definition lacks the new type, where it passes sequences, has
// subgraphs (what is inside is converted, what goes in and out stays), where its operator needs digits or range that the type
// lacks (sines of large angles; for float16 squares and exponentials until a root, logarithm or other operand reduces them),
// where it computes only with extents, and where `options` say so. Throws Error(invalid_argument): a name in `options` that no
// node has, an opset without such a Cast.
SDX_TOOLS_API NarrowReport narrow(Graph& graph, int opset, const NarrowOptions& options);

}  // namespace sdx
