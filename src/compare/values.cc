#include "compare/values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <string_view>

#include "base/counted.h"
#include "base/words.h"
#include "tensor/element.h"
#include "tensor/halves.h"
#include "tensor/print.h"

namespace sdx::compare {
namespace {

bool quantizes(const Node& n) {
  constexpr std::string_view kNames =
      "QuantizeLinear DynamicQuantizeLinear MatMulInteger ConvInteger DynamicQuantizeMatMul DynamicQuantizeLSTM "
      "MatMulIntegerToFloat QAttention QGemm QMoE";
  return n.op_type.starts_with("QLinear") || has_word(kNames, n.op_type);
}

// Files need not declare the types of inner values, but a model that goes through half precision casts to it.
bool casts_to_half(const Node& n) {
  const AttributeValue* to = n.op_type == "Cast" ? n.attributes.find("to") : nullptr;
  const auto* number = to != nullptr ? std::get_if<std::int64_t>(to) : nullptr;
  return number != nullptr && (*number == static_cast<int>(DataType::float16) || *number == static_cast<int>(DataType::bfloat16));
}

void scan(const Graph& graph, Precision& p) {
  for (const Node& n : graph.nodes()) {
    p.quantizers += quantizes(n) ? 1 : 0;
    p.half = p.half || casts_to_half(n);
    for (const Subgraph& s : n.subgraphs) scan(*s.graph, p);
  }
  for (const ValueInfo& v : graph.values()) {
    const DataType elem = v.constant ? v.constant->dtype() : v.type.is_tensor() ? v.type.elem : DataType::undefined;
    p.half = p.half || (is_half(elem) && !(v.constant && v.constant->size() < 2));
  }
}

// The factor by which an operator can enlarge a difference in its inputs; 0 if unknown.
double gain(const std::string& op) {
  constexpr std::string_view kOne =
      "Reshape Transpose Squeeze Unsqueeze Flatten Identity Slice Gather Split Cast Concat Relu LeakyRelu Clip Tanh Softmax "
      "HardSigmoid MaxPool AveragePool GlobalAveragePool GlobalMaxPool ReduceMean ReduceMax Neg Abs";
  if (op == "Sigmoid") return 0.25;
  return has_word(kOne, op) ? 1 : 0;
}

std::optional<double> step_of(const Graph& graph, ValueId v) {
  double factor = 1;
  for (int hops = 0; hops < 16 && graph.value(v).producer != kNoNode; ++hops) {
    const Node& n = graph.node(graph.value(v).producer);
    const bool on_grid = n.op_type == "DequantizeLinear" || n.op_type == "QuantizeLinear";
    if (on_grid && n.inputs.size() > 1 && n.inputs[1] != kNoValue && graph.value(n.inputs[1]).constant) {
      double step = 0;
      for (const float s : to_floats(*graph.value(n.inputs[1]).constant)) step = std::max(step, std::abs(static_cast<double>(s)));
      return step * factor;
    }
    factor *= gain(n.op_type);
    if (factor == 0 || n.inputs.empty() || n.inputs[0] == kNoValue) return std::nullopt;
    v = n.inputs[0];
  }
  return std::nullopt;
}

double mantissa_step(DataType type) {
  switch (type) {
    case DataType::float16: return 1e-2;
    case DataType::bfloat16: return 2e-2;
    case DataType::float8e4m3fn:
    case DataType::float8e4m3fnuz: return 0.125;
    case DataType::float8e5m2:
    case DataType::float8e5m2fnuz: return 0.25;
    case DataType::float6e2m3: return 0.125;
    case DataType::float6e3m2: return 0.25;
    case DataType::float4e2m1: return 0.5;
    default: return 1e-4;
  }
}

std::complex<double> number_at(const Tensor& t, std::int64_t i) {
  if (t.dtype() == DataType::complex64) {
    std::complex<float> z;
    std::memcpy(&z, static_cast<const char*>(t.data()) + i * 8, sizeof z);
    return z;
  }
  if (t.dtype() == DataType::complex128) {
    std::complex<double> z;
    std::memcpy(&z, static_cast<const char*>(t.data()) + i * 16, sizeof z);
    return z;
  }
  return element_as_double(t, i);
}

bool same(double a, double b) { return (std::isnan(a) && std::isnan(b)) || a == b; }

double error_between(const Tensor& expected, const Tensor& actual, std::int64_t i) {
  if (expected.dtype() == DataType::string) {
    const auto at = static_cast<std::size_t>(i);
    return expected.values<std::string>()[at] == actual.values<std::string>()[at] ? 0 : 1;
  }
  const std::complex<double> a = number_at(expected, i);
  const std::complex<double> b = number_at(actual, i);
  if (is_integer(expected.dtype()) && bit_width(expected.dtype()) == 64) {
    // Integers beyond 2^53 do not survive a double.
    const auto* p = static_cast<const char*>(expected.data()) + i * 8;
    const auto* q = static_cast<const char*>(actual.data()) + i * 8;
    return std::memcmp(p, q, 8) == 0 ? 0 : std::max(1.0, std::abs(a - b));
  }
  if (same(a.real(), b.real()) && same(a.imag(), b.imag())) return 0;
  const double error = std::abs(a - b);
  return std::isfinite(error) ? error : std::numeric_limits<double>::infinity();
}

double largest_magnitude(const Tensor& t) {
  double largest = 0;
  for (std::int64_t i = 0; t.dtype() != DataType::string && i < t.size(); ++i) {
    const double v = std::abs(number_at(t, i));
    if (std::isfinite(v)) largest = std::max(largest, v);
  }
  return largest;
}

double allowed_at(const Tensor& expected, std::int64_t i, double common, const Tolerance& tolerance) {
  if (tolerance.relative == 0 || expected.dtype() == DataType::string) return common;
  const double magnitude = std::abs(number_at(expected, i));
  return std::isfinite(magnitude) ? common + tolerance.relative * magnitude : common;
}

Comparison compare_tensors(const Tensor& expected, const Tensor& actual, const Tolerance& tolerance) {
  Comparison c;
  c.type = expected.type_string();
  if (expected.dtype() != actual.dtype() || expected.shape() != actual.shape()) {
    c.pass = false;
    c.why = fmt::format("expected {}, received {}", expected.type_string(), actual.type_string());
    return c;
  }
  const double largest = largest_magnitude(expected);
  const double common = expected.dtype() == DataType::string ? 0 : tolerance.scale * largest + tolerance.absolute;
  std::int64_t worst = 0;
  double sum = 0;
  for (std::int64_t i = 0; i < expected.size(); ++i) {
    const double error = error_between(expected, actual, i);
    if (error == 0) continue;
    sum += error;
    if (error > allowed_at(expected, i, common, tolerance)) ++c.differing;
    if (error > c.max_abs) worst = i;
    c.max_abs = std::max(c.max_abs, error);
  }
  c.max_rel = largest > 0 ? c.max_abs / largest : c.max_abs;
  const double mean = expected.size() > 0 ? sum / static_cast<double>(expected.size()) : 0;
  const bool spread = common > 0 && c.max_abs <= tolerance.max_steps * common && mean <= tolerance.mean_steps * common;
  c.pass = c.differing == 0 || spread;
  if (!c.pass) {
    c.why =
        fmt::format("{} of {} differ{}; worst at {}: expected {}, received {}", c.differing, counted(expected.size(), "element"),
                    expected.size() == 1 ? "s" : "", worst, print_element(expected, worst), print_element(actual, worst));
  }
  return c;
}

void absorb(Comparison& whole, const Comparison& part, const std::string& where) {
  whole.max_abs = std::max(whole.max_abs, part.max_abs);
  whole.max_rel = std::max(whole.max_rel, part.max_rel);
  whole.differing += part.differing;
  if (!part.pass && whole.pass) whole.why = where + ": " + part.why;
  whole.pass = whole.pass && part.pass;
}

// The map's values in the order of its sorted keys.
std::vector<std::pair<std::string, std::int64_t>> sorted_keys(const Map& m) {
  std::vector<std::pair<std::string, std::int64_t>> keys;
  for (std::int64_t i = 0; i < m.keys.size(); ++i) keys.emplace_back(print_element(m.keys, i), i);
  std::sort(keys.begin(), keys.end());
  return keys;
}

Comparison compare_maps(const Map& expected, const Map& actual, const Tolerance& tolerance) {
  Comparison c;
  const auto a = sorted_keys(expected);
  const auto b = sorted_keys(actual);
  const bool same_keys = a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(),
                                                            [](const auto& x, const auto& y) { return x.first == y.first; });
  if (!same_keys || expected.values.dtype() != actual.values.dtype()) {
    c.pass = false;
    c.why = "the maps' keys or types differ";
    return c;
  }
  if (expected.values.dtype() == DataType::string) {
    for (std::size_t i = 0; i < a.size() && c.pass; ++i) {
      const auto& x = expected.values.values<std::string>()[static_cast<std::size_t>(a[i].second)];
      const auto& y = actual.values.values<std::string>()[static_cast<std::size_t>(b[i].second)];
      if (x != y) {
        c.pass = false;
        c.why = fmt::format("at key {}: expected \"{}\", received \"{}\"", a[i].first, x, y);
      }
    }
    return c;
  }
  // The values as tensors in the order of the keys, so that the largest magnitude is that of the whole map.
  const auto ordered = [](const Tensor& values, const auto& keys) {
    Tensor t(DataType::float64, {static_cast<std::int64_t>(keys.size())});
    for (std::size_t i = 0; i < keys.size(); ++i)
      set_element(t, static_cast<std::int64_t>(i), element_as_double(values, keys[i].second));
    return t;
  };
  return compare_tensors(ordered(expected.values, a), ordered(actual.values, b), tolerance);
}

}  // namespace

