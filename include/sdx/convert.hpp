#pragma once
// Models in float32 become models in float16 or bfloat16.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <sdx/dtype.hpp>
#include <sdx/export.hpp>

namespace sdx {

struct ConvertOptions {
  DataType dtype = DataType::float16;               // or bfloat16
  bool keep_io = false;                             // inputs and outputs stay float32, with a Cast behind and before them
  std::vector<std::string> keep_ops{};              // operators that stay float32: "Softmax", "com.microsoft.Attention"
  std::vector<std::string> keep_nodes{};            // nodes that do, by name
  std::vector<std::filesystem::path> custom_ops{};  // libraries of operators that the model needs (SessionOptions::custom_ops)
  std::uint64_t external_above = std::uint64_t{1} << 30;  // constants of more bytes in all go into OUTPUT.data
};

// What a conversion did.
struct ConvertReport {
  struct Kept {
    std::string node, op, why;  // "node 'scores' (NonMaxSuppression)"
  };
  std::int64_t nodes = 0;      // of the written model, those in subgraphs included
  std::int64_t converted = 0;  // that compute in the new type
  std::vector<Kept> kept;      // that stay in float32
  std::int64_t casts = 0;      // added between the two
  std::int64_t constants = 0;  // converted
  std::int64_t clipped = 0;    // elements beyond the type's range, which became its largest
  std::int64_t raised = 0;     // elements too small for the type, which became its smallest instead of 0: divisors among them
  std::vector<std::string> clipped_in, raised_in;   // the constants that these are in
  std::uint64_t bytes_before = 0, bytes_after = 0;  // of the files
  std::vector<std::string> warnings;                // about the model
};

// Reads a model and writes it to `output`, which appears whole or not at all, so that it computes in `options.dtype`: constants
// are converted, nodes whose operators lack the type (or lose too much in it: docs/projects.md) stay in float32 between Casts.
// Functions are inlined; nothing else is changed. Throws Error: what reading the model throws; invalid_argument where no node can
// compute in the type, for unknown names in `options`, and for an opset without the type; io.
SDX_API ConvertReport convert_model(const std::filesystem::path& model, const std::filesystem::path& output,
                                    const ConvertOptions& options = {});

}  // namespace sdx
