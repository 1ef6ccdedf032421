#include "speech/whisper/attention.h"

#include <algorithm>

#include "base/error.h"
#include "graph/edit.h"
#include "speech/whisper/cache_names.h"

namespace sdx::speech {
namespace {

// What a value depends on.
enum Source : std::uint8_t { kNothing = 0, kTokens = 1, kSound = 2 };

std::vector<std::uint8_t> sources_of(const Graph& g) {
  std::vector<std::uint8_t> from(g.values().size(), kNothing);
  for (const ValueId id : g.inputs()) {
    if (g.value(id).constant) continue;
    const std::string& name = g.value(id).name;
    from[id] = name == "encoder_hidden_states" || is_encoder_cache(name) ? kSound : kTokens;
  }
  for (const Node& n : g.nodes()) {
    if (n.removed || is_op(n, "Shape") || is_op(n, "Size")) continue;  // sizes say nothing of what is in a value
    std::uint8_t all = kNothing;
    for (const ValueId in : n.inputs) {
      if (in != kNoValue) all |= from[in];
    }
    for (const ValueId out : n.outputs) {
      if (out != kNoValue) from[out] = all;
    }
  }
  return from;
}

// Whether a Softmax's input comes, through changes of its elements and shape, from a product with what depends on the sound
// alone.
bool is_product_with_sound(const Graph& g, const std::vector<std::uint8_t>& from, ValueId v) {
  constexpr int kSteps = 64;
  std::vector<ValueId> open{v};
  for (int step = 0; step < kSteps && !open.empty(); ++step) {
    const ValueId at = open.back();
    open.pop_back();
    const NodeId maker = at == kNoValue ? kNoNode : g.value(at).producer;
    if (maker == kNoNode || (from[at] & kTokens) == 0) continue;
    const Node& n = g.node(maker);
    if (is_op(n, "MatMul") || is_op(n, "Einsum")) {
      if (std::any_of(n.inputs.begin(), n.inputs.end(), [&](ValueId in) { return from[in] == kSound; })) return true;
      continue;
    }
    constexpr const char* kPassed[] = {"Add", "Sub",  "Mul",     "Div",       "Cast",    "Identity",
                                       "Max", "Clip", "Reshape", "Unsqueeze", "Squeeze", "Where"};
    const bool passed = std::any_of(std::begin(kPassed), std::end(kPassed), [&](const char* op) { return is_op(n, op); });
    if (passed) open.insert(open.end(), n.inputs.begin(), n.inputs.end());
  }
  return false;
}

// The attention to the sound of each layer, in order.
std::vector<ValueId> find_attention(Graph& g) {
  const std::vector<std::uint8_t> from = sources_of(g);
  std::vector<ValueId> found;
  for (NodeId id = 0; id < g.nodes().size(); ++id) {
    const Node& n = g.node(id);
    if (is_op(n, "Softmax") && is_product_with_sound(g, from, n.inputs[0])) found.push_back(n.outputs[0]);
    if (is_op(n, "Attention") && n.inputs.size() > 1 && n.inputs[1] != kNoValue && from[n.inputs[1]] == kSound) {
      constexpr std::size_t kWeights = 3;        // its output
      constexpr std::int64_t kAfterSoftmax = 3;  // its qk_matmul_output_mode
      const ValueId weights = g.add_value("attention weights");
      Node& attention = g.node(id);
      attention.outputs.resize(kWeights + 1, kNoValue);
      if (attention.outputs[kWeights] == kNoValue) attention.outputs[kWeights] = weights;
      attention.attributes.set("qk_matmul_output_mode", AttributeValue(kAfterSoftmax));
      g.value(attention.outputs[kWeights]).producer = id;
      found.push_back(attention.outputs[kWeights]);
    }
  }
  return found;
}

// The graph of an If's branch, which takes constants and inputs of the graph around it.
Graph branch_of(const Graph& outer, const Subgraph& branch) {
  Graph g = *branch.graph;
  const std::size_t formal = g.inputs().size() - branch.captures.size();
  for (std::size_t i = branch.captures.size(); i-- > 0;) {
    const ValueInfo& taken = outer.value(branch.captures[i]);
    const ValueId here = g.inputs()[formal + i];
    if (taken.is_input && !taken.constant) {
      if (const auto held = g.find(taken.name); held && *held != here) g.rename(*held, "");
      g.rename(here, taken.name);
      g.value(here).type = taken.type;
      g.value(here).declared = taken.declared;
    } else if (const Tensor* constant = fixed_value(outer, branch.captures[i])) {
      g.remove_input(formal + i);
      g.value(here).constant = *constant;
    } else {
      fail(ErrorCode::not_implemented,
           "times of words need a decoder whose branches take constants and inputs; this one takes '{}'", taken.name);
    }
  }
  return g;
}

// The graph itself, or the branch for first steps; its only output is "logits".
Graph first_steps(const Graph& whole) {
  const auto named = std::find(whole.output_names().begin(), whole.output_names().end(), "logits");
  if (named == whole.output_names().end()) fail(ErrorCode::invalid_model, "the decoder has no output 'logits'");
  ValueId logits = whole.outputs()[static_cast<std::size_t>(named - whole.output_names().begin())];
  Graph g = whole;
  const NodeId maker = whole.value(logits).producer;
  if (maker != kNoNode && is_op(whole.node(maker), "If")) {
    const Node& branches = whole.node(maker);
    const auto place = std::find(branches.outputs.begin(), branches.outputs.end(), logits) - branches.outputs.begin();
    const auto first = std::find_if(branches.subgraphs.begin(), branches.subgraphs.end(),
                                    [](const Subgraph& s) { return s.attribute == "else_branch"; });
    if (first == branches.subgraphs.end()) fail(ErrorCode::invalid_model, "{} has no else_branch", whole.describe(maker));
    g = branch_of(whole, *first);
    logits = g.outputs().at(static_cast<std::size_t>(place));
  }
  while (!g.outputs().empty()) g.remove_output(g.outputs().size() - 1);
  g.add_output(logits, "logits");
  return g;
}

}  // namespace

Model with_attention_outputs(Model decoder, const WhisperSettings& s) {
  decoder.graph = first_steps(decoder.graph);
  Graph& g = decoder.graph;
  const std::vector<ValueId> layers = find_attention(g);
  if (static_cast<std::int64_t>(layers.size()) != s.layers) {
    fail(ErrorCode::not_implemented,
         "times of words need the attention of all {} layers of the decoder to the sound; found that of {}, the others may be in "
         "fused operators: export the model without fusion",
         s.layers, layers.size());
  }
  const int version = decoder.opsets.at("");
  const ValueId shape = g.add_constant("", Tensor::of<std::int64_t>({3}, {s.heads, -1, s.source_positions}));
  std::vector<ValueId> parts;
  for (std::int64_t layer = 0; layer < s.layers; ++layer) {
    std::vector<std::int64_t> heads;
    for (const AlignmentHead& h : s.alignment_heads) {
      if (h.layer == layer) heads.push_back(h.head);
    }
    if (heads.empty()) continue;
    // Some exports keep batch and heads in one dimension; the batch is 1.
    const ValueId apart = add_node(g, make_node("", "Reshape", version, {layers[static_cast<std::size_t>(layer)], shape}), "");
    const ValueId wanted = g.add_constant("", Tensor::of<std::int64_t>({static_cast<std::int64_t>(heads.size())}, heads));
    const ValueId chosen = add_node(g, make_node("", "Gather", version, {apart, wanted}, {{"axis", std::int64_t{0}}}), "");
    constexpr auto kFloat = static_cast<std::int64_t>(DataType::float32);
    parts.push_back(add_node(g, make_node("", "Cast", version, {chosen}, {{"to", kFloat}}), ""));
  }
  const ValueId all = add_node(g, make_node("", "Concat", version, parts, {{"axis", std::int64_t{0}}}), kAttentionOutput);
  g.add_output(all, kAttentionOutput);
  g.compact();
  g.verify();
  return decoder;
}

}  // namespace sdx::speech
