// Attention of ai.onnx and of sdx, without caches and windows.

#include <array>
#include <cmath>

#include "base/error.h"
#include "ops/attention/signatures.h"
#include "providers/vulkan/lowering/strided.h"
#include "providers/vulkan/operators.h"

namespace sdx::vulkan {
namespace {

using enum ops::AttentionIn::Slot;

struct Heads {
  std::int64_t batch, heads, rows, size;
  bool flat;
};

Heads heads_of(const Shape& s, std::int64_t count) {
  if (s.size() == 4) return {s[0], s[1], s[2], s[3], false};
  if (s.size() != 3 || count < 1 || s[2] % count != 0) {
    fail(ErrorCode::runtime_failure, "{} cannot be split into {} heads", to_string(s), count);
  }
  return {s[0], count, s[1], s[2] / count, true};
}

std::string refuse_attention(const NodeFacts& n) {
  const auto a = ops::parse<ops::AttentionAttrs>(n.node());
  for (std::size_t i = kPastKey; i < n.inputs(); ++i) {
    if (n.has(i)) return "caches, lengths and conditions are not supported";
  }
  for (std::size_t i = 1; i < 4; ++i) {
    if (n.wants(i)) return "only the first result is computed";
  }
  if (a.left_window >= 0 || a.right_window >= 0 || a.softcap != 0) return "windows and caps of scores are not supported";
  if (a.zero_nan) return "probabilities that are NaN stay so";
  for (std::size_t i = 0; i < 3; ++i) {
    if (n.rank(i) != 3 && n.rank(i) != 4) return "input " + std::to_string(i) + " is not known to have 3 or 4 axes";
  }
  if (n.has(kMask) && (n.rank(kMask) < 0 || n.rank(kMask) > 4)) return "the mask has an unknown rank";
  return n.all_floats();
}

void emit_attention(Emitter& e, const Node& node) {
  const auto a = ops::parse<ops::AttentionAttrs>(node);
  const Heads q = heads_of(e.shape(node.inputs[kQ]), a.q_num_heads), k = heads_of(e.shape(node.inputs[kK]), a.kv_num_heads),
              v = heads_of(e.shape(node.inputs[kV]), a.kv_num_heads);
  const Shape out = e.shape(node.outputs[0]);
  const std::int64_t batch = out[0];
  const auto serves = [&](const Heads& h) { return h.batch == batch || (h.batch == 1 && node.domain == "sdx"); };
  if (!serves(q) || !serves(k) || !serves(v) || v.heads != k.heads || v.rows != k.rows || k.size != q.size || k.heads == 0 ||
      q.heads % k.heads != 0) {
    fail(ErrorCode::runtime_failure, "Q, K and V do not fit together");
  }
  if (v.size > kMostHeadSize) fail(ErrorCode::not_implemented, "vulkan: heads of {} values", v.size);
  if (element_count(out) == 0) return;
  std::vector<std::int64_t> mask(4, 0);
  const bool masked = e.has(node, kMask);
  if (masked) {
    const Shape shape = e.shape(node.inputs[kMask]), scores{batch, q.heads, q.rows, k.rows};
    for (std::size_t i = 0; i < shape.size(); ++i) {
      const std::int64_t wanted = scores[4 - shape.size() + i];
      if (shape[i] != wanted && (shape[i] != 1 || i + 1 == shape.size())) {
        fail(ErrorCode::not_implemented, "vulkan: attn_mask {} for scores {}", to_string(shape), to_string(scores));
      }
    }
    mask = broadcast_steps(shape, scores);
  }
  const auto bits = [](bool x, bool y, bool z) { return (x ? 1U : 0U) | (y ? 2U : 0U) | (z ? 4U : 0U); };
  Dispatch d(Shader::attention, {bits(q.flat, k.flat, v.flat), bits(q.batch != batch, k.batch != batch, v.batch != batch),
                                 masked ? 1U : 0U, a.causal && !a.by_steps ? 1U : 0U, a.by_steps ? 1U : 0U});
  d.read(node.inputs[kQ]).read(node.inputs[kK]).read(node.inputs[kV]);
  masked ? d.read(node.inputs[kMask]) : d.no_address();
  d.write(node.outputs[0]);
  d.word(q.heads).word(k.heads).word(q.rows).word(k.rows).word(q.size).word(v.size);
  for (const std::int64_t step : mask) d.word(step);
  d.number(a.scale.value_or(1.0F / std::sqrt(static_cast<float>(std::max<std::int64_t>(1, q.size)))));
  const std::uint64_t rows = static_cast<std::uint64_t>(batch * q.heads * q.rows);
  e.dispatch_groups(std::move(d), q.rows, q.heads, batch, 2 * rows * static_cast<std::uint64_t>(k.rows * (q.size + v.size)));
}

}  // namespace

void add_attention(Operators& all) {
  for (const char* domain : {"", "sdx"}) all.push_back({domain, "Attention", refuse_attention, emit_attention});
}

}  // namespace sdx::vulkan
