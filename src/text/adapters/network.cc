#include "text/adapters/network.h"

#include <algorithm>
#include <optional>
#include <set>
#include <span>
#include <string_view>

#include "base/error.h"
#include "graph/edit.h"
#include "ops/infer.h"
#include "tensor/element.h"
#include "text/model/network/graph_writer.h"

namespace sdx::text {
namespace {

constexpr std::string_view kParts[] = {"qkv_proj",  "q_proj",  "k_proj",       "v_proj",    "o_proj",
                                       "gate_proj", "up_proj", "gate_up_proj", "down_proj", "lm_head"};

struct Place {
  std::string layer;  // "" of lm_head
  std::string_view part;
};

// "/model/layers.3/self_attn/q_proj/MatMul" or "model.layers.3.q_proj.weight".
std::optional<Place> place_of(std::string_view name) {
  Place place;
  bool layer_follows = false;
  for (std::size_t at = 0; at <= name.size();) {
    const std::size_t end = std::min(name.find_first_of("./", at), name.size());
    const std::string_view word = name.substr(at, end - at);
    at = end + 1;
    if (layer_follows) place.layer = word;
    layer_follows = word == "layers";
    const auto part = std::find(std::begin(kParts), std::end(kParts), word);
    if (part == std::end(kParts)) continue;
    place.part = *part;
    const bool digits = !place.layer.empty() && place.layer.find_first_not_of("0123456789") == std::string::npos;
    if (place.part == "lm_head") return Place{"", place.part};
    return digits ? std::optional(place) : std::nullopt;
  }
  return std::nullopt;
}

bool is_product(const Node& n) {
  if (n.removed || n.inputs.size() < 2 || n.outputs.size() != 1) return false;
  return (n.op_type == "MatMul" && n.domain.empty()) || (n.op_type == "MatMulNBits" && n.domain == "com.microsoft");
}

std::optional<Place> place_of(const Graph& g, const Node& n) {
  if (!is_product(n)) return std::nullopt;
  if (auto place = place_of(n.name)) return place;
  return n.inputs[1] == kNoValue ? std::nullopt : place_of(g.value(n.inputs[1]).name);
}

Tensor rounded(Tensor floats, DataType type) {
  if (type != DataType::bfloat16) return with_type(std::move(floats), type);
  Tensor out(type, floats.shape());
  const std::span<const float> from = floats.values<float>();
  for (std::size_t i = 0; i < from.size(); ++i) set_element(out, static_cast<std::int64_t>(i), static_cast<double>(from[i]));
  return out;
}

// Some of an adapter's columns for some of a product's.
struct Piece {
  std::string weight;  // as GGUF files call it
  std::int64_t from = 0, to = 0, count = 0;
  std::int64_t given = 0;  // the columns that the adapter must have in all
};

class Adding {
 public:
  Adding(Model& model, const LoraWeights& adapter, std::size_t number)
      : graph_(model.graph), adapter_(adapter), number_(number), version_(model.opsets.at("")), typed_(model.graph) {
    ops::infer_in_place(typed_);
  }

  void run() {
    const std::size_t nodes = graph_.nodes().size();
    for (NodeId id = 0; id < nodes; ++id) {
      const auto place = place_of(graph_, graph_.node(id));
      if (!place) continue;
      for (const Piece& piece : pieces_of(*place, columns_of(graph_.node(id)))) add(id, *place, piece);
    }
    for (const auto& [weight, pair] : adapter_.pairs) {
      if (used_.contains(weight)) continue;
      fail(ErrorCode::invalid_model,
           "the adapter '{}' is for another model: the network has no product with '{}' that is known by its name",
           adapter_.shown, weight);
    }
    graph_.compact();
  }

 private:
  // The extent of the product's result.
  std::int64_t columns_of(const Node& n) const {
    if (n.op_type == "MatMulNBits") return n.attributes.get_int("N");
    const Type& weight = typed_.value(n.inputs[1]).type;
    const bool known = weight.is_tensor() && weight.shape && weight.shape->size() == 2 && weight.shape->back().is_const();
    if (known) return weight.shape->back().value();
    fail(ErrorCode::not_implemented, "the weight '{}' is not a matrix of a known size", graph_.value(n.inputs[1]).name);
  }

  const LoraPair* pair(const std::string& weight) const {
    const auto at = adapter_.pairs.find(weight);
    return at == adapter_.pairs.end() ? nullptr : &at->second;
  }
  std::int64_t columns(const std::string& weight) const {
    const LoraPair* p = pair(weight);
    return p == nullptr ? 0 : p->b.dim(1);
  }

  // Networks may have in one product what adapters have in several, and the other way round.
  std::vector<Piece> pieces_of(const Place& place, std::int64_t n) const {
    const auto named = [&](const char* part) { return "blk." + place.layer + "." + part + ".weight"; };
    const std::string q = named("attn_q"), k = named("attn_k"), v = named("attn_v"), qkv = named("attn_qkv"),
                      up = named("ffn_up");
    std::vector<Piece> out;
    const auto whole = [&](const std::string& weight) { out.push_back({weight, 0, 0, n, n}); };
    // The part of a joined weight of queries, keys and values that begins at `from`.
    const auto part_of_qkv = [&](std::int64_t from) { out.push_back({qkv, from, 0, n, columns(qkv)}); };
    if (place.part == "q_proj") {
      whole(q);
      part_of_qkv(0);
    }
    if (place.part == "k_proj") {
      whole(k);
      part_of_qkv(columns(qkv) - 2 * n);
    }
    if (place.part == "v_proj") {
      whole(v);
      part_of_qkv(columns(qkv) - n);
    }
    if (place.part == "qkv_proj") {
      whole(qkv);
      out.push_back({q, 0, 0, columns(q), columns(q)});
      out.push_back({k, 0, n - 2 * columns(k), columns(k), columns(k)});
      out.push_back({v, 0, n - columns(v), columns(v), columns(v)});
    }
    if (place.part == "o_proj") whole(named("attn_output"));
    if (place.part == "down_proj") whole(named("ffn_down"));
    if (place.part == "lm_head") whole("output.weight");
    const bool both = columns(up) == 2 * n;  // the gate first
    if (place.part == "gate_proj") {
      whole(named("ffn_gate"));
      if (both) out.push_back({up, 0, 0, n, 2 * n});
    }
    if (place.part == "up_proj") out.push_back({up, both ? n : 0, 0, n, both ? 2 * n : n});
    if (place.part == "gate_up_proj" && columns(up) == n) whole(up);
    if (place.part == "gate_up_proj" && columns(up) != n) {
      out.push_back({named("ffn_gate"), 0, 0, n / 2, n / 2});
      out.push_back({up, 0, n / 2, n / 2, n / 2});
    }
    std::erase_if(out, [&](const Piece& p) { return pair(p.weight) == nullptr; });
    return out;
  }

