// float16 networks in float32: x86 has no float16 arithmetic before AVX512-FP16, so computing in float16 means widening and
// rounding at every step. Here that happens where values enter and leave a chain of such steps; what lies between keeps the
// float32 values, which are closer to the exact ones.

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <string_view>

#include "passes/fuse/fuse.h"
#include "tensor/types.h"

namespace sdx::fuse {
namespace {

// Larger constants stay as they are, and with them their nodes: kernels that pack widen them piece by piece, while a widened
// copy of all weights of a language model would double the memory that loading takes.
constexpr std::int64_t kMaxConstant = std::int64_t{1} << 20;

// Operators with one floating type for what they read and write.
constexpr std::array<std::string_view, 55> kComputes = {"Abs",
                                                        "Add",
                                                        "AveragePool",
                                                        "BatchNormalization",
                                                        "Ceil",
                                                        "Celu",
                                                        "Clip",
                                                        "Conv",
                                                        "ConvTranspose",
                                                        "Div",
                                                        "Elu",
                                                        "Erf",
                                                        "Exp",
                                                        "Floor",
                                                        "Gelu",
                                                        "Gemm",
                                                        "GlobalAveragePool",
                                                        "GlobalMaxPool",
                                                        "HardSigmoid",
                                                        "HardSwish",
                                                        "InstanceNormalization",
                                                        "LRN",
                                                        "LayerNormalization",
                                                        "LeakyRelu",
                                                        "Log",
                                                        "LogSoftmax",
                                                        "MatMul",
                                                        "Max",
                                                        "MaxPool",
                                                        "Min",
                                                        "Mish",
                                                        "Mul",
                                                        "Neg",
                                                        "PRelu",
                                                        "Pow",
                                                        "Reciprocal",
                                                        "ReduceMax",
                                                        "ReduceMean",
                                                        "ReduceMin",
                                                        "ReduceSum",
                                                        "Relu",
                                                        "Resize",
                                                        "Round",
                                                        "Selu",
                                                        "Sigmoid",
                                                        "Sign",
                                                        "Softmax",
                                                        "Softplus",
                                                        "Softsign",
                                                        "Sqrt",
                                                        "Sub",
                                                        "Sum",
                                                        "Swish",
                                                        "Tanh",
                                                        "ThresholdedRelu"};

// Operators that only move elements: done in float32 where their input is there in float32 already.
constexpr std::array<std::string_view, 14> kMoves = {"Concat",  "DepthToSpace", "Expand",    "Flatten",      "Identity",
                                                     "Pad",     "Reshape",      "Slice",     "SpaceToDepth", "Split",
                                                     "Squeeze", "Tile",         "Transpose", "Unsqueeze"};

bool is_half(const Graph& g, ValueId v) {
  return v != kNoValue && g.value(v).type.is_tensor() && g.value(v).type.elem == DataType::float16;
}

bool is_other_float(const Graph& g, ValueId v) {
  if (v == kNoValue) return false;
  const Type& t = g.value(v).type;
  return !t.is_tensor() || t.elem == DataType::undefined ||
         (t.elem != DataType::float16 && t.elem != DataType::int32 && t.elem != DataType::int64 && t.elem != DataType::boolean);
}

class Widener {
 public:
  explicit Widener(Graph& graph) : g_(graph) {}

  bool run() {
    const std::size_t count = g_.nodes().size();
    bool changed = false;
    for (NodeId id = 0; id < count; ++id) changed = visit(id) || changed;
    return changed;
  }

 private:
  // Inputs that carry the node's floating type; Resize's others have types of their own.
  static std::size_t typed_inputs(const Node& n) {
    return n.op_type == "Resize" ? std::min<std::size_t>(1, n.inputs.size()) : n.inputs.size();
  }

