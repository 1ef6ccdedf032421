// RotaryEmbedding in float32: ai.onnx 23 and com.microsoft 1.

#include <vector>

#include "base/thread_pool.h"
#include "kernels/cpu/attention/attention.h"
#include "ops/attention/signatures.h"
#include "providers/cpu/attention_cache.h"
#include "providers/cpu/kernel_table.h"

namespace sdx::cpu {
namespace {

struct RotaryState : KernelState {
  Heads x;
  std::int64_t dim = 0;        // rotated elements of a head
  std::int64_t positions = 0;  // rows of the caches
  std::int64_t ids = 0;        // how many positions are given
  bool offset = false;         // one position, of each first token
};

class RotaryKernel : public Kernel {
 public:
  RotaryKernel(const ops::RotaryAttrs& a, bool microsoft)
      : microsoft_(microsoft), interleaved_(a.interleaved), heads_(a.num_heads), dim_(a.rotary_embedding_dim) {}
  std::string_view name() const override { return "rotary-f32"; }

  std::unique_ptr<KernelState> resolve(ResolveContext& c) const override {
    auto s = std::make_unique<RotaryState>();
    const Shape x = c.input_shape(0), cos = c.input_shape(cos_at());
    if (x.size() != 3 && x.size() != 4)
      fail(ErrorCode::runtime_failure, "the input must have 3 or 4 axes, received {}", to_string(x));
    if (cos != c.input_shape(cos_at() + 1)) {
      fail(ErrorCode::runtime_failure, "cos_cache and sin_cache differ: {} and {}", to_string(cos),
           to_string(c.input_shape(cos_at() + 1)));
    }
    if (x.size() == 4) {
      s->x = {x[0], x[1], x[2], x[3], false};
    } else {
      // Without num_heads, com.microsoft's caches give the size of a head.
      const std::int64_t size = heads_ > 0 ? x[2] / heads_ : microsoft_ && !cos.empty() ? cos.back() * 2 : 0;
      if (size < 1 || x[2] % size != 0 || (heads_ > 0 && x[2] % heads_ != 0))
        fail(ErrorCode::runtime_failure, "{} features cannot be split into {} heads", x[2], heads_);
      s->x = {x[0], x[2] / size, x[1], size, true};
    }
    s->dim = dim_ > 0 ? dim_ : s->x.size;
    const bool per_token = !c.has_input(ids_at());
    const bool fits = per_token ? cos.size() == 3 && cos[0] == s->x.batch && cos[1] == s->x.rows : cos.size() == 2;
    if (s->dim > s->x.size || s->dim % 2 != 0 || !fits || cos.back() != s->dim / 2) {
      fail(ErrorCode::runtime_failure, "rotating {} of {} features per head does not fit caches {}", s->dim, s->x.size,
           to_string(cos));
    }
    s->positions = per_token ? s->x.batch * s->x.rows : cos[0];
    if (!per_token) {
      const Shape ids = c.input_shape(ids_at());
      s->ids = element_count(ids);
      s->offset = microsoft_ && ids.size() < 2;
      const bool right =
          s->offset ? s->ids == 1 : s->ids == s->x.batch * s->x.rows && (microsoft_ || ids == Shape{s->x.batch, s->x.rows});
      if (!right) {
        fail(ErrorCode::runtime_failure, "position_ids must be [{},{}]{}, received {}", s->x.batch, s->x.rows,
             microsoft_ ? " or [1]" : "", to_string(ids));
      }
    }
    return s;
  }

  void run(const KernelContext& c) const override {
    const auto& s = *static_cast<const RotaryState*>(c.state);
    const Heads& x = s.x;
    if (c.output(0).size() == 0) return;
    const std::vector<std::int64_t> rows = cache_rows(c, s);
    const float *from = c.in<float>(0), *cos = c.in<float>(cos_at()), *sin = c.in<float>(cos_at() + 1);
    float* to = c.out<float>(0);
    const std::int64_t grain = std::max<std::int64_t>(1, 16384 / (x.heads * x.size));
    parallel_for(x.batch * x.rows, grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t t = begin; t < end; ++t) {
        const std::int64_t angles = rows[static_cast<std::size_t>(t)] * (s.dim / 2);
        for (std::int64_t h = 0; h < x.heads; ++h) {
          const std::int64_t at = t / x.rows * x.batch_step() + h * x.head_step() + t % x.rows * x.row_step();
          rotate_f32(from + at, x.size, s.dim, cos + angles, sin + angles, interleaved_, to + at);
        }
      }
    });
  }

 private:
  std::size_t cos_at() const { return microsoft_ ? 2 : 1; }
  std::size_t ids_at() const { return microsoft_ ? 1 : 3; }

  // Returns the row of the caches for each token.
  std::vector<std::int64_t> cache_rows(const KernelContext& c, const RotaryState& s) const {
    std::vector<std::int64_t> rows(static_cast<std::size_t>(s.x.batch * s.x.rows));
    const std::int64_t* ids = s.ids > 0 ? c.in<std::int64_t>(ids_at()) : nullptr;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto token = static_cast<std::int64_t>(i);
      std::int64_t at = ids == nullptr ? token : s.offset ? ids[0] : ids[i];
      if (!microsoft_ && at < 0) at += s.positions;  // an index, which counts from the end when negative
      const bool inside = at >= 0 && at < s.positions;
      if (s.offset) at += token % s.x.rows;
      if (!inside || at >= s.positions)
        fail(ErrorCode::runtime_failure, "position {} is outside the caches, which have {} rows", at, s.positions);
      rows[i] = at;
    }
    return rows;
  }

  bool microsoft_, interleaved_;
  std::int64_t heads_, dim_;
};

std::unique_ptr<Kernel> make_rotary(LowerContext& c) {
  const bool microsoft = c.node().domain == "com.microsoft";
  const std::size_t cos = microsoft ? 2 : 1, ids = microsoft ? 1 : 3;
  for (const std::size_t i : {std::size_t{0}, cos, cos + 1}) {
    if (c.dtype(i) != DataType::float32) return c.refuse("not float32");
  }
  if (c.has_input(ids) && c.dtype(ids) != DataType::int64) return c.refuse("positions are not int64");
  const auto attr = ops::parse<ops::RotaryAttrs>(c);
  if (attr.rotary_embedding_dim < 0) return c.refuse("a negative size");
  return std::make_unique<RotaryKernel>(attr, microsoft);
}

}  // namespace

void register_kernels_rotary(KernelTable& t) {
  t.add("", "RotaryEmbedding", "rotary-f32", 10, make_rotary);
  t.add("sdx", "RotaryEmbedding", "rotary-f32", 10, make_rotary);
  t.add("com.microsoft", "RotaryEmbedding", "rotary-f32", 10, make_rotary);
}

}  // namespace sdx::cpu
