#include "quantize/dynamic/dynamic.h"

#include <map>

#include "base/error.h"
#include "quantize/dynamic/weights.h"
#include "quantize/model/model_file.h"

namespace sdx::quantize {
namespace {

// One graph; those of subgraphs have their own.
class Rewriter {
 public:
  Rewriter(Graph& graph, int opset, const DynamicQuantOptions& options, const Choice& choice, QuantReport& report)
      : edit_(graph, opset), weights_(edit_, options), options_(options), choice_(choice), report_(report) {}

  void run() {
    const std::size_t count = edit_.graph().nodes().size();
    for (NodeId id = 0; id < count; ++id) {
      const Node& n = edit_.graph().node(id);
      if (n.removed) continue;
      if (options_.extra.enable_subgraph) {
        for (Subgraph& s : edit_.graph().node(id).subgraphs) Rewriter(*s.graph, edit_.opset(), options_, choice_, report_).run();
      }
      if (!known(n) || !choice_.wants(edit_.graph(), n)) continue;
      const std::string op = n.op_type;
      if (const std::string why = rewrite(id, op); why.empty()) {
        note_quantized(report_, op);
      } else {
        note_kept(report_, edit_.graph(), edit_.graph().node(id), why);
      }
    }
  }

 private:
  // Bytes, scale and zero point of a float value.
  struct Quantized {
    ValueId codes = kNoValue, scale = kNoValue, zero = kNoValue;
  };

  // Other domains have operators with the same names.
  static bool known(const Node& n) {
    const bool microsoft = n.op_type == "Attention" || n.op_type == "EmbedLayerNormalization";
    return n.domain.empty() || (microsoft && n.domain == "com.microsoft");
  }
  std::string rewrite(NodeId id, const std::string& op);
  bool is_one_hot(ValueId v) const;
  std::string product(NodeId id);
  std::string gemm(NodeId id);
  std::string conv(NodeId id);
  std::string lstm(NodeId id);
  std::string gru(NodeId id);
  std::string attention(NodeId id);
  std::string embed_layer_norm(NodeId id);
  std::string gather(NodeId id);

  const Quantized& quantized(ValueId v);
  // codes x weights as floats into `output`; `bias` may be kNoValue.
  void integer_product(const Node& from, const char* op, const Quantized& x, const StoredWeights& w, ValueId bias,
                       Attributes attributes, ValueId output);
  bool is_f32(ValueId v) const { return edit_.graph().value(v).type.elem == DataType::float32; }
  std::string name_of(const Node& n, const char* end) const { return node_name(edit_.graph(), n) + end; }