  bool visit(NodeId id) {
    const Node& n = g_.node(id);
    if (n.removed || !n.domain.empty() || !n.subgraphs.empty() || n.inputs.empty()) return false;
    if (n.op_type == "Cast") return skip_cast(n);
    const bool computes = std::find(kComputes.begin(), kComputes.end(), n.op_type) != kComputes.end();
    const bool moves = std::find(kMoves.begin(), kMoves.end(), n.op_type) != kMoves.end();
    if ((!computes && !moves) || !is_half(g_, n.inputs[0]) || !fits(n, moves)) return false;
    rewrite(id);
    return true;
  }

  // A cast of the user's to float32 of what is there in float32.
  bool skip_cast(const Node& n) {
    const auto twin = twins_.find(n.inputs[0]);
    const ValueId out = n.outputs[0];
    if (twin == twins_.end() || out == kNoValue || g_.value(out).type.elem != DataType::float32) return false;
    g_.replace_uses(out, twin->second);
    return true;
  }

  bool fits(const Node& n, bool moves) const {
    for (std::size_t i = 0; i < typed_inputs(n); ++i) {
      const ValueId v = n.inputs[i];
      if (is_other_float(g_, v)) return false;
      if (!is_half(g_, v)) continue;
      const ValueInfo& info = g_.value(v);
      if (info.constant && !info.is_input) {
        if (info.constant->size() > kMaxConstant) return false;
      } else if (moves && twins_.find(v) == twins_.end()) {
        return false;
      }
    }
    return std::none_of(n.outputs.begin(), n.outputs.end(), [&](ValueId v) { return is_other_float(g_, v); });
  }

  ValueId new_value(ValueId like) {
    Type type = g_.value(like).type;
    type.elem = DataType::float32;
    return g_.add_value(g_.value(like).name + "_f32", std::move(type));
  }

  void add_cast(ValueId from, ValueId to, DataType type) {
    Node cast;
    cast.op_type = "Cast";
    cast.version = 13;
    cast.inputs = {from};
    cast.outputs = {to};
    cast.attributes.set("to", static_cast<std::int64_t>(type));
    g_.add_node(std::move(cast));
  }

  ValueId twin_of(ValueId v) {
    if (const auto found = twins_.find(v); found != twins_.end()) return found->second;
    const ValueInfo& info = g_.value(v);
    ValueId twin = kNoValue;
    if (info.constant && !info.is_input) {
      const Tensor& half = *info.constant;
      Tensor wide(DataType::float32, half.shape());
      auto* to = static_cast<float*>(wide.mutable_data());
      for (std::int64_t i = 0; i < half.size(); ++i) {
        std::uint16_t bits = 0;
        std::memcpy(&bits, static_cast<const char*>(half.data()) + i * 2, sizeof(bits));
        to[i] = half_to_float(bits);
      }
      twin = g_.add_constant(info.name + "_f32", std::move(wide));
    } else {
      twin = new_value(v);
      add_cast(v, twin, DataType::float32);
    }
    twins_.emplace(v, twin);
    return twin;
  }

  void rewrite(NodeId id) {
    Node wide = g_.node(id);
    for (std::size_t i = 0; i < typed_inputs(wide); ++i) {
      if (is_half(g_, wide.inputs[i])) wide.inputs[i] = twin_of(wide.inputs[i]);
    }
    const std::vector<ValueId> outputs = wide.outputs;
    for (ValueId& v : wide.outputs) {
      if (is_half(g_, v)) v = new_value(v);
    }
    const std::vector<ValueId> made = wide.outputs;
    g_.remove_node(id);
    g_.add_node(std::move(wide));
    // For whoever still reads the float16 form; dropped as dead where nobody does.
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (made[i] == outputs[i]) continue;
      add_cast(made[i], outputs[i], DataType::float16);
      twins_.emplace(outputs[i], made[i]);
    }
  }

  Graph& g_;
  std::map<ValueId, ValueId> twins_;  // float16 value -> the same in float32
};

}  // namespace

bool widen_half(Graph& graph) { return Widener(graph).run(); }

}  // namespace sdx::fuse
