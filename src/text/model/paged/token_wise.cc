#include "text/model/paged/token_wise.h"

#include "base/words.h"
#include "graph/edit.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

namespace sdx::text {
namespace {

constexpr std::string_view kUnary =
    "Abs Cast Celu Clip Cos Elu Erf Exp FastGelu Gelu HardSigmoid Identity LeakyRelu Log Neg QuickGelu Reciprocal Relu Sigmoid "
    "Sin Softplus Sqrt Swish Tanh";
constexpr std::string_view kBinary = "Add BiasGelu Div Max Min Mul Pow Sub";
constexpr std::string_view kProducts = "MatMul MatMulNBits GgmlMatMul";
constexpr std::string_view kNorms =
    "LayerNormalization RMSNormalization SimplifiedLayerNormalization SkipLayerNormalization SkipSimplifiedLayerNormalization";

// The relation of a value to tokens.
struct Place {
  enum Kind : std::uint8_t { unknown, constant, tokens } kind = unknown;
  std::size_t rank = 0;        // tokens: [1,T], [1,T,features], [1,T,heads,size]
  std::int64_t parts = 1;      // rows of each token: [1,T * parts,size]
  std::int64_t features = -1;  // extent of the last axis; -1: not known
  bool operator==(const Place&) const = default;
};

class Judge {
 public:
  Judge(const Graph& g, const DecoderNames& names) : g_(g), names_(names), places_(g.values().size()) {}

  std::string run() {
    for (ValueId v = 0; v < g_.values().size(); ++v) {
      if (constant_of(g_, v) != nullptr) places_[v].kind = Place::constant;
    }
    for (const ValueId v : g_.inputs()) {
      if (g_.value(v).name == names_.ids || g_.value(v).name == names_.positions) places_[v] = {Place::tokens, 2, 1, -1};
    }
    for (NodeId id = 0; id < g_.nodes().size(); ++id) {
      const Node& n = g_.node(id);
      if (n.removed) continue;
      const std::optional<Place> out = n.subgraphs.empty() && n.overload.empty() ? judge(n) : std::nullopt;
      if (!out) return g_.describe(id) + " may mix tokens";
      for (const ValueId v : n.outputs) {
        if (v != kNoValue) places_[v] = *out;
      }
    }
    for (std::size_t i = 0; i < g_.outputs().size(); ++i) {
      if (g_.output_names()[i] == names_.logits && place(g_.outputs()[i]).kind != Place::tokens)
        return "its logits are not rows of tokens";
    }
    return {};
  }

 private:
  Place place(ValueId v) const { return v == kNoValue ? Place() : places_[v]; }
  const Tensor* constant(ValueId v) const {
    return v != kNoValue && place(v).kind == Place::constant && g_.value(v).constant ? &*g_.value(v).constant : nullptr;
  }
  Place first(const Node& n) const { return n.inputs.empty() ? Place() : place(n.inputs[0]); }
  bool constants_from(const Node& n, std::size_t first) const {
    for (std::size_t i = first; i < n.inputs.size(); ++i) {
      if (n.inputs[i] != kNoValue && place(n.inputs[i]).kind != Place::constant) return false;
    }
    return true;
  }

  std::optional<Place> judge(const Node& n) const {
    if (n.op_type != "PagedAttention" && constants_from(n, 0)) return Place{Place::constant};
    if (has_word(kUnary, n.op_type))
      return first(n).kind == Place::tokens && constants_from(n, 1) ? std::optional(first(n)) : std::nullopt;
    if (has_word(kBinary, n.op_type)) return elementwise(n);
    if (has_word(kProducts, n.op_type)) return product(n);
    if (has_word(kNorms, n.op_type)) return norm(n);
    if (n.op_type == "PagedAttention" && n.domain == "sdx") return attention(n);
    if (n.op_type == "Gather") return gather(n);
    if (n.op_type == "Reshape") return reshape(n);
    if (n.op_type == "RotaryEmbedding") return rotary(n);
    if (n.op_type == "Split" || n.op_type == "Concat" || n.op_type == "Softmax") return along_last_axis(n);
    return std::nullopt;
  }