  Editor edit_;
  WeightStore weights_;
  const DynamicQuantOptions& options_;
  const Choice& choice_;
  QuantReport& report_;
  std::map<ValueId, Quantized> quantized_;
};

const Rewriter::Quantized& Rewriter::quantized(ValueId v) {
  const auto [at, added] = quantized_.try_emplace(v);
  if (!added) return at->second;
  const std::string name = edit_.graph().value(v).name;
  at->second = {edit_.value(name + "_quantized", DataType::uint8), edit_.value(name + "_scale", DataType::float32),
                edit_.value(name + "_zero_point", DataType::uint8)};
  edit_.node(name + "_QuantizeLinear", "DynamicQuantizeLinear", {v}, {at->second.codes, at->second.scale, at->second.zero});
  return at->second;
}

void Rewriter::integer_product(const Node& from, const char* op, const Quantized& x, const StoredWeights& w, ValueId bias,
                               Attributes attributes, ValueId output) {
  const std::string name = name_of(from, "_quant");
  const ValueId sums = edit_.value(name + "_sums", DataType::int32), floats = edit_.value(name + "_cast", DataType::float32);
  edit_.node(name, op, {x.codes, w.codes, x.zero, w.zero}, {sums}, std::move(attributes));
  Attributes to;
  to.set("to", static_cast<std::int64_t>(DataType::float32));
  edit_.node(name + "_cast", "Cast", {sums}, {floats}, std::move(to));
  const ValueId scales = edit_.op("Mul", {x.scale, w.scale}, name + "_scales_mul");
  const ValueId product = bias == kNoValue ? output : edit_.value(name + "_scaled", DataType::float32);
  edit_.node(name + "_output_scale_mul", "Mul", {floats, scales}, {product});
  if (bias != kNoValue) edit_.node(name + "_bias_add", "Add", {product, bias}, {output});
}

// Whether the value is the result of Equal, as numbers.
bool Rewriter::is_one_hot(ValueId v) const {
  const Graph& g = edit_.graph();
  const NodeId cast = g.value(v).producer;
  if (cast == kNoNode || !is_op(g.node(cast), "Cast")) return false;
  const NodeId equal = g.value(g.node(cast).inputs[0]).producer;
  return equal != kNoNode && is_op(g.node(equal), "Equal");
}

std::string Rewriter::product(NodeId id) {
  const Node n = edit_.graph().node(id);
  const Tensor* w = fixed_value(edit_.graph(), n.inputs[1]);
  if (options_.op_types_to_quantize.empty() && is_one_hot(n.inputs[0])) return "one-hot rows pick from its weights as they are";
  if (!is_f32(n.inputs[0]) || !is_f32(n.inputs[1])) return "its operands are not both float32";
  if (w == nullptr) {
    if (options_.extra.matmul_const_b_only.value_or(true)) return "its second operand is not a constant (MatMulConstBOnly)";
    const Quantized a = quantized(n.inputs[0]), b = quantized(n.inputs[1]);
    edit_.graph().remove_node(id);
    integer_product(n, "MatMulInteger", a, {b.codes, b.scale, b.zero}, kNoValue, {}, n.outputs[0]);
    return {};
  }
  if (w->rank() < 2) return "its weights are not a matrix";
  const auto axis = w->rank() == 2 && options_.per_channel ? std::optional<std::int64_t>(1) : std::nullopt;
  const StoredWeights stored = weights_.store(n.inputs[1], axis);
  const Quantized x = quantized(n.inputs[0]);
  edit_.graph().remove_node(id);
  integer_product(n, "MatMulInteger", x, stored, kNoValue, {}, n.outputs[0]);
  return {};
}

std::string Rewriter::gemm(NodeId id) {
  const Node n = edit_.graph().node(id);
  const Tensor* w = fixed_value(edit_.graph(), n.inputs[1]);
  if (!is_f32(n.inputs[0])) return "it does not compute in float32";
  if (w == nullptr || w->rank() != 2) return "its weights are not a constant matrix";
  const float alpha = n.attributes.get_float("alpha", 1), beta = n.attributes.get_float("beta", 1);
  if (n.attributes.get_int("transA", 0) != 0) return "its first operand is transposed";
  if (alpha != 1) return "its product is scaled (alpha)";
  ValueId bias = input_of(n, 2);
  if (bias != kNoValue && beta != 1) return "its bias is scaled (beta)";
  const bool trans = n.attributes.get_int("transB", 0) != 0;
  const auto axis = options_.per_channel ? std::optional<std::int64_t>(1) : std::nullopt;
  const StoredWeights stored = trans ? weights_.store_transposed(n.inputs[1], axis) : weights_.store(n.inputs[1], axis);
  const Quantized x = quantized(n.inputs[0]);
  edit_.graph().remove_node(id);
  integer_product(n, "MatMulInteger", x, stored, bias, {}, n.outputs[0]);
  return {};
}

std::string Rewriter::conv(NodeId id) {
  const Node n = edit_.graph().node(id);
  const Tensor* w = fixed_value(edit_.graph(), n.inputs[1]);
  if (!is_f32(n.inputs[0])) return "it does not compute in float32";
  if (w == nullptr || w->rank() < 3) return "its weights are not a constant";
  // Convolutions of bytes whose range is found in each run lose much accuracy, and gain no time. A scale for each kernel costs
  // nothing here.
  if (options_.op_types_to_quantize.empty()) {
    const auto axis = edit_.opset() >= 13 ? std::optional<std::int64_t>(0) : std::nullopt;
    const ValueId floats = weights_.dequantized(n.inputs[1], axis);
    edit_.graph().node(id).inputs[1] = floats;
    return {};
  }
  Shape spread(w->rank(), 1);
  spread[1] = w->dim(0);
  ValueId bias = input_of(n, 2);
  if (const Tensor* b = fixed_value(edit_.graph(), bias)) {
    bias = edit_.constant(name_of(n, "_bias"), b->reshaped(spread));
  } else if (bias != kNoValue) {
    return "its bias is not a constant";
  }
  StoredWeights stored = weights_.store_kernels(n.inputs[1], options_.per_channel);
  if (options_.per_channel) stored.scale = weights_.reshaped(stored.scale, spread);
  const Quantized x = quantized(n.inputs[0]);
  edit_.graph().remove_node(id);
  integer_product(n, "ConvInteger", x, stored, bias, n.attributes, n.outputs[0]);
  return {};
}

std::string Rewriter::lstm(NodeId id) {
  const Node n = edit_.graph().node(id);
  const Tensor *w = fixed_value(edit_.graph(), n.inputs[1]), *r = fixed_value(edit_.graph(), n.inputs[2]);
  if (!is_f32(n.inputs[0])) return "it does not compute in float32";
  if (w == nullptr || r == nullptr || w->rank() != 3 || r->rank() != 3) return "its weights are not constant";
  if (n.attributes.get_int("layout", 0) != 0) return "its batches come first (layout 1)";
  const StoredWeights input = weights_.store_gates(n.inputs[1]), recurrent = weights_.store_gates(n.inputs[2]);
  std::vector<ValueId> inputs = n.inputs;
  inputs.resize(8, kNoValue);
  inputs[1] = input.codes;
  inputs[2] = recurrent.codes;
  inputs.insert(inputs.end(), {input.scale, input.zero, recurrent.scale, recurrent.zero});
  Attributes attributes = n.attributes;
  attributes.erase("layout");
  edit_.graph().remove_node(id);
  edit_.node(name_of(n, "_quant"), "DynamicQuantizeLSTM", std::move(inputs), n.outputs, std::move(attributes), "com.microsoft");
  return {};
}

// No operator has quantised weights here: they are dequantised before it.
std::string Rewriter::gru(NodeId id) {
  const Node n = edit_.graph().node(id);
  for (const std::size_t i : {1, 2}) {
    const Tensor* w = fixed_value(edit_.graph(), n.inputs[i]);
    if (w == nullptr || w->rank() != 3 || w->dtype() != DataType::float32) return "its weights are not float32 constants";
  }
  const auto axis = options_.per_channel && edit_.opset() >= 13 ? std::optional<std::int64_t>(1) : std::nullopt;
  for (const std::size_t i : {1, 2}) {
    const ValueId floats = weights_.dequantized(n.inputs[i], axis);
    edit_.graph().node(id).inputs[i] = floats;
  }
  return {};
}

std::string Rewriter::attention(NodeId id) {
  const Node n = edit_.graph().node(id);
  if (n.domain != "com.microsoft") return "only com.microsoft's has an integer form";
  const Tensor* w = fixed_value(edit_.graph(), n.inputs[1]);
  if (!is_f32(n.inputs[0]) || w == nullptr || w->rank() != 2) return "its weights are not a constant float32 matrix";
  if (n.attributes.has("qkv_hidden_sizes")) return "queries, keys and values have sizes of their own (qkv_hidden_sizes)";
  if (input_of(n, 2) == kNoValue || input_of(n, 5) != kNoValue || input_of(n, 6) != kNoValue) {
    return "it has no bias, or inputs that the integer form lacks";
  }
  const StoredWeights stored = weights_.store(n.inputs[1], options_.per_channel ? std::optional<std::int64_t>(1) : std::nullopt);
  const Quantized x = quantized(n.inputs[0]);
  std::vector<ValueId> inputs{x.codes, stored.codes, n.inputs[2], x.scale, stored.scale, input_of(n, 3), x.zero, stored.zero};
  if (input_of(n, 4) != kNoValue) inputs.push_back(n.inputs[4]);
  edit_.graph().remove_node(id);
  edit_.node(name_of(n, "_quant"), "QAttention", std::move(inputs), n.outputs, n.attributes, "com.microsoft");
  return {};
}

std::string Rewriter::embed_layer_norm(NodeId id) {
  const Node n = edit_.graph().node(id);
  if (n.inputs.size() > 8 || n.outputs.size() > 2) return "it has inputs or outputs that the integer form lacks";
  std::vector<ValueId> inputs = n.inputs;
  inputs.resize(18, kNoValue);
  for (std::size_t i = 2; i < 7; ++i) {
    if (n.inputs[i] == kNoValue) continue;
    if (fixed_value(edit_.graph(), n.inputs[i]) == nullptr || !is_f32(n.inputs[i])) return "its tables are not float32 constants";
  }
  for (std::size_t i = 2; i < 7; ++i) {
    if (n.inputs[i] == kNoValue) continue;
    const StoredWeights stored = weights_.store(n.inputs[i], {}, QuantType::quint8);
    inputs[i] = stored.codes;
    inputs[i + 6] = stored.scale;
    inputs[i + 11] = stored.zero;
  }
  edit_.graph().remove_node(id);
  edit_.node(name_of(n, "_quant"), "QEmbedLayerNormalization", std::move(inputs), n.outputs, n.attributes, "com.microsoft");
  return {};
}

// Rows of the table are taken as bytes, and become floats then.
std::string Rewriter::gather(NodeId id) {
  const Node n = edit_.graph().node(id);
  const Tensor* table = fixed_value(edit_.graph(), n.inputs[0]);
  if (table == nullptr || table->dtype() != DataType::float32) return "it does not gather from a float32 constant";
  constexpr std::int64_t kSmall = 1024;  // bytes: scales and a further node would be no gain
  if (static_cast<std::int64_t>(table->bytes()) < kSmall) return "its table is small";
  const StoredWeights stored = weights_.store(n.inputs[0], {});
  const ValueId codes = edit_.value(edit_.graph().value(n.outputs[0]).name + "_quantized", data_type(options_.weight_type));
  edit_.graph().remove_node(id);
  edit_.node(name_of(n, "_quant"), "Gather", {stored.codes, n.inputs[1]}, {codes}, n.attributes);
  edit_.node(name_of(n, "_DequantizeLinear"), "DequantizeLinear", {codes, stored.scale, stored.zero}, n.outputs);
  return {};
}

std::string Rewriter::rewrite(NodeId id, const std::string& op) {
  if (op == "MatMul") return product(id);
  if (op == "Gemm") return gemm(id);
  if (op == "Conv") return conv(id);
  if (op == "LSTM") return lstm(id);
  if (op == "GRU") return gru(id);
  if (op == "Attention") return attention(id);
  if (op == "EmbedLayerNormalization") return embed_layer_norm(id);
  return gather(id);
}

bool byte(QuantType type) { return type == QuantType::qint8 || type == QuantType::quint8; }

}  // namespace

std::vector<std::string> dynamic_operators() {
  return {"MatMul", "Gemm", "Conv", "LSTM", "GRU", "Attention", "EmbedLayerNormalization", "Gather"};
}

void shrink_tables(Model& model, const QuantOptions& options, QuantReport& report) {
  if (!options.op_types_to_quantize.empty() || !byte(options.weight_type)) return;
  DynamicQuantOptions own;
  static_cast<QuantOptions&>(own) = options;
  own.ignore_unknown = true;
  own.extra.enable_subgraph = false;
  const Choice choice(model.graph, own, {"Gather"}, false);
  QuantReport done;  // what takes no rows of a table is not worth a note
  Rewriter(model.graph, model.opsets[""], own, choice, done).run();
  for (std::int64_t i = 0; i < done.quantized; ++i) note_quantized(report, "Gather");
}

void make_dynamic(Model& model, const DynamicQuantOptions& options, QuantReport& report) {
  if (!byte(options.weight_type)) {
    fail(ErrorCode::invalid_argument, "dynamic quantisation supports weights of QInt8 or QUInt8, received {}",
         name(options.weight_type));
  }
  constexpr int kDynamicQuantizeLinear = 11;
  const int opset = model.opsets[""];
  if (opset < kDynamicQuantizeLinear) {
    fail(ErrorCode::invalid_argument, "the model has opset {}; quantising needs {} or newer", opset, kDynamicQuantizeLinear);
  }
  const Choice choice(model.graph, options, dynamic_operators(), options.extra.enable_subgraph);
  Rewriter(model.graph, opset, options, choice, report).run();
  for (const Node& n : model.graph.nodes()) {
    if (!n.removed && n.domain == "com.microsoft") model.opsets.try_emplace("com.microsoft", 1);
  }
  if (options.extra.enable_subgraph) model.opsets.try_emplace("com.microsoft", 1);
}

}  // namespace sdx::quantize
