#include "train/artifacts/lora.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "base/error.h"
#include "ops/infer.h"
#include "passes/simplify/simplify.h"
#include "train/artifacts/model_edit.h"
#include "train/artifacts/names.h"
#include "train/artifacts/random_values.h"

namespace sdx::train {
namespace {

constexpr std::string_view kKey = "sdx.lora:";

bool transposed(const Node& n) { return n.op_type == "Gemm" && n.attributes.get_int("transB", 0) != 0; }

// MatMul, or Gemm whose first input is not turned, with constant weights.
bool is_linear(const Graph& graph, const Node& n) {
  if (n.removed || !n.domain.empty() || (n.op_type != "MatMul" && n.op_type != "Gemm")) return false;
  if (n.op_type == "Gemm" && (n.attributes.get_int("transA", 0) != 0 || n.attributes.get_float("alpha", 1) != 1)) return false;
  const ValueInfo& weights = graph.value(n.inputs.at(1));
  return weights.constant && weights.constant->shape().size() == 2 && weights.constant->dtype() == DataType::float32;
}

std::string number(float value) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  return {text.data(), end};
}

class AddLora {
 public:
  AddLora(Model& model, const LoraOptions& options, std::uint64_t seed, std::span<const std::string> except)
      : model_(model), g_(model.graph), options_(options), except_(except), seed_(seed), opset_(model.opsets.at("")) {
    if (options.rank < 1) fail(ErrorCode::invalid_argument, "lora: rank {}; expected at least 1", options.rank);
    if (!std::isfinite(options.alpha)) fail(ErrorCode::invalid_argument, "lora: alpha {}; expected a number", options.alpha);
    factor_ = options.alpha / static_cast<float>(options.rank);
  }

  std::vector<std::string> run() {
    for (const NodeId id : chosen()) branch(id);
    g_.compact();
    ops::infer_in_place(g_);
    return names_;
  }

 private:
  // Each layer stands under the names of its weights and of its node.
  std::vector<NodeId> chosen() const {
    std::vector<NodeId> layers;
    std::vector<std::string> names;
    for (NodeId id = 0; id < g_.nodes().size(); ++id) {
      if (!is_linear(g_, g_.node(id))) continue;
      const std::string& weights = g_.value(g_.node(id).inputs[1]).name;
      if (std::find(except_.begin(), except_.end(), weights) != except_.end()) continue;
      layers.push_back(id);
      names.push_back(weights);
      names.push_back(g_.node(id).name);
    }
    if (layers.empty()) fail(ErrorCode::invalid_argument, "lora: the model has no MatMul or Gemm with weights of float32[n,m]");
    const std::vector<bool> met = matched(options_.targets, names, "lora");
    std::vector<NodeId> out;
    for (std::size_t i = 0; i < layers.size(); ++i) {
      if (met[2 * i] || met[2 * i + 1]) out.push_back(layers[i]);
    }
    return out;
  }

  struct Pair {
    ValueId a, b, factor;
  };

  const Pair& pair_for(ValueId weights, bool turned) {
    const auto [it, fresh] = pairs_.try_emplace(weights);
    if (!fresh) return it->second;
    const std::string name = g_.value(weights).name;
    const Shape shape = g_.value(weights).constant->shape();
    const std::int64_t in = shape[turned ? 1 : 0];
    const std::int64_t out = shape[turned ? 0 : 1];
    const std::int64_t rank = options_.rank;
    Tensor a(DataType::float32, turned ? Shape{rank, in} : Shape{in, rank});
    RandomValues random(seed_, name);
    for (float& f : a.mutable_values<float>()) f = static_cast<float>(random.normal() / static_cast<double>(rank));
    Tensor b(DataType::float32, turned ? Shape{out, rank} : Shape{rank, out});
    for (float& f : b.mutable_values<float>()) f = 0;
    it->second = {add_constant(name + ".lora_A", std::move(a)), add_constant(name + ".lora_B", std::move(b)),
                  g_.add_constant(name + ".lora_factor", Tensor::scalar<float>(factor_))};
    names_.push_back(name + ".lora_A");
    names_.push_back(name + ".lora_B");
    model_.metadata.emplace_back(std::string(kKey) + name, number(factor_));
    return it->second;
  }

