// float16 and bfloat16 networks in float32: x86 has no float16 arithmetic before AVX512-FP16, so computing in float16 means
// widening and rounding at every step. Here that happens where values enter and leave a chain of such steps; what lies between
// keeps the float32 values, which are closer to the exact ones. Functions of elements that touch nothing but each other have
// kernels for 16 bits: they stay, as a chain of three is 1.3 to 2 times as fast as in float32 from a million elements on, and one
// alone 1.7 to 3.5 times.

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <map>
#include <string_view>
#include <vector>

#include "base/system/cpu_bf16.h"
#include "base/words.h"
#include "graph/edit.h"
#include "ops/attention/signatures.h"
#include "ops/matrix/signatures.h"
#include "ops/tensor/signatures.h"
#include "passes/fuse/fuse.h"
#include "tensor/halves.h"
#include "tensor/types.h"

namespace sdx::fuse {
namespace {

// Weights of products by few rows stay as they are from here on: 128 KB, more than a first-level cache holds. Many rows are
// multiplied a tenth slower by weights of 16 bits; there only large ones stay. All bfloat16 ones do where the processor
// multiplies pairs of them.
constexpr std::int64_t kMinWeights = std::int64_t{1} << 16;
constexpr std::int64_t kFewRows = 8;
// Larger constants stay as they are, and with them their nodes: kernels that pack widen them piece by piece, while a widened
// copy of all weights of a language model would double the memory that loading takes.
constexpr std::int64_t kMaxConstant = std::int64_t{1} << 20;

// Operators with one floating type for inputs and outputs: functions of elements, and others.
constexpr std::string_view kElements =
    "Abs Add Ceil Celu Clip Div Elu Erf Exp Floor Gelu HardSigmoid HardSwish LeakyRelu Log Max Min Mish Mul Neg PRelu Pow "
    "Reciprocal Relu Round Selu Sigmoid Sign Softplus Softsign Sqrt Sub Sum Swish Tanh ThresholdedRelu";
constexpr std::string_view kComputes =
    "Attention AveragePool BatchNormalization Conv ConvTranspose Gemm GlobalAveragePool GlobalMaxPool GroupNormalization "
    "InstanceNormalization LRN LayerNormalization LogSoftmax MatMul MaxPool RMSNormalization ReduceMax ReduceMean ReduceMin "
    "ReduceSum Resize RotaryEmbedding SimplifiedLayerNormalization Softmax";

// Operators that only move elements: done in float32 where their input is there in float32 already.
constexpr std::string_view kMoves =
    "Concat DepthToSpace Expand Flatten Identity Pad Reshape Slice SpaceToDepth Split Squeeze Tile Transpose Unsqueeze";

// Of com.microsoft.
constexpr std::string_view kMicrosoft =
    "Attention BiasAdd BiasGelu BiasSplitGelu FastGelu FusedMatMul Gelu GroupQueryAttention MatMulNBits MultiHeadAttention "
    "QuickGelu RotaryEmbedding SkipLayerNormalization SkipSimplifiedLayerNormalization";

bool is_half(const Graph& g, ValueId v) { return v != kNoValue && g.value(v).type.is_tensor() && is_half(g.value(v).type.elem); }

float widened(DataType type, std::uint16_t bits) {
  if (type == DataType::float16) return half_to_float(bits);
  BFloat16 b;
  b.bits = bits;
  return static_cast<float>(b);
}

bool is_other_float(const Graph& g, ValueId v) {
  if (v == kNoValue) return false;
  const Type& t = g.value(v).type;
  return !t.is_tensor() || t.elem == DataType::undefined ||
         (!is_half(t.elem) && t.elem != DataType::int32 && t.elem != DataType::int64 && t.elem != DataType::uint8 &&
          t.elem != DataType::boolean);
}

class Widener {
 public:
  explicit Widener(Graph& graph) : g_(graph), readers_(graph) {}

  bool run() {
    const std::size_t count = g_.nodes().size();
    find_touched();
    bool changed = false;
    for (NodeId id = 0; id < count; ++id) changed = visit(id) || changed;
    return changed;
  }

