#include "passes/portable.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "base/words.h"
#include "graph/edit.h"
#include "ops/op.h"
#include "passes/pass.h"

namespace sdx {
namespace {

constexpr const char* kMicrosoft = "com.microsoft";
constexpr int kMaxRounds = 4;
constexpr int kClipInputsOpset = 11;  // from here on Clip takes its bounds as inputs
constexpr int kHardSwishOpset = 14;   // has HardSwish
constexpr int kHardSigmoidOpset = 6, kBroadcastOpset = 7;

// Passes whose results are operators of ai.onnx.
constexpr std::string_view kBasic[] = {"fold-constants",  "fold-shapes",  "remove-identities", "sum-to-add",
                                       "transposed-conv", "share-common", "fold-batch-norm",   "remove-dead"};
// Passes whose results com.microsoft can express.
constexpr std::string_view kExtended[] = {"fuse-block-weights", "fuse-silu",      "fuse-layer-norm",
                                          "fuse-gelu",          "fuse-epilogues", "fuse-integer-products"};

bool any_node(const Graph& g, bool (*is)(const Node&)) {
  for (const Node& n : g.nodes()) {
    if (n.removed) continue;
    if (is(n)) return true;
    for (const Subgraph& s : n.subgraphs) {
      if (any_node(*s.graph, is)) return true;
    }
  }
  return false;
}

bool dequantizes(const Node& n) { return n.op_type == "DequantizeLinear"; }

int version_of(const std::map<std::string, int>& opsets, const std::string& domain, int otherwise) {
  const auto it = opsets.find(domain);
  return it == opsets.end() ? otherwise : it->second;
}

// --- fused operators -----------------------------------------------------------------------------------------------------

bool known_activation(std::string_view op, std::string_view activation) {
  constexpr std::string_view kBoth = "Relu Sigmoid Tanh LeakyRelu HardSigmoid";
  if (activation.empty() || has_word(kBoth, activation)) return true;
  return op == "FusedConv" && activation == "Clip";
}

std::string activation_of(const Node& n) { return n.attributes.get_string("activation", ""); }

// The activation as a node of its own, from its word and parameters.
void write_activation(Graph& g, Node& n, const std::string& word, const std::vector<float>& params, int opset) {
  n.op_type = word == "Silu" ? "QuickGelu" : word;
  n.domain = word == "Silu" ? kMicrosoft : "";
  n.version = n.domain.empty() ? opset : 1;
  if (n.op_type == "QuickGelu") n.attributes.set("alpha", 1.0F);
  if (n.op_type != "Clip" || params.size() < 2) return;
  if (opset < kClipInputsOpset) {
    n.attributes.set("min", params[0]);
    n.attributes.set("max", params[1]);
    return;
  }
  n.inputs.push_back(g.add_constant(n.name + "_min", Tensor::scalar<float>(params[0])));
  n.inputs.push_back(g.add_constant(n.name + "_max", Tensor::scalar<float>(params[1])));
}

// x * HardSigmoid(x), `n` being named and connected.
void write_hard_swish(Graph& g, Node n) {
  const ValueId x = n.inputs[0];
  const ValueId sigmoid =
      add_node(g, make_node(n.name, "HardSigmoid", kHardSigmoidOpset, {x}, {{"alpha", 1.0F / 6.0F}, {"beta", 0.5F}}),
               g.value(x).name + "_gate", g.value(x).type);
  n.op_type = "Mul";
  n.version = kBroadcastOpset;
  n.inputs = {x, sigmoid};
  g.add_node(std::move(n));
}

void split_activation(Graph& g, NodeId id, int opset) {
  Node& fused = g.node(id);
  const std::string word = activation_of(fused);
  std::vector<float> params = fused.attributes.get_floats("activation_params");
  if (params.empty() && fused.attributes.has("activation_beta")) {
    params = {fused.attributes.get_float("activation_alpha"), fused.attributes.get_float("activation_beta")};
  }
  for (const char* name : {"activation", "activation_params", "activation_alpha", "activation_beta", "activation_gamma"}) {
    fused.attributes.erase(name);
  }
  const ValueId result = fused.outputs[0];
  const ValueId plain = g.add_value(g.value(result).name + "_linear", g.value(result).type);
  fused.outputs[0] = plain;
  g.value(plain).producer = id;
  Node after;
  after.name = fused.name.empty() ? "" : fused.name + "_activation";
  after.inputs = {plain};
  after.outputs = {result};
  const bool residual = has_input(fused, 3);
  if (fused.op_type == "FusedGemm" || !residual) {
    fused.op_type = fused.op_type.substr(std::string_view("Fused").size());
    fused.domain.clear();
    fused.version = opset;
  }
  g.value(result).producer = kNoNode;
  if (word == "HardSwish" && opset < kHardSwishOpset) return write_hard_swish(g, std::move(after));
  write_activation(g, after, word, params, opset);
  g.add_node(std::move(after));
}

// Replaces operators that only this engine has, or has in this domain, by published ones.
void replace_own_operators(Graph& g, const std::map<std::string, int>& opsets) {
  const int opset = version_of(opsets, "", 1);
  const auto count = static_cast<NodeId>(g.nodes().size());
  for (NodeId id = 0; id < count; ++id) {
    Node& n = g.node(id);
    if (n.removed) continue;
    for (Subgraph& s : n.subgraphs) replace_own_operators(*s.graph, opsets);
    if (n.domain != kMicrosoft) continue;
    if (n.op_type == "LayerNormalization" || n.op_type == "SimplifiedLayerNormalization") {  // ONNX Runtime has them in ai.onnx
      n.domain.clear();
      n.version = opset;
    } else if (n.op_type == "FusedConv" || n.op_type == "FusedGemm") {
      if (!known_activation(n.op_type, activation_of(n))) split_activation(g, id, opset);
    } else if (n.op_type == "Gelu" || n.op_type == "FastGelu") {
      n.attributes.erase("alpha");
    }
  }
  g.compact();
}

// ONNX Runtime refuses two nodes of one name, which passes make.
void name_apart(Graph& g) {
  std::set<std::string> taken;
  for (NodeId id = 0; id < g.nodes().size(); ++id) {
    Node& n = g.node(id);
    for (Subgraph& s : n.subgraphs) name_apart(*s.graph);
    if (n.name.empty() || taken.insert(n.name).second) continue;
    std::string name = n.name;
    for (int i = 1; !taken.insert(name).second; ++i) name = n.name + "_" + std::to_string(i);
    n.name = name;
  }
}

// --- what others can read ------------------------------------------------------------------------------------------------

bool portable(const Graph& g, const std::map<std::string, int>& opsets) {
  return std::all_of(g.nodes().begin(), g.nodes().end(), [&](const Node& n) {
    if (n.removed) return true;
    for (const Subgraph& s : n.subgraphs) {
      if (!portable(*s.graph, opsets)) return false;
    }
    if (n.domain == "sdx") return false;
    const ops::OpDef* const own = ops::find(n);
    if (own == nullptr || n.custom) return true;  // as in the file
    return own == ops::table().find(n.domain, n.op_type, version_of(opsets, n.domain, n.version));
  });
}

bool apply(Graph& graph, const Pass& pass, const std::map<std::string, int>& opsets) {
  Graph changed = graph;
  if (!run_pass(changed, pass)) return false;
  replace_own_operators(changed, opsets);
  if (!portable(changed, opsets)) return false;
  graph = std::move(changed);
  return true;
}

}  // namespace

void optimize_portably(Graph& graph, const PortableOptions& options) {
  const std::map<std::string, int> none;
  const std::map<std::string, int>& opsets = options.opsets == nullptr ? none : *options.opsets;
  const bool quantized = any_node(graph, dequantizes);
  std::vector<const Pass*> list;
  const auto add = [&](std::string_view name) {
    // Folding would make floats of weights that are stored in integers; and ONNX Runtime takes nodes for integer operators that
    // have a DequantizeLinear of their own.
    if (quantized && (name == "fold-constants" || name == "fold-shapes" || name == "share-common")) return;
    if (std::find(options.disabled.begin(), options.disabled.end(), name) == options.disabled.end())
      list.push_back(&find_pass(name));
  };
  for (const std::string_view name : kBasic) add(name);
  if (!options.basic) {
    for (const std::string_view name : kExtended) add(name);
  }
  bool changed = true;
  for (int round = 0; round < kMaxRounds && changed; ++round) {
    changed = false;
    for (const Pass* pass : list) changed = apply(graph, *pass, opsets) || changed;
  }
  name_apart(graph);
}

}  // namespace sdx