  ValueId add_constant(const std::string& name, Tensor tensor) {
    if (g_.find(name)) fail(ErrorCode::invalid_argument, "lora: the model already has a value '{}'", name);
    return g_.add_constant(name, std::move(tensor));
  }

  ValueId product(const Node& like, ValueId x, ValueId w, const std::string& name) {
    Attributes attributes;
    if (transposed(like)) attributes.set("transB", std::int64_t{1});
    return add_node(g_, make_node({}, like.op_type, opset_, {x, w}, std::move(attributes)), name);
  }

  // The layer's own result gets another name, so that later nodes, and the graph's outputs, read the sum.
  void branch(NodeId id) {
    const Node layer = g_.node(id);
    const Pair pair = pair_for(layer.inputs[1], transposed(layer));
    const ValueId out = layer.outputs.at(0);
    const std::string name = g_.value(out).name;
    const ValueId low = product(layer, layer.inputs[0], pair.a, name + "/lora_A");
    const ValueId scaled = add_node(g_, make_node({}, "Mul", opset_, {low, pair.factor}), name + "/lora_scaled");
    const ValueId high = product(layer, scaled, pair.b, name + "/lora_B");
    const ValueId own = g_.add_value(name + "/frozen", g_.value(out).type);
    g_.node(id).outputs[0] = own;
    g_.value(own).producer = id;
    g_.value(out).producer = kNoNode;
    add_node(g_, make_node({}, "Add", opset_, {own, high}), out);
  }

  Model& model_;
  Graph& g_;
  const LoraOptions& options_;
  std::span<const std::string> except_;
  std::uint64_t seed_;
  int opset_;
  float factor_ = 1;
  std::map<ValueId, Pair> pairs_;
  std::vector<std::string> names_;
};

// The nodes of one branch, from its first product.
struct Branch {
  NodeId low = kNoNode, scaled = kNoNode, high = kNoNode, sum = kNoNode, layer = kNoNode;
};

class Merge {
 public:
  explicit Merge(Graph& graph) : g_(graph), readers_(graph) {}

  void run(const LoraPair& pair) {
    const auto w = g_.find(pair.weights);
    const auto a = g_.find(pair.a);
    const auto b = g_.find(pair.b);
    if (!w || !a || !b) return;  // a requested output precedes this layer
    const Tensor* const weights = fixed_value(g_, *w);
    if (weights == nullptr || fixed_value(g_, *a) == nullptr || fixed_value(g_, *b) == nullptr) {
      fail(ErrorCode::invalid_argument, "LoRA's weights '{}', '{}' and '{}' are not constants of the model", pair.weights, pair.a,
           pair.b);
    }
    std::optional<ValueId> merged;
    for (const NodeId low : readers_.of(*a)) {
      const Branch branch = follow(low, *w, *b);
      if (branch.layer == kNoNode)
        fail(ErrorCode::invalid_model, "{} is not the LoRA branch that the model's metadata describes", g_.describe(low));
      if (!merged) merged = g_.add_constant(pair.weights + ".merged", sum(pair, transposed(g_.node(branch.layer))));
      apply(branch, *merged);
    }
    if (merged && g_.uses()[*w].empty()) {
      take_name(g_, *merged, pair.weights);
    }
  }

 private:
  NodeId only_user(NodeId id, std::string_view op) const {
    const std::vector<NodeId>& users = readers_.of(g_.node(id).outputs.at(0));
    return users.size() == 1 && g_.node(users[0]).op_type == op ? users[0] : kNoNode;
  }

  Branch follow(NodeId low, ValueId w, ValueId b) const {
    Branch out;
    out.low = low;
    const std::string& op = g_.node(low).op_type;
    if ((out.scaled = only_user(low, "Mul")) == kNoNode) return {};
    if ((out.high = only_user(out.scaled, op)) == kNoNode || g_.node(out.high).inputs.at(1) != b) return {};
    if ((out.sum = only_user(out.high, "Add")) == kNoNode) return {};
    const NodeId layer = g_.value(g_.node(out.sum).inputs.at(0)).producer;
    if (layer != kNoNode && g_.node(layer).op_type == op && g_.node(layer).inputs.at(1) == w) out.layer = layer;
    return out;
  }

