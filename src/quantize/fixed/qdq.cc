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

// The standard deviation of all finite values of float8 (e4m3fn): what "Distribution" gives activations of this type.
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
    const auto uses = edit_.graph().uses();
    for (const ValueId v : plan_.activations) {
      if (params_.contains(v)) insert(v, uses[v]);
    }
    for (NodeId id = 0; id < plan_.nodes.size(); ++id) {
      if (plan_.nodes[id]) note_quantized(report_, ops_[id]);
    }
  }

 private:
  struct Activation {
    QuantType type = QuantType::qint8;
    QuantParams params;
  };

  // A bias and who reads it.
  struct Bias {
    NodeId reader = kNoNode;
    std::size_t input = 0;
    ValueId value = kNoValue;
  };

  const Activation* find_params(ValueId v);
  Activation params_for(ValueId v, const Range& range) const;
  void quantize_constants(NodeId id);
  Bias bias_of(NodeId id) const;
  Bias added_bias(NodeId id) const;
  void quantize_bias(NodeId id, const Bias& bias, const StoredFloats& w);
  void drop_bounds(NodeId id);
  bool bounds_hold(const Node& n, const Activation& a) const;
  void insert(ValueId v, const std::vector<NodeId>& readers);
  ValueId dequantize(ValueId codes, ValueId scale, ValueId zero, const std::string& name);
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
};

Writer::Activation Writer::params_for(ValueId v, const Range& range) const {
  const TensorQuantOverride* own = override_of(v);
  Activation a;
  a.type = own != nullptr ? own->quant_type.value_or(o_.activation_type) : o_.activation_type;
  const bool symmetric = o_.extra.activation_symmetric.value_or(a.type == QuantType::qfloat8e4m3fn);
  Range r = range;
  if (own != nullptr && !own->scale.empty()) {
    a.params = {own->scale[0], own->zero_point.empty() ? 0 : own->zero_point[0]};
    return a;
  }
  if (own != nullptr && own->rmin && own->rmax) r = {static_cast<double>(*own->rmin), static_cast<double>(*own->rmax)};
  const bool reduce = own != nullptr && own->reduce_range.value_or(false);
  a.params =
      params_of(r, a.type, own != nullptr ? own->symmetric.value_or(symmetric) : symmetric, reduce, o_.extra.minimum_real_range);
  const auto deviation = calibration_.deviations.find(edit_.graph().value(v).name);
  if (a.type == QuantType::qfloat8e4m3fn && deviation != calibration_.deviations.end() && deviation->second > 0) {
    a.params.scale = static_cast<float>(deviation->second / float8_deviation());
  }
  return a;
}

