// SessionOptions::quantize.

#include "quantize/dynamic/at_load.h"

#include "quantize/dynamic/dynamic.h"
#include "quantize/model/model_file.h"
#include "session/quantize_at_load.h"

namespace sdx::quantize {

void at_load(Model& model, const SessionOptions& session, const session::InternalOptions& internal) {
  constexpr int kOpset = 13;  // scales along an axis
  DynamicQuantOptions options;
  options.per_channel = true;
  options.preprocess = session.optimize;
  options.custom_ops = session.custom_ops;
  // The operators that then compute in integers. Others would only be smaller in a file.
  options.op_types_to_quantize = {"MatMul", "Gemm", "LSTM", "Attention"};
  std::vector<std::string> warnings = model.warnings;
  QuantReport report;
  keep_weights(model.graph);
  prepare_for_quantizing(model, options, kOpset, report, internal);
  // The model's own warnings are left out, because the session reports them.
  warnings.insert(warnings.end(), report.warnings.begin() + static_cast<std::ptrdiff_t>(model.warnings.size()),
                  report.warnings.end());
  make_dynamic(model, options, report);
  finish_quantized(model);
  if (report.quantized == 0) warnings.emplace_back("nothing was quantised: no matrix product has constant float32 weights");
  model.warnings = std::move(warnings);
}

}  // namespace sdx::quantize

extern "C" SDX_API const sdx::ModuleHead* sdx_quantize_at_load() {
  using sdx::session::QuantizeModule;
  static constexpr QuantizeModule kModule{sdx::module_head<QuantizeModule>(SDX_VERSION), &sdx::quantize::at_load};
  return &kModule.head;
}
