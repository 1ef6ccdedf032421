// Source: BatchNormalization (ai.onnx 1 to 15) at inference is y = (x - mean) / sqrt(var + epsilon) * scale + bias per channel,
// which a convolution before it absorbs: w' = w * s, b' = (b - mean) * s + bias with s = scale / sqrt(var + epsilon).

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/block_pool.h"
#include "base/system/mapped_file.h"
#include "base/thread_pool.h"
#include "graph/edit.h"
#include "ops/conv/signatures.h"
#include "ops/norm/signatures.h"
#include "passes/simplify/simplify.h"
#include "tensor/element.h"

namespace sdx::simplify {
namespace {

struct Affine {
  std::vector<double> scale, shift;  // per output channel
};

bool inference_form(const Node& n) {
  const auto attr = ops::parse<ops::BatchNormAttrs>(n);
  if (n.version < 7 && !attr.is_test && n.outputs.size() > 1) return false;
  if (attr.training_mode || !attr.spatial) return false;
  for (std::size_t i = 1; i < n.outputs.size(); ++i) {
    if (n.outputs[i] != kNoValue) return false;
  }
  return true;
}

bool batch_norm_affine(const Graph& g, const Node& n, std::int64_t channels, Affine& out) {
  if (n.op_type != "BatchNormalization" || !n.domain.empty() || !inference_form(n)) return false;
  const Tensor* p[4];
  for (std::size_t i = 0; i < 4; ++i) {
    p[i] = constant_input(g, n, i + 1);
    if (p[i] == nullptr || p[i]->size() != channels) return false;
  }
  const double epsilon = static_cast<double>(ops::parse<ops::BatchNormAttrs>(n).epsilon);
  for (std::int64_t c = 0; c < channels; ++c) {
    const double s = element_as_double(*p[0], c) / std::sqrt(element_as_double(*p[3], c) + epsilon);
    if (!std::isfinite(s)) return false;
    out.scale.push_back(s);
    out.shift.push_back(element_as_double(*p[1], c) - element_as_double(*p[2], c) * s);
  }
  return true;
}

// Mul or Add whose other operand is one constant per channel, [C,1,1] or [1,C,1,1], or a single element.
bool elementwise_affine(const Graph& g, const Node& n, ValueId conv_out, std::int64_t channels, std::size_t rank, Affine& out) {
  const bool mul = n.op_type == "Mul";
  if ((!mul && n.op_type != "Add") || !n.domain.empty() || n.version < 7 || n.inputs.size() != 2) return false;
  const std::size_t other = n.inputs[0] == conv_out ? 1 : 0;
  const Tensor* t = constant_input(g, n, other);
  if (t == nullptr || n.inputs[1 - other] != conv_out || t->rank() > rank) return false;
  const bool single = t->size() == 1;
  if (!single) {
    const std::size_t pad = rank - t->rank();
    for (std::size_t i = 0; i < t->rank(); ++i) {
      if (t->shape()[i] != (i + pad == 1 ? channels : 1)) return false;
    }
  }
  for (std::int64_t c = 0; c < channels; ++c) {
    const double v = element_as_double(*t, single ? 0 : c);
    if (!std::isfinite(v)) return false;
    out.scale.push_back(mul ? v : 1.0);
    out.shift.push_back(mul ? 0.0 : v);
  }
  return true;
}

// The file may hold w unaligned.
template <class T>
void scale_span(const char* from, std::int64_t count, double factor, T* to) {
  for (std::int64_t k = 0; k < count; ++k) {
    T v;
    std::memcpy(&v, from + k * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
    to[k] = static_cast<T>(static_cast<double>(v) * factor);
  }
}

// Conv: [M, C/group, k…]; ConvTranspose: [C, M/group, k…], output channel m = g * (M/group) + second index.
template <class T>
void scale_channels(const Tensor& w, const Affine& a, bool transposed, std::int64_t group, T* to) {
  const auto* from = static_cast<const char*>(w.data());
  const std::int64_t first = w.shape()[0], second = w.shape()[1], per_group = first / group;
  const std::int64_t row = first == 0 ? 0 : w.size() / first;
  const std::int64_t inner = second == 0 ? 0 : row / second;
  // This reads and writes all weights of a network: on one thread it took as long as the rest of loading ResNet-50.
  constexpr std::int64_t kGrain = 1 << 16;  // elements
  parallel_for(first, std::max<std::int64_t>(1, kGrain / std::max<std::int64_t>(1, row)),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin; i < end; ++i) {
                   const auto size = static_cast<std::int64_t>(sizeof(T));
                   if (!transposed) {
                     scale_span(from + i * row * size, row, a.scale[static_cast<std::size_t>(i)], to + i * row);
                     continue;
                   }
                   for (std::int64_t j = 0; j < second; ++j) {
                     const std::int64_t at = i * row + j * inner;
                     scale_span(from + at * size, inner, a.scale[static_cast<std::size_t>(i / per_group * second + j)], to + at);
                   }
                 }
               });
}

Tensor scaled_weights(const Tensor& w, const Affine& a, bool transposed, std::int64_t group, BlockPool& pool) {
  std::shared_ptr<void> memory = pool.allocate(w.bytes());
  void* const data = memory.get();
  Tensor out = Tensor::view_mutable(data, w.dtype(), w.shape(), std::move(memory));
  if (w.dtype() == DataType::float32) {
    scale_channels(w, a, transposed, group, static_cast<float*>(out.mutable_data()));
  } else {
    scale_channels(w, a, transposed, group, static_cast<double*>(out.mutable_data()));
  }
  // The original probably has no readers left.
  release_mapped_pages(w.data(), w.bytes());
  return out;
}

// Folds the only reader of the convolution's output into it. Returns whether it did.
bool fold_reader(Graph& g, NodeId id, Readers& readers, BlockPool& pool) {
  const Node& conv = g.node(id);
  const bool transposed = conv.op_type == "ConvTranspose";
  if (conv.removed || !conv.domain.empty() || (conv.op_type != "Conv" && !transposed)) return false;
  const Tensor* w = constant_input(g, conv, 1);
  const bool has_bias = conv.inputs.size() > 2 && conv.inputs[2] != kNoValue;
  const Tensor* b = constant_input(g, conv, 2);
  if (w == nullptr || (has_bias && b == nullptr) || (w->dtype() != DataType::float32 && w->dtype() != DataType::float64))
    return false;
  const std::int64_t group = ops::group_of(conv.attributes);
  if (w->rank() < 3 || group < 1 || w->shape()[0] % group != 0) return false;
  const std::int64_t channels = transposed ? w->shape()[1] * group : w->shape()[0];
  if (b != nullptr && b->size() != channels) return false;
  const ValueId out = conv.outputs[0];
  const NodeId reader_id = readers.only(out);
  if (reader_id == kNoNode) return false;
  const Node& reader = g.node(reader_id);
  Affine a;
  const bool norm = !reader.inputs.empty() && reader.inputs[0] == out && batch_norm_affine(g, reader, channels, a);
  if (!norm && !elementwise_affine(g, reader, out, channels, w->rank(), a)) return false;

  Tensor bias(w->dtype(), {channels});
  for (std::int64_t c = 0; c < channels; ++c) {
    const auto i = static_cast<std::size_t>(c);
    set_element(bias, c, (b != nullptr ? element_as_double(*b, c) : 0.0) * a.scale[i] + a.shift[i]);
  }
  bool scales = false;
  for (const double s : a.scale) scales = scales || s != 1.0;
  const std::string base = g.value(out).name;
  const ValueId new_w =
      scales ? g.add_constant(base + "_weight", scaled_weights(*w, a, transposed, group, pool)) : conv.inputs[1];
  const ValueId new_b = g.add_constant(base + "_bias", std::move(bias));
  const ValueId result = reader.outputs[0];
  g.remove_node(reader_id);
  Node& changed = g.node(id);
  changed.inputs.resize(3, kNoValue);
  changed.inputs[1] = new_w;
  changed.inputs[2] = new_b;
  readers.clear(out);
  readers.replace(g, result, out);
  return true;
}

}  // namespace

bool fold_batch_norm(Graph& graph) {
  bool changed = false;
  BlockPool pool;
  Readers readers(graph);
  for (NodeId id = 0; id < graph.nodes().size(); ++id) {
    const std::string& op = graph.node(id).op_type;
    if (op != "Conv" && op != "ConvTranspose") continue;
    // A chain Conv -> Mul -> Add -> BatchNormalization folds link by link.
    while (fold_reader(graph, id, readers, pool)) changed = true;
  }
  return changed;
}

}  // namespace sdx::simplify
