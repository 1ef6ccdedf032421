// sdx PagedAttention with queries in float32: rotation, the new rows of the caches, attention.

#include "kernels/cpu/attention/paged.h"

#include <cmath>
#include <cstring>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/cpu/attention/attention.h"
#include "ops/attention/paged_cache.h"
#include "providers/cpu/kernel_table.h"

namespace sdx::cpu {
namespace {

using enum ops::PagedIn::Slot;

struct PagedState : KernelState {
  ops::PagedShapes shapes;
};

// Where a new token goes: its position, and its row in the first head of its block.
struct Place {
  std::int64_t position, row;
};

class PagedKernel : public Kernel {
 public:
  PagedKernel(const LowerContext& c, const ops::PagedAttrs& a) : attrs_(a), heads_(ops::head_counts(c.attrs())) {
    if (a.smooth_softmax > 0) zeros_.assign(static_cast<std::size_t>(heads_.q), 0.0F);
  }
  std::string_view name() const override { return "paged-attention-f32"; }

  std::unique_ptr<KernelState> resolve(ResolveContext& c) const override {
    auto state = std::make_unique<PagedState>();
    ops::PagedInputShapes shapes;
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      if (c.has_input(i)) shapes[i] = c.input_shape(i);
    }
    const ops::PagedShapes& s = state->shapes = ops::paged_shapes(attrs_, heads_, shapes);
    if (s.angles > 0 || c.has_input(kQNorm))
      c.workspace_bytes = byte_size(DataType::float32, element_count(Shape{s.tokens, heads_.q, s.size}));
    return state;
  }

  void run(const KernelContext& c) const override {
    const ops::PagedShapes& s = static_cast<const PagedState*>(c.state)->shapes;
    const ops::PagedBatch b =
        ops::checked_batch(s, c.in<std::int64_t>(kStarts), c.in<std::int64_t>(kPast), c.in<std::int32_t>(kTable));
    PagedArgs a;
    a.heads = heads_.q, a.kv_heads = heads_.kv, a.head_size = s.size, a.block_size = s.block_size;
    a.keys = taken_over(c, kKeyCache), a.values = taken_over(c, kValueCache);
    if (s.tokens == 0) return;
    a.texts = s.sequences, a.starts = b.starts, a.past = b.past, a.table = b.table, a.table_width = b.table_width;
    a.q = c.in<float>(kQuery);
    a.q_row = (heads_.q + (s.packed ? 2 * heads_.kv : 0)) * s.size;
    take_tokens(c, s, places_of(s, b), a);
    if (s.angles > 0 || c.has_input(kQNorm)) a.q = static_cast<float*>(c.workspace), a.q_row = heads_.q * s.size;
    a.out = c.out<float>(0);
    a.scale = attrs_.scale != 0.0F ? attrs_.scale : 1.0F / std::sqrt(static_cast<float>(s.size));
    a.softcap = attrs_.softcap;
    a.window = std::max<std::int64_t>(0, s.window);
    if (c.has_input(kSink)) {
      a.sink = c.in<float>(kSink);
    } else if (!zeros_.empty()) {
      a.sink = zeros_.data();
    }
    paged_attention_f32(a);
  }

 private:
  // Returns a cache with its scales: the input's memory if the output is bound to it, else a copy.
  static PagedRows taken_over(const KernelContext& c, std::size_t input) {
    const auto take = [&](std::size_t i) {
      const Tensor& from = c.input(i);
      Tensor& to = c.output(i - kKeyCache + 1);
      if (to.data() != from.data() && from.bytes() != 0) std::memcpy(to.mutable_data(), from.data(), from.bytes());
      return to.mutable_data();
    };
    PagedRows rows{c.input(input).dtype(), take(input), nullptr};
    if (rows.type == DataType::int8) rows.scales = static_cast<float*>(take(input + 2));
    return rows;
  }

  static std::vector<Place> places_of(const ops::PagedShapes& s, const ops::PagedBatch& b) {
    std::vector<Place> places;
    places.reserve(static_cast<std::size_t>(s.tokens));
    for (std::int64_t n = 0; n < s.sequences; ++n) {
      for (std::int64_t at = b.past[n]; at < b.total(n); ++at)
        places.push_back({at, s.cache_row(b.block(n, at), 0, at % s.block_size)});
    }
    return places;
  }