 private:
  static bool is_paged(const Node& n) { return n.domain == "sdx" && n.op_type == "PagedAttention"; }

  // Whether an input has the node's floating type. Resize's further inputs have types of their own, and so have PagedAttention's
  // caches.
  static bool typed_input(const Node& n, std::size_t i) {
    using enum ops::PagedIn::Slot;
    if (is_paged(n)) return i < kKeyCache || i >= kCos;
    return i == 0 || n.op_type != "Resize";
  }
  static bool typed_output(const Node& n, std::size_t i) { return i == 0 || !is_paged(n); }

  static bool moves(const Node& n) { return n.domain.empty() && has_word(kMoves, n.op_type); }
  static bool of_elements(const Node& n) { return n.domain.empty() && has_word(kElements, n.op_type); }
  static bool of_others(const Node& n) {
    return is_paged(n) ||
           (n.domain.empty() ? has_word(kComputes, n.op_type) : n.domain == "com.microsoft" && has_word(kMicrosoft, n.op_type));
  }

  // What is computed in float32, with casts from and to it, and what touches that through functions of elements and moves.
  void find_touched() {
    touched_.resize(g_.nodes().size());
    std::vector<NodeId> open;
    const auto touch = [&](NodeId id) {
      if (id == kNoNode || touched_[id]) return;
      touched_[id] = true;
      open.push_back(id);
    };
    for (NodeId id = 0; id < g_.nodes().size(); ++id) {
      const Node& n = g_.node(id);
      if (!n.removed && (of_others(n) || is_op(n, "Cast"))) touch(id);
    }
    const auto touch_next = [&](NodeId id) {
      const Node& n = g_.node(id);
      if (!n.removed && (of_elements(n) || moves(n))) touch(id);
    };
    while (!open.empty()) {
      const Node& n = g_.node(open.back());
      open.pop_back();
      for (const ValueId v : n.inputs) {
        if (is_half(g_, v) && g_.value(v).producer != kNoNode) touch_next(g_.value(v).producer);
      }
      for (const ValueId v : n.outputs) {
        if (!is_half(g_, v)) continue;
        for (const NodeId reader : readers_.of(v)) touch_next(reader);
      }
    }
  }

  bool visit(NodeId id) {
    const Node& n = g_.node(id);
    if (n.removed || !n.subgraphs.empty() || n.inputs.empty()) return false;
    if (is_op(n, "Cast")) return skip_cast(n);
    if (!(of_others(n) || moves(n) || (of_elements(n) && touched_[id])) || !is_half(g_, n.inputs[0])) return false;
    if (has_large_weights(n)) {
      Node linear = as_linear(n);
      rewrite(id, std::move(linear), {1});
      return true;
    }
    if (!fits(n, moves(n))) return false;
    rewrite(id, is_bfloat_product(n) ? as_linear(n) : n, {});
    return true;
  }

  // The matrix behind a Transpose: the embedding's table as last layer; else v.
  ValueId unturned(ValueId v) const {
    const NodeId id = v == kNoValue ? kNoNode : g_.value(v).producer;
    if (id == kNoNode) return v;
    const Node& t = g_.node(id);
    if (t.op_type != "Transpose" || !t.domain.empty() || t.inputs.size() != 1) return v;
    const Tensor* w = constant_of(g_, t.inputs[0]);
    const bool turns = w != nullptr && w->rank() == 2 &&
                       (!ops::parse<ops::TransposeAttrs>(t).perm || ops::parse<ops::TransposeAttrs>(t).is({1, 0}));
    return turns ? t.inputs[0] : v;
  }

  // Whether W in X W should keep its 16 bits.
  bool stays(const Tensor& w, const SymShape& x) const {
    if (w.dtype() == DataType::bfloat16 && use_bf16(cpu_isa())) return w.size() > 0;
    if (w.size() < kMinWeights || w.size() > kMaxConstant) return w.size() > kMaxConstant;
    std::int64_t rows = 1;
    for (std::size_t i = 0; i + 1 < x.size(); ++i) {
      if (!x[i].is_const() || x[i].value() > kFewRows) return false;
      rows *= x[i].value();
    }
    return rows <= kFewRows;
  }

