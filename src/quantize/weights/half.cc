// Models that compute in 16 bits.

#include <optional>
#include <sdx/quantize.hpp>

#include "base/error.h"
#include "ops/infer.h"
#include "passes/narrow.h"
#include "quantize/accuracy/measure.h"
#include "quantize/accuracy/sensitive.h"
#include "quantize/model/edit.h"
#include "quantize/model/model_file.h"

namespace sdx {

using namespace quantize;

namespace {

// Nodes by operator, whose first float output or input has the type.
void count_narrow(const Graph& graph, DataType type, QuantReport& report) {
  for (const Node& n : graph.nodes()) {
    if (n.removed) continue;
    for (const Subgraph& s : n.subgraphs) count_narrow(*s.graph, type, report);
    if (n.op_type == "Cast" && n.domain.empty()) continue;
    bool narrow = false;
    for (const auto* list : {&n.outputs, &n.inputs}) {
      for (const ValueId v : *list) narrow = narrow || (v != kNoValue && graph.value(v).type.elem == type);
    }
    if (narrow) note_quantized(report, n.domain.empty() ? n.op_type : n.domain + "." + n.op_type);
  }
}

NarrowReport make_half(Model& model, const HalfOptions& options, bool keep_io) {
  const auto opset = model.opsets.find("");
  NarrowReport done = narrow(model.graph, opset == model.opsets.end() ? 13 : opset->second,
                             {options.dtype, keep_io, options.keep_ops, options.keep_nodes});
  ops::infer_in_place(model.graph, {.allow_unknown = true});
  return done;
}

}  // namespace

QuantReport convert_to_half(const std::filesystem::path& path, const std::filesystem::path& output, const HalfOptions& options,
                            CalibrationDataReader* data) {
  if (options.dtype != DataType::float16 && options.dtype != DataType::bfloat16) {
    fail(ErrorCode::invalid_argument, "models are converted to float16 or bfloat16, received {}", name(options.dtype));
  }
  check_measurable({}, options.measure_accuracy, data);
  QuantOptions common;
  common.preprocess = false;
  common.custom_ops = options.custom_ops;
  common.external_above = options.external_above;
  common.dry_run = options.dry_run;
  QuantReport report;
  report.mode = name(options.dtype);
  Model model = read_for_quantizing(path, common, 1, report);
  const std::optional<Model> before = options.measure_accuracy ? std::optional(model) : std::nullopt;
  const NarrowReport done = make_half(model, options, options.keep_io);
  if (done.converted == 0 && !done.kept.empty()) {
    fail(ErrorCode::invalid_argument, "no node of '{}' can compute in {}: {}: {}", path.string(), name(options.dtype),
         done.kept.front().node, done.kept.front().why);
  }
  count_narrow(model.graph, options.dtype, report);
  for (const NarrowReport::Kept& k : done.kept) report.kept.push_back({k.node, k.op, k.why});
  const auto changed = [&](std::int64_t count, const std::vector<std::string>& in, const char* what) {
    if (count > 0) report.warnings.push_back(fmt::format("{} values {}, the first in '{}'", count, what, in.front()));
  };
  changed(done.clipped, done.clipped_in, "beyond the type's range became its largest");
  changed(done.raised, done.raised_in, "too small for the type became its smallest");
  write_quantized(model, output, common, report);
  if (before) {
    Model same_io = *before;  // takes the data as they are
    if (!options.keep_io) make_half(same_io, options, true);
    report.accuracy = measure(*before, options.keep_io ? model : same_io, *data, common, 0);
  }
  return report;
}

}  // namespace sdx
