#include "quantize/fixed/qdq.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "quantize/dynamic/dynamic.h"
#include "quantize/fixed/qdq_constants.h"
#include "quantize/model/edit.h"
#include "quantize/model/model_file.h"
#include "tensor/element.h"

namespace sdx::quantize {
namespace {

// The standard deviation of all finite values of float8 (e4m3fn), which "Distribution" gives activations of this type.
double float8_deviation() {
  double sum = 0;
  int count = 0;
  for (int exponent = 0; exponent < 16; ++exponent) {
    for (int mantissa = 0; mantissa < 8; ++mantissa) {
      if (exponent == 15 && mantissa == 7) continue;  // NaN
      const double x = exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8 + mantissa, exponent - 10);
      sum += 2 * x * x;
      count += 2;
    }
  }
  return std::sqrt(sum / count);
}

class Writer {
 public:
  Writer(Model& model, const StaticPlan& plan, const Calibration& calibration, const StaticQuantOptions& options,
         QuantReport& report)
      : edit_(model.graph, model.opsets[""]),
        constants_(edit_, options),
        plan_(plan),
        calibration_(calibration),
        o_(options),
        report_(report),
        quantized_(plan.nodes),
        readers_(model.graph) {}

  void run() {
    for (const ValueId v : plan_.activations) find_params(v);
    for (NodeId id = 0; id < plan_.nodes.size(); ++id) {
      if (plan_.nodes[id]) quantize_constants(id);
    }
    for (NodeId id = 0; id < plan_.nodes.size(); ++id) {
      if (plan_.nodes[id]) drop_bounds(id);
    }
    const Readers readers(edit_.graph());
    for (const ValueId v : plan_.activations) {
      if (params_.contains(v)) insert(v, readers.of(v));
    }
    for (NodeId id = 0; id < plan_.nodes.size(); ++id) {
      if (plan_.nodes[id]) note_quantized(report_, ops_[id]);
    }
  }

 private:
  struct Activation {
    QuantType type = QuantType::qint8;
    QuantParams params;
    ValueId root = kNoValue;  // whose scale and zero point it has: its own, or those of the value that it only moves
  };
  // The inputs of QuantizeLinear and DequantizeLinear besides their data.
  struct Operands {
    ValueId scale = kNoValue, zero = kNoValue;
  };

  // A bias and who reads it.
  struct Bias {
    NodeId reader = kNoNode;
    std::size_t input = 0;
    ValueId value = kNoValue;
  };

  const Activation* find_params(ValueId v);
  Activation params_for(ValueId v, const Range& range, const TensorQuantSettings* own) const;
  bool shares(ValueId v) const;
  void quantize_constants(NodeId id);
  void quantize_weights(NodeId id);
  std::vector<float> scales_of(ValueId v) const;
  Bias bias_of(NodeId id) const;
  Bias added_bias(NodeId id) const;
  void quantize_bias(NodeId id, const Bias& bias, float x_scale, const std::vector<float>& w_scales);
  void drop_bounds(NodeId id);
  bool bounds_hold(const Node& n, const Activation& a) const;
  void insert(ValueId v, const std::vector<NodeId>& readers);
  Operands operands_of(const Activation& a);
  Operands write_operands(const Activation& a, const std::string& name, const std::string& suffix);
  void quantize_into(ValueId codes, ValueId floats, const Operands& by, const std::string& name);
  ValueId dequantize(ValueId codes, const Operands& by, const std::string& name);
  ValueId converted(ValueId v, const TensorQuantConversion& to, ValueId floats);
  const TensorQuantOverride* override_of(ValueId v) const {
    const auto& all = o_.extra.tensor_quant_overrides;
    const auto at = all.find(edit_.graph().value(v).name);
    return at == all.end() ? nullptr : &at->second;
  }

