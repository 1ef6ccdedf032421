#include "quantize/model/model_file.h"

#include <algorithm>

#include "base/error.h"
#include "base/system/new_file.h"
#include "base/words.h"
#include "graph/sizes.h"
#include "onnx/external_names.h"
#include "onnx/reader.h"
#include "onnx/writer.h"
#include "ops/infer.h"
#include "passes/pass.h"
#include "quantize/model/edit.h"
#include "session/graphs/convert_opset.h"
#include "session/pipeline.h"

namespace sdx::quantize {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kExternalTensor = 4096;  // smaller constants stay in the model file
// The oldest IR versions of opsets that quantising may need; other engines refuse newer opsets in older files.
constexpr std::int64_t kIrOf13 = 7, kIrOf21 = 10;

bool has_quantized(const Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(),
                     [](const Node& n) { return !n.removed && n.op_type == "DequantizeLinear"; });
}

// Passes whose results every engine knows. Models that Caffe2 wrote join their branches by Sum, which only Add makes bytes.
void fold(Graph& graph) {
  constexpr std::string_view kWanted = "fold-constants fold-batch-norm remove-identities sum-to-add remove-dead";
  PassOptions options;
  for (const std::string& name : pass_names()) {
    // Folding would turn weights that are quantised already into floats.
    const bool wanted = has_word(kWanted, name) && (name != "fold-constants" || !has_quantized(graph));
    if (!wanted) options.disabled.push_back(name);
  }
  run_passes(graph, options);
}

void check_tensors(const Graph& graph, const QuantOptions& options) {
  for (const auto& [tensor, own] : options.extra.tensor_quant_overrides) {
    if (graph.find(tensor)) continue;
    fail(ErrorCode::invalid_argument, "tensor_quant_overrides: '{}' is not present in the model", tensor);
  }
}

// Names of constants that are scales or zero points. int32 with scales for each channel is a bias, whose numbers stay in raw_data
// as ONNX Runtime's tool has them.
std::set<std::string, std::less<>> scale_names(const Graph& graph) {
  std::set<std::string, std::less<>> names;
  for (const Node& n : graph.nodes()) {
    if (n.removed) continue;
    const bool pairs = n.op_type == "QuantizeLinear" || n.op_type == "DequantizeLinear";
    if (!pairs && !n.op_type.starts_with("QLinear") && n.op_type != "QGemm") continue;
    const bool bias = pairs && !n.inputs.empty() && graph.value(n.inputs[0]).type.elem == DataType::int32;
    for (std::size_t i = pairs ? 1 : 0; i < n.inputs.size(); ++i) {
      const Tensor* t = n.inputs[i] == kNoValue ? nullptr : fixed_value(graph, n.inputs[i]);
      const bool vector = t != nullptr && t->rank() == 1 && t->size() != 1;
      if (t == nullptr || t->rank() > 1 || (vector && (bias || t->dtype() == DataType::int32))) continue;
      names.insert(graph.value(n.inputs[i]).name);
    }
  }
  return names;
}

}  // namespace

// One opset for all nodes, as the file will have it: functions may have brought others.
void raise_opset(Model& model, int least, QuantReport& report) {
  int& opset = model.opsets.try_emplace("", least).first->second;
  const auto differs = [&](const Node& n) { return !n.removed && n.domain.empty() && n.version != opset; };
  const bool mixed = std::any_of(model.graph.nodes().begin(), model.graph.nodes().end(), differs);
  if (!mixed && opset >= least) return;
  Graph copy = model.graph;
  try {
    session::convert_opset(copy, std::max(opset, least));
  } catch (const Error& e) {
    if (mixed) throw;
    report.warnings.push_back("the model stays at opset " + std::to_string(opset) + ": " + e.message());
    return;
  }
  opset = std::max(opset, least);
  ops::infer_in_place(copy);
  model.graph = std::move(copy);
}

void keep_weights(Graph& graph) {
  for (std::size_t i = graph.inputs().size(); i-- > 0;) {
    const std::optional<Tensor>& t = graph.value(graph.inputs()[i]).constant;
    const bool weights = t && t->rank() > 0 && t->size() > 1 && t->dtype() != DataType::string && t->dtype() != DataType::boolean;
    if (weights) graph.remove_input(i);
  }
}

std::string node_name(const Graph& graph, const Node& node) {
  if (!node.name.empty()) return node.name;
  for (const ValueId v : node.outputs) {
    if (v != kNoValue) return graph.value(v).name;
  }
  return node.op_type;
}

void prepare_for_quantizing(Model& model, const QuantOptions& options, int opset, QuantReport& report,
                            const session::InternalOptions& internal) {
  SessionOptions session;
  session.custom_ops = options.custom_ops;
  session::prepare(model, session, true, internal);
  report.warnings.insert(report.warnings.end(), model.warnings.begin(), model.warnings.end());
  model.functions.clear();
  sink_constants(model.graph);
  if (options.preprocess) fold(model.graph);
  raise_opset(model, opset, report);
  report.nodes = count_nodes(model.graph);
}

Model read_for_quantizing(const fs::path& path, const QuantOptions& options, int opset, QuantReport& report) {
  Model model = read_model(path);
  check_tensors(model.graph, options);
  keep_weights(model.graph);
  report.bytes_before = model_file_bytes(path);
  prepare_for_quantizing(model, options, opset, report);
  return model;
}

// Nodes that were added stand behind their readers, in subgraphs as well.
void sort_nodes(Graph& graph) {
  graph.compact();
  for (NodeId id = 0; id < graph.nodes().size(); ++id) {
    for (Subgraph& s : graph.node(id).subgraphs) sort_nodes(*s.graph);
  }
}

void finish_quantized(Model& model) {
  PassOptions only;
  for (const std::string& name : pass_names()) {
    if (name != "remove-dead") only.disabled.push_back(name);
  }
  sort_nodes(model.graph);
  run_passes(model.graph, only);
  model.graph.drop_unused_values();
  ops::infer_in_place(model.graph, {.allow_unknown = true});
  const int opset = model.opsets[""];
  model.ir_version = std::max(model.ir_version, opset >= 21 ? kIrOf21 : opset >= 13 ? kIrOf13 : std::int64_t{4});
}

void write_quantized(Model& model, const fs::path& output, const QuantOptions& options, QuantReport& report) {
  std::error_code none;
  if (!model.path.empty() && fs::equivalent(model.path, output, none)) {
    fail(ErrorCode::invalid_argument, "'{}' is the model itself; the quantised one needs another name", output.string());
  }
  finish_quantized(model);
  WriteOptions write;
  if (constant_bytes(model.graph) > options.external_above) write.external_above = kExternalTensor;
  write.dry_run = options.dry_run;
  write.typed = scale_names(model.graph);
  if (write.dry_run) NewFile::check(output);
  report.bytes_after = write_model(model, output, write);
}

}  // namespace sdx::quantize
