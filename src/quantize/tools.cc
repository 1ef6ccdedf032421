#include "quantize/tools.h"

namespace sdx::quantize {
namespace {

std::string text(const QuantReport& report, std::size_t layers) { return report.text(layers); }
std::string json(const QuantReport& report) { return report.json(); }
QuantReport weight_only(const std::filesystem::path& model, const std::filesystem::path& output, const WeightOnlyOptions& options,
                        CalibrationDataReader* data) {
  return quantize_weights(model, output, options, data).summary();
}

constexpr Tools kTools{
    .head = module_head<Tools>(SDX_VERSION),
    .dynamic = quantize_dynamic,
    .calibrated = quantize_static,
    .weight_only = weight_only,
    .half = convert_to_half,
    .open_data = open_calibration_data,
    .text = text,
    .json = json,
    .type = parse_quant_type,
    .format = parse_quant_format,
    .method = parse_calibration_method,
    .weight_method = weight_method_named,
};

}  // namespace
}  // namespace sdx::quantize

extern "C" SDX_API const sdx::ModuleHead* sdx_quantize_tools() { return &sdx::quantize::kTools.head; }