  Editor edit_;
  ConstantWriter constants_;
  const StaticPlan& plan_;
  const Calibration& calibration_;
  const StaticQuantOptions& o_;
  QuantReport& report_;
  std::vector<bool> quantized_;
  Readers readers_;  // of the model as it came
  std::map<NodeId, std::string> ops_;
  std::map<ValueId, Activation> params_;
  std::map<ValueId, Operands> operands_;
};

Writer::Activation Writer::params_for(ValueId v, const Range& range, const TensorQuantSettings* own) const {
  const DataType floats = edit_.graph().value(v).type.elem;
  Activation a;
  a.root = v;
  a.type = own != nullptr ? own->quant_type.value_or(o_.activation_type) : o_.activation_type;
  const bool symmetric = o_.extra.activation_symmetric.value_or(a.type == QuantType::qfloat8e4m3fn);
  Range r = range;
  if (own != nullptr && !own->scale.empty()) {
    a.params = {scale_in(floats, own->scale[0]), own->zero_point.empty() ? 0 : own->zero_point[0]};
    return a;
  }
  if (own != nullptr && !own->rmin.empty()) r = {static_cast<double>(own->rmin[0]), static_cast<double>(own->rmax[0])};
  const bool reduce = own != nullptr && own->reduce_range.value_or(false);
  const bool mirrored = own != nullptr ? own->symmetric.value_or(symmetric) : symmetric;
  const bool restricted = o_.extra.activation_restricted_asymmetric && a.type == QuantType::quint8 && !mirrored && !reduce;
  a.params = restricted ? restricted_params_of(r, o_.extra.minimum_real_range)
                        : params_of(r, a.type, mirrored, reduce, o_.extra.minimum_real_range);
  const auto deviation = calibration_.deviations.find(edit_.graph().value(v).name);
  if (a.type == QuantType::qfloat8e4m3fn && deviation != calibration_.deviations.end() && deviation->second > 0) {
    a.params.scale = static_cast<float>(deviation->second / float8_deviation());
  }
  a.params.scale = scale_in(floats, a.params.scale);
  return a;
}

// Whether the options ask for nothing but a second type for the value: then it may share another value's scale.
bool Writer::shares(ValueId v) const {
  const TensorQuantOverride* own = override_of(v);
  if (own == nullptr) return true;
  const bool same_type = own->quant_type.value_or(o_.activation_type) == o_.activation_type;
  return same_type && own->convert && !own->symmetric && !own->reduce_range && own->rmin.empty() && own->scale.empty();
}

const Writer::Activation* Writer::find_params(ValueId v) {
  if (const auto at = params_.find(v); at != params_.end()) return &at->second;
  // Chains may be as long as the model: a walk, no recursion.
  ValueId root = v;
  for (auto like = plan_.like.find(root);
       like != plan_.like.end() && plan_.contains(like->second) && shares(root) && !params_.contains(root);
       like = plan_.like.find(root)) {
    root = like->second;
  }
  if (root != v) {
    const auto known = params_.find(root);
    const Activation* same = known != params_.end() ? &known->second : find_params(root);
    return same == nullptr ? nullptr : &(params_[v] = Activation(*same));
  }
  const auto range = calibration_.ranges.find(edit_.graph().value(v).name);
  if (range == calibration_.ranges.end()) {
    report_.warnings.push_back("no data reached '" + edit_.graph().value(v).name + "': it stays float");
    return nullptr;
  }
  return &(params_[v] = params_for(v, range->second, override_of(v)));
}

void Writer::quantize_constants(NodeId id) {
  const Node n = edit_.graph().node(id);
  ops_[id] = n.op_type;
  const StaticKind kind = static_kind(n);
  if (kind == StaticKind::weighted) {
    quantize_weights(id);
    return;
  }
  const std::size_t last = kind == StaticKind::norm ? 2 : kind == StaticKind::pointwise ? n.inputs.size() : 1;
  for (std::size_t i = kind == StaticKind::norm ? 1 : 0; i < last && i < n.inputs.size(); ++i) {
    const Tensor* t = fixed_value(edit_.graph(), n.inputs[i]);
    if (t == nullptr || !has_floats(edit_.graph(), n.inputs[i]) || t->size() == 0) continue;
    const ValueId floats = constants_.operand(n.inputs[i]).floats;
    edit_.graph().node(id).inputs[i] = floats;
  }
}

// The scales of an activation, or of codes that the model already had; none: the value is float.
std::vector<float> Writer::scales_of(ValueId v) const {
  const auto known = params_.find(v);
  return known != params_.end() ? std::vector{known->second.params.scale} : given_scales(edit_.graph(), v);
}

void Writer::quantize_weights(NodeId id) {
  const Node n = edit_.graph().node(id);
  const Bias b = bias_of(id);
  const std::vector<float> x = scales_of(n.inputs[0]);
  const float x_scale = x.size() == 1 ? x[0] : 0;
  const Tensor* w = fixed_value(edit_.graph(), n.inputs[1]);
  if (w == nullptr) {
    quantize_bias(id, b, x_scale, scales_of(n.inputs[1]));
    return;
  }
  const auto own_axis = o_.extra.qdq_op_type_per_channel_support_to_axis.find(n.op_type);
  std::optional<std::int64_t> axis;
  if (o_.per_channel && (w->rank() == 2 || n.op_type != "MatMul")) {
    axis = own_axis != o_.extra.qdq_op_type_per_channel_support_to_axis.end() ? own_axis->second : channel_axis(n, w->rank());
  }
  const Tensor* bias = b.value == kNoValue ? nullptr : fixed_value(edit_.graph(), b.value);
  const StoredFloats stored = constants_.weights(n.inputs[1], axis, bias, x_scale);
  edit_.graph().node(id).inputs[1] = stored.floats;
  quantize_bias(id, b, x_scale, stored.scales);
}

Writer::Bias Writer::bias_of(NodeId id) const {
  const Node& n = edit_.graph().node(id);
  return n.op_type == "MatMul" ? added_bias(id) : Bias{id, 2, input_of(n, 2)};
}

// The vector that an Add puts on a product with constant weights. ONNX Runtime makes Gemm of both before it looks for bytes, and
// its integer Gemm takes a bias of int32 alone: without it BERT-base takes 440 ms there instead of 57.
Writer::Bias Writer::added_bias(NodeId id) const {
  const Graph& g = edit_.graph();
  const Node& n = g.node(id);
  const ValueId product = n.outputs[0];
  const Tensor* w = fixed_value(g, n.inputs[1]);
  if (o_.quant_format != QuantFormat::qdq || w == nullptr || w->rank() != 2) return {};
  const NodeId reader = readers_.only(product);
  if (reader == kNoNode || plan_.contains(product)) return {};
  const Node& add = g.node(reader);
  if (!is_op(add, "Add") || plan_.nodes[reader] || add.inputs.size() != 2) return {};
  const std::size_t other = add.inputs[0] == product ? 1 : 0;
  const Tensor* bias = fixed_value(g, add.inputs[other]);
  if (bias == nullptr || bias->rank() != 1 || bias->size() != w->dim(1)) return {};
  return {reader, other, add.inputs[other]};
}

void Writer::quantize_bias(NodeId id, const Bias& at, float x_scale, const std::vector<float>& w_scales) {
  const Node n = edit_.graph().node(id);
  const ValueId b = at.value;
  const Tensor* bias = b == kNoValue ? nullptr : fixed_value(edit_.graph(), b);
  const bool whole = o_.activation_type != QuantType::qfloat8e4m3fn && o_.weight_type != QuantType::qfloat8e4m3fn;
  if (!o_.extra.quantize_bias || bias == nullptr || x_scale <= 0 || w_scales.empty() || !whole || !has_floats(edit_.graph(), b))
    return;
  // As weights, then.
  if (override_of(b) != nullptr) {
    edit_.graph().node(at.reader).inputs[at.input] = constants_.weights(b, {}, nullptr, 0).floats;
    return;
  }
  const std::int64_t count = bias->size();
  const bool vector = bias->rank() == 1 || (n.op_type == "Gemm" && bias->rank() == 2 && bias->dim(0) == 1);
  if (!vector || (w_scales.size() != 1 && w_scales.size() != static_cast<std::size_t>(count))) return;
  const ValueId stored = constants_.bias(b, bias->reshaped({count}), x_scale, w_scales);
  edit_.graph().node(at.reader).inputs[at.input] = stored;
}

// Whether codes cannot stand for values beyond the node's bounds.
bool Writer::bounds_hold(const Node& n, const Activation& a) const {
  if (a.type == QuantType::qfloat8e4m3fn) return false;
  const CodeRange codes = code_range(a.type, false, false);
  const auto scale = static_cast<double>(a.params.scale), zero = static_cast<double>(a.params.zero);
  const double slack = 1e-3 * scale;
  double low = 0, high = std::numeric_limits<double>::infinity();
  if (n.op_type == "Clip") {
    const auto bound = [&](std::size_t i, double otherwise) -> std::optional<double> {
      if (input_of(n, i) == kNoValue) return otherwise;
      const Tensor* t = fixed_value(edit_.graph(), n.inputs[i]);
      return t == nullptr || t->size() != 1 ? std::nullopt : std::optional(element_as_double(*t, 0));
    };
    const auto least = bound(1, -high), most = bound(2, high);
    if (!least || !most || n.version < 11) return false;
    low = *least;
    high = *most;
  }
  return (codes.low - zero) * scale >= low - slack && (codes.high - zero) * scale <= high + slack;
}

void Writer::drop_bounds(NodeId id) {
  Graph& g = edit_.graph();
  const Node n = g.node(id);
  if (static_kind(n) != StaticKind::bounding || o_.extra.qdq_keep_removable_activations) return;
  const NodeId before = g.value(n.inputs[0]).producer;
  const auto a = params_.find(n.outputs[0]);
  // If its input is quantised, too, the node stands between two values with codes of their own.
  if (before == kNoNode || a == params_.end() || plan_.contains(n.inputs[0]) || !bounds_hold(n, a->second)) return;
  if (before >= plan_.nodes.size() || !plan_.nodes[before]) return;
  const ValueId raw = n.inputs[0];
  g.remove_node(id);
  Node changed = g.node(before);
  g.remove_node(before);
  std::replace(changed.outputs.begin(), changed.outputs.end(), raw, n.outputs[0]);
  quantized_.resize(g.nodes().size() + 1);
  quantized_[g.add_node(std::move(changed))] = true;
  quantized_[before] = false;
}

Writer::Operands Writer::write_operands(const Activation& a, const std::string& name, const std::string& suffix) {
  const DataType floats = edit_.graph().value(a.root).type.elem;
  return {edit_.constant(name + "_scale" + suffix, float_scalar(a.params.scale, floats)),
          edit_.constant(name + "_zero_point" + suffix, code_scalar(a.type, a.params.zero))};
}

Writer::Operands Writer::operands_of(const Activation& a) {
  const auto [at, added] = operands_.try_emplace(a.root);
  if (added) at->second = write_operands(a, edit_.graph().value(a.root).name, "");
  return at->second;
}

void Writer::quantize_into(ValueId codes, ValueId floats, const Operands& by, const std::string& name) {
  edit_.node(name, "QuantizeLinear", {floats, by.scale, by.zero}, {codes}, {},
             o_.extra.use_qdq_contrib_ops ? "com.microsoft" : "");
}

ValueId Writer::dequantize(ValueId codes, const Operands& by, const std::string& name) {
  const ValueId out = edit_.value(name + "_DequantizeLinear_Output", edit_.graph().value(by.scale).type.elem);
  edit_.node(name + "_DequantizeLinear", "DequantizeLinear", {codes, by.scale, by.zero}, {out}, {},
             o_.extra.use_qdq_contrib_ops ? "com.microsoft" : "");
  return out;
}

// Quantises `floats`, which were quantised once, in the second type.
ValueId Writer::converted(ValueId v, const TensorQuantConversion& to, ValueId floats) {
  const std::string name = edit_.graph().value(v).name, second = name + "_convert";
  const auto range = calibration_.ranges.find(name);
  const Activation a = params_for(v, range == calibration_.ranges.end() ? Range{} : range->second, &to);
  const Operands by = write_operands(a, name, "_convert");
  const ValueId codes = edit_.value(second + "_QuantizeLinear_Output", data_type(a.type));
  quantize_into(codes, floats, by, second + "_QuantizeLinear");
  return dequantize(codes, by, second);
}

bool receives(const TensorQuantConversion& to, const std::string& node) {
  return to.recv_nodes.empty() || std::find(to.recv_nodes.begin(), to.recv_nodes.end(), node) != to.recv_nodes.end();
}

void replace_inputs(Graph& g, const std::vector<NodeId>& nodes, ValueId from, ValueId to) {
  for (const NodeId id : nodes) std::replace(g.node(id).inputs.begin(), g.node(id).inputs.end(), from, to);
}

void Writer::insert(ValueId v, const std::vector<NodeId>& readers) {
  Graph& g = edit_.graph();
  const std::string name = g.value(v).name;
  const Activation& a = params_.at(v);
  const NodeId producer = g.value(v).producer;
  const auto is_quantized = [&](NodeId id) { return id < quantized_.size() && quantized_[id]; };
  const bool from_quantized = producer != kNoNode && is_quantized(producer);
  const TensorQuantOverride* asked = override_of(v);
  const TensorQuantConversion* to = asked != nullptr && asked->convert ? &*asked->convert : nullptr;
  std::vector<NodeId> own, second;
  for (const NodeId r : readers) {
    if (is_quantized(r)) (to != nullptr && receives(*to, node_name(g, g.node(r))) ? second : own).push_back(r);
  }
  if (!from_quantized && own.empty() && second.empty()) return;
  const Operands by = operands_of(a);
  const ValueId codes = edit_.value(name + "_QuantizeLinear_Output", data_type(a.type));
  const bool all_second = from_quantized && to != nullptr && own.empty();
  ValueId floats = kNoValue;
  if (from_quantized) {
    floats = dequantize(codes, by, name);
    g.replace_uses(v, all_second ? converted(v, *to, floats) : floats);
  }
  const ValueId before = from_quantized ? floats : v;
  const bool apart = o_.extra.dedicated_qdq_pair && (!from_quantized || own.size() > 1);
  for (const NodeId r : own) {
    if (apart || floats == kNoValue) floats = dequantize(codes, by, name);
    replace_inputs(g, {r}, before, floats);
  }
  if (!all_second && !second.empty()) replace_inputs(g, second, before, converted(v, *to, dequantize(codes, by, name)));
  quantize_into(codes, v, by, name + "_QuantizeLinear");
}

}  // namespace