  // The type of the network's own numbers at this node.
  DataType type_at(const Node& n) const {
    const DataType type = typed_.value(n.inputs[0]).type.elem;
    if (type == DataType::float32 || type == DataType::float16 || type == DataType::bfloat16) return type;
    fail(ErrorCode::not_implemented, "'{}' multiplies {}, adapters are for float32, float16 and bfloat16", n.name, name(type));
  }

  void check(const Node& n, const Place& place, const Piece& piece, const LoraPair& pair, std::int64_t all) const {
    const Type& x = typed_.value(n.inputs[0]).type;
    const bool known = x.is_tensor() && x.shape && !x.shape->empty() && x.shape->back().is_const();
    const std::int64_t k = known ? x.shape->back().value() : pair.a.dim(0);
    const std::int64_t given = pair.b.dim(1);
    const bool fits = given == piece.given && piece.from >= 0 && piece.to >= 0 && piece.from + piece.count <= given &&
                      piece.to + piece.count <= all;
    if (fits && k == pair.a.dim(0)) return;
    fail(ErrorCode::invalid_model,
         "the adapter '{}' does not fit: its parts of '{}' are for [{}, {}], the network's {} is [{}, {}]", adapter_.shown,
         piece.weight, pair.b.dim(1), pair.a.dim(0), place.part, all, k);
  }

  void add(NodeId id, const Place& place, const Piece& piece) {
    const LoraPair& p = *pair(piece.weight);
    const Node& product = graph_.node(id);
    const std::int64_t all = columns_of(product), rank = p.a.dim(1), given = p.b.dim(1);
    check(product, place, piece, p, all);
    Tensor b = p.b;
    if (piece.count != given || piece.count != all) {
      b = Tensor(DataType::float32, {rank, all});
      std::fill(b.mutable_values<float>().begin(), b.mutable_values<float>().end(), 0.0F);
      for (std::int64_t r = 0; r < rank; ++r) {
        std::copy_n(p.b.values<float>().data() + r * given + piece.from, piece.count,
                    b.mutable_values<float>().data() + r * all + piece.to);
      }
    }
    const DataType type = type_at(product);
    const std::string lora = piece.weight + "/lora." + std::to_string(number_);
    const ValueId x = product.inputs[0], y = product.outputs[0];
    const ValueId low = node("MatMul", lora + "/A", {x, graph_.add_constant(lora + "/A/weight", rounded(p.a, type))});
    const ValueId added =
        node("MatMul", lora + "/B", {low, graph_.add_constant(lora + "/B/weight", rounded(std::move(b), type))});
    const ValueId sum = graph_.add_value(lora + "/Add/output_0", graph_.value(y).type);
    graph_.replace_uses(y, sum);
    add_node(graph_, make_node(lora + "/Add", "Add", version_, {y, added}), sum);
    used_.insert(piece.weight);
  }

  ValueId node(const char* op, const std::string& name, std::vector<ValueId> inputs) {
    return add_node(graph_, make_node(name, op, version_, std::move(inputs)), name + "/output_0");
  }

  Graph& graph_;
  const LoraWeights& adapter_;
  std::size_t number_;
  int version_;
  Graph typed_;  // the network as it was, with the types of all values
  std::set<std::string> used_;
};

}  // namespace

DecoderConfig config_for_adapters(const Graph& graph, const std::string& architecture, const std::string& past_key) {
  DecoderConfig c;
  c.architecture = architecture == "mistral" ? "llama" : architecture == "gemma3_text" ? "gemma3" : architecture;
  for (const Node& n : graph.nodes()) {
    const bool inside = n.op_type == "GroupQueryAttention" && n.attributes.get_int("do_rotary", 0) != 0;
    if (inside && n.attributes.get_int("rotary_interleaved", 0) != 0) c.interleaved = true;
    if (n.op_type == "RotaryEmbedding" && n.attributes.get_int("interleaved", 0) != 0) c.interleaved = true;
  }
  if (const auto key = graph.find(past_key)) {
    const Type& t = graph.value(*key).type;
    if (t.is_tensor() && t.shape && !t.shape->empty() && t.shape->back().is_const()) c.head_size = t.shape->back().value();
  }
  return c;
}

void add_adapters(Model& model, const std::vector<LoraWeights>& adapters) {
  if (!model.functions.empty()) fail(ErrorCode::not_implemented, "adapters cannot be added to networks with their own functions");
  if (!model.opsets.contains("")) fail(ErrorCode::invalid_model, "the network has no operators of ai.onnx");
  for (std::size_t i = 0; i < adapters.size(); ++i) {
    Adding(model, adapters[i], i).run();
  }
}

}  // namespace sdx::text
