// Runs the graphs of pass cases with NaN, infinities and the largest numbers in each of their inputs, and compares what comes out
// with and without optimisation, also as gradients: sdx_pass_special_values [--verbose] FILE...
//
// The files are those of run_pass_cases.cc. Symbols get small extents. A graph that does not run without optimisation, or gives
// other numbers for ordinary values each time, is left out; a file none of whose graphs can be compared fails.

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <sdx/sdx.hpp>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "graph/graph.h"
#include "onnx/writer.h"
#include "support/graph_text.h"
#include "support/session.h"
#include "support/text_cases.h"

namespace {

using sdx::DataType;
using sdx::NamedValues;
using sdx::Session;
using sdx::Tensor;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr std::array kSpecials{std::numeric_limits<float>::quiet_NaN(), kInf, -kInf, std::numeric_limits<float>::max()};

// Small numbers without a pattern, the same in every run.
class Numbers {
 public:
  float next() { return static_cast<float>(static_cast<int>(step() % 257) - 128) / 100.0F; }
  std::uint32_t step() { return (state_ = state_ * 1664525U + 1013904223U) >> 8; }

 private:
  std::uint32_t state_ = 7;
};

Tensor make(DataType type, const sdx::Shape& shape, Numbers& numbers) {
  Tensor t(type, shape);
  for (std::int64_t i = 0; i < t.size(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    switch (type) {
      case DataType::float32: t.mutable_values<float>()[at] = numbers.next(); break;
      case DataType::float64: t.mutable_values<double>()[at] = static_cast<double>(numbers.next()); break;
      case DataType::int64: t.mutable_values<std::int64_t>()[at] = i % 2; break;
      case DataType::int32: t.mutable_values<std::int32_t>()[at] = static_cast<std::int32_t>(i % 2); break;
      case DataType::boolean: t.mutable_values<bool>()[at] = numbers.step() % 3 != 0; break;
      case DataType::uint8: t.mutable_values<std::uint8_t>()[at] = static_cast<std::uint8_t>(numbers.step()); break;
      case DataType::int8: t.mutable_values<std::int8_t>()[at] = static_cast<std::int8_t>(numbers.step()); break;
      default: sdx::fail(sdx::ErrorCode::invalid_argument, "no values for {}", sdx::name(type));
    }
  }
  return t;
}

// Each symbol has one extent: 2, or from 2 on as many as there are symbols.
NamedValues inputs_of(const sdx::Graph& graph, bool equal, Numbers& numbers) {
  std::map<std::string, std::int64_t> extents;
  NamedValues inputs;
  for (const sdx::ValueId v : graph.inputs()) {
    const sdx::ValueInfo& info = graph.value(v);
    if (!info.declared.is_tensor() || !info.declared.shape) {
      sdx::fail(sdx::ErrorCode::invalid_argument, "'{}' has no extents", info.name);
    }
    sdx::Shape shape;
    for (const sdx::Dim& d : *info.declared.shape) {
      const std::string symbol = d.is_const() ? "" : d.str();
      const auto next = static_cast<std::int64_t>(extents.size()) + 2;
      shape.push_back(d.is_const() ? d.value() : equal ? 2 : extents.emplace(symbol, next).first->second);
    }
    inputs.add(info.name, make(info.declared.elem, shape, numbers));
  }
  return inputs;
}

bool same(float a, float b, float largest) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  if (std::isinf(a) || std::isinf(b)) return a == b;
  return std::fabs(a - b) <= 1e-4F * std::fabs(b) + 2e-5F * largest;
}

// "" where they agree.
std::string difference(const NamedValues& a, const NamedValues& b, const std::vector<std::string>& outputs) {
  for (const std::string& name : outputs) {
    if (!a.at(name).is_tensor() || a.tensor(name).dtype() != DataType::float32) continue;
    const std::span<const float> x = a.tensor(name).values<float>(), y = b.tensor(name).values<float>();
    if (a.tensor(name).shape() != b.tensor(name).shape()) return fmt::format("{} has another shape", name);
    float largest = 1;
    for (const float v : y) largest = std::isfinite(v) ? std::max(largest, std::fabs(v)) : largest;
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (!same(x[i], y[i], largest)) return fmt::format("{}[{}] is {}, without optimisation {}", name, i, x[i], y[i]);
    }
  }
  return "";
}

