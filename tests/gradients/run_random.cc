#include "gradients/run_random.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "base/error.h"
#include "gradients/built.h"
#include "gradients/random_graph.h"
#include "support/graph_text.h"
#include "tensor/element.h"

namespace sdx::gradient_tests {
namespace {

enum class Way { declared, unknown, symbols, fused, second, float32 };

constexpr Way kWays[] = {Way::declared, Way::unknown, Way::symbols, Way::fused, Way::second, Way::float32};
constexpr const char* kNames[] = {"declared extents",           "unknown extents", "symbolic extents",
                                  "fused operators in float32", "second order",    "float32"};

struct Tally {
  std::map<std::string, int> without;  // second order: what has no gradient, how often
  int compared = 0, bends = 0;         // directional derivatives; of these, where the function has none
};

Point point_of(const RandomGraph& g, DataType elem) {
  Point p;
  for (const std::string& name : g.inputs) {
    p.values.add(name, converted(g.values.at(name), elem));
    p.varying.push_back(name);
  }
  return p;
}

using Direction = std::map<std::string, Tensor>;

NamedValues moved(const Point& p, const Direction& along, double step) {
  NamedValues out;
  for (const NamedValue& v : p.values) {
    const auto d = along.find(v.name);
    if (d == along.end()) {
      out.add(v.name, v.value);
      continue;
    }
    const Tensor& x = v.value.tensor();
    Tensor t(DataType::float64, x.shape());
    for (std::int64_t i = 0; i < x.size(); ++i) {
      set_element(t, i, element_as_double(x, i) + step * element_as_double(d->second, i));
    }
    out.add(v.name, std::move(t));
  }
  return out;
}

// Whether the function bends at the point, so that it has no derivative along the direction.
bool bends(const Built& built, const Point& p, const Direction& along, double scale) {
  const double here = target_at(built, p.values);
  for (const double step : {1e-6, 1e-4}) {
    const double right = (target_at(built, moved(p, along, step)) - here) / step;
    const double left = (here - target_at(built, moved(p, along, -step))) / step;
    if (!(std::abs(right - left) <= 2e-3 * scale)) return true;
  }
  return false;
}

// "" when the derivative along the direction is `received`. Steps of several sizes: small ones where a bend is near, large ones
// where the values are.
std::string compare_along(const Built& built, const Point& p, const Direction& along, double received, double scale,
                          Tally& tally) {
  ++tally.compared;
  double expected = 0;
  for (const double step : {1e-5, 1e-4, 1e-6, 1e-3}) {
    const double near = (target_at(built, moved(p, along, step)) - target_at(built, moved(p, along, -step))) / (2 * step);
    const double far = (target_at(built, moved(p, along, 2 * step)) - target_at(built, moved(p, along, -2 * step))) / (4 * step);
    expected = (4 * near - far) / 3;
    if (std::abs(received - expected) <= 2e-6 * scale) return "";
  }
  if (bends(built, p, along, scale)) {
    ++tally.bends;
    return "";
  }
  return fmt::format("{}, expected {}", received, expected);
}

std::string compare_differences(const RandomGraph& g, const Options& options, Tally& tally) {
  std::mt19937_64 random(11);
  const Point p = point_of(g, DataType::float64);
  const Built built = build(testing::parse_model(g.text()), p, options, random);
  const NamedValues computed = built.session.run(p.values);
  Direction all;
  double sum = 0, largest = 1;
  for (std::size_t i = 0; i < p.varying.size(); ++i) {
    const Tensor& x = p.values.tensor(p.varying[i]);
    const Tensor& gradient = computed.tensor(built.gradients[i]);
    if (gradient.shape() != x.shape()) {
      return fmt::format("the gradient of '{}' is {}, expected {}", p.varying[i], gradient.type_string(), x.type_string());
    }
    const Tensor d = random_tensor(x.shape(), -1, 1, random);
    double received = 0, scale = 1;
    for (std::int64_t e = 0; e < x.size(); ++e) {
      received += element_as_double(gradient, e) * element_as_double(d, e);
      scale += std::abs(element_as_double(gradient, e));
    }
    const std::string problem = compare_along(built, p, {{p.varying[i], d}}, received, scale, tally);
    if (!problem.empty()) return fmt::format("by '{}': {}", p.varying[i], problem);
    all.emplace(p.varying[i], d);
    sum += received;
    largest = std::max(largest, scale);
  }
  const std::string problem = compare_along(built, p, all, sum, largest, tally);
  return problem.empty() ? "" : "along all inputs: " + problem;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) text.replace(at, from.size(), to);
  return text;
}

std::string compare_float32(const RandomGraph& g, const Options& options) {
  const Point narrow = point_of(g, DataType::float32);
  Point wide = narrow;
  wide.values = {};
  for (const NamedValue& v : narrow.values) wide.values.add(v.name, converted(v.value.tensor(), DataType::float64));
  const std::string text = replaced(replaced(replaced(g.text(), "float64", "float32"), "to=11", "to=1"), "dtype=11", "dtype=1");
  std::mt19937_64 random(11), same(11);
  const Built a = build(testing::parse_model(text), narrow, options, random);
  const Built b = build(testing::parse_model(g.text()), wide, {}, same);
  const NamedValues received = a.session.run(narrow.values), expected = b.session.run(wide.values);
  double scale = 1;
  for (const std::string& name : b.gradients) {
    for (const double v : expected.tensor(name).values<double>()) scale = std::max(scale, std::abs(v));
  }
  for (std::size_t i = 0; i < a.gradients.size(); ++i) {
    const Tensor& r = received.tensor(a.gradients[i]);
    const Tensor& e = expected.tensor(b.gradients[i]);
    if (r.shape() != e.shape()) return fmt::format("the gradient of '{}' is {}", narrow.varying[i], r.type_string());
    for (std::int64_t k = 0; k < e.size(); ++k) {
      if (std::abs(element_as_double(r, k) - element_as_double(e, k)) <= 2e-4 * scale) continue;
      return fmt::format("by element {} of '{}': {}, in float64 {}", k, narrow.varying[i], element_as_double(r, k),
                         element_as_double(e, k));
    }
  }
  return "";
}

// The first line says why, the innermost names the node.
std::string without_gradient(const std::string& what) {
  const std::size_t at = what.find("operator ");
  return at == std::string::npos ? what.substr(0, what.find('\n')) : what.substr(at, what.find('\n', at) - at);
}

// "" when it passes that way.
std::string check(const RandomGraph& g, Way way, Tally& tally) {
  try {
    switch (way) {
      case Way::declared: return compare_differences(g, {}, tally);
      case Way::unknown: return compare_differences(g, {Extents::unknown, false, false}, tally);
      case Way::symbols: return compare_differences(g, {Extents::symbols, false, false}, tally);
      case Way::fused: return compare_float32(g, {Extents::declared, false, true});
      case Way::second: return compare_differences(g, {Extents::declared, true, false}, tally);
      case Way::float32: return compare_float32(g, {});
    }
  } catch (const Error& e) {
    const bool lacks = e.code() == ErrorCode::not_implemented;
    if (lacks && way == Way::second) ++tally.without[without_gradient(e.what())];
    // Beyond what is differentiated today: not every gradient has a gradient, and some formulas need ranks.
    if (lacks && (way == Way::second || way == Way::unknown)) return "";
    return fmt::format("error: {}", e.what());
  } catch (const std::exception& e) {
    return fmt::format("error: {}", e.what());
  }
  return "";
}

// What is left when everything is taken away without which it still fails.
RandomGraph shrunk(RandomGraph g, Way way) {
  Tally unused;
  const auto fails = [&](const RandomGraph& candidate) {
    return !candidate.inputs.empty() && !check(candidate, way, unused).empty();
  };
  for (bool changed = true; changed;) {
    changed = false;
    const auto attempt = [&](RandomGraph candidate) {
      candidate = candidate.pruned();
      if (candidate.statements.size() + candidate.outputs.size() >= g.statements.size() + g.outputs.size()) return false;
      if (!fails(candidate)) return false;
      g = std::move(candidate);
      return changed = true;
    };
    const auto of_floats = [&](const std::string& v) {
      return g.values.contains(v) && g.values.at(v).dtype() == DataType::float64;
    };
    for (std::size_t i = 0; i < g.statements.size() && !changed; ++i) {
      for (const std::string& v : g.statements[i].outputs) {
        if (changed || !of_floats(v)) continue;
        RandomGraph candidate = g;
        candidate.outputs = {v};
        attempt(std::move(candidate));
      }
    }
    for (std::size_t i = 0; i < g.statements.size() && !changed; ++i) {
      const Statement s = g.statements[i];
      if (!std::all_of(s.outputs.begin(), s.outputs.end(), of_floats)) continue;
      RandomGraph candidate = g;
      candidate.statements.erase(candidate.statements.begin() + static_cast<std::ptrdiff_t>(i));
      std::erase_if(candidate.outputs,
                    [&](const std::string& v) { return std::find(s.outputs.begin(), s.outputs.end(), v) != s.outputs.end(); });
      if (candidate.outputs.empty()) continue;
      candidate.inputs.insert(candidate.inputs.end(), s.outputs.begin(), s.outputs.end());
      attempt(std::move(candidate));
    }
  }
  return g;
}

}  // namespace

int run_random(std::uint64_t first, std::uint64_t count) {
  int failures = 0;
  Tally tally;
  std::size_t statements = 0;
  for (std::uint64_t number = first; number < first + count; ++number) {
    const RandomGraph g = draw_graph(number);
    statements += g.statements.size();
    for (const Way way : kWays) {
      std::string problem = check(g, way, tally);
      if (problem.empty()) continue;
      ++failures;
      const RandomGraph small = shrunk(g, way);
      Tally unused;
      problem = check(small, way, unused);
      fmt::print("FAIL graph {}, {}: {}\n{}", number, kNames[static_cast<int>(way)], problem, small.text());
      for (const std::string& name : small.inputs) {
        fmt::print("  {} = {}\n", name, fmt::join(small.values.at(name).values<double>(), " "));
      }
      break;
    }
  }
  for (const auto& [what, times] : tally.without) fmt::print("no second order in {} graphs: {}\n", times, what);
  fmt::print("{} graphs of {} statements, {} derivatives, at {} bends, {} failures\n", count, statements, tally.compared,
             tally.bends, failures);
  return failures;
}

}  // namespace sdx::gradient_tests
