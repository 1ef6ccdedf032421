// Compares gradients with central differences in float64.
//
//   sdx_gradient_tests FILE...               cases
//   sdx_gradient_tests --random COUNT [N]    so many graphs drawn at random, from number N (0) on: see run_random.h
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
// number. Every case runs with declared, with unknown
// and with symbolic extents. Every operator that has a gradient must occur in the files.

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
#include "gradients/built.h"
#include "gradients/run_random.h"
#include "ops/gradient.h"
#include "support/graph_text.h"

namespace {

using namespace sdx;
using namespace sdx::gradient_tests;

constexpr const char* kExtents[] = {"declared", "unknown", "symbols"};

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

// "" when the gradient that the session computes is that of `target`.
std::string compare(const Built& built, const Point& p) {
  constexpr double kStep = 1e-5;
  const NamedValues computed = built.session.run(p.values);
  for (std::size_t i = 0; i < p.varying.size(); ++i) {
    const Tensor& x = p.values.tensor(p.varying[i]);
    const Tensor& g = computed.tensor(built.gradients[i]);
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
        sides[side] = target_at(built, moved);
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

std::string run_way(const Case& c, Extents extents, bool second) {
  std::mt19937_64 random(7);
  Model m = testing::parse_model(c.model);
  const Point p = draw(m.graph, c, random);
  return compare(build(std::move(m), p, {extents, second, false}, random), p);
}

// "" when it passes that way.
std::string outcome(const Case& c, Extents extents, bool second) {
  try {
    const std::string problem = run_way(c, extents, second);
    return c.error.empty() ? problem : "ran, but an error was expected";
  } catch (const std::exception& e) {
    const bool wanted = !c.error.empty() && std::string_view(e.what()).find(c.error) != std::string_view::npos;
    return wanted ? "" : fmt::format("error: {}", e.what());
  }
}

// "" when the case passes.
std::string run_case(const Case& c) {
  for (const Extents extents : {Extents::declared, Extents::unknown, Extents::symbols}) {
    for (int order = 1; order <= (c.second ? 2 : 1); ++order) {
      const std::string problem = outcome(c, extents, order == 2);
      if (!problem.empty()) return fmt::format("order {}, extents {}: {}", order, kExtents[static_cast<int>(extents)], problem);
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
        for (const Node& n : m.graph.nodes()) covered.insert(n.domain.empty() ? n.op_type : n.domain + "." + n.op_type);
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
    if (argc >= 3 && std::string_view(argv[1]) == "--random") {
      const std::uint64_t first = argc > 3 ? std::stoull(argv[3]) : 0;
      return sdx::gradient_tests::run_random(first, std::stoull(argv[2])) == 0 ? 0 : 1;
    }
    return run_files(argc - 1, argv + 1);
  } catch (const std::exception& e) {
    fmt::print("error: {}\n", e.what());
    return 1;
  }
}