int opset_for(const StaticQuantOptions& options) {
  const auto needs = [](QuantType t) {
    switch (t) {
      case QuantType::qint8:
      case QuantType::quint8: return 13;
      case QuantType::qfloat8e4m3fn: return 19;
      default: return 21;
    }
  };
  if (options.extra.use_qdq_contrib_ops) return 13;
  int opset = std::max(needs(options.activation_type), needs(options.weight_type));
  for (const auto& [name, own] : options.extra.tensor_quant_overrides) {
    if (own.quant_type) opset = std::max(opset, needs(*own.quant_type));
    if (own.convert && own.convert->quant_type) opset = std::max(opset, needs(*own.convert->quant_type));
  }
  return opset;
}

void settle_for(Model& model, const StaticQuantOptions& options, QuantReport& report) {
  constexpr int kHalf = 19;
  const auto& values = model.graph.values();
  const bool halves =
      std::any_of(values.begin(), values.end(), [](const ValueInfo& v) { return v.type.elem == DataType::float16; });
  if (halves && options.quant_format == QuantFormat::qdq && !options.extra.use_qdq_contrib_ops && model.opsets[""] < kHalf) {
    raise_opset(model, kHalf, report);
  }
}

std::vector<std::string> observed_names(const Graph& graph, const StaticPlan& plan) {
  std::vector<std::string> names;
  for (const ValueId v : plan.activations) names.push_back(graph.value(v).name);
  return names;
}

