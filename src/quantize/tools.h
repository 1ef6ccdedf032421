#pragma once
// What libsdx_quantize.so offers to the command of the same build, which loads it when `sdx quantize` runs. Functions throw
// sdx::Error.

#include <sdx/quantize.hpp>

namespace sdx::quantize {

inline constexpr int kToolsVersion = 2;

struct Tools {
  int version;                // kToolsVersion
  const char* release;        // SDX_VERSION
  std::size_t options_bytes;  // sizeof(StaticQuantOptions): what another build would pass another way

  decltype(&quantize_dynamic) dynamic;
  decltype(&quantize_static) calibrated;
  decltype(&compare_quantized) compare;
  decltype(&open_calibration_data) open_data;
  std::string (*text)(const QuantReport&, std::size_t layers);
  std::string (*json)(const QuantReport&);
  QuantType (*type)(std::string_view);
  QuantFormat (*format)(std::string_view);
  CalibrationMethod (*method)(std::string_view);
};

}  // namespace sdx::quantize

extern "C" {
// The symbol sdx_quantize_tools.
using SdxQuantizeToolsFunction = const sdx::quantize::Tools* (*)();
}
