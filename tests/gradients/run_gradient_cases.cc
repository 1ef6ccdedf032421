// Compares gradients with central differences in float64: sdx_gradient_tests FILE...
//
// A file holds cases, each a model (see support/graph_text.h) without values for the inputs that vary:
//
//   == Softmax, an axis in the middle    the name
//   range 0.5 2                          where its inputs are drawn from; -1.5 to 1.5 where left out
//   second                               also the gradient of the gradient
//   input x: float64[2,3,4]
//   y = Softmax(x) {axis=1}
//   output y
//   --
//   fails TEXT                           instead of agreeing: part of the error
//
// All float64 inputs are differentiated by; the function is the sum of all float64 outputs' elements, each weighted by a random
// number. Every case runs with declared and with unknown extents. Every operator that has a gradient must occur in the files.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <random>
#include <sdx/session.hpp>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "onnx/writer.h"
#include "ops/gradient.h"
#include "support/graph_text.h"

namespace {

using namespace sdx;

struct Case {
  std::string name, model, error;
  double low = -1.5, high = 1.5;
  bool second = false;
};

std::vector<Case> read_cases(const std::string& file) {
  std::ifstream in(file);
  if (!in) fail(ErrorCode::io, "cannot read '{}'", file);
  std::vector<Case> cases;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("== ")) {
      cases.push_back({});
      cases.back().name = line.substr(3);
    } else if (cases.empty() || line.empty() || line == "--") {
      continue;
    } else if (line.starts_with("range ")) {
      if (std::sscanf(line.c_str(), "range %lf %lf", &cases.back().low, &cases.back().high) != 2) {
        fail(ErrorCode::invalid_argument, "not understood: {}", line);
      }
    } else if (line == "second") {
      cases.back().second = true;
    } else if (line.starts_with("fails ")) {
      cases.back().error = line.substr(6);
    } else {
      cases.back().model += line + "\n";
    }
  }
  return cases;
}

Tensor random_tensor(const Shape& shape, double low, double high, std::mt19937_64& random) {
  Tensor t(DataType::float64, shape);
  std::uniform_real_distribution<double> distribution(low, high);
  for (double& v : t.mutable_values<double>()) v = distribution(random);
  return t;
}

// Values for the inputs, and which of them vary.
struct Point {
  NamedValues values;
  std::vector<std::string> varying;
};

Point draw(Graph& graph, const Case& c, std::mt19937_64& random) {
  Point p;
  for (const ValueId v : graph.inputs()) {
    ValueInfo& info = graph.value(v);
    const bool varies = info.declared.elem == DataType::float64;
    if (varies) p.varying.push_back(info.name);
    if (info.constant) {
      p.values.add(info.name, *info.constant);
      info.constant.reset();
    } else {
      if (!varies) fail(ErrorCode::invalid_argument, "input '{}' needs a value", info.name);
      p.values.add(info.name, random_tensor(to_shape(*info.declared.shape), c.low, c.high, random));
    }
  }
  return p;
}

Session open(const Model& model) {
  const std::string bytes = write_model(model);
  return Session::from_bytes(std::as_bytes(std::span(bytes)));
}

ValueId add(Model& m, const char* op, std::vector<ValueId> inputs, Attributes attributes = {}, const char* domain = "") {
  Node n;
  n.op_type = op;
  n.domain = domain;
  n.version = *domain == '\0' ? m.opsets.at("") : 1;
  n.inputs = std::move(inputs);
  n.attributes = std::move(attributes);
  n.outputs = {m.graph.add_value("made", Type::tensor(DataType::float64))};
  const ValueId out = n.outputs[0];
  m.graph.add_node(std::move(n));
  return out;
}

// The sum of the values, weighted.
ValueId weighted_sum(Model& m, const std::vector<ValueId>& values, const std::vector<Tensor>& like, std::mt19937_64& random) {
  ValueId total = kNoValue;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const ValueId weights = m.graph.add_constant("weights", random_tensor(like[i].shape(), 0.5, 2, random));
    Attributes keep;
    keep.set("keepdims", std::int64_t{0});
    const ValueId sum = add(m, "ReduceSum", {add(m, "Mul", {values[i], weights})}, keep);
    total = total == kNoValue ? sum : add(m, "Add", {total, sum});
  }
  return total;
}

// Appends the gradient of `y` by the inputs that vary; all inputs determine it.
std::vector<ValueId> add_gradient(Model& m, ValueId y, const Point& p) {
  std::vector<std::string> rest;
  std::vector<ValueId> inputs;
  for (const std::string& name : p.varying) inputs.push_back(*m.graph.find(name));
  for (const NamedValue& v : p.values) {
    if (std::find(p.varying.begin(), p.varying.end(), v.name) != p.varying.end()) continue;
    rest.push_back(v.name);
    inputs.push_back(*m.graph.find(v.name));
  }
  Node n;
  n.op_type = "Gradient";
  n.domain = "ai.onnx.preview.training";
  n.version = 1;
  n.inputs = std::move(inputs);
  n.attributes.set("xs", p.varying);
  if (!rest.empty()) n.attributes.set("zs", rest);
  n.attributes.set("y", m.graph.value(y).name);
  for (const std::string& name : p.varying) {
    n.outputs.push_back(m.graph.add_value("d_" + name, Type::tensor(DataType::float64)));
  }
  const std::vector<ValueId> out = n.outputs;
  m.graph.add_node(std::move(n));
  m.opsets["ai.onnx.preview.training"] = 1;
  return out;
}

