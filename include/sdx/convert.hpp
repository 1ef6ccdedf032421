#pragma once
// Converts float32 models to float16 or bfloat16.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <sdx/dtype.hpp>
#include <sdx/export.hpp>

namespace sdx {

struct ConvertOptions {
  DataType dtype = DataType::float16;     // or bfloat16
  bool keep_io = false;                   // inputs and outputs stay float32, with Casts after the inputs and before the outputs
  std::vector<std::string> keep_ops{};    // operators that stay float32: "Softmax", "com.microsoft.Attention"
  std::vector<std::string> keep_nodes{};  // names of nodes that stay float32
  std::vector<std::filesystem::path> custom_ops{};  // custom operator libraries that the model needs (SessionOptions::custom_ops)
  std::uint64_t external_above = std::uint64_t{1} << 30;  // constants totalling more bytes go into OUTPUT.data
  bool dry_run = false;  // do everything but write: the report's bytes_after is what would be written
};

// Result of a conversion.
struct ConvertReport {
  struct Kept {
    std::string node, op, why;  // "node 'scores' (NonMaxSuppression)"
  };
  std::int64_t nodes = 0;      // in the written model, subgraphs included
  std::int64_t converted = 0;  // nodes that compute in the new type
  std::vector<Kept> kept;      // nodes that stay float32
  std::int64_t casts = 0;      // Casts added
  std::int64_t constants = 0;  // constants converted
  std::int64_t clipped = 0;    // elements outside the type's range, replaced by its largest value
  std::int64_t raised = 0;  // elements too small for the type (divisors among them), replaced by its smallest value instead of 0
  std::vector<std::string> clipped_in, raised_in;   // names of the affected constants
  std::uint64_t bytes_before = 0, bytes_after = 0;  // of the files
  std::vector<std::string> warnings;                // about the model
};

// Converts the model to compute in `options.dtype` and writes it to `output` atomically. Constants are converted; nodes whose
// operators do not support the type (or lose too much precision in it: docs/projects.md) stay float32 between Casts. Functions
// are inlined; nothing else changes. Throws Error: whatever reading the model throws; invalid_argument if no node can compute in
// the type, for unknown names in `options`, and for an opset without the type; io.
SDX_API ConvertReport convert_model(const std::filesystem::path& model, const std::filesystem::path& output,
                                    const ConvertOptions& options = {});

}  // namespace sdx
