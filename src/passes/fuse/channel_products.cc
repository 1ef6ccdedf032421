// Transpose -> Linear -> Transpose that multiplies the second axis, as CaiT mixes the scores of its heads and ResMLP its tokens,
// is a convolution by single pixels. Zen 5, one thread: 4 heads of 196 x 196 scores take 0.021 ms instead of 0.160, 196 tokens
// of 384 channels 0.117 instead of 0.135.

#include <algorithm>

#include "graph/edit.h"
#include "ops/math/fused_activation.h"
#include "ops/matrix/signatures.h"
#include "ops/tensor/signatures.h"
#include "passes/fuse/fuse.h"

namespace sdx::fuse {
namespace {

// [N, C, spatial...] to [N, spatial..., C], or back.
bool moves_channels(const Node& n, std::size_t rank, bool to_last) {
  const auto perm = ops::parse<ops::TransposeAttrs>(n).perm;
  if (!perm || perm->size() != rank) return false;
  for (std::size_t i = 0; i < rank; ++i) {
    const std::size_t last = i == 0 ? 0 : i + 1 < rank ? i + 1 : 1, first = i == 0 ? 0 : i == 1 ? rank - 1 : i - 1;
    if ((*perm)[i] != static_cast<std::int64_t>(to_last ? last : first)) return false;
  }
  return true;
}

// Whether a plane has at least as many pixels as there are channels. With fewer, columns do not fill the kernels: 512 channels
// of 7 x 7 pixels take 0.129 ms instead of 0.105.
bool has_planes(const SymShape& shape, std::int64_t channels) {
  std::int64_t pixels = 1;
  for (std::size_t i = 2; i < shape.size(); ++i) {
    if (!shape[i].is_const() || shape[i].value() < 1) return false;
    pixels = std::min<std::int64_t>(pixels, channels) * std::min<std::int64_t>(shape[i].value(), channels);
  }
  return pixels >= channels;
}

// [K, N], or [N, K] if it is turned, to [N, K, 1...].
Tensor as_kernel(const Tensor& w, bool turned, std::size_t rank) {
  const std::int64_t k = w.dim(turned ? 1 : 0), n = w.dim(turned ? 0 : 1);
  Shape shape(rank, 1);
  shape[0] = n, shape[1] = k;
  Tensor kernel(DataType::float32, shape);
  const auto* from = static_cast<const float*>(w.data());
  auto* to = static_cast<float*>(kernel.mutable_data());
  for (std::int64_t j = 0; j < n; ++j) {
    for (std::int64_t i = 0; i < k; ++i) to[j * k + i] = turned ? from[j * k + i] : from[i * n + j];
  }
  return kernel;
}

bool convolve(Graph& g, NodeId id, const Readers& readers) {
  const Node n = g.node(id);
  if (n.removed || n.domain != "sdx" || n.op_type != "Linear" || has_input(n, ops::LinearIn::kZ)) return false;
  const auto attrs = ops::parse<ops::LinearAttrs>(n);
  if (attrs.bfloat16 || !ops::parse<ops::FusedActivationFields>(n).activation.empty()) return false;
  const Tensor* w = constant_input(g, n, 1);
  const Node* before = made_by(g, n.inputs[0], "Transpose", 1);
  const NodeId reader = readers.only(n.outputs[0]);
  if (w == nullptr || w->dtype() != DataType::float32 || w->rank() != 2 || before == nullptr || reader == kNoNode) return false;
  const Node& after = g.node(reader);
  const SymShape* shape = shape_of(g, before->inputs[0]);
  if (!is_op(after, "Transpose") || shape == nullptr) return false;
  const std::size_t rank = shape->size();
  if (rank < 3 || rank > 5 || !moves_channels(*before, rank, true) || !moves_channels(after, rank, false)) return false;
  if (!has_planes(*shape, std::max(w->dim(0), w->dim(1)))) return false;

  const ValueId kernel = g.add_constant(g.value(n.inputs[1]).name + "_kernel", as_kernel(w->aligned(), attrs.trans_b, rank));
  Node conv = make_node(n.name, "Conv", after.version, {before->inputs[0], kernel});
  if (has_input(n, ops::LinearIn::kB)) conv.inputs.push_back(n.inputs[ops::LinearIn::kB]);
  conv.outputs = after.outputs;
  g.remove_node(reader);
  g.remove_node(id);
  g.add_node(std::move(conv));
  return true;
}

}  // namespace

bool channel_products(Graph& graph) {
  bool changed = false;
  const Readers readers(graph);
  const std::size_t count = graph.nodes().size();
  for (NodeId id = 0; id < count; ++id) changed = convolve(graph, id, readers) || changed;
  return changed;
}

}  // namespace sdx::fuse