  // Constants must be the same for all tokens.
  std::optional<Place> elementwise(const Node& n) const {
    Place out;
    for (const ValueId v : n.inputs) {
      if (v == kNoValue || place(v).kind != Place::tokens) continue;
      if (out.kind == Place::tokens && (out.rank != place(v).rank || out.parts != place(v).parts)) return std::nullopt;
      if (out.kind != Place::tokens || out.features <= 1) out = place(v);
    }
    for (const ValueId v : n.inputs) {
      if (v == kNoValue || place(v).kind == Place::tokens) continue;
      const Tensor* t = constant(v);
      if (t == nullptr || t->rank() > out.rank) return std::nullopt;
      const std::size_t behind = out.rank - 2;  // axes behind the tokens'
      if (t->rank() > behind && t->dim(t->rank() - behind - 1) != 1) return std::nullopt;
      if (t->rank() == out.rank && t->dim(0) != 1) return std::nullopt;
    }
    return out.kind == Place::tokens ? std::optional(out) : std::nullopt;
  }

  std::optional<Place> product(const Node& n) const {
    Place out = first(n);
    if (out.kind != Place::tokens || out.rank < 3 || !constants_from(n, 1)) return std::nullopt;
    out.features = -1;
    if (n.op_type == "MatMul") {
      const Tensor* b = n.inputs.size() > 1 ? constant(n.inputs[1]) : nullptr;
      if (b == nullptr || b->rank() != 2) return std::nullopt;
      out.features = b->dim(1);
    } else if (n.op_type == "MatMulNBits") {
      out.features = n.attributes.get_int("N", -1);
    }
    return out;
  }

  std::optional<Place> norm(const Node& n) const {
    const Place out = first(n);
    if (out.kind != Place::tokens || out.rank < 3) return std::nullopt;
    const std::int64_t axis = n.attributes.get_int("axis", -1);
    if (axis != -1 && axis != static_cast<std::int64_t>(out.rank) - 1) return std::nullopt;
    const bool skips = n.op_type.starts_with("Skip");
    if (skips && (n.inputs.size() < 2 || n.inputs[1] == kNoValue || place(n.inputs[1]).kind != Place::tokens ||
                  place(n.inputs[1]).rank != out.rank)) {
      return std::nullopt;
    }
    return constants_from(n, skips ? 2 : 1) ? std::optional(out) : std::nullopt;
  }

  std::optional<Place> attention(const Node& n) const {
    if (n.inputs.size() < 3) return std::nullopt;
    for (std::size_t i = 0; i < 3; ++i) {
      if (i > 0 && n.inputs[i] == kNoValue) continue;
      const Place p = place(n.inputs[i]);
      if (p.kind != Place::tokens || p.rank != 3 || p.parts != 1) return std::nullopt;
    }
    return constants_from(n, 12) ? std::optional(Place{Place::tokens, 3, 1, -1}) : std::nullopt;
  }

  std::optional<Place> gather(const Node& n) const {
    const std::int64_t axis = n.attributes.get_int("axis", 0);
    if (n.inputs.size() < 2 || n.inputs[1] == kNoValue) return std::nullopt;
    if (g_.value(n.inputs[1]).name == names_.wanted && g_.value(n.inputs[1]).is_input) {
      return axis == 1 && first(n).kind == Place::tokens && first(n).parts == 1 ? std::optional(first(n)) : std::nullopt;
    }
    const Tensor* data = constant(n.inputs[0]);
    Place out = place(n.inputs[1]);
    if (data == nullptr || out.kind != Place::tokens || axis != 0 || data->rank() < 1) return std::nullopt;
    out.rank += data->rank() - 1;
    out.features = data->rank() > 1 ? data->dim(data->rank() - 1) : -1;
    return out;
  }

  // [0,0,heads,size] and back, [0,-1,size] and back: a token's features stay together, tokens in their order.
  std::optional<Place> reshape(const Node& n) const {
    const Tensor* shape = n.inputs.size() > 1 ? constant(n.inputs[1]) : nullptr;
    Place out = first(n);
    if (shape == nullptr || shape->dtype() != DataType::int64 || out.kind != Place::tokens || out.rank < 3 ||
        n.attributes.get_int("allowzero", 0) != 0) {
      return std::nullopt;
    }
    const auto to = shape->values<std::int64_t>();
    if (to.size() < 3 || (to[0] != 0 && to[0] != 1)) return std::nullopt;
    if (to[1] == 0 && out.parts == 1) {
      out.rank = to.size();
      out.features = to.back() > 0 ? to.back() : -1;
      return out;
    }
    if (to[1] != -1 || to.size() != 3 || out.rank != 3 || to[2] < 1 || out.features < 1) return std::nullopt;
    const std::int64_t whole = out.features * out.parts;  // of a token
    if (whole % to[2] != 0) return std::nullopt;
    out.parts = whole / to[2];
    out.features = to[2];
    return out;
  }

