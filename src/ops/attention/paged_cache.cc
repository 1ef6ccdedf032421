#include "ops/attention/paged_cache.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "base/error.h"

namespace sdx::ops {
namespace {

using enum PagedIn::Slot;

std::string text(const std::optional<Shape>& shape) { return shape ? to_string(*shape) : "none"; }

void read_caches(const PagedInputShapes& in, PagedShapes& s) {
  const std::optional<Shape>&keys = in[kKeyCache], &values = in[kValueCache];
  if (!keys || keys->size() != 4 || (*keys)[1] != s.heads.kv || (*keys)[2] < 1 || (*keys)[3] < 1 || values != keys) {
    fail(ErrorCode::runtime_failure, "key_cache and value_cache must be [blocks,{},block_size,size], received {} and {}",
         s.heads.kv, text(keys), text(values));
  }
  s.blocks = (*keys)[0], s.block_size = (*keys)[2], s.size = (*keys)[3];
  s.quantised = in[kKeyScales].has_value();
  const Shape scales{s.blocks, s.heads.kv, s.block_size};
  if (s.quantised != in[kValueScales].has_value() || (s.quantised && (*in[kKeyScales] != scales || *in[kValueScales] != scales)))
    fail(ErrorCode::runtime_failure, "key_scales and value_scales must be {}, received {} and {}", to_string(scales),
         text(in[kKeyScales]), text(in[kValueScales]));
}

void read_tokens(const PagedInputShapes& in, PagedShapes& s) {
  const std::optional<Shape>& query = in[kQuery];
  s.packed = !in[kKey];
  if (s.packed == in[kValue].has_value())
    fail(ErrorCode::runtime_failure, "key and value go together, received {} and {}", text(in[kKey]), text(in[kValue]));
  const std::int64_t parts = s.packed ? s.heads.q + 2 * s.heads.kv : s.heads.q;
  if (!query || query->size() != 3 || (*query)[0] != 1 || (*query)[2] / parts != s.size || (*query)[2] % parts != 0)
    fail(ErrorCode::runtime_failure, "query must be [1,tokens,{} x {}], received {}", parts, s.size, text(query));
  s.tokens = (*query)[1];
  const Shape expected{1, s.tokens, s.heads.kv * s.size};
  if (!s.packed && (*in[kKey] != expected || *in[kValue] != expected))
    fail(ErrorCode::runtime_failure, "key and value must be {}, received {} and {}", to_string(expected), text(in[kKey]),
         text(in[kValue]));
}

void read_sequences(const PagedInputShapes& in, PagedShapes& s) {
  const std::optional<Shape>&starts = in[kStarts], &past = in[kPast], &table = in[kTable];
  if (!past || past->size() != 1) fail(ErrorCode::runtime_failure, "past_lengths must be [sequences], received {}", text(past));
  s.sequences = (*past)[0];
  if (!starts || starts->size() != 1 || (*starts)[0] - 1 != s.sequences)
    fail(ErrorCode::runtime_failure, "sequence_starts must be [sequences + 1], received {} for {} sequences", text(starts),
         s.sequences);
  if (!table || table->size() != 2 || (*table)[0] != s.sequences)
    fail(ErrorCode::runtime_failure, "block_table must be [{},blocks], received {}", s.sequences, text(table));
  s.table_width = (*table)[1];
}

// Rows of all blocks that the step writes, [first, second), sorted.
void refuse_overlaps(std::vector<std::pair<std::int64_t, std::int64_t>>& written, std::int64_t block_size) {
  std::sort(written.begin(), written.end());
  for (std::size_t i = 1; i < written.size(); ++i) {
    if (written[i].first < written[i - 1].second) {
      fail(ErrorCode::runtime_failure, "two tokens would be written to row {} of block {}: block_table gives it to both",
           written[i].first % block_size, written[i].first / block_size);
    }
  }
}

void check_sequence(const PagedShapes& shapes, const PagedBatch& b, std::int64_t s,
                    std::vector<std::pair<std::int64_t, std::int64_t>>& written) {
  const std::int64_t past = b.past[s], length = b.length(s);
  if (past < 0) fail(ErrorCode::runtime_failure, "past_lengths of sequence {} is {}; it must not be negative", s, past);
  if (length == 0) return;
  const std::int64_t most = shapes.table_width > std::numeric_limits<std::int64_t>::max() / b.block_size
                                ? std::numeric_limits<std::int64_t>::max()
                                : shapes.table_width * b.block_size;
  if (past > most || length > most - past)
    fail(ErrorCode::runtime_failure, "sequence {} has {} cached and {} new tokens; block_table has room for {}", s, past, length,
         most);
  const std::int64_t total = past + length;
  if (shapes.angles > 0 && total > shapes.positions)
    fail(ErrorCode::runtime_failure, "position {} of sequence {} is outside cos_cache, which has {} rows", total - 1, s,
         shapes.positions);
  const std::int64_t seen = shapes.window < 0 ? 0 : std::max<std::int64_t>(0, std::min(past, past + 1 - shapes.window));
  for (std::int64_t at = seen / b.block_size * b.block_size; at < total; at += b.block_size) {
    const std::int64_t block = b.block(s, at);
    if (block < 0 || block >= shapes.blocks) {
      fail(ErrorCode::runtime_failure, "block_table gives block {} to positions {} to {} of sequence {}; the cache has {} blocks",
           block, at, at + b.block_size - 1, s, shapes.blocks);
    }
    const std::int64_t from = std::max(at, past), to = std::min(at + b.block_size, total);
    if (from < to) written.emplace_back(block * b.block_size + from - at, block * b.block_size + to - at);
  }
}

}  // namespace

PagedShapes paged_shapes(const PagedAttrs& attrs, const HeadCounts& heads, const PagedInputShapes& inputs) {
  PagedShapes s;
  s.heads = heads;
  s.window = attrs.local_window_size;
  if (s.window < -1) fail(ErrorCode::invalid_model, "local_window_size must be -1 or more, received {}", s.window);
  read_caches(inputs, s);
  read_tokens(inputs, s);
  read_sequences(inputs, s);
  if (attrs.do_rotary) {
    const std::optional<Shape>&cos = inputs[kCos], &sin = inputs[kSin];
    if (!cos || cos->size() != 2 || cos != sin || (*cos)[1] < 1 || (*cos)[1] > s.size / 2)
      fail(ErrorCode::runtime_failure, "cos_cache and sin_cache must be [positions, up to {}], received {} and {}", s.size / 2,
           text(cos), text(sin));
    s.positions = (*cos)[0], s.angles = (*cos)[1];
  }
  if (inputs[kSink] && element_count(*inputs[kSink]) != heads.q)
    fail(ErrorCode::runtime_failure, "head_sink must have {} elements, received {}", heads.q, text(inputs[kSink]));
  for (const std::size_t i : {kQNorm, kKNorm}) {
    if (inputs[i] && element_count(*inputs[i]) != s.size)
      fail(ErrorCode::runtime_failure, "q_norm_weight and k_norm_weight must have {} elements, received {}", s.size,
           text(inputs[i]));
  }
  return s;
}

PagedBatch checked_batch(const PagedShapes& shapes, const std::int64_t* starts, const std::int64_t* past,
                         const std::int32_t* table) {
  const PagedBatch b{starts, past, table, shapes.table_width, shapes.block_size};
  if (starts[0] != 0 || starts[shapes.sequences] != shapes.tokens || !std::is_sorted(starts, starts + shapes.sequences + 1)) {
    fail(ErrorCode::runtime_failure, "sequence_starts must rise from 0 to the {} tokens of query, received {} to {}",
         shapes.tokens, starts[0], starts[shapes.sequences]);
  }
  std::vector<std::pair<std::int64_t, std::int64_t>> written;
  for (std::int64_t s = 0; s < shapes.sequences; ++s) check_sequence(shapes, b, s, written);
  refuse_overlaps(written, b.block_size);
  return b;
}

float quantize_row(const float* from, std::int64_t size, std::int8_t* to) {
  float most = 0.0F;
  bool numbers = true;
  for (std::int64_t i = 0; i < size; ++i) {
    most = std::max(most, std::fabs(from[i]));
    numbers = numbers && std::isfinite(from[i]);
  }
  if (!numbers) {
    std::fill_n(to, size, std::int8_t{0});
    return std::numeric_limits<float>::quiet_NaN();
  }
  const float scale = most / 127.0F;
  const float factor = scale > 0.0F ? 1.0F / scale : 0.0F;
  for (std::int64_t i = 0; i < size; ++i) {
    // The inverse of a subnormal scale may be infinite.
    const float q = std::isfinite(factor) ? from[i] * factor : from[i] / scale;
    to[i] = static_cast<std::int8_t>(std::clamp(std::nearbyint(q), -127.0F, 127.0F));
  }
  return scale;
}

}  // namespace sdx::ops
