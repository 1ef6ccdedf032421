#pragma once
// The functions of libsdx_quantize.so for the command of the same build, which loads it when `sdx quantize` runs. They throw
// sdx::Error.

#include <sdx/quantize_weights.hpp>

#include "base/module/module.h"

namespace sdx::quantize {

struct Tools {
  static constexpr ModuleName kModule{"libsdx_quantize.so.0", "sdx_quantize_tools", "SDX_QUANTIZE_LIB", "sdx quantize"};
  static constexpr std::size_t kTypesBytes =
      sizeof(StaticQuantOptions) + sizeof(WeightOnlyOptions) + sizeof(HalfOptions) + sizeof(QuantReport);

  ModuleHead head;

  decltype(&quantize_dynamic) dynamic;
  decltype(&quantize_static) calibrated;
  QuantReport (*weight_only)(const std::filesystem::path&, const std::filesystem::path&, const WeightOnlyOptions&,
                             CalibrationDataReader*);
  decltype(&convert_to_half) half;
  decltype(&open_calibration_data) open_data;
  std::string (*text)(const QuantReport&, std::size_t layers);
  std::string (*json)(const QuantReport&);
  QuantType (*type)(std::string_view);
  QuantFormat (*format)(std::string_view);
  CalibrationMethod (*method)(std::string_view);
  WeightMethod (*weight_method)(std::string_view);
};

}  // namespace sdx::quantize
