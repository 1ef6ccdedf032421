#include "quantize/tools.h"

namespace sdx::quantize {
namespace {

std::string text(const QuantReport& report, std::size_t layers) { return report.text(layers); }
std::string json(const QuantReport& report) { return report.json(); }

constexpr Tools kTools{
    .version = kToolsVersion,
    .release = SDX_VERSION,
    .options_bytes = sizeof(StaticQuantOptions),
    .dynamic = quantize_dynamic,
    .calibrated = quantize_static,
    .compare = compare_quantized,
    .open_data = open_calibration_data,
    .text = text,
    .json = json,
    .type = parse_quant_type,
    .format = parse_quant_format,
    .method = parse_calibration_method,
};

}  // namespace
}  // namespace sdx::quantize

extern "C" SDX_API const sdx::quantize::Tools* sdx_quantize_tools() { return &sdx::quantize::kTools; }