  void apply(const Branch& branch, ValueId merged) {
    const ValueId out = g_.node(branch.sum).outputs.at(0);
    for (const NodeId id : {branch.sum, branch.high, branch.scaled, branch.low}) g_.remove_node(id);
    Node& layer = g_.node(branch.layer);
    g_.value(layer.outputs[0]).producer = kNoNode;
    layer.inputs[1] = merged;
    layer.outputs[0] = out;
    g_.value(out).producer = branch.layer;
  }

  // Sums in double, because it happens once, and W is large compared with the added term.
  Tensor sum(const LoraPair& pair, bool turned) const {
    const Tensor w = fixed_value(g_, *g_.find(pair.weights))->aligned();
    const Tensor first = fixed_value(g_, *g_.find(turned ? pair.b : pair.a))->aligned();
    const Tensor second = fixed_value(g_, *g_.find(turned ? pair.a : pair.b))->aligned();
    for (const Tensor* t : {&w, &first, &second}) {
      if (t->dtype() == DataType::float32 && t->shape().size() == 2) continue;
      fail(ErrorCode::invalid_model, "LoRA's weights for '{}' are not matrices of float32", pair.weights);
    }
    const std::int64_t rows = w.shape().at(0);
    const std::int64_t columns = w.shape().at(1);
    const std::int64_t rank = first.shape().at(1);
    if (first.shape() != Shape{rows, rank} || second.shape() != Shape{rank, columns}) {
      fail(ErrorCode::invalid_model, "LoRA's weights for '{}' do not fit it", pair.weights);
    }
    Tensor out(DataType::float32, w.shape());
    std::vector<double> row(static_cast<std::size_t>(columns));
    const float* const from = w.values<float>().data();
    const float* const left = first.values<float>().data();
    const float* const right = second.values<float>().data();
    float* const to = out.mutable_values<float>().data();
    for (std::int64_t i = 0; i < rows; ++i) {
      std::fill(row.begin(), row.end(), 0);
      for (std::int64_t k = 0; k < rank; ++k) {
        const double scale = static_cast<double>(left[i * rank + k]) * static_cast<double>(pair.factor);
        for (std::int64_t j = 0; j < columns; ++j)
          row[static_cast<std::size_t>(j)] += scale * static_cast<double>(right[k * columns + j]);
      }
      for (std::int64_t j = 0; j < columns; ++j) {
        to[i * columns + j] = static_cast<float>(static_cast<double>(from[i * columns + j]) + row[static_cast<std::size_t>(j)]);
      }
    }
    return out;
  }

  Graph& g_;
  Readers readers_;  // of the model as it came
};

}  // namespace

std::vector<std::string> add_lora(Model& model, const LoraOptions& options, std::uint64_t seed,
                                  std::span<const std::string> except) {
  return AddLora(model, options, seed, except).run();
}

std::vector<LoraPair> lora_pairs(const Model& model) {
  std::vector<LoraPair> out;
  for (const auto& [key, value] : model.metadata) {
    if (!key.starts_with(kKey)) continue;
    LoraPair pair;
    pair.weights = key.substr(kKey.size());
    pair.a = pair.weights + ".lora_A";
    pair.b = pair.weights + ".lora_B";
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), pair.factor);
    if (error != std::errc() || end != value.data() + value.size()) {
      fail(ErrorCode::invalid_model, "metadata '{}': '{}' is not a number", key, value);
    }
    out.push_back(std::move(pair));
  }
  return out;
}

bool merge_lora(Model& model) {
  const std::vector<LoraPair> pairs = lora_pairs(model);
  if (pairs.empty()) return false;
  for (const LoraPair& pair : pairs) Merge(model.graph).run(pair);
  model.graph.compact();
  simplify::remove_dead(model.graph);
  model.graph.compact();
  model.graph.drop_unused_values();
  std::erase_if(model.metadata, [](const auto& entry) { return entry.first.starts_with(kKey); });
  return true;
}

}  // namespace sdx::train