namespace {

void check_settings(const std::string& tensor, const TensorQuantSettings& own, const StaticQuantOptions& o) {
  if (own.rmin.size() != own.rmax.size()) {
    fail(ErrorCode::invalid_argument, "the range of '{}' needs both ends, rmin and rmax", tensor);
  }
  for (std::size_t i = 0; i < own.rmin.size(); ++i) {
    if (std::isfinite(own.rmin[i]) && std::isfinite(own.rmax[i]) && own.rmin[i] <= own.rmax[i]) continue;
    fail(ErrorCode::invalid_argument, "the range of '{}' is {} to {}; expected two numbers, the smaller first", tensor,
         own.rmin[i], own.rmax[i]);
  }
  if (!own.zero_point.empty() && own.zero_point.size() != own.scale.size()) {
    fail(ErrorCode::invalid_argument, "'{}' has {} scales and {} zero points", tensor, own.scale.size(), own.zero_point.size());
  }
  for (const float s : own.scale) {
    if (!(std::isfinite(s) && s > 0)) fail(ErrorCode::invalid_argument, "a scale of '{}' is {}; expected more than 0", tensor, s);
  }
  for (const std::int64_t z : own.zero_point) {
    // The wider range of the types of activations and weights.
    const CodeRange a = code_range(own.quant_type.value_or(o.activation_type), false, false);
    const CodeRange w = code_range(own.quant_type.value_or(o.weight_type), false, false);
    const double low = std::min(a.low, w.low), high = std::max(a.high, w.high);
    if (static_cast<double>(z) < low || static_cast<double>(z) > high) {
      fail(ErrorCode::invalid_argument, "a zero point of '{}' is {}; expected {} to {}", tensor, z, low, high);
    }
  }
}

}  // namespace

