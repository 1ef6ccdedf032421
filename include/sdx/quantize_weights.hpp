#pragma once
// Weight-only quantisation: constant matrices are stored in blocks of 2-, 4- or 8-bit values; activations are unchanged. In
// libsdx_quantize.so, like sdx/quantize.hpp.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sdx/export.hpp>
#include <sdx/quantize.hpp>
#include <sdx/session.hpp>

namespace sdx {

enum class WeightMethod {
  rtn,     // round to nearest; the range is the minimum and maximum of each block
  search,  // tries a few dozen narrower ranges and keeps the one with the least squared error
  hqq,     // non-integer zero points (Badri and Shaji 2023); never symmetric
  gptq,    // compensates rounding errors in the products with real inputs (Frantar and others 2022)
};
SDX_API std::string_view name(WeightMethod method) noexcept;
// Throws Error(invalid_argument) with the permitted words: rtn, search, hqq, gptq.
SDX_API WeightMethod weight_method_named(std::string_view name);

enum class WeightForm {
  qoperator,  // com.microsoft MatMulNBits and GatherBlockQuantized
  qdq,        // DequantizeLinear with block_size (ai.onnx 21) in front of MatMul and Gemm; 4 and 8 bits
};

struct WeightFormat {
  int bits = 4;                  // 2, 4 or 8
  std::int64_t block_size = 32;  // a power of two, at least 16; reduced for matrices with fewer rows
  bool symmetric = false;
};

struct WeightOnlyOptions {
  WeightMethod method = WeightMethod::rtn;
  WeightForm form = WeightForm::qoperator;
  WeightFormat format;
  // MatMulNBits' accuracy_level, the least precise type that activations may be rounded to: 0 omits it; 1 float32, 2 float16, 3
  // bfloat16, 4 int8.
  int accuracy_level = 0;
  std::vector<std::string> ops{"MatMul", "Gemm"};                  // also "Gather"
  std::vector<std::string> nodes;                                  // only these, by name; empty: all of `ops`
  std::vector<std::string> exclude;                                // never these
  std::vector<std::pair<std::string, WeightFormat>> node_formats;  // per-node formats
  std::int64_t min_elements = 0;                                   // smaller matrices are not quantised
  // Settings of gptq: damping added to the Hessian's diagonal, as a fraction of its mean; whether columns with large inputs come
  // first; whether scales are found by search.
  double damp = 0.01;
  bool act_order = false, search_scales = false;
  // The same as in QuantOptions; both need data.
  std::optional<double> max_loss{};
  bool measure_accuracy = false;
  std::vector<std::filesystem::path> custom_ops;          // custom operator libraries that the model needs
  std::uint64_t external_above = std::uint64_t{1} << 30;  // constants totalling more bytes go into OUTPUT.data
  bool dry_run = false;  // do everything but write: the report's bytes_after is what would be written
};

struct WeightOnlyReport {
  struct Node {
    std::string name, op;
    int bits = 0;
    std::int64_t k = 0, n = 0, block_size = 0;
    double error = 0;  // RMS error of the weights divided by their RMS
  };
  struct Kept {
    std::string node, op, why;
  };
  std::vector<Node> quantized;
  std::vector<Kept> kept;  // nodes of a selected operator that were not quantised
  std::int64_t nodes = 0;  // of the source model
  std::optional<QuantAccuracy> accuracy;
  std::uint64_t bytes_before = 0, bytes_after = 0;  // of the files
  std::vector<std::string> warnings;                // about the model

  // The same in the form that the other modes have.
  SDX_API QuantReport summary() const;
};

// Quantises a model and writes it to `output` atomically. Weights shared by several nodes are quantised once. `data` is for gptq,
// which runs the model on it, and for max_loss and measure_accuracy. Nodes are named as in QuantSelection. Throws Error: all
// errors of reading and running the model; invalid_argument for contradictory options, unknown nodes, or options that need data
// without them; not_implemented if the qdq form needs a newer opset and a node cannot be converted to it; io.
SDX_API WeightOnlyReport quantize_weights(const std::filesystem::path& model, const std::filesystem::path& output,
                                          const WeightOnlyOptions& options = {}, CalibrationDataReader* data = nullptr);

}  // namespace sdx