  std::optional<Place> rotary(const Node& n) const {
    const bool foreign = n.domain == "com.microsoft";
    const std::size_t at = foreign ? 1 : 3;
    if (n.inputs.size() <= at || n.inputs[at] == kNoValue || n.attributes.get_int("is_packed_batching", 0) != 0)
      return std::nullopt;
    const Place x = first(n), positions = place(n.inputs[at]);
    if (x.kind != Place::tokens || x.rank != 3 || x.parts != 1 || positions.kind != Place::tokens || positions.rank != 2)
      return std::nullopt;
    for (std::size_t i = 1; i < n.inputs.size(); ++i) {
      if (i != at && n.inputs[i] != kNoValue && place(n.inputs[i]).kind != Place::constant) return std::nullopt;
    }
    return x;
  }

  std::optional<Place> along_last_axis(const Node& n) const {
    const Place out = first(n);
    const std::int64_t axis = n.attributes.get_int("axis", n.op_type == "Softmax" ? -1 : 0);
    if (out.kind != Place::tokens || out.rank < 3 || n.version < 13) return std::nullopt;
    if (axis != -1 && axis != static_cast<std::int64_t>(out.rank) - 1) return std::nullopt;
    const bool all = n.op_type == "Concat";
    for (const ValueId v : n.inputs) {
      const Place p = place(v);
      if (all && (p.kind != Place::tokens || p.rank != out.rank || p.parts != out.parts)) return std::nullopt;
    }
    if (!all && !constants_from(n, 1)) return std::nullopt;
    return Place{Place::tokens, out.rank, out.parts, n.op_type == "Softmax" ? out.features : -1};
  }

  const Graph& g_;
  const DecoderNames& names_;
  std::vector<Place> places_;
};

}  // namespace

std::string why_not_token_wise(const Graph& graph, const DecoderNames& names) { return Judge(graph, names).run(); }

std::string want_rows(Graph& g, const DecoderNames& names, int opset) {
  if (g.find(names.wanted)) return "it has a value '" + names.wanted + "' already";
  const auto at = std::find(g.output_names().begin(), g.output_names().end(), names.logits);
  if (at == g.output_names().end()) return "it has no output '" + names.logits + "'";
  ValueId v = g.outputs()[static_cast<std::size_t>(at - g.output_names().begin())];
  const ValueId logits = v;
  // Goes back to the product with the vocabulary's matrix, past nodes that work on each logit separately.
  ValueId rows = kNoValue;
  for (NodeId user = kNoNode; rows == kNoValue;) {
    user = g.value(v).producer;
    if (user == kNoNode) return "its logits are not computed by any node";
    const Node& n = g.node(user);
    if (has_word(kProducts, n.op_type)) {
      if (n.inputs.empty() || n.inputs[0] == kNoValue) return g.describe(user) + " computes the logits";
      rows = n.inputs[0];
      break;
    }
    if (!has_word(kUnary, n.op_type) && !has_word(kBinary, n.op_type)) return g.describe(user) + " computes the logits";
    ValueId next = kNoValue;
    for (const ValueId in : n.inputs) {
      if (in == kNoValue || g.value(in).constant) continue;
      if (next != kNoValue) return g.describe(user) + " computes the logits";
      next = in;
    }
    if (next == kNoValue) return g.describe(user) + " computes the logits";
    v = next;
  }
  const NodeId product = g.value(v).producer;
  const ValueId wanted = g.add_input(names.wanted, Type::tensor(DataType::int64, {Dim::symbol("wanted")}));
  const ValueId picked =
      add_node(g, make_node("wanted_rows", "Gather", opset, {rows, wanted}, {{"axis", std::int64_t{1}}}), "wanted_rows");
  g.node(product).inputs[0] = picked;
  Type& declared = g.value(logits).declared;
  if (declared.shape && declared.shape->size() == 3) {
    (*declared.shape)[1] = Dim::symbol("wanted");
    g.value(logits).type = declared;
  }
  return {};
}

}  // namespace sdx::text
