// sdx/quantize_weights.hpp

#include <array>

#include "base/error.h"
#include "base/suggest.h"
#include "onnx/external_names.h"
#include "onnx/reader.h"
#include "onnx/writer.h"
#include "ops/infer.h"
#include "quantize/weights/weight_only.h"
#include "session/pipeline.h"

namespace sdx {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 4> kMethods{"rtn", "search", "hqq", "gptq"};
constexpr std::size_t kExternalTensor = 4096;  // smaller constants stay in the model file

std::uint64_t file_bytes(const fs::path& path) {
  std::error_code error;
  const auto size = fs::file_size(path, error);
  return error ? 0 : size;
}

std::uint64_t constant_bytes(const Graph& graph) {
  std::uint64_t bytes = 0;
  for (const ValueInfo& v : graph.values()) bytes += v.constant ? v.constant->bytes() : 0;
  return bytes;
}

}  // namespace

std::string_view name(WeightMethod method) noexcept { return kMethods[static_cast<std::size_t>(method)]; }

WeightMethod weight_method_named(std::string_view text) {
  for (std::size_t i = 0; i < kMethods.size(); ++i) {
    if (kMethods[i] == text) return static_cast<WeightMethod>(i);
  }
  fail(ErrorCode::invalid_argument, "unknown method '{}' of quantizing weights; expected rtn, search, hqq or gptq", text);
}

WeightOnlyReport quantize_weights(const fs::path& path, const fs::path& output, const WeightOnlyOptions& options,
                                  CalibrationDataReader* data) {
  quantize::check(options);
  if (options.method == WeightMethod::gptq && data == nullptr) {
    fail(ErrorCode::invalid_argument, "gptq needs calibration data: inputs of the model to run it on");
  }
  WeightOnlyReport report;
  Model model = read_model(path);
  report.bytes_before = file_bytes(path);
  for (const std::string& name : external_names(path)) report.bytes_before += file_bytes(path.parent_path() / name);
  SessionOptions session;
  session.custom_ops = options.custom_ops;
  session::prepare(model, session, true);
  quantize::to_weight_only(model, options, data, report);
  static_cast<void>(ops::infer_in_place(model.graph, {.allow_unknown = true}));
  WriteOptions write;
  if (constant_bytes(model.graph) > options.external_above) write.external_above = kExternalTensor;
  write_model(model, output, write);
  report.bytes_after = file_bytes(output);
  if (write.external_above != 0) report.bytes_after += file_bytes(output.string() + ".data");
  report.warnings.insert(report.warnings.end(), model.warnings.begin(), model.warnings.end());
  return report;
}

}  // namespace sdx