  // MatMul and Gemm that are X W + B with a W that should keep its 16 bits.
  bool has_large_weights(const Node& n) const {
    const bool gemm = n.op_type == "Gemm", fused = n.domain == "com.microsoft" && n.op_type == "FusedMatMul";
    if (n.inputs.size() < 2 || !(fused || (n.domain.empty() && (gemm || n.op_type == "MatMul")))) return false;
    const Tensor* w = constant_of(g_, gemm || fused ? n.inputs[1] : unturned(n.inputs[1]));
    const Type& x = g_.value(n.inputs[0]).type;
    if (w == nullptr || !is_half(w->dtype()) || w->rank() != 2 || constant_of(g_, n.inputs[0]) != nullptr || !x.shape ||
        x.shape->empty() || !stays(*w, *x.shape)) {
      return false;
    }
    if (fused) {
      const auto attr = ops::parse<ops::FusedMatMulAttrs>(n);
      return attr.alpha == 1.0F && !attr.trans_a && !attr.trans_batch_a && !attr.trans_batch_b;
    }
    if (!gemm) return true;
    const auto attr = ops::parse<ops::GemmAttrs>(n);
    if (n.version < 7 || attr.trans_a || attr.alpha != 1.0F) return false;
    if (n.inputs.size() < 3 || n.inputs[2] == kNoValue) return true;
    const Tensor* bias = constant_of(g_, n.inputs[2]);
    return bias != nullptr && attr.beta == 1.0F && bias->shape() == Shape{w->dim(attr.trans_b ? 0 : 1)};
  }

  // MatMul of two tensors where the processor has an instruction for it. Batches stay: those of attention are fused.
  bool is_bfloat_product(const Node& n) const {
    if (!n.domain.empty() || n.op_type != "MatMul" || n.inputs.size() != 2 || !use_bf16(cpu_isa())) return false;
    const auto rank = [&](std::size_t i) {
      return g_.value(n.inputs[i]).type.shape ? g_.value(n.inputs[i]).type.shape->size() : 0;
    };
    return constant_of(g_, n.inputs[0]) == nullptr && constant_of(g_, n.inputs[1]) == nullptr && rank(0) > 0 && rank(1) == 2 &&
           unturned(n.inputs[1]) == n.inputs[1] && g_.value(n.inputs[0]).type.elem == DataType::bfloat16;
  }

  Node as_linear(Node n) const {
    const ValueId w = n.op_type == "MatMul" ? unturned(n.inputs[1]) : n.inputs[1];
    const bool bfloat = g_.value(n.inputs[0]).type.elem == DataType::bfloat16;
    const bool trans = w != n.inputs[1] || ops::parse<ops::GemmAttrs>(n).trans_b;
    n.inputs[1] = w;
    n.domain = "sdx";
    n.op_type = "Linear";
    n.version = 1;
    n.attributes = {};
    if (trans) n.attributes.set("transB", std::int64_t{1});
    if (bfloat) n.attributes.set("bfloat16", std::int64_t{1});
    return n;
  }

  // Skips a user's cast to float32 of a value that is available in float32. A cast from float32 stays, but computations read its
  // input.
  bool skip_cast(const Node& n) {
    const auto twin = twins_.find(n.inputs[0]);
    const ValueId out = n.outputs[0];
    if (is_half(g_, out) && g_.value(n.inputs[0]).type.is_tensor() && g_.value(n.inputs[0]).type.elem == DataType::float32) {
      narrowed_.emplace(out, n.inputs[0]);
      return false;
    }
    if (twin == twins_.end() || out == kNoValue || g_.value(out).type.elem != DataType::float32) return false;
    // Nodes that read it follow: they are as they were.
    readers_.replace(g_, out, twin->second);
    return true;
  }

