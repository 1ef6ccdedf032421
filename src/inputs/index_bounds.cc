#include "inputs/index_bounds.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <string_view>

#include "base/error.h"
#include "base/words.h"
#include "graph/edit.h"
#include "onnx/reader.h"
#include "session/pipeline.h"
#include "tensor/element.h"

namespace sdx::inputs {
namespace {

using Extent = std::optional<std::int64_t>;

// A value derived from the input's elements: factor * element + a number between `low` and `high`.
struct Derived {
  double factor = 1, low = 0, high = 0;
};

Extent extent(const Graph& g, const Node& n, std::size_t input, std::int64_t axis) {
  if (input >= n.inputs.size() || n.inputs[input] == kNoValue) return std::nullopt;
  const SymShape* s = shape_of(g, n.inputs[input]);
  if (s == nullptr) return std::nullopt;
  const auto rank = static_cast<std::int64_t>(s->size());
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank || !(*s)[static_cast<std::size_t>(axis)].is_const()) return std::nullopt;
  return (*s)[static_cast<std::size_t>(axis)].value();
}

// For GatherND and ScatterND: the smallest of the axes that an index names.
Extent least_indexed(const Graph& g, const Node& n) {
  const std::int64_t first = n.attributes.get_int("batch_dims", 0);
  const Extent count = extent(g, n, 1, -1);
  Extent least;
  for (std::int64_t i = first; i < first + count.value_or(0); ++i) {
    const Extent e = extent(g, n, 0, i);
    if (e && (!least || *e < *least)) least = e;
  }
  return least;
}

// An operator whose input `slot` holds indices below the extent of `axis` of input `table`; with `counts`, numbers up to it.
struct IndexUse {
  std::string_view domain, op;
  std::size_t slot, table;
  std::int64_t axis;
  const char* axis_attribute = "";  // its default is `axis`
  bool counts = false;
};

constexpr std::string_view kMs = "com.microsoft";
constexpr IndexUse kUses[] = {
    {"", "Gather", 1, 0, 0, "axis"},
    {"", "GatherElements", 1, 0, 0, "axis"},
    {"", "Scatter", 1, 0, 0, "axis"},
    {"", "ScatterElements", 1, 0, 0, "axis"},
    {"", "TopK", 1, 0, -1, "axis", true},
    {"", "ReverseSequence", 1, 0, 0, "time_axis", true},
    {"", "NegativeLogLikelihoodLoss", 1, 0, 1},
    {"", "SoftmaxCrossEntropyLoss", 1, 0, 1},
    {"", "RotaryEmbedding", 3, 1, 0},
    {kMs, "RotaryEmbedding", 1, 2, 0},
    {kMs, "EmbedLayerNormalization", 0, 2, 0},
    {kMs, "EmbedLayerNormalization", 1, 4, 0},
    {kMs, "EmbedLayerNormalization", 8, 3, 0},
    {kMs, "QEmbedLayerNormalization", 0, 2, 0},
    {kMs, "QEmbedLayerNormalization", 1, 4, 0},
    {kMs, "GatherBlockQuantized", 1, 0, 0, "gather_axis"},
};

Extent recurrent_steps(const Graph& g, const Node& n) { return extent(g, n, 0, n.attributes.get_int("layout", 0) == 1 ? 1 : 0); }

// One more than the largest index that the node permits in this input.
Extent indexed(const Graph& g, const Node& n, std::size_t slot) {
  if (slot == 1 && n.domain.empty() && (n.op_type == "GatherND" || n.op_type == "ScatterND")) return least_indexed(g, n);
  if (slot == 4 && n.domain.empty() && (n.op_type == "LSTM" || n.op_type == "GRU" || n.op_type == "RNN")) {
    const Extent steps = recurrent_steps(g, n);
    return steps ? Extent(*steps + 1) : steps;
  }
  for (const IndexUse& use : kUses) {
    if (use.slot != slot || use.op != n.op_type || use.domain != n.domain) continue;
    const std::int64_t axis = *use.axis_attribute == 0 ? use.axis : n.attributes.get_int(use.axis_attribute, use.axis);
    const Extent e = extent(g, n, use.table, axis);
    return e && use.counts ? Extent(*e + 1) : e;
  }
  return std::nullopt;
}

// Whether results of the operator are elements of this input.
bool moves(const Node& n, std::size_t slot) {
  constexpr std::string_view kOfAll = "Concat ScatterElements ScatterND";
  constexpr std::string_view kOfFirst =
      "Cast CastLike Identity Reshape Squeeze Unsqueeze Flatten Transpose Slice Gather GatherElements GatherND Expand Tile "
      "Split Pad ReduceMax ReduceMin Floor Ceil Round Trilu TopK Compress Unique DepthToSpace Resize ReverseSequence";
  if (!n.domain.empty()) return false;
  if (n.op_type == "Where") return slot == 1 || slot == 2;
  return has_word(kOfAll, n.op_type) || (slot == 0 && has_word(kOfFirst, n.op_type));
}

// The constant's elements lie between these.
std::optional<std::pair<double, double>> constant_range(const Graph& g, ValueId v) {
  const ValueInfo& info = g.value(v);
  const Tensor* t = constant_of(g, v);
  if (t == nullptr && info.producer != kNoNode && g.node(info.producer).op_type == "Constant") {
    const Attributes& a = g.node(info.producer).attributes;
    if (a.has("value_int"))
      return std::pair(static_cast<double>(a.get_int("value_int")), static_cast<double>(a.get_int("value_int")));
    if (a.has("value")) t = &a.get_tensor("value");
  }
  if (t == nullptr || t->dtype() == DataType::string || t->size() == 0 || t->size() > (1 << 20)) return std::nullopt;
  std::pair range(std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity());
  for (std::int64_t i = 0; i < t->size(); ++i) {
    const double value = element_as_double(*t, i);
    if (!std::isfinite(value)) return std::nullopt;
    range = {std::min(range.first, value), std::max(range.second, value)};
  }
  return range;
}

// The result of arithmetic with a constant; nothing where the other operand is not known.
std::optional<Derived> computed(const Graph& g, const Node& n, std::size_t slot, const Derived& d) {
  if (!n.domain.empty()) return std::nullopt;
  if (n.op_type == "Neg") return Derived{-d.factor, -d.high, -d.low};
  if (n.inputs.size() != 2 || slot > 1) return std::nullopt;
  const ValueId other = n.inputs[1 - slot];
  const auto c = other == kNoValue ? std::nullopt : constant_range(g, other);
  if (!c) return std::nullopt;
  const auto [least, most] = *c;
  if (n.op_type == "Add") return Derived{d.factor, d.low + least, d.high + most};
  if (n.op_type == "Sub" && slot == 0) return Derived{d.factor, d.low - most, d.high - least};
  if (n.op_type == "Sub") return Derived{-d.factor, least - d.high, most - d.low};
  if (least != most || least == 0) return std::nullopt;
  const double by = n.op_type == "Mul" ? least : n.op_type == "Div" && slot == 0 ? 1 / least : 0;
  if (by == 0) return std::nullopt;
  return by > 0 ? Derived{d.factor * by, d.low * by, d.high * by} : Derived{d.factor * by, d.high * by, d.low * by};
}

class Tracer {
 public:
  explicit Tracer(std::optional<IntegerRange>& found) : found_(found) {}

