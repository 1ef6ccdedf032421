#include "quantize/fixed/smooth.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "ops/infer.h"
#include "quantize/fixed/plan.h"
#include "quantize/model/edit.h"
#include "quantize/model/model_file.h"
#include "quantize/weights/activations.h"

namespace sdx::quantize {
namespace {

constexpr float kLargestDivisor = 1e4F;

using Divisors = std::vector<float>;

bool transposed(const Node& n) { return n.op_type == "Gemm" && n.attributes.get_int("transB", 0) != 0; }

// The extent of the input's last axis that the node's constant matrix multiplies; 0: it is no such node.
std::int64_t depth(const Graph& g, const Node& n) {
  if (!is_op(n, "MatMul") && !is_op(n, "Gemm")) return 0;
  const Tensor* w = fixed_value(g, input_of(n, 1));
  if (w == nullptr || w->rank() != 2 || w->dtype() != DataType::float32 || w->size() == 0) return 0;
  if (fixed_value(g, n.inputs[0]) != nullptr || g.value(n.inputs[0]).type.elem != DataType::float32) return 0;
  if (n.op_type == "Gemm" && n.attributes.get_int("transA", 0) != 0) return 0;
  return w->dim(transposed(n) ? 1 : 0);
}

// Elements times or over the divisor of their place along the last axis, or, `rows`, along the one before it.
Tensor scaled(const Tensor& t, const Divisors& d, bool rows, bool multiply) {
  const Tensor from = t.aligned();
  Tensor out(DataType::float32, t.shape());
  const auto x = from.values<float>();
  const auto y = out.mutable_values<float>();
  const std::size_t inner = rows ? static_cast<std::size_t>(t.shape().back()) : 1;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const float by = d[i / inner % d.size()];
    y[i] = multiply ? x[i] * by : x[i] / by;
  }
  return out;
}

// Puts divisors of a value's last axis into the nodes before it.
class Folder {
 public:
  Folder(Graph& graph, const Divisors& divisors) : g_(graph), d_(divisors), readers_(graph) {}

  bool run(ValueId v) {
    if (!fold(v)) return false;
    for (const Change& c : changes_) {
      const ValueId made = g_.add_constant(g_.value(g_.node(c.node).inputs[c.input]).name + "_smooth", c.tensor);
      g_.node(c.node).inputs[c.input] = made;
    }
    return true;
  }

 private:
  struct Change {
    NodeId node = kNoNode;
    std::size_t input = 0;
    Tensor tensor;
  };

  std::int64_t extent() const { return static_cast<std::int64_t>(d_.size()); }

  // Divides a constant whose last axis is that of the value; absent ones need no change.
  bool divide(NodeId id, std::size_t input) {
    const ValueId v = input_of(g_.node(id), input);
    if (v == kNoValue) return true;
    const Tensor* t = fixed_value(g_, v);
    if (t == nullptr || t->dtype() != DataType::float32) return false;
    if (t->size() == 1) {
      Tensor row(DataType::float32, {extent()});
      std::fill_n(row.mutable_values<float>().begin(), d_.size(), t->aligned().values<float>()[0]);
      changes_.push_back({id, input, scaled(row, d_, false, false)});
      return true;
    }
    if (t->rank() == 0 || t->shape().back() != extent()) return false;
    changes_.push_back({id, input, scaled(*t, d_, false, false)});
    return true;
  }

  bool read_once(ValueId v) const { return readers_.only(v) != kNoNode; }

  bool fold(ValueId v) {
    const NodeId id = g_.value(v).producer;
    if (id == kNoNode) return false;
    const Node& n = g_.node(id);
    if (n.outputs[0] != v) return false;
    if (norm(id, n)) return true;
    if (is_op(n, "Relu")) return read_once(n.inputs[0]) && fold(n.inputs[0]);
    if (is_op(n, "Mul") || is_op(n, "Add")) {
      const std::size_t constant = fixed_value(g_, n.inputs[1]) != nullptr ? 1 : 0;
      const ValueId other = n.inputs[1 - constant];
      // The result has the other operand's extent: a constant may not be what gives it.
      const Type& type = g_.value(other).type;
      if (fixed_value(g_, n.inputs[constant]) == nullptr || !type.shape || type.shape->empty()) return false;
      if (!type.shape->back().is_const() || type.shape->back().value() != extent() || !divide(id, constant)) return false;
      return n.op_type == "Mul" || (read_once(other) && fold(other));
    }
    if (is_op(n, "MatMul")) return fixed_value(g_, n.inputs[1]) != nullptr && matrix(n) && divide(id, 1);
    if (is_op(n, "Gemm") && matrix(n)) {
      if (!transposed(n)) return divide(id, 1) && divide(id, 2);
      changes_.push_back({id, 1, scaled(*fixed_value(g_, n.inputs[1]), d_, true, false)});
      return divide(id, 2);
    }
    return false;
  }

