#include "gradients/generator.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <span>

#include <sdx/session.hpp>

#include "base/error.h"
#include "gradients/built.h"
#include "support/graph_text.h"
#include "tensor/element.h"

namespace sdx::gradient_tests {
namespace {

constexpr std::int64_t kMostElements = 150;
constexpr double kLargest = 60;
constexpr std::size_t kMostInputs = 7;

std::string input_line(const std::string& name, const Tensor& t) {
  return fmt::format("input {}: {}{}\n", name, t.dtype() == DataType::float64 ? "float64" : "int64", to_string(t.shape()));
}

}  // namespace

std::string list(const std::vector<std::int64_t>& values) { return fmt::format("[{}]", fmt::join(values, ", ")); }

std::string RandomGraph::text() const {
  std::string out = "opset 23\n";
  for (const std::string& name : inputs) out += input_line(name, values.at(name));
  for (const Statement& s : statements) out += s.text;
  for (const std::string& name : outputs) out += "output " + name + "\n";
  return out;
}

RandomGraph RandomGraph::pruned() const {
  std::set<std::string> needed(outputs.begin(), outputs.end());
  RandomGraph out;
  out.outputs = outputs;
  out.values = values;
  for (std::size_t i = statements.size(); i-- > 0;) {
    const Statement& s = statements[i];
    if (std::none_of(s.outputs.begin(), s.outputs.end(), [&](const std::string& v) { return needed.contains(v); })) continue;
    needed.insert(s.reads.begin(), s.reads.end());
    out.statements.insert(out.statements.begin(), s);
  }
  std::copy_if(inputs.begin(), inputs.end(), std::back_inserter(out.inputs),
               [&](const std::string& v) { return needed.contains(v); });
  return out;
}

RandomGraph draw_graph(std::uint64_t number) { return Generator(number).run(); }

std::string Generator::fresh(const Shape& shape, double low, double high) {
  std::string name = fmt::format("x{}", next_++);
  graph_.inputs.push_back(name);
  graph_.values[name] = random_tensor(shape, low, high, random_);
  floats_.push_back(name);
  return name;
}

std::string Generator::ints(const Shape& shape, const std::vector<std::int64_t>& values, const char* type) {
  std::string name = fmt::format("k{}", next_++);
  const std::string text = fmt::format("constant {}: {}{} {}\n", name, type, to_string(shape), fmt::join(values, " "));
  graph_.statements.push_back({{name}, {}, text});
  return name;
}

std::string Generator::number(double value) {
  std::string name = fmt::format("k{}", next_++);
  graph_.statements.push_back({{name}, {}, fmt::format("constant {}: float64[] {}\n", name, value)});
  return name;
}

std::string Generator::pick() {
  if (floats_.empty() || (graph_.inputs.size() < kMostInputs && chance(0.12))) {
    Shape shape;
    for (std::int64_t i = below(4) + (chance(0.2) ? 1 : 0); i > 0; --i) shape.push_back(below(4) + (chance(0.9) ? 1 : 0));
    for (std::int64_t& extent : shape) extent = std::max<std::int64_t>(extent, 1);
    return fresh(shape);
  }
  // Mostly what came last, else the graphs are broad and shallow.
  const auto n = static_cast<std::int64_t>(floats_.size());
  return floats_[static_cast<std::size_t>(chance(0.6) ? n - 1 - below(std::min<std::int64_t>(n, 3)) : below(n))];
}

std::string Generator::pick(std::int64_t wanted) {
  for (int attempt = 0; attempt < 4; ++attempt) {
    std::string v = pick();
    if (rank(v) == wanted) return v;
  }
  const std::string v = pick();
  if (chance(0.5)) {
    Shape shape = this->shape(v);
    while (static_cast<std::int64_t>(shape.size()) < wanted) {
      shape.insert(shape.begin() + below(static_cast<std::int64_t>(shape.size()) + 1), 1);
    }
    while (static_cast<std::int64_t>(shape.size()) > wanted && shape.size() > 1) {
      shape[shape.size() - 2] *= shape.back();
      shape.pop_back();
    }
    if (static_cast<std::int64_t>(shape.size()) == wanted) {
      std::string reshaped = add("Reshape", {v, ints({wanted}, shape)});
      if (!reshaped.empty()) return reshaped;
    }
  }
  Shape shape;
  for (std::int64_t i = 0; i < wanted; ++i) shape.push_back(1 + below(4));
  return fresh(shape);
}

std::string Generator::partner(const std::string& v) {
  const Shape own = shape(v);
  for (int attempt = 0; attempt < 3; ++attempt) {
    std::string other = pick();
    const Shape& s = shape(other);
    bool fits = true;
    for (std::size_t i = 0; i < std::min(s.size(), own.size()); ++i) {
      const std::int64_t a = s[s.size() - 1 - i];
      const std::int64_t b = own[own.size() - 1 - i];
      fits = fits && (a == b || a == 1 || b == 1);
    }
    if (fits) return other;
  }
  Shape shape = own;
  for (std::int64_t& extent : shape) extent = chance(0.3) ? 1 : extent;
  while (!shape.empty() && chance(0.25)) shape.erase(shape.begin());
  return fresh(shape);
}

bool Generator::accept(const Statement& s) {
  RandomGraph alone;
  alone.values = graph_.values;
  for (const std::string& name : s.reads) {
    if (graph_.values.contains(name)) {
      if (std::find(alone.inputs.begin(), alone.inputs.end(), name) == alone.inputs.end()) alone.inputs.push_back(name);
      continue;
    }
    const auto constant = std::find_if(graph_.statements.begin(), graph_.statements.end(),
                                       [&](const Statement& c) { return c.outputs[0] == name; });
    if (std::none_of(alone.statements.begin(), alone.statements.end(),
                     [&](const Statement& c) { return c.outputs[0] == name; })) {
      alone.statements.push_back(*constant);
    }
  }
  alone.statements.push_back(s);
  for (const std::string& name : s.outputs) {
    if (name != "_") alone.outputs.push_back(name);
  }
  NamedValues values;
  for (const std::string& name : alone.inputs) values.add(name, graph_.values.at(name));
  NamedValues results;
  try {
    results = open(testing::parse_model(alone.text())).run(values);
  } catch (const Error& e) {
    if (e.code() == ErrorCode::internal) throw;
    return false;
  }
  for (const NamedValue& r : results) {
    const Tensor& t = r.value.tensor();
    if (t.size() > kMostElements || t.rank() > 5) return false;
    if (t.dtype() != DataType::float64) continue;
    for (const double v : t.values<double>()) {
      if (!(std::abs(v) <= kLargest)) return false;
    }
  }
  for (const NamedValue& r : results) graph_.values[r.name] = r.value.tensor();
  return true;
}

std::vector<std::string> Generator::add_many(const std::string& op, const std::vector<std::string>& inputs, std::size_t outputs,
                                             const std::string& attributes, const std::string& body,
                                             const std::vector<std::string>& captures) {
  Statement s;
  for (const std::string& v : inputs) {
    if (v.empty()) return {};
    if (v != "_") s.reads.push_back(v);
  }
  s.reads.insert(s.reads.end(), captures.begin(), captures.end());
  for (std::size_t i = 0; i < outputs; ++i) s.outputs.push_back(fmt::format("v{}", next_++));
  s.text = fmt::format("{} = {}({})", fmt::join(s.outputs, ", "), op, fmt::join(inputs, ", "));
  if (!attributes.empty()) s.text += " {" + attributes + "}";
  s.text += "\n" + body;
  if (!accept(s)) return {};
  graph_.statements.push_back(s);
  for (const std::string& v : s.outputs) {
    const Tensor& t = graph_.values.at(v);
    if (t.dtype() == DataType::float64 && t.size() > 0) floats_.push_back(v);
  }
  return s.outputs;
}

std::string Generator::add(const std::string& op, const std::vector<std::string>& inputs, const std::string& attributes) {
  const std::vector<std::string> out = add_many(op, inputs, 1, attributes);
  return out.empty() ? "" : out[0];
}

std::string Generator::positive(const std::string& x) { return add("Add", {add("Mul", {x, x}), number(0.5)}); }

RandomGraph Generator::run() {
  using Family = void (*)(Generator&);
  constexpr struct {
    Family add;
    std::int64_t weight;
  } kFamilies[] = {{add_elementwise, 30}, {add_reduction, 10},   {add_shape_operation, 14}, {add_indexing, 12},
                   {add_product, 10},     {add_convolution, 10}, {add_normalisation, 9},    {add_loss, 2},
                   {add_control_flow, 7}, {add_recurrent, 3}};
  std::int64_t total = 0;
  for (const auto& f : kFamilies) total += f.weight;
  for (std::int64_t left = 3 + below(9); left > 0; --left) {
    std::int64_t at = below(total);
    for (const auto& f : kFamilies) {
      if ((at -= f.weight) >= 0) continue;
      f.add(*this);
      break;
    }
  }
  if (graph_.inputs.empty()) fresh({2, 3});
  // The last values, and now and then one from the middle, which is then used twice.
  std::set<std::string> read;
  for (const Statement& s : graph_.statements) read.insert(s.reads.begin(), s.reads.end());
  for (const std::string& v : floats_) {
    const bool made = v[0] == 'v';
    if (made && (!read.contains(v) || chance(0.1))) graph_.outputs.push_back(v);
  }
  if (graph_.outputs.empty()) graph_.outputs.push_back(add("Identity", {floats_.back()}));
  return graph_.pruned();
}

}  // namespace sdx::gradient_tests