void check_static(const StaticQuantOptions& o) {
  for (const auto& [tensor, own] : o.extra.tensor_quant_overrides) {
    check_settings(tensor, own, o);
    if (own.convert) check_settings(tensor, *own.convert, o);
  }
  const auto few = [](QuantType t) { return t == QuantType::qint4 || t == QuantType::quint4; };
  const auto byte = [](QuantType t) { return t == QuantType::qint8 || t == QuantType::quint8; };
  if (few(o.activation_type)) {
    fail(ErrorCode::invalid_argument, "activations of {}: expected QInt8, QUInt8, QInt16, QUInt16 or QFLOAT8E4M3FN",
         name(o.activation_type));
  }
  const bool small_floats = o.activation_type == QuantType::qfloat8e4m3fn;
  if (small_floats != (o.weight_type == QuantType::qfloat8e4m3fn)) {
    fail(ErrorCode::invalid_argument, "QFLOAT8E4M3FN is for weights and activations together, received {} and {}",
         name(o.weight_type), name(o.activation_type));
  }
  if (o.quant_format == QuantFormat::qoperator && !(byte(o.activation_type) && byte(o.weight_type))) {
    fail(ErrorCode::invalid_argument, "QOperator supports 8-bit types only, received {} and {}; QDQ supports the others",
         name(o.activation_type), name(o.weight_type));
  }
  // Convolutions of int8 with uint8 weights are in no engine.
  if (o.activation_type == QuantType::qint8 && o.weight_type == QuantType::quint8) {
    fail(ErrorCode::invalid_argument, "activations of QInt8 go with weights of QInt8, received QUInt8");
  }
}

void make_qdq(Model& model, const StaticPlan& plan, const Calibration& calibration, const StaticQuantOptions& options,
              QuantReport& report) {
  const int needed = opset_for(options);
  if (model.opsets[""] < needed) {
    fail(ErrorCode::invalid_argument, "the model has opset {}, and quantising as asked needs {}", model.opsets[""], needed);
  }
  Writer(model, plan, calibration, options, report).run();
  if (options.extra.use_qdq_contrib_ops) model.opsets.try_emplace("com.microsoft", 1);
}

void make_static(Model& model, const StaticPlan& plan, const Calibration& calibration, const StaticQuantOptions& options,
                 QuantReport& report) {
  shrink_tables(model, options, report);
  make_qdq(model, plan, calibration, options, report);
  if (options.quant_format == QuantFormat::qoperator) make_qoperator(model);
}

}  // namespace sdx::quantize