  // A cache of 16 bits is widened with the new rows that are joined to it: attention is fused only with both.
  bool fits(const Node& n, bool moves) const {
    bool any = false;  // is there in float32
    for (std::size_t i = 0; i < n.inputs.size(); ++i) {
      const ValueId v = n.inputs[i];
      if (!typed_input(n, i)) continue;
      // The angles of PagedAttention may be float32 anyway.
      if (is_other_float(g_, v) && !(is_paged(n) && (i == ops::PagedIn::kCos || i == ops::PagedIn::kSin))) return false;
      if (!is_half(g_, v)) continue;
      if (const Tensor* constant = constant_of(g_, v)) {
        // Operators of com.microsoft have no form with weights of 16 bits.
        if (constant->size() > (n.domain.empty() ? kMaxConstant : 16 * kMaxConstant)) return false;
      } else if (moves && !twins_.contains(v) && !narrowed_.contains(v)) {
        if (n.op_type != "Concat") return false;
      } else {
        any = true;
      }
    }
    if (moves && !any) return false;
    for (std::size_t i = 0; i < n.outputs.size(); ++i) {
      if (typed_output(n, i) && is_other_float(g_, n.outputs[i])) return false;
    }
    return true;
  }

  ValueId new_value(ValueId like) {
    Type type = g_.value(like).type;
    type.elem = DataType::float32;
    return g_.add_value(g_.value(like).name + "_f32", std::move(type));
  }

  void add_cast(ValueId from, ValueId to, DataType type) {
    add_node(g_, make_node({}, "Cast", 13, {from}, {{"to", static_cast<std::int64_t>(type)}}), to);
  }

  ValueId twin_of(ValueId v) {
    if (const auto found = twins_.find(v); found != twins_.end()) return found->second;
    if (const auto found = narrowed_.find(v); found != narrowed_.end()) return found->second;
    ValueId twin = kNoValue;
    if (const Tensor* half = constant_of(g_, v)) {
      Tensor wide(DataType::float32, half->shape());
      auto* to = static_cast<float*>(wide.mutable_data());
      for (std::int64_t i = 0; i < half->size(); ++i) {
        std::uint16_t bits = 0;
        std::memcpy(&bits, static_cast<const char*>(half->data()) + i * 2, sizeof(bits));
        to[i] = widened(half->dtype(), bits);
      }
      twin = g_.add_constant(g_.value(v).name + "_f32", std::move(wide));
    } else {
      twin = new_value(v);
      add_cast(v, twin, DataType::float32);
    }
    twins_.emplace(v, twin);
    return twin;
  }

  // Puts `wide`, but for inputs `kept`, into float32 in place of node `id`.
  void rewrite(NodeId id, Node wide, std::initializer_list<std::size_t> kept) {
    for (std::size_t i = 0; i < wide.inputs.size(); ++i) {
      if (std::find(kept.begin(), kept.end(), i) != kept.end()) continue;
      if (typed_input(wide, i) && is_half(g_, wide.inputs[i])) wide.inputs[i] = twin_of(wide.inputs[i]);
    }
    const std::vector<ValueId> outputs = wide.outputs;
    for (std::size_t i = 0; i < wide.outputs.size(); ++i) {
      if (typed_output(wide, i) && is_half(g_, wide.outputs[i])) wide.outputs[i] = new_value(wide.outputs[i]);
    }
    const std::vector<ValueId> made = wide.outputs;
    g_.remove_node(id);
    g_.add_node(std::move(wide));
    // A cast for remaining readers of the float16 form; it is removed as dead if there are none.
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (made[i] == outputs[i]) continue;
      add_cast(made[i], outputs[i], g_.value(outputs[i]).type.elem);
      twins_.emplace(outputs[i], made[i]);
    }
  }

  Graph& g_;
  Readers readers_;
  std::vector<bool> touched_;            // nodes that stay with those that compute in float32
  std::map<ValueId, ValueId> twins_;     // value of 16 bits -> the same in float32
  std::map<ValueId, ValueId> narrowed_;  // result of a cast -> what was cast
};

}  // namespace

bool widen_half(Graph& graph) { return Widener(graph).run(); }

}  // namespace sdx::fuse
