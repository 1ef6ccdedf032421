#include "text/model/paged/paged_graph.h"

#include <algorithm>

#include "base/error.h"
#include "graph/edit.h"
#include "session/pipeline.h"
#include "text/model/open.h"
#include "text/model/paged/token_wise.h"

namespace sdx::text {
namespace {

// Inputs of com.microsoft GroupQueryAttention (1.31).
enum GroupQueryInput {
  kQuery,
  kKey,
  kValue,
  kPastKey,
  kPastValue,
  kLengths,
  kTotal,
  kCos,
  kSin,
  kPositions,
  kBias,
  kSink,
  kKeyScale,
  kValueScale,
  kQueryNorm,
  kKeyNorm
};

bool is_attention(const Node& n) { return !n.removed && n.op_type == "GroupQueryAttention" && n.domain == "com.microsoft"; }

class Paging {
 public:
  Paging(Graph& graph, int opset, const DecoderNames& names, const PagingOptions& options)
      : g_(graph), opset_(opset), names_(names), options_(options) {}

  std::string run() {
    // The code below relies on numbers of inputs and outputs, which have not been checked yet.
    try {
      session::check_known(g_);
    } catch (const Error& e) {
      return e.what();
    }
    // Whoever built a network for states alone knows that it has no cache.
    const bool states_alone = options_.known && g_.find(kSlots) && !g_.find(of_layer(names_.past_key, 0));
    if (!states_alone && !works_in_place(g_, names_)) return "its caches are read by more than GroupQueryAttention";
    std::vector<NodeId> attentions;
    for (NodeId id = 0; id < g_.nodes().size(); ++id) {
      if (!g_.node(id).removed && g_.node(id).op_type == "PagedAttention") return "it already has attention over blocks";
      if (!is_attention(g_.node(id))) continue;
      if (std::string why = refusal(g_.node(id)); !why.empty()) return g_.describe(id) + " " + why;
      attentions.push_back(id);
    }
    add_inputs();
    for (const NodeId id : attentions) replace(id);
    if (!options_.known) {
      if (std::string why = want_rows(g_, names_, opset_); !why.empty()) return why;
    }
    remove_unused();
    forget_types();
    if (!options_.known) return why_not_token_wise(g_, names_);
    return {};
  }

 private:
  bool is_past(const Node& n, std::size_t i) const {
    if (!has_input(n, i) || !g_.value(n.inputs[i]).is_input) return false;
    const Type& type = g_.value(n.inputs[i]).type;
    return type.shape && type.shape->size() == 4;
  }

  std::string refusal(const Node& n) const {
    if (!has_input(n, kQuery)) return "has no query";
    if (!is_past(n, kPastKey) || !is_past(n, kPastValue)) return "has a past that is not an input [batch,heads,past,size]";
    for (std::size_t i = 0; i < 3; ++i) {
      if (i >= n.outputs.size() || n.outputs[i] == kNoValue) return "leaves out its output " + std::to_string(i);
    }
    for (const auto& [input, what] :
         {std::pair(kPositions, "position_ids"), {kBias, "attention_bias"}, {kKeyScale, "k_scale"}, {kValueScale, "v_scale"}}) {
      if (has_input(n, input)) return std::string("has the input ") + what;
    }
    if (n.outputs.size() > 3 && n.outputs[3] != kNoValue) return "has its scores as an output";
    if (n.attributes.get_int("causal", 1) != 1) return "is not causal";
    if (n.attributes.get_int("sliding_window_cache", 0) != 0) return "has a cache that slides";
    for (const char* key : {"k_quant_type", "v_quant_type"}) {
      if (n.attributes.get_string(key, "NONE") != "NONE") return "has a quantised cache";
    }
    return {};
  }

  void add_inputs() {
    const auto add = [&](const char* name, DataType type, SymShape shape) {
      if (const auto known = g_.find(name)) return *known;
      return g_.add_input(name, Type::tensor(type, std::move(shape)));
    };
    starts_ = add(kStarts, DataType::int64, {Dim::symbol("sequences_and_one")});
    past_ = add(kPastLengths, DataType::int64, {Dim::symbol("sequences")});
    table_ = add(kTable, DataType::int32, {Dim::symbol("sequences"), Dim::symbol("most_blocks")});
  }