Precision precision_of(const Graph& graph) {
  Precision p;
  scan(graph, p);
  for (const ValueId v : graph.outputs()) p.output_step.push_back(step_of(graph, v));
  return p;
}

Tolerance default_tolerance(const Precision& precision, std::size_t index, DataType expected) {
  const bool quantized = precision.quantizers > 0;
  Tolerance t{mantissa_step(expected), 1e-7, 0, 0, 0, std::string(name(expected))};
  const bool complex = expected == DataType::complex64 || expected == DataType::complex128;
  if (is_integer(expected) && bit_width(expected) <= 16 && quantized) {
    t = {0, 1, 0, 0, 0, "one quantisation step"};
  } else if (!is_floating(expected) && !complex) {
    return {0, 0, 0, 0, 0, "exact"};
  } else if (quantized) {
    const auto step = index < precision.output_step.size() ? precision.output_step[index] : std::nullopt;
    t = {step ? 1e-4 : 1.0 / 127, step.value_or(1e-7), 0, 0, 0, "one quantisation step"};
  } else if (precision.half && t.scale < 1e-2) {
    t = {1e-2, 1e-7, 0, 0, 0, "half precision inside"};
  }
  if (precision.quantizers > 1) {
    t.mean_steps = 2;
    t.max_steps = 16;
    t.reason = "quantisation steps";
  }
  return t;
}

Comparison compare_values(const Value& expected, const Value& actual, const Tolerance& tolerance) {
  Comparison c;
  if (expected.is_tensor() && actual.is_tensor()) return compare_tensors(expected.tensor(), actual.tensor(), tolerance);
  c.type = expected.type_string();
  const bool same_kind = expected.is_map() == actual.is_map() && expected.is_sequence() == actual.is_sequence() &&
                         expected.empty() == actual.empty();
  if (!same_kind) {
    c.pass = false;
    c.why = fmt::format("expected {}, received {}", expected.type_string(), actual.type_string());
  } else if (expected.is_map()) {
    Comparison inner = compare_maps(expected.map(), actual.map(), tolerance);
    inner.type = c.type;
    return inner;
  } else if (expected.is_sequence()) {
    const auto& a = expected.sequence().items;
    const auto& b = actual.sequence().items;
    if (a.size() != b.size()) {
      c.pass = false;
      c.why = fmt::format("expected {} items, received {}", a.size(), b.size());
      return c;
    }
    for (std::size_t i = 0; i < a.size(); ++i) absorb(c, compare_values(a[i], b[i], tolerance), "item " + std::to_string(i));
  }
  return c;
}

}  // namespace sdx::compare
