#pragma once
// Images: attributes.

#include "ops/signature.h"

namespace sdx::ops {

struct ResizeAttrs {
  std::string_view mode = "nearest";
  std::string_view coordinate_transformation_mode = "half_pixel";  // this and the following ones: Resize since opset 11
  std::string_view nearest_mode = "round_prefer_floor";
  float cubic_coeff_a = -0.75F, extrapolation_value = 0;
  bool exclude_outside = false, antialias = false;
  std::optional<IntList> axes;
  std::string_view keep_aspect_ratio_policy = "stretch";
  float height_scale = 0, width_scale = 0;  // Upsample before opset 7
  FloatList scales;                         // Upsample 7 and 8; else an input

  void fields(auto& f, const OpId& op) {
    f("mode", mode);
    if (op.name == "Upsample") {
      if (op.version < 7) {
        f.required("height_scale", height_scale);
        f.required("width_scale", width_scale);
      } else if (op.version < 9) {
        f.required("scales", scales);
      }
      return;
    }
    if (op.version < 11) return;
    f("coordinate_transformation_mode", coordinate_transformation_mode);
    f("nearest_mode", nearest_mode);
    f("cubic_coeff_a", cubic_coeff_a);
    f("extrapolation_value", extrapolation_value);
    f("exclude_outside", exclude_outside);
    if (op.version < 18) return;
    f("antialias", antialias);
    f("axes", axes);
    f("keep_aspect_ratio_policy", keep_aspect_ratio_policy);
  }
};

struct GridSampleAttrs {
  std::string_view mode = "linear";
  std::string_view padding_mode = "zeros";
  bool align_corners = false;

  void fields(auto& f) {
    f("mode", mode);
    f("padding_mode", padding_mode);
    f("align_corners", align_corners);
  }
};

struct RoiAlignAttrs {
  std::string_view mode = "avg", coordinate_transformation_mode = "half_pixel";
  std::int64_t output_height = 1, output_width = 1, sampling_ratio = 0;
  float spatial_scale = 1;

  void fields(auto& f, const OpId& op) {
    if (op.version < 16) coordinate_transformation_mode = "output_half_pixel";
    f("mode", mode);
    f("output_height", output_height);
    f("output_width", output_width);
    f("sampling_ratio", sampling_ratio);
    f("spatial_scale", spatial_scale);
    f("coordinate_transformation_mode", coordinate_transformation_mode);
  }
};

struct AffineGridAttrs {
  bool align_corners = false;

  void fields(auto& f) { f("align_corners", align_corners); }
};

struct ImageScalerAttrs {
  float scale = 1;
  FloatList bias;

  void fields(auto& f) {
    f("scale", scale);
    f("bias", bias);
  }
};

}  // namespace sdx::ops
