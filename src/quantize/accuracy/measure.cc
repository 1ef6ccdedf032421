#include "quantize/accuracy/measure.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "quantize/model/edit.h"
#include "quantize/model/model_file.h"
#include "tensor/element.h"

namespace sdx::quantize {
namespace {

// Outputs of at least this many scores for each row are compared by their largest element.
constexpr std::int64_t kScores = 3;

bool is_number(DataType t) { return t != DataType::string && t != DataType::boolean && t != DataType::undefined; }

struct Watched {
  std::string name, node, op;
  std::string there;  // its name in the other model: the result of DequantizeLinear, if it is quantised
  bool quantized = false;
};

// Float values that both models have, in the order of the first one's nodes.
std::vector<Watched> common_values(const Graph& a, const Graph& b) {
  std::vector<Watched> out;
  for (const Node& n : a.nodes()) {
    if (n.removed || n.op_type == "Constant") continue;
    for (const ValueId v : n.outputs) {
      if (v == kNoValue || !is_float(a.value(v).type.elem)) continue;
      const auto plain = b.find(a.value(v).name), dequantized_value = b.find(a.value(v).name + "_DequantizeLinear_Output");
      const auto there = dequantized_value ? dequantized_value : plain;
      if (!there || b.value(*there).constant || !is_float(b.value(*there).type.elem)) continue;
      const NodeId from = plain ? b.value(*plain).producer : kNoNode;
      Watched w{a.value(v).name, node_name(a, n), n.op_type, b.value(*there).name, dequantized_value.has_value()};
      if (from != kNoNode) {
        const Node& m = b.node(from);
        const auto dequantized = [&](ValueId x) {
          return x != kNoValue && b.value(x).producer != kNoNode && b.node(b.value(x).producer).op_type == "DequantizeLinear";
        };
        w.quantized = w.quantized || m.op_type != n.op_type || std::any_of(m.inputs.begin(), m.inputs.end(), dequantized);
      }
      out.push_back(std::move(w));
    }
  }
  return out;
}

const Tensor* tensor_named(const NamedValues& values, const std::string& name) {
  const Value* v = values.find(name);
  return v != nullptr && v->is_tensor() ? &v->tensor() : nullptr;
}

struct OutputSums {
  std::vector<Difference> differences;
  std::vector<std::string> names;

  explicit OutputSums(const std::vector<std::string>& outputs) : differences(outputs.size()), names(outputs) {}
  void add(const NamedValues& expected, const NamedValues& received) {
    for (std::size_t i = 0; i < names.size(); ++i) {
      const Tensor *e = tensor_named(expected, names[i]), *r = tensor_named(received, names[i]);
      if (e != nullptr && r != nullptr && is_number(e->dtype()) && is_number(r->dtype())) differences[i].add(*e, *r);
    }
  }
  void finish(QuantAccuracy& out) const {
    std::int64_t rows = 0, agreeing = 0;
    double least = 1;
    for (std::size_t i = 0; i < names.size(); ++i) {
      const Difference& d = differences[i];
      out.outputs.push_back({names[i], {}, {}, d.signal_to_noise(), d.cosine(), true});
      least = std::min(least, d.cosine());
      rows += d.rows();
      agreeing += d.agreeing();
    }
    if (rows > 0) out.top1 = static_cast<double>(agreeing) / static_cast<double>(rows);
    out.loss = std::max(1 - least, 1 - out.top1.value_or(1));
  }
};

std::vector<std::string> output_names(const Session& session) {
  std::vector<std::string> names;
  for (const ValueSpec& o : session.outputs()) names.push_back(o.name);
  return names;
}

}  // namespace

void Difference::add(const Tensor& expected, const Tensor& received) {
  if (expected.size() != received.size()) {
    noise_ = std::numeric_limits<double>::infinity();
    return;
  }
  const Tensor a = to_float32(expected).aligned(), b = to_float32(received).aligned();
  const auto x = a.values<float>(), y = b.values<float>();
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto e = static_cast<double>(x[i]), r = static_cast<double>(y[i]);
    if (e == r) {
      if (!std::isfinite(e)) continue;  // the same infinity
    } else if (!std::isfinite(e)) {
      continue;  // NaN, or an infinity that no quantised value reaches
    }
    signal_ += e * e;
    other_ += r * r;
    product_ += e * r;
    noise_ += (e - r) * (e - r);
  }
  if (expected.rank() != 2 || expected.dim(1) < kScores || !is_float(expected.dtype())) return;
  const auto width = static_cast<std::size_t>(expected.dim(1));
  for (std::size_t i = 0; i + width <= x.size(); i += width) {
    const auto largest = [&](std::span<const float> v) { return std::max_element(v.begin(), v.end()) - v.begin(); };
    ++rows_;
    agreeing_ += largest(x.subspan(i, width)) == largest(y.subspan(i, width)) ? 1 : 0;
  }
}

