#pragma once
// Scan, and Gradient of ai.onnx.preview.training: attributes.

#include "ops/signature.h"

namespace sdx::ops {

struct GradientAttrs {
  StringList xs;       // names of what is differentiated by
  StringList zs;       // of what else is fed
  std::string_view y;  // of what is differentiated

  void fields(auto& f) {
    f.required("xs", xs);
    f("zs", zs);
    f.required("y", y);
  }
};

struct ScanAttrs {
  std::int64_t num_scan_inputs = 0;
  IntList input_directions, output_directions, input_axes, output_axes;

  void fields(auto& f, const OpId& op) {
    f.required("num_scan_inputs", num_scan_inputs);
    if (op.version < 9) return f("directions", input_directions);
    f("scan_input_axes", input_axes);
    f("scan_input_directions", input_directions);
    f("scan_output_axes", output_axes);
    f("scan_output_directions", output_directions);
  }
};

}  // namespace sdx::ops