Session open(const sdx::Model& model, bool optimize) {
  sdx::SessionOptions options;
  options.providers = {"cpu"};
  options.optimize = optimize;
  return sdx::testing::open(model, options);
}

struct Outcome {
  int compared = 0, failures = 0;
};

void compare(const std::string& what, const Session& with, const Session& without, const NamedValues& inputs,
             const std::vector<std::string>& outputs, Outcome& all) {
  ++all.compared;
  std::string text;
  const NamedValues expected = without.run(inputs);
  try {
    text = difference(with.run(inputs), expected, outputs);
  } catch (const sdx::Error& e) {
    text = fmt::format("runs without optimisation only: {}", e.what());
  }
  if (text.empty()) return;
  ++all.failures;
  fmt::print("FAIL {}: {}\n", what, text);
}

// The gradients of the first output by all inputs, which come behind the outputs. False: these are not of floats.
bool add_gradients(sdx::Model& model) {
  constexpr const char* kDomain = "ai.onnx.preview.training";
  sdx::Graph& g = model.graph;
  sdx::Node n;
  n.op_type = "Gradient";
  n.domain = kDomain;
  n.version = 1;
  std::vector<std::string> xs;
  for (const sdx::ValueId v : g.inputs()) {
    if (g.value(v).declared.elem != DataType::float32) continue;
    n.inputs.push_back(v);
    xs.push_back(g.value(v).name);
  }
  if (xs.empty() || g.outputs().empty()) return false;
  for (const std::string& x : xs) n.outputs.push_back(g.add_value("gradient by " + x));
  const std::vector<sdx::ValueId> results = n.outputs;
  n.attributes.set("xs", std::move(xs));
  n.attributes.set("y", g.value(g.outputs().front()).name);
  g.add_node(std::move(n));
  for (const sdx::ValueId v : results) g.add_output(v);
  model.opsets[kDomain] = 1;
  return true;
}

// Whether the graph could be compared.
bool run_case(const std::string& what, const sdx::Model& model, bool equal, bool verbose, Outcome& all) {
  const std::vector<std::string>& outputs = model.graph.output_names();
  try {
    Numbers numbers;
    NamedValues inputs = inputs_of(model.graph, equal, numbers);
    const Session with = open(model, true), without = open(model, false);
    if (!difference(without.run(inputs), without.run(inputs), outputs).empty()) return false;
    compare(what, with, without, inputs, outputs, all);
    for (const sdx::ValueId input : model.graph.inputs()) {
      const std::string& name = model.graph.value(input).name;
      const Tensor plain = inputs.tensor(name);
      if (plain.dtype() != DataType::float32 || plain.size() == 0) continue;
      for (const std::int64_t at : {std::int64_t{0}, plain.size() / 2, plain.size() - 1}) {
        for (const float special : kSpecials) {
          Tensor changed = plain.clone();
          changed.mutable_values<float>()[static_cast<std::size_t>(at)] = special;
          NamedValues some;
          for (const sdx::NamedValue& v : inputs) some.add(v.name, v.name == name ? sdx::Value(changed) : v.value);
          compare(fmt::format("{}, {} at {}[{}]", what, special, name, at), with, without, some, outputs, all);
        }
      }
    }
    return true;
  } catch (const sdx::Error& e) {
    if (verbose) fmt::print("left out: {}: {}\n", what, e.what());
    return false;
  }
}

int run_file(const std::string& file, bool verbose) {
  Outcome all;
  int graphs = 0, gradients = 0;
  for (sdx::testing::TextCase& c : sdx::testing::read_text_cases(file)) {
    const std::string what = fmt::format("{}: {}", file, c.name);
    sdx::testing::take_lines(c.given, "pass ");
    sdx::Model model = sdx::testing::parse_model(sdx::testing::text_of(c.given));
    const auto run = [&](const std::string& text) {
      return run_case(text, model, false, verbose, all) || run_case(text, model, true, verbose, all);
    };
    if (run(what)) ++graphs;
    if (add_gradients(model) && run(what + ", gradients")) ++gradients;
  }
  fmt::print("{}: {} graphs, {} with gradients, {} runs compared, {} failures\n", file, graphs, gradients, all.compared,
             all.failures);
  return all.failures > 0 || graphs == 0 ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) { return sdx::testing::run_files(argc, argv, "--verbose", run_file); }