double target_at(const Session& session, const NamedValues& values, const std::string& name) {
  RunOptions options;
  options.outputs = {name};
  return session.run(values, options)[0].value.tensor().values<double>()[0];
}

// "" when the gradient that the session computes is that of `target`.
std::string compare(const Session& session, const Point& p, const std::string& target,
                    const std::vector<std::string>& gradients) {
  constexpr double kStep = 1e-5;
  const NamedValues computed = session.run(p.values);
  for (std::size_t i = 0; i < p.varying.size(); ++i) {
    const Tensor& x = p.values.tensor(p.varying[i]);
    const Tensor& g = computed.tensor(gradients[i]);
    if (g.shape() != x.shape())
      return fmt::format("the gradient of '{}' is {}, expected {}", p.varying[i], g.type_string(), x.type_string());
    for (std::int64_t e = 0; e < x.size(); ++e) {
      double sides[2];
      for (const int side : {0, 1}) {
        NamedValues moved;
        for (const NamedValue& v : p.values) {
          if (v.name != p.varying[i]) {
            moved.add(v.name, v.value);
            continue;
          }
          Tensor t(DataType::float64, x.shape());
          std::copy(x.values<double>().begin(), x.values<double>().end(), t.mutable_values<double>().begin());
          t.mutable_values<double>()[static_cast<std::size_t>(e)] += side == 0 ? -kStep : kStep;
          moved.add(v.name, std::move(t));
        }
        sides[side] = target_at(session, moved, target);
      }
      const double expected = (sides[1] - sides[0]) / (2 * kStep);
      const double received = g.values<double>()[static_cast<std::size_t>(e)];
      if (!(std::abs(received - expected) <= 1e-6 + 1e-5 * std::abs(expected))) {
        return fmt::format("by element {} of '{}': {}, expected {}", e, p.varying[i], received, expected);
      }
    }
  }
  return "";
}

void forget_extents(Graph& graph) {
  for (const ValueId v : graph.inputs()) {
    ValueInfo& info = graph.value(v);
    if (info.declared.shape) info.declared.shape->assign(info.declared.shape->size(), Dim::unknown());
    info.type = info.declared;
  }
}

std::string run_way(const Case& c, bool unknown_extents, bool second) {
  std::mt19937_64 random(7);
  Model m = testing::parse_model(c.model);
  const Point p = draw(m.graph, c, random);
  std::vector<ValueId> outputs;
  std::vector<Tensor> like;
  const NamedValues plain = open(m).run(p.values);
  for (std::size_t i = 0; i < m.graph.outputs().size(); ++i) {
    if (plain[i].value.tensor().dtype() != DataType::float64) continue;
    outputs.push_back(m.graph.outputs()[i]);
    like.push_back(plain[i].value.tensor());
  }
  if (unknown_extents) forget_extents(m.graph);
  while (!m.graph.outputs().empty()) m.graph.remove_output(0);
  ValueId target = weighted_sum(m, outputs, like, random);
  std::vector<ValueId> gradients = add_gradient(m, target, p);
  if (second) {
    std::vector<Tensor> shapes;
    for (const std::string& name : p.varying) shapes.push_back(p.values.tensor(name));
    target = weighted_sum(m, gradients, shapes, random);
    gradients = add_gradient(m, target, p);
  }
  m.graph.add_output(target);
  std::vector<std::string> names;
  for (const ValueId g : gradients) {
    m.graph.add_output(g);
    names.push_back(m.graph.value(g).name);
  }
  return compare(open(m), p, m.graph.value(target).name, names);
}

// "" when it passes that way.
std::string outcome(const Case& c, bool unknown_extents, bool second) {
  try {
    const std::string problem = run_way(c, unknown_extents, second);
    return c.error.empty() ? problem : "ran, but an error was expected";
  } catch (const std::exception& e) {
    const bool wanted = !c.error.empty() && std::string_view(e.what()).find(c.error) != std::string_view::npos;
    return wanted ? "" : fmt::format("error: {}", e.what());
  }
}

// "" when the case passes.
std::string run_case(const Case& c) {
  for (const bool unknown : {false, true}) {
    for (int order = 1; order <= (c.second ? 2 : 1); ++order) {
      const std::string problem = outcome(c, unknown, order == 2);
      if (!problem.empty()) return fmt::format("order {}{}: {}", order, unknown ? ", unknown extents" : "", problem);
    }
  }
  return "";
}

int run_files(int count, char** files) {
  int failures = 0;
  int cases = 0;
  std::set<std::string> covered;
  for (int i = 0; i < count; ++i) {
    for (const Case& c : read_cases(files[i])) {
      ++cases;
      if (c.error.empty()) {
        const Model m = testing::parse_model(c.model);
        for (const Node& n : m.graph.nodes()) covered.insert(n.op_type);
      }
      const std::string problem = run_case(c);
      if (problem.empty()) continue;
      ++failures;
      fmt::print("FAIL {}: {}\n", c.name, problem);
    }
  }
  for (const auto& [name, fn] : ops::gradients().all()) {
    if (covered.contains(name)) continue;
    ++failures;
    fmt::print("FAIL no case for the gradient of {}\n", name);
  }
  fmt::print("{} cases, {} operators, {} failures\n", cases, ops::gradients().all().size(), failures);
  return failures == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run_files(argc - 1, argv + 1);
  } catch (const std::exception& e) {
    fmt::print("error: {}\n", e.what());
    return 1;
  }
}