  // A past becomes a pool of blocks, its present the same.
  void retype(ValueId past, ValueId present, std::vector<ValueId>& scales, std::vector<ValueId>& new_scales) {
    const SymShape old = *g_.value(past).type.shape;
    const DataType type = options_.cache_type == DataType::undefined ? g_.value(past).type.elem : options_.cache_type;
    const SymShape rows{Dim::symbol("blocks"), old[1], Dim::symbol("block_tokens")};
    SymShape shape = rows;
    shape.push_back(old[3]);
    for (const ValueId v : {past, present}) g_.value(v).type = g_.value(v).declared = Type::tensor(type, shape);
    if (type != DataType::int8) {
      scales.push_back(kNoValue), new_scales.push_back(kNoValue);
      return;
    }
    const Type scale = Type::tensor(DataType::float32, rows);
    scales.push_back(g_.add_input(g_.value(past).name + kScales, scale));
    new_scales.push_back(g_.add_value(g_.value(present).name + kScales, scale));
    g_.value(new_scales.back()).declared = scale;
    g_.add_output(new_scales.back(), output_name(present) + kScales);
  }

  std::string output_name(ValueId v) const {
    for (std::size_t i = 0; i < g_.outputs().size(); ++i) {
      if (g_.outputs()[i] == v) return g_.output_names()[i];
    }
    return g_.value(v).name;
  }

  void replace(NodeId id) {
    const Node old = g_.node(id);
    Node n;
    n.name = old.name;
    n.op_type = "PagedAttention";
    n.domain = "sdx";
    n.version = 1;
    std::vector<ValueId> scales, new_scales;
    retype(old.inputs[kPastKey], old.outputs[1], scales, new_scales);
    retype(old.inputs[kPastValue], old.outputs[2], scales, new_scales);
    n.inputs = {old.inputs[kQuery],
                input_of(old, kKey),
                input_of(old, kValue),
                old.inputs[kPastKey],
                old.inputs[kPastValue],
                scales[0],
                scales[1],
                starts_,
                past_,
                table_,
                input_of(old, kCos),
                input_of(old, kSin),
                input_of(old, kSink),
                input_of(old, kQueryNorm),
                input_of(old, kKeyNorm)};
    while (n.inputs.back() == kNoValue) n.inputs.pop_back();
    n.outputs = {old.outputs[0], old.outputs[1], old.outputs[2], new_scales[0], new_scales[1]};
    while (n.outputs.back() == kNoValue) n.outputs.pop_back();
    for (const char* key : {"num_heads", "kv_num_heads", "do_rotary", "rotary_interleaved", "local_window_size", "smooth_softmax",
                            "scale", "softcap", "qk_norm_epsilon"}) {
      if (const AttributeValue* a = old.attributes.find(key)) n.attributes.set(key, *a);
    }
    g_.remove_node(id);
    g_.add_node(std::move(n));
  }

  // Removes nodes without readers: those that turned the mask into lengths.
  void remove_unused() {
    g_.compact();
    const Readers readers(g_);
    const auto is_read = [&](ValueId v) { return v != kNoValue && readers.is_read(v); };
    for (NodeId id = static_cast<NodeId>(g_.nodes().size()); id-- > 0;) {
      if (std::ranges::none_of(g_.node(id).outputs, is_read)) g_.remove_node(id);
    }
    for (std::size_t i = g_.inputs().size(); i-- > 0;) {
      const ValueId v = g_.inputs()[i];
      if (!readers.is_read(v) && (g_.value(v).name == names_.mask || g_.value(v).constant)) g_.remove_input(i);
    }
    g_.compact();
    g_.drop_unused_values();
  }

  // Drops the types that a file declares for inner values, because they are those of one text.
  void forget_types() {
    for (ValueId v = 0; v < g_.values().size(); ++v) {
      ValueInfo& info = g_.value(v);
      if (!info.is_input && !info.constant && !is_output(g_, v)) info.type = info.declared = Type();
    }
  }

  Graph& g_;
  int opset_;
  const DecoderNames& names_;
  const PagingOptions& options_;
  ValueId starts_ = kNoValue, past_ = kNoValue, table_ = kNoValue;
};

}  // namespace

std::string page_attention(Model& model, const DecoderNames& names, const PagingOptions& options) {
  Graph graph = model.graph;
  const auto opset = model.opsets.find("");
  std::string why = Paging(graph, opset == model.opsets.end() ? 13 : opset->second, names, options).run();
  if (!why.empty()) return why;
  model.graph = std::move(graph);
  model.opsets.emplace("sdx", 1);
  return {};
}

}  // namespace sdx::text