const Writer::Activation* Writer::find_params(ValueId v) {
  if (const auto at = params_.find(v); at != params_.end()) return &at->second;
  // Chains may be as long as the model: a walk, no recursion.
  ValueId root = v;
  for (auto like = plan_.like.find(root);
       like != plan_.like.end() && plan_.contains(like->second) && override_of(root) == nullptr && !params_.contains(root);
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
  return &(params_[v] = params_for(v, range->second));
}

void Writer::quantize_constants(NodeId id) {
  const Node n = edit_.graph().node(id);
  ops_[id] = n.op_type;
  const StaticKind kind = static_kind(n);
  if (kind == StaticKind::weighted) {
    for (const std::size_t i : {std::size_t{1}}) {
      const Tensor* w = constant_of(edit_.graph(), n.inputs[i]);
      if (w == nullptr) continue;
      const auto own_axis = o_.extra.qdq_op_type_per_channel_support_to_axis.find(n.op_type);
      std::optional<std::int64_t> axis;
      if (o_.per_channel && (w->rank() == 2 || n.op_type != "MatMul")) {
        axis = own_axis != o_.extra.qdq_op_type_per_channel_support_to_axis.end() ? own_axis->second : channel_axis(n, w->rank());
      }
      const Bias b = bias_of(id);
      const Tensor* bias = b.value == kNoValue ? nullptr : constant_of(edit_.graph(), b.value);
      const auto x = params_.find(n.inputs[0]);
      const float x_scale = x == params_.end() ? 0 : x->second.params.scale;
      const StoredFloats stored = constants_.weights(n.inputs[i], axis, bias, x_scale);
      edit_.graph().node(id).inputs[i] = stored.floats;
      quantize_bias(id, b, stored);
    }
    return;
  }
  const std::size_t last = kind == StaticKind::norm ? 2 : kind == StaticKind::pointwise ? n.inputs.size() : 1;
  for (std::size_t i = kind == StaticKind::norm ? 1 : 0; i < last && i < n.inputs.size(); ++i) {
    const Tensor* t = constant_of(edit_.graph(), n.inputs[i]);
    if (t == nullptr || t->dtype() != DataType::float32 || t->size() == 0) continue;
    const ValueId floats = constants_.operand(n.inputs[i]).floats;
    edit_.graph().node(id).inputs[i] = floats;
  }
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
  const Tensor* w = constant_of(g, n.inputs[1]);
  if (o_.quant_format != QuantFormat::qdq || w == nullptr || w->rank() != 2) return {};
  const NodeId reader = readers_.only(product);
  if (reader == kNoNode || plan_.contains(product)) return {};
  const Node& add = g.node(reader);
  if (!is_op(add, "Add") || plan_.nodes[reader] || add.inputs.size() != 2) return {};
  const std::size_t other = add.inputs[0] == product ? 1 : 0;
  const Tensor* bias = constant_of(g, add.inputs[other]);
  if (bias == nullptr || bias->rank() != 1 || bias->size() != w->dim(1)) return {};
  return {reader, other, add.inputs[other]};
}

void Writer::quantize_bias(NodeId id, const Bias& at, const StoredFloats& w) {
  const Node n = edit_.graph().node(id);
  const ValueId b = at.value;
  const Tensor* bias = b == kNoValue ? nullptr : constant_of(edit_.graph(), b);
  const auto x = params_.find(n.inputs[0]);
  const bool whole = o_.activation_type != QuantType::qfloat8e4m3fn && o_.weight_type != QuantType::qfloat8e4m3fn;
  if (!o_.extra.quantize_bias || bias == nullptr || x == params_.end() || !whole || bias->dtype() != DataType::float32) return;
  const std::int64_t count = bias->size();
  const bool vector = bias->rank() == 1 || (n.op_type == "Gemm" && bias->rank() == 2 && bias->dim(0) == 1);
  if (!vector || (w.scales.size() != 1 && w.scales.size() != static_cast<std::size_t>(count))) return;
  const ValueId stored = constants_.bias(b, bias->reshaped({count}), x->second.params.scale, w.scales);
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
      const Tensor* t = constant_of(edit_.graph(), n.inputs[i]);
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
  // Where its input is quantised too, the node stands between two values with codes of their own.
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

ValueId Writer::dequantize(ValueId codes, ValueId scale, ValueId zero, const std::string& name) {
  const ValueId out = edit_.value(name + "_DequantizeLinear_Output", DataType::float32);
  edit_.node(name + "_DequantizeLinear", "DequantizeLinear", {codes, scale, zero}, {out}, {},
             o_.extra.use_qdq_contrib_ops ? "com.microsoft" : "");
  return out;
}

void Writer::insert(ValueId v, const std::vector<NodeId>& readers) {
  Graph& g = edit_.graph();
  const std::string name = g.value(v).name;
  const Activation& a = params_.at(v);
  const ValueId scale = edit_.constant(name + "_scale", float_scalar(a.params.scale));
  const ValueId zero = edit_.constant(name + "_zero_point", code_scalar(a.type, a.params.zero));
  const ValueId codes = edit_.value(name + "_QuantizeLinear_Output", data_type(a.type));
  const NodeId producer = g.value(v).producer;
  const auto is_quantized = [&](NodeId id) { return id < quantized_.size() && quantized_[id]; };
  const bool from_quantized = producer != kNoNode && is_quantized(producer);
  std::vector<NodeId> own;
  for (const NodeId r : readers) {
    if (is_quantized(r)) own.push_back(r);
  }
  ValueId floats = kNoValue;
  if (from_quantized) {
    floats = dequantize(codes, scale, zero, name);
    g.replace_uses(v, floats);
  }
  for (std::size_t i = 0; i < own.size(); ++i) {
    if (!from_quantized && (i == 0 || o_.extra.dedicated_qdq_pair)) floats = dequantize(codes, scale, zero, name);
    if (from_quantized && o_.extra.dedicated_qdq_pair && own.size() > 1) {
      const ValueId dedicated = dequantize(codes, scale, zero, name);
      std::vector<ValueId>& in = g.node(own[i]).inputs;
      std::replace(in.begin(), in.end(), floats, dedicated);
    }
    std::vector<ValueId>& in = g.node(own[i]).inputs;
    std::replace(in.begin(), in.end(), v, floats);
  }
  if (!from_quantized && own.empty()) return;
  edit_.node(name + "_QuantizeLinear", "QuantizeLinear", {v, scale, zero}, {codes}, {},
             o_.extra.use_qdq_contrib_ops ? "com.microsoft" : "");
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
  }
  return opset;
}

std::vector<std::string> observed_names(const Graph& graph, const StaticPlan& plan) {
  std::vector<std::string> names;
  for (const ValueId v : plan.activations) names.push_back(graph.value(v).name);
  return names;
}

namespace {

void check_override(const std::string& tensor, const TensorQuantOverride& own, const StaticQuantOptions& o) {
  if (own.rmin.has_value() != own.rmax.has_value()) {
    fail(ErrorCode::invalid_argument, "the range of '{}' needs both ends, rmin and rmax", tensor);
  }
  if (own.rmin && !(std::isfinite(*own.rmin) && std::isfinite(*own.rmax) && *own.rmin <= *own.rmax)) {
    fail(ErrorCode::invalid_argument, "the range of '{}' is {} to {}; expected two numbers, the smaller first", tensor, *own.rmin,
         *own.rmax);
  }
  if (!own.zero_point.empty() && own.zero_point.size() != own.scale.size()) {
    fail(ErrorCode::invalid_argument, "'{}' has {} scales and {} zero points", tensor, own.scale.size(), own.zero_point.size());
  }
  for (const float s : own.scale) {
    if (!(std::isfinite(s) && s > 0)) fail(ErrorCode::invalid_argument, "a scale of '{}' is {}; expected more than 0", tensor, s);
  }
  for (const std::int64_t z : own.zero_point) {
    // Of activations or of weights: the wider.
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
  for (const auto& [tensor, own] : o.extra.tensor_quant_overrides) check_override(tensor, own, o);
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