double Difference::signal_to_noise() const {
  if (noise_ == 0) return std::numeric_limits<double>::infinity();
  if (signal_ == 0) return -std::numeric_limits<double>::infinity();
  return 10 * std::log10(signal_ / noise_);
}

double Difference::cosine() const {
  if (noise_ == 0) return 1;
  const double lengths = std::sqrt(signal_) * std::sqrt(other_);
  return lengths > 0 && std::isfinite(lengths) && std::isfinite(noise_) ? std::min(1.0, product_ / lengths) : 0;
}

Recorded record(const Model& model, CalibrationDataReader& data, const QuantOptions& options, std::int64_t most) {
  const Observed observed(model, {}, options);
  Recorded out;
  data.rewind();
  while (most == 0 || static_cast<std::int64_t>(out.inputs.size()) < most) {
    auto inputs = data.get_next();
    if (!inputs) break;
    out.outputs.push_back(observed.run(*inputs));
    out.inputs.push_back(std::move(*inputs));
  }
  if (out.inputs.empty()) fail(ErrorCode::invalid_argument, "there is no data to measure with: the reader returned no batch");
  return out;
}

QuantAccuracy outputs_against(const Model& model, const Recorded& expected, const QuantOptions& options) {
  const Observed observed(model, {}, options);
  OutputSums sums(output_names(observed.session()));
  for (std::size_t i = 0; i < expected.inputs.size(); ++i) sums.add(expected.outputs[i], observed.run(expected.inputs[i]));
  QuantAccuracy out;
  out.samples = static_cast<std::int64_t>(expected.inputs.size());
  sums.finish(out);
  return out;
}

QuantAccuracy outputs_between(const Model& model, const Model& quantized, CalibrationDataReader& data,
                              const QuantOptions& options) {
  const Observed a(model, {}, options), b(quantized, {}, options);
  OutputSums sums(output_names(b.session()));
  QuantAccuracy out;
  data.rewind();
  for (auto inputs = data.get_next(); inputs; inputs = data.get_next()) {
    ++out.samples;
    sums.add(a.run(*inputs), b.run(*inputs));
  }
  sums.finish(out);
  return out;
}

QuantAccuracy measure(const Model& model, const Model& quantized, CalibrationDataReader& data, const QuantOptions& options,
                      std::int64_t most) {
  const std::vector<Watched> watched = common_values(model.graph, quantized.graph);
  std::vector<std::string> names, there;
  for (const Watched& w : watched) {
    names.push_back(w.name);
    there.push_back(w.there);
  }
  // Outputs are measured by the models as they are: with values inside as outputs too, integer kernels do not run.
  const Observed plain(quantized, {}, options), a(model, names, options), b(quantized, there, options);
  OutputSums outputs(output_names(plain.session()));
  std::vector<Difference> layers(watched.size());
  QuantAccuracy out;
  data.rewind();
  while (most == 0 || out.samples < most) {
    const auto inputs = data.get_next();
    if (!inputs) break;
    ++out.samples;
    const NamedValues expected = a.run(*inputs), received = b.run(*inputs);
    outputs.add(expected, plain.run(*inputs));
    for (std::size_t i = 0; i < names.size(); ++i) {
      const Tensor *e = tensor_named(expected, names[i]), *r = tensor_named(received, there[i]);
      if (e != nullptr && r != nullptr) layers[i].add(*e, *r);
    }
  }
  if (out.samples == 0) fail(ErrorCode::invalid_argument, "there is no data to measure with: the reader returned no batch");
  for (std::size_t i = 0; i < watched.size(); ++i) {
    const Watched& w = watched[i];
    out.layers.push_back({w.name, w.node, w.op, layers[i].signal_to_noise(), layers[i].cosine(), w.quantized});
  }
  outputs.finish(out);
  return out;
}

}  // namespace sdx::quantize
