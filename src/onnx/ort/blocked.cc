#include "onnx/ort/blocked.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/system/cpu_features.h"
#include "ops/infer.h"
#include "ops/op.h"

namespace sdx {
namespace {

constexpr const char* kDomain = "com.microsoft.nchwc";
constexpr std::int64_t kSmallBlock = 8, kLargeBlock = 16;
constexpr int kInputsOpset = 11;  // Pad takes its amounts as an input from here on
constexpr int kSlicesOpset = 10;  // and Slice its ranges
constexpr int kResizeOpset = 11;  // has what Upsample needs
constexpr std::size_t kImageRank = 4;
constexpr std::array<std::int64_t, 4> kJoined{0, -1, 0, 0};

std::int64_t rounded(std::int64_t channels, std::int64_t block) { return (channels + block - 1) / block * block; }

bool is_blocked(const Node& n) { return !n.removed && n.domain == kDomain; }

// Extent number `axis` of an image; nothing where it is not known.
std::optional<std::int64_t> extent(const Graph& g, ValueId v, std::size_t axis) {
  const ValueInfo& info = g.value(v);
  if (info.constant) {
    if (info.constant->rank() != kImageRank) return std::nullopt;
    return info.constant->shape()[axis];
  }
  const auto& shape = info.type.shape;
  if (!shape || shape->size() != kImageRank || !(*shape)[axis].is_const()) return std::nullopt;
  return (*shape)[axis].value();
}

const Tensor* constant(const Graph& g, const Node& n, std::size_t input) {
  if (input >= n.inputs.size() || n.inputs[input] == kNoValue) return nullptr;
  const auto& t = g.value(n.inputs[input]).constant;
  return t ? &*t : nullptr;
}

void need_arguments(const Node& n, std::size_t inputs) {
  const auto given = [](ValueId v) { return v != kNoValue; };
  const bool inputs_given = n.inputs.size() >= inputs && std::all_of(n.inputs.begin(), n.inputs.begin() + inputs, given);
  if (!inputs_given || n.outputs.size() != 1 || n.outputs[0] == kNoValue) {
    fail(ErrorCode::invalid_model, "the node must have {} inputs and one output", inputs);
  }
}

// --- how many channels a block has -----------------------------------------------------------------------------------------

// The block sizes that the sizes in a model permit.
struct Blocks {
  bool small = true, large = true;
  void multiple(std::int64_t channels) { large = large && channels % kLargeBlock == 0; }
  // `channels` became `filled`.
  void filled(std::int64_t channels, std::int64_t filled) {
    small = small && rounded(channels, kSmallBlock) == filled;
    large = large && rounded(channels, kLargeBlock) == filled;
  }
};

void look(const Graph& g, const Node& n, Blocks& blocks) {
  if (n.inputs.empty() || n.outputs.empty() || n.inputs[0] == kNoValue || n.outputs[0] == kNoValue) return;
  const auto before =
      extent(g, n.inputs[0], n.op_type == "ReorderInput" && n.attributes.get_int("channels_last", 0) != 0 ? 3 : 1);
  const auto after = extent(g, n.outputs[0], 1);
  if (n.op_type == "ReorderInput") {
    if (before && after) blocks.filled(*before, *after);
  } else if (n.op_type == "ReorderOutput") {
    if (before) blocks.filled(n.attributes.get_int("channels", 0), *before);
  } else if (after) {
    blocks.multiple(*after);
  }
  const Tensor* const weights = n.op_type == "Conv" ? constant(g, n, 1) : nullptr;
  if (weights == nullptr || weights->rank() != kImageRank) return;
  blocks.multiple(weights->shape()[0]);
  const std::int64_t channels = weights->shape()[1];
  if (channels > kSmallBlock && channels < kLargeBlock) blocks.small = false;  // not in blocks: fewer than one has
  if (channels > kLargeBlock) blocks.multiple(channels);
}

// The constant shape of a Reshape; empty for other nodes.
std::vector<std::int64_t> shape_asked(const Graph& g, const Node& n) {
  const Tensor* const shape = n.op_type == "Reshape" && n.domain.empty() ? constant(g, n, 1) : nullptr;
  if (shape == nullptr || shape->dtype() != DataType::int64) return {};
  const Tensor aligned = shape->aligned();
  const auto values = aligned.values<std::int64_t>();
  return {values.begin(), values.end()};
}

// For operators that broadcast, ONNX Runtime splits channels into blocks, [0, -1, 0, 0, block], and joins them again.
std::optional<std::int64_t> split_block(const std::vector<std::int64_t>& shape) {
  if (shape.size() != 5 || !std::equal(kJoined.begin(), kJoined.end(), shape.begin())) return std::nullopt;
  return shape[4] == kSmallBlock || shape[4] == kLargeBlock ? std::optional(shape[4]) : std::nullopt;
}

bool look(const Graph& g, Blocks& blocks) {
  bool any = false;
  for (const Node& n : g.nodes()) {
    if (is_blocked(n)) {
      any = true;
      look(g, n, blocks);
    }
    for (const Subgraph& s : n.subgraphs) any = look(*s.graph, blocks) || any;
  }
  if (!any) return false;
  for (const Node& n : g.nodes()) {
    if (const auto block = split_block(shape_asked(g, n))) (*block == kSmallBlock ? blocks.large : blocks.small) = false;
  }
  return true;
}

std::int64_t block_of(const Blocks& blocks) {
  if (!blocks.small && !blocks.large) {
    fail(ErrorCode::invalid_model, "the model keeps channels in blocks ({}), but neither 8 nor 16 channels fit all of its sizes",
         kDomain);
  }
  if (blocks.small != blocks.large) return blocks.small ? kSmallBlock : kLargeBlock;
  return cpu_features().avx512 || cpu_features().neon ? kLargeBlock : kSmallBlock;
}

// --- nodes -----------------------------------------------------------------------------------------------------------------

// Weights in the order of ai.onnx. Blocks of output channels are innermost; around them those of the input channels, unless there
// are fewer than a block has.
Tensor plain_weights(const Tensor& stored, std::int64_t block) {
  const Shape& s = stored.shape();
  const Tensor from = stored.aligned();
  Tensor made(DataType::float32, s);
  const float* read = from.values<float>().data();
  float* const to = made.mutable_values<float>().data();
  const std::int64_t inner = s[1] >= block ? block : 1, points = s[2] * s[3];
  for (std::int64_t o = 0; o < s[0]; o += block) {
    for (std::int64_t i = 0; i < s[1]; i += inner) {
      for (std::int64_t p = 0; p < points; ++p) {
        for (std::int64_t b = 0; b < inner; ++b) {
          for (std::int64_t c = 0; c < block; ++c) to[((o + c) * s[1] + i + b) * points + p] = *read++;
        }
      }
    }
  }
  return made;
}

class Unblocker {
 public:
  Unblocker(Graph& graph, std::int64_t block, int opset)
      : g_(graph), block_(block), opset_(opset), blocked_(g_.values().size()) {}
  // Converts the nodes whose types are known. Returns whether others wait for the types of converted ones. `first`: this is the
  // first call.
  bool run(bool first);