  void follow(const Graph& g, ValueId start, const Derived& how) {
    struct Place {
      ValueId value;
      Derived how;
    };
    const Readers readers(g);
    std::set<ValueId> seen{start};
    std::vector<Place> open{{start, how}};
    while (!open.empty()) {
      const Place at = open.back();
      open.pop_back();
      for (const NodeId id : readers.of(at.value)) {
        const Node& n = g.node(id);
        enter(n, at.value, at.how);
        const std::optional<Derived> result = through(g, n, at.value, at.how);
        // Further outputs of TopK and Unique are places, not elements.
        const std::size_t results = !result ? 0 : n.op_type == "Split" ? n.outputs.size() : 1;
        for (std::size_t i = 0; i < results; ++i) {
          if (n.outputs[i] != kNoValue && seen.insert(n.outputs[i]).second) open.push_back({n.outputs[i], *result});
        }
      }
    }
  }

 private:
  void enter(const Node& n, ValueId value, const Derived& how) {
    for (const Subgraph& s : n.subgraphs) {
      const std::size_t formals = s.graph->inputs().size() - s.captures.size();
      for (std::size_t i = 0; i < s.captures.size(); ++i) {
        if (s.captures[i] == value) follow(*s.graph, s.graph->inputs()[formals + i], how);
      }
    }
  }

  // Derives the node's outputs from the value, and the bounds that it demands of the value.
  std::optional<Derived> through(const Graph& g, const Node& n, ValueId value, const Derived& how) {
    std::optional<Derived> result;
    for (std::size_t slot = 0; slot < n.inputs.size(); ++slot) {
      if (n.inputs[slot] != value) continue;
      if (const Extent e = indexed(g, n, slot)) demand(how, static_cast<double>(*e));
      if (!result) result = moves(n, slot) ? std::optional(how) : computed(g, n, slot, how);
    }
    return result;
  }

  // 0 <= factor * element + something < extent.
  void demand(const Derived& d, double extent) {
    if (extent < 1) return;
    double low = (0 - d.low) / d.factor;
    double high = (extent - 1 - d.high) / d.factor;
    if (d.factor < 0) std::swap(low, high);
    constexpr double kMost = 1e15;
    const auto least = static_cast<std::int64_t>(std::ceil(std::clamp(low, -kMost, kMost)));
    const auto most = static_cast<std::int64_t>(std::floor(std::clamp(high, -kMost, kMost)));
    if (!found_) found_ = IntegerRange{least, most};
    found_ = IntegerRange{std::max(found_->low, least), std::min(found_->high, most)};
  }

  std::optional<IntegerRange>& found_;
};

}  // namespace

IndexBounds index_bounds(const Graph& graph) {
  IndexBounds bounds;
  for (const ValueId v : graph.inputs()) {
    const ValueInfo& info = graph.value(v);
    if (!info.type.is_tensor() || !is_integer(info.type.elem)) continue;
    std::optional<IntegerRange> found;
    Tracer(found).follow(graph, v, {});
    // Masks count tokens: GroupQueryAttention takes their sum for the length.
    if (!found && info.name.find("attention_mask") != std::string::npos) found = IntegerRange{1, 1};
    if (found && found->low <= found->high) bounds.emplace(info.name, *found);
  }
  return bounds;
}

IndexBounds index_bounds(const std::filesystem::path& path, const SessionOptions& options,
                         const std::vector<std::pair<std::string, Shape>>& shapes) {
  try {
    Model model = read_model(path);
    for (const ValueId v : model.graph.inputs()) {
      ValueInfo& info = model.graph.value(v);
      const auto given = std::find_if(shapes.begin(), shapes.end(), [&](const auto& s) { return s.first == info.name; });
      if (given == shapes.end() || !info.declared.is_tensor()) continue;
      info.declared.shape = SymShape(given->second.begin(), given->second.end());
      info.type = info.declared;
    }
    SessionOptions plain = options;
    plain.dimensions.clear();  // the inputs' own extents are fixed already
    plain.quantize = Quantize::none;
    session::prepare(model, plain, true);
    return index_bounds(model.graph);
  } catch (const Error&) {
    return {};
  }
}

}  // namespace sdx::inputs