  // Normalises and rotates one vector of queries or keys, as far as the node asks for it; `to` may be `from`.
  void prepare(const KernelContext& c, const ops::PagedShapes& s, std::int64_t position, const float* from, std::size_t norm,
               float* to) const {
    if (c.has_input(norm)) {
      double square = 0;
      for (std::int64_t d = 0; d < s.size; ++d) square += static_cast<double>(from[d]) * static_cast<double>(from[d]);
      const float factor = 1.0F / std::sqrt(static_cast<float>(square / static_cast<double>(s.size)) + attrs_.qk_norm_epsilon);
      const float* weight = c.in<float>(norm);
      for (std::int64_t d = 0; d < s.size; ++d) to[d] = from[d] * factor * weight[d];
      from = to;
    }
    if (s.angles > 0) {
      const std::int64_t row = position * s.angles;
      rotate_f32(from, s.size, 2 * s.angles, c.in<float>(kCos) + row, c.in<float>(kSin) + row, attrs_.rotary_interleaved, to);
    } else if (from != to) {
      std::copy_n(from, s.size, to);
    }
  }

  // Rotates queries into the workspace, and writes the new rows of keys and values.
  void take_tokens(const KernelContext& c, const ops::PagedShapes& s, const std::vector<Place>& places,
                   const PagedArgs& a) const {
    const std::int64_t kv_row = s.packed ? a.q_row : heads_.kv * s.size;
    const float* keys = s.packed ? a.q + heads_.q * s.size : c.in<float>(kKey);
    const float* values = s.packed ? keys + heads_.kv * s.size : c.in<float>(kValue);
    const bool queries = s.angles > 0 || c.has_input(kQNorm), turned = s.angles > 0 || c.has_input(kKNorm);
    parallel_for(s.tokens, std::max<std::int64_t>(1, 16384 / a.q_row), [&](std::int64_t begin, std::int64_t end) {
      std::vector<float> key(static_cast<std::size_t>(s.size));
      for (std::int64_t t = begin; t < end; ++t) {
        const Place& place = places[static_cast<std::size_t>(t)];
        for (std::int64_t h = 0; queries && h < heads_.q; ++h) {
          prepare(c, s, place.position, a.q + t * a.q_row + h * s.size, kQNorm,
                  static_cast<float*>(c.workspace) + (t * heads_.q + h) * s.size);
        }
        for (std::int64_t h = 0; h < heads_.kv; ++h) {
          const std::int64_t row = place.row + h * s.block_size;
          const float* from = keys + t * kv_row + h * s.size;
          if (turned) prepare(c, s, place.position, from, kKNorm, key.data());
          write_paged_row(a.keys, row, turned ? key.data() : from, s.size);
          write_paged_row(a.values, row, values + t * kv_row + h * s.size, s.size);
        }
      }
    });
  }

  ops::PagedAttrs attrs_;
  ops::HeadCounts heads_;
  std::vector<float> zeros_;  // the sinks of smooth softmax
};

std::unique_ptr<Kernel> make_paged(LowerContext& c) {
  const auto attr = ops::parse<ops::PagedAttrs>(c);
  for (const std::size_t i : {kQuery, kKey, kValue, kCos, kSin, kSink, kQNorm, kKNorm}) {
    if (c.has_input(i) && c.dtype(i) != DataType::float32) return c.refuse("not float32");
  }
  const DataType cache = c.dtype(kKeyCache);
  if (cache != DataType::float32 && cache != DataType::float16 && cache != DataType::bfloat16 && cache != DataType::int8)
    return c.refuse("the type of the caches is not known");
  if (c.dtype(kValueCache) != cache) return c.refuse("the caches are of two types");
  const bool bytes = cache == DataType::int8;
  for (const std::size_t i : {kKeyScales, kValueScales}) {
    if (c.has_input(i) != bytes) return c.refuse("scales go with caches of int8");
    if (bytes && (c.dtype(i) != DataType::float32 || !c.has_output(i - kKeyCache + 1)))
      return c.refuse("the scales are not float32, or the outputs for them are missing");
  }
  if (!c.has_output(1) || !c.has_output(2)) return c.refuse("the caches are not requested");
  if (c.dtype(kStarts) != DataType::int64 || c.dtype(kPast) != DataType::int64 || c.dtype(kTable) != DataType::int32)
    return c.refuse("lengths or blocks are not of their types");
  if (attr.local_window_size == 0) return c.refuse("an empty window");
  if (attr.do_rotary && (!c.has_input(kCos) || !c.has_input(kSin)))
    return c.refuse("the caches of cosines and sines are missing");
  return std::make_unique<PagedKernel>(c, attr);
}

}  // namespace

void register_kernels_paged_attention(KernelTable& t) { t.add("sdx", "PagedAttention", "paged-attention-f32", 10, make_paged); }

}  // namespace sdx::cpu