 private:
  // False: it has to wait.
  bool convert(NodeId id);
  bool waits(const Node& n) const {
    const bool last = n.attributes.get_int("channels_last", 0) != 0;
    return n.op_type == "ReorderInput" && !n.inputs.empty() && n.inputs[0] != kNoValue && !extent(g_, n.inputs[0], last ? 3 : 1);
  }
  void follow(NodeId id);
  void convert_conv(Node& n);
  void convert_input(Node& n);
  void convert_output(Node& n);
  void convert_upsample(Node& n);
  void rename(Node& n, const char* op, int version) {
    n.op_type = op;
    n.domain.clear();
    n.version = version;
  }
  ValueId constant_of(const Node& n, const char* what, const std::vector<std::int64_t>& values) {
    const auto count = static_cast<std::int64_t>(values.size());
    return g_.add_constant(n.name + what, Tensor::of<std::int64_t>({count}, values));
  }
  // A value between a node and one that takes over its output or input.
  ValueId between(const Node& n, const char* what) { return g_.add_value(n.name + what, Type::tensor(DataType::float32)); }
  void mark(ValueId v) {
    if (blocked_.size() <= v) blocked_.resize(v + 1);
    blocked_[v] = true;
  }
  bool marked(ValueId v) const { return v != kNoValue && v < blocked_.size() && blocked_[v]; }
  Graph& g_;
  std::int64_t block_;
  int opset_;
  std::vector<bool> blocked_;
};

void Unblocker::convert_conv(Node& n) {
  need_arguments(n, 2);
  const Tensor* const weights = constant(g_, n, 1);
  if (weights == nullptr) fail(ErrorCode::not_implemented, "the weights must be constant");
  const bool fits = weights->dtype() == DataType::float32 && weights->rank() == kImageRank && weights->shape()[0] % block_ == 0 &&
                    (weights->shape()[1] < block_ || weights->shape()[1] % block_ == 0);
  if (!fits) {
    fail(ErrorCode::invalid_model, "weights in blocks of {} channels expected, received {}", block_, weights->type_string());
  }
  n.inputs[1] = g_.add_constant(g_.value(n.inputs[1]).name, plain_weights(*weights, block_));
  const bool fused = n.attributes.has("activation") || (n.inputs.size() > 3 && n.inputs[3] != kNoValue);
  rename(n, fused ? "FusedConv" : "Conv", fused ? 1 : opset_);
  if (fused) n.domain = "com.microsoft";
}

void Unblocker::convert_input(Node& n) {
  need_arguments(n, 1);
  const bool last = n.attributes.get_int("channels_last", 0) != 0;
  const std::int64_t channels = *extent(g_, n.inputs[0], last ? 3 : 1);
  const std::int64_t more = rounded(channels, block_) - channels;
  n.attributes = {};
  if (last) {
    Node turn = n;
    rename(turn, "Transpose", opset_);
    turn.attributes.set("perm", std::vector<std::int64_t>{0, 3, 1, 2});
    if (more != 0) turn.outputs = {between(n, "_channels_first")};
    if (more == 0) {
      n = std::move(turn);
      return;
    }
    n.inputs[0] = turn.outputs[0];
    turn.name += "_transpose";
    g_.add_node(std::move(turn));
  }
  rename(n, more == 0 ? "Identity" : "Pad", opset_);
  if (more == 0) return;
  const std::vector<std::int64_t> pads{0, 0, 0, 0, 0, more, 0, 0};
  if (opset_ < kInputsOpset) {
    n.attributes.set("pads", pads);
  } else {
    n.inputs.push_back(constant_of(n, "_pads", pads));
  }
}

void Unblocker::convert_output(Node& n) {
  need_arguments(n, 1);
  const bool last = n.attributes.get_int("channels_last", 0) != 0;
  const std::int64_t channels = n.attributes.get_int("channels");
  const auto known = extent(g_, n.inputs[0], 1);
  const bool whole = known && *known == channels;
  n.attributes = {};
  if (last) {
    Node turn = n;
    rename(turn, "Transpose", opset_);
    turn.attributes.set("perm", std::vector<std::int64_t>{0, 2, 3, 1});
    if (whole) {
      n = std::move(turn);
      return;
    }
    turn.name += "_transpose";
    turn.inputs = {between(n, "_channels")};
    n.outputs[0] = turn.inputs[0];
    g_.add_node(std::move(turn));
  }
  rename(n, whole ? "Identity" : "Slice", opset_);
  if (whole) return;
  if (opset_ < kSlicesOpset) {
    n.attributes.set("starts", std::vector<std::int64_t>{0});
    n.attributes.set("ends", std::vector<std::int64_t>{channels});
    n.attributes.set("axes", std::vector<std::int64_t>{1});
    return;
  }
  for (const auto& [what, value] :
       {std::pair("_starts", std::int64_t{0}), std::pair("_ends", channels), std::pair("_axes", std::int64_t{1})}) {
    n.inputs.push_back(constant_of(n, what, {value}));
  }
}

void Unblocker::convert_upsample(Node& n) {
  need_arguments(n, 1);
  const std::vector<std::int64_t> scales = n.attributes.get_ints("scales");
  if (scales.size() != kImageRank) fail(ErrorCode::invalid_model, "Upsample needs four scales, received {}", scales.size());
  std::vector<float> factors(scales.begin(), scales.end());
  n.attributes.erase("scales");
  if (n.attributes.get_string("mode", "nearest") == "nearest") n.attributes.set("nearest_mode", std::string("floor"));
  if (!n.attributes.has("coordinate_transformation_mode")) {
    n.attributes.set("coordinate_transformation_mode", std::string("asymmetric"));
  }
  rename(n, "Resize", std::max(opset_, kResizeOpset));
  const ValueId none = g_.add_constant(n.name + "_roi", Tensor(DataType::float32, {0}));
  n.inputs = {n.inputs[0], none, g_.add_constant(n.name + "_scales", Tensor::of<float>({4}, factors))};
}

bool Unblocker::convert(NodeId id) {
  const Node n = g_.node(id);
  if (n.op_type != "ReorderOutput") {
    for (const ValueId v : n.outputs) {
      if (v != kNoValue) mark(v);
    }
  }
  if (waits(n)) return false;
  g_.remove_node(id);
  Node changed = n;
  if (n.op_type == "Conv") {
    convert_conv(changed);
  } else if (n.op_type == "ReorderInput") {
    convert_input(changed);
  } else if (n.op_type == "ReorderOutput") {
    convert_output(changed);
  } else if (n.op_type == "Upsample") {
    convert_upsample(changed);
  } else if (n.op_type == "MaxPool" || n.op_type == "AveragePool" || n.op_type == "GlobalMaxPool" ||
             n.op_type == "GlobalAveragePool") {
    rename(changed, n.op_type.c_str(), opset_);
  } else {
    fail(ErrorCode::not_implemented, "no operator {} in domain {}", n.op_type, kDomain);
  }
  g_.add_node(std::move(changed));
  return true;
}

// An operator of another domain, between such in blocks.
void Unblocker::follow(NodeId id) {
  Node& n = g_.node(id);
  if (!std::any_of(n.inputs.begin(), n.inputs.end(), [&](ValueId v) { return marked(v); })) return;
  for (const ValueId v : n.outputs) {
    if (v == kNoValue) continue;
    mark(v);
    g_.value(v).type.shape.reset();
    g_.value(v).declared.shape.reset();
  }
  if (n.op_type != "Reshape" || !n.domain.empty()) return;  // it computes every channel as it does without blocks
  const std::vector<std::int64_t> shape = shape_asked(g_, n);
  if (!split_block(shape) && !std::equal(shape.begin(), shape.end(), kJoined.begin(), kJoined.end())) {
    fail(ErrorCode::not_implemented, "the node must split channels into blocks or join them");
  }
  n.inputs.resize(1);
  n.attributes = {};
  rename(n, "Identity", opset_);
}

bool Unblocker::run(bool first) {
  bool waiting = false;
  const auto count = static_cast<NodeId>(g_.nodes().size());  // sorted: who makes a value comes first
  for (NodeId id = 0; id < count; ++id) {
    if (g_.node(id).removed) continue;
    for (Subgraph& s : g_.node(id).subgraphs) waiting = Unblocker(*s.graph, block_, opset_).run(first) || waiting;
    const std::string which = g_.describe(id);
    try {
      if (!is_blocked(g_.node(id))) {
        if (first) follow(id);
      } else if (!convert(id)) {
        waiting = true;
      }
    } catch (Error& e) {
      e.add_context("in " + which);
      throw;
    }
  }
  g_.compact();
  return waiting;
}

std::size_t blocked_nodes(const Graph& g) {
  std::size_t count = 0;
  for (const Node& n : g.nodes()) {
    count += is_blocked(n) ? 1 : 0;
    for (const Subgraph& s : n.subgraphs) count += blocked_nodes(*s.graph);
  }
  return count;
}

void check_nodes(const Graph& g) {
  for (const Node& n : g.nodes()) {
    if (const ops::OpDef* def = ops::find(n)) ops::check_node(g, n, *def);
    for (const Subgraph& s : n.subgraphs) check_nodes(*s.graph);
  }
}

// Infers the types of the converted nodes, because ONNX Runtime does not write the types of all its own operators' results.
void infer_known(Graph& g) {
  check_nodes(g);  // inference functions rely on it
  ops::InferOptions options;
  options.allow_unknown = true;
  ops::infer_in_place(g, options);
}

void drop_unused(Graph& g) {
  for (NodeId id = 0; id < g.nodes().size(); ++id) {
    for (Subgraph& s : g.node(id).subgraphs) drop_unused(*s.graph);
  }
  g.drop_unused_values();
}

}  // namespace

void unblock_channels(Model& model) {
  if (!model.opsets.contains(kDomain)) return;
  Blocks blocks;
  if (look(model.graph, blocks)) {
    const auto opset = model.opsets.find("");
    if (opset == model.opsets.end()) fail(ErrorCode::invalid_model, "the model imports no opset of domain 'ai.onnx'");
    const std::int64_t block = block_of(blocks);
    std::size_t left = blocked_nodes(model.graph);
    for (bool first = true; Unblocker(model.graph, block, opset->second).run(first); first = false) {
      infer_known(model.graph);
      if (std::exchange(left, blocked_nodes(model.graph)) == left) {
        fail(ErrorCode::not_implemented, "how many channels a ReorderInput of {} has must be known", kDomain);
      }
    }
    drop_unused(model.graph);
    model.opsets.emplace("com.microsoft", 1);
  }
  model.opsets.erase(kDomain);
}

}  // namespace sdx
