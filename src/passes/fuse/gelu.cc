// Gelu as exporters write it: x/2 (1 + erf(x / sqrt 2)) in PyTorch's and TensorFlow's orders of operations, and the tanh
// approximation (Hendrycks and Gimpel 2016), of which every library has its own; x Sigmoid(alpha x) as well. Instead of one
// pattern for each, the function that the nodes compute is evaluated at a few points and compared.

#include <cmath>
#include <limits>
#include <numbers>
#include <string>

#include "graph/edit.h"
#include "passes/fuse/fuse.h"

namespace sdx::fuse {
namespace {

constexpr int kUp = 5;    // nodes between x and Erf, Tanh or Sigmoid: Pow, Mul, Add, Mul and one to spare
constexpr int kDown = 4;  // and between that and the result
constexpr int kDepth = 12;

// The value as a function of `x` alone, at `at`, computed in T; NaN when it is none, or none that is known here.
template <class T>
T evaluate(const Graph& g, ValueId v, ValueId x, T at, int depth) {
  constexpr T kNone = std::numeric_limits<T>::quiet_NaN();
  if (v == x) return at;
  if (const auto scalar = scalar_value(g, v)) return static_cast<T>(*scalar);
  if (depth == 0 || v == kNoValue || g.value(v).producer == kNoNode) return kNone;
  const Node& n = g.node(g.value(v).producer);
  if (n.removed || !n.domain.empty() || !n.subgraphs.empty()) return kNone;
  const auto arg = [&](std::size_t i) { return evaluate(g, n.inputs[i], x, at, depth - 1); };
  if (n.inputs.size() == 1) {
    if (n.op_type == "Erf") return std::erf(arg(0));
    if (n.op_type == "Tanh") return std::tanh(arg(0));
    if (n.op_type == "Sigmoid") return 1 / (1 + std::exp(-arg(0)));
    return kNone;
  }
  if (n.op_type == "Add" && is_binary(n, "Add")) return arg(0) + arg(1);
  if (n.op_type == "Mul" && is_binary(n, "Mul")) return arg(0) * arg(1);
  if (n.op_type == "Sub" && is_binary(n, "Sub")) return arg(0) - arg(1);
  if (n.op_type == "Div" && is_binary(n, "Div")) return arg(0) / arg(1);
  if (n.op_type == "Pow" && is_binary(n, "Pow")) return std::pow(arg(0), arg(1));
  return kNone;
}

double gelu(double x) { return 0.5 * x * (1 + std::erf(x / std::numbers::sqrt2)); }
double fast_gelu(double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x))); }

struct Found {
  std::string op;  // of com.microsoft; "" for none
  float alpha = 0;
};

// The factor alpha with which the nodes' results for infinities and the largest numbers are reproduced; the order of operations
// matters there. A product with x that is halved afterwards is infinite beyond half of the largest float; the fused operators
// have a form for that, alpha 1. nullopt: neither form gives the same.
std::optional<float> at_the_ends(const Graph& g, ValueId y, ValueId x) {
  constexpr float kInf = std::numeric_limits<float>::infinity(), kMost = std::numeric_limits<float>::max();
  const auto at = [&](float v) { return evaluate<float>(g, y, x, v, kDepth); };
  const bool same = std::isnan(at(-kInf)) && at(kInf) == kInf && at(-kMost) == 0;
  const float most = at(kMost);
  if (!same || (most != kInf && !(most >= 0.99F * kMost))) return std::nullopt;
  return most == kInf ? 1.0F : 0.0F;
}

// Constants are written with 7 digits and more: the error stays below 2e-6 of |x|. The two forms of Gelu differ by 4e-4.
Found recognise(const Graph& g, ValueId y, ValueId x) {
  constexpr double kPoints[] = {-3.3, -1.9, -1.1, -0.4, 0.2, 0.7, 1.3, 2.6, 4.5};
  bool exact = true, fast = true, quick = true;
  double alpha = 0;
  for (const double p : kPoints) {
    const double value = evaluate<double>(g, y, x, p, kDepth);
    if (!std::isfinite(value)) return {};
    const auto near = [&](double want) { return std::fabs(value - want) <= 2e-6 * std::fabs(p); };
    exact = exact && near(gelu(p));
    fast = fast && near(fast_gelu(p));
    if (alpha == 0) alpha = -std::log(p / value - 1) / p;
    quick = quick && std::isfinite(alpha) && near(p / (1 + std::exp(-alpha * p)));
  }
  if (!exact && !fast && !quick) return {};
  const auto ends = at_the_ends(g, y, x);
  if (!ends) return {};
  if (exact) return {"Gelu", *ends};
  if (fast) return {"FastGelu", *ends};
  return *ends == 0 ? Found{"QuickGelu", static_cast<float>(alpha)} : Found{};
}

// The other operand of a step whose first is not `v`.
bool reads(const Node& n, ValueId v) { return n.inputs.size() <= 2 && (n.inputs[0] == v || n.inputs.back() == v); }

bool fuse_at(Graph& g, NodeId id, const Readers& readers) {
  const Node& anchor = g.node(id);
  const bool known = anchor.op_type == "Erf" || anchor.op_type == "Tanh" || anchor.op_type == "Sigmoid";
  if (anchor.removed || !anchor.domain.empty() || !known || !is_f32(g, anchor.inputs.at(0))) return false;
  std::vector<ValueId> sources{anchor.inputs[0]};
  for (std::size_t i = 0; i < sources.size() && sources.size() < 16 && i < (1U << kUp); ++i) {
    const NodeId maker = g.value(sources[i]).producer;
    if (maker == kNoNode || g.node(maker).removed || g.node(maker).inputs.size() != 2) continue;
    for (const ValueId v : g.node(maker).inputs) {
      if (v != kNoValue && !scalar_value(g, v) && std::find(sources.begin(), sources.end(), v) == sources.end())
        sources.push_back(v);
    }
  }
  ValueId y = anchor.outputs.at(0);
  for (int step = 0; step < kDown; ++step) {
    const NodeId reader = readers.only(y);
    if (reader == kNoNode || g.node(reader).outputs.size() != 1 || !reads(g.node(reader), y)) return false;
    y = g.node(reader).outputs[0];
    if (y == kNoValue) return false;
    for (const ValueId x : sources) {
      if (!same_shape(g, x, y)) continue;
      const Found found = recognise(g, y, x);
      if (found.op.empty()) continue;
      Node& last = g.node(reader);
      last.domain = "com.microsoft";
      last.op_type = found.op;
      last.version = 1;
      last.inputs = {x};
      last.attributes = {};
      if (found.op == "QuickGelu" || found.alpha != 0) last.attributes.set("alpha", found.alpha);
      return true;
    }
  }
  return false;
}

}  // namespace

bool fuse_gelu(Graph& graph) {
  bool changed = false;
  const Readers readers(graph);
  for (NodeId id = 0; id < graph.nodes().size(); ++id) changed = fuse_at(graph, id, readers) || changed;
  return changed;
}

}  // namespace sdx::fuse