  bool matrix(const Node& n) const {
    const Tensor* w = fixed_value(g_, n.inputs[1]);
    return w != nullptr && w->rank() == 2 && w->dtype() == DataType::float32 && w->dim(transposed(n) ? 0 : 1) == extent();
  }

  // Scale and bias of a norm over the last axis.
  bool norm(NodeId id, const Node& n) {
    const bool microsoft = n.domain == "com.microsoft";
    if (microsoft && n.op_type == "SkipLayerNormalization") return divide(id, 2) && divide(id, 3);
    if (microsoft && n.op_type == "SkipSimplifiedLayerNormalization") return divide(id, 2);
    if (!n.domain.empty() || (n.op_type != "LayerNormalization" && n.op_type != "RMSNormalization")) return false;
    const Tensor* scale = fixed_value(g_, input_of(n, 1));
    return scale != nullptr && scale->rank() == 1 && scale->size() == extent() && divide(id, 1) && divide(id, 2);
  }

  Graph& g_;
  const Divisors& d_;
  Readers readers_;
  std::vector<Change> changes_;
};

// The divisor of each channel, for all nodes that read the input.
Divisors divisors_of(const Graph& g, const std::vector<NodeId>& readers, const std::vector<float>& inputs, double alpha) {
  std::vector<float> weights(inputs.size(), 0.0F);
  for (const NodeId id : readers) {
    const Node& n = g.node(id);
    const Tensor w = fixed_value(g, n.inputs[1])->aligned();
    const auto x = w.values<float>();
    const auto columns = static_cast<std::size_t>(w.dim(1));
    for (std::size_t i = 0; i < x.size(); ++i) {
      float& most = weights[transposed(n) ? i % columns : i / columns];
      most = std::max(most, std::fabs(x[i]));
    }
  }
  Divisors out(inputs.size(), 1.0F);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const double a = static_cast<double>(inputs[i]), w = static_cast<double>(weights[i]);
    const auto d = static_cast<float>(std::pow(a, alpha) / std::pow(w, 1 - alpha));
    if (a > 0 && w > 0 && std::isfinite(d) && d > 0) out[i] = std::clamp(d, 1 / kLargestDivisor, kLargestDivisor);
  }
  return out;
}

}  // namespace

std::int64_t smooth(Model& model, CalibrationDataReader& data, const StaticQuantOptions& options) {
  const double alpha = options.extra.smooth_quant_alpha;
  if (!(alpha >= 0 && alpha <= 1)) fail(ErrorCode::invalid_argument, "SmoothQuantAlpha is {}; expected 0 to 1", alpha);
  Graph& g = model.graph;
  const Choice choice(g, options, static_operators(), false);
  std::map<ValueId, std::vector<NodeId>> readers;
  for (NodeId id = 0; id < g.nodes().size(); ++id) {
    if (!choice.wants(g, g.node(id)) || depth(g, g.node(id)) == 0) continue;
    auto& group = readers[g.node(id).inputs[0]];
    if (group.empty() || depth(g, g.node(group[0])) == depth(g, g.node(id))) group.push_back(id);
  }
  if (readers.empty()) return 0;
  std::vector<ValueId> values;
  std::vector<std::int64_t> extents;
  for (const auto& [value, group] : readers) {
    values.push_back(value);
    extents.push_back(depth(g, g.node(group[0])));
  }
  SessionOptions session;
  session.providers = {"cpu"};
  session.custom_ops = options.custom_ops;
  data.rewind();
  const auto magnitudes = largest_magnitudes(model, values, extents, all_batches(&data), session);
  Editor edit(g, model.opsets[""]);
  std::int64_t count = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const ValueId x = values[i];
    const std::vector<NodeId>& group = readers[x];
    if (magnitudes[i].size() != static_cast<std::size_t>(extents[i])) continue;  // no data reached it
    const Divisors d = divisors_of(g, group, magnitudes[i], alpha);
    const bool alone = Readers(g).of(x).size() == group.size() && !is_output(g, x);
    ValueId smoothed = x;
    if (!(options.extra.smooth_quant_folding && alone && Folder(g, d).run(x))) {
      Tensor factors(DataType::float32, {extents[i]});
      for (std::size_t j = 0; j < d.size(); ++j) factors.mutable_values<float>()[j] = 1 / d[j];
      const std::string name = g.value(x).name;
      const ValueId by = edit.constant(name + "_smooth_factor", std::move(factors));
      smoothed = edit.op("Mul", {x, by}, name + "_smooth");
      g.value(smoothed).type = g.value(x).type;
    }
    for (const NodeId id : group) {
      const ValueId old = g.node(id).inputs[1];
      const bool turned = transposed(g.node(id));
      const ValueId w = edit.constant(g.value(old).name + "_smooth", scaled(*fixed_value(g, old), d, !turned, true));
      g.node(id).inputs[0] = smoothed;
      g.node(id).inputs[1] = w;
      ++count;
    }
  }
  g.compact();
  g.drop_unused_values();
  ops::infer_in_place(g, {.allow_unknown = true});
  return count;
}

}  // namespace sdx::quantize
