#pragma once
// Problems for sdx PagedAttention: texts of random lengths whose caches lie in shuffled blocks, and what GroupQueryAttention says
// of each text alone.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "ops/attention/paged_cache.h"
#include "ops/math/convert.h"
#include "support/single_op.h"
#include "tensor/element.h"

namespace sdx::testing {

struct PagedCase {
  std::int64_t heads = 4, kv = 2, size = 16, block_size = 16;
  std::vector<std::pair<std::int64_t, std::int64_t>> texts;  // cached and new tokens
  DataType cache = DataType::float32;
  std::int64_t angles = 0;  // columns of cos_cache; 0: no rotation
  std::int64_t window = -1;
  float softcap = 0, scale = 0;
  bool interleaved = false, packed = false, smooth = false, sink = false, norms = false;
  unsigned seed = 1;
};

inline Tensor random_tensor(Shape shape, std::mt19937& rng, float bound = 1.5F) {
  Tensor t(DataType::float32, std::move(shape));
  std::uniform_real_distribution<float> dist(-bound, bound);
  for (float& x : t.mutable_values<float>()) x = dist(rng);
  return t;
}

// What lies in rows that no text owns: large enough that a kernel which reads it shows.
inline constexpr double kForeign = 99;

class PagedProblem {
 public:
  explicit PagedProblem(const PagedCase& c) : c_(c), rng_(c.seed) {
    std::int64_t tokens = 0, widest = 1;
    std::vector<std::int64_t> starts{0}, past;
    for (const auto& [cached, fresh] : c.texts) {
      tokens += fresh;
      starts.push_back(tokens), past.push_back(cached);
      widest = std::max(widest, blocks_of(cached + fresh));
      blocks_ += blocks_of(cached + fresh);
      positions_ = std::max(positions_, cached + fresh);
    }
    blocks_ += 3;  // that nobody owns
    inputs_.resize(ops::PagedIn::kCount);
    using enum ops::PagedIn::Slot;
    query_ = random_tensor({1, tokens, c.heads * c.size}, rng_);
    key_ = random_tensor({1, tokens, c.kv * c.size}, rng_), value_ = random_tensor({1, tokens, c.kv * c.size}, rng_);
    if (c.packed) {
      inputs_[kQuery] = side_by_side({query_, key_, value_});
    } else {
      inputs_[kQuery] = query_, inputs_[kKey] = key_, inputs_[kValue] = value_;
    }
    inputs_[kStarts] = Tensor::of<std::int64_t>({static_cast<std::int64_t>(starts.size())}, starts);
    inputs_[kPast] = Tensor::of<std::int64_t>({static_cast<std::int64_t>(past.size())}, past);
    make_table(widest);
    make_caches();
    if (c.angles > 0) {
      inputs_[kCos] = Tensor(DataType::float32, {positions_, c.angles});
      inputs_[kSin] = Tensor(DataType::float32, {positions_, c.angles});
      for (std::int64_t i = 0; i < positions_ * c.angles; ++i) {
        const double angle = static_cast<double>(i / c.angles) / std::pow(50.0, static_cast<double>(i % c.angles) / 4.0);
        set_element(inputs_[kCos], i, std::cos(angle));
        set_element(inputs_[kSin], i, std::sin(angle));
      }
    }
    if (c.sink) inputs_[kSink] = random_tensor({c.heads}, rng_);
    if (c.norms) inputs_[kQNorm] = random_tensor({c.size}, rng_), inputs_[kKNorm] = random_tensor({c.size}, rng_);
  }

  // Undefined: left out. The caches are those that outputs may be bound to.
  std::vector<Tensor>& inputs() { return inputs_; }
  std::int64_t caches() const { return c_.cache == DataType::int8 ? 4 : 2; }

  Node node() const {
    Node n = ops::testing::make_node("sdx", "PagedAttention", 1, ops::PagedIn::kCount, c_.cache == DataType::int8 ? 5 : 3);
    set_attributes(n);
    n.attributes.set("local_window_size", c_.window);
    return n;
  }

  // Compares with GroupQueryAttention, text by text; and that no row of `after` but those of the new tokens differs from
  // `before`. Both hold the caches, and their scales.
  void check(const Tensor& output, const std::vector<Tensor>& before, const std::vector<Tensor>& after) const {
    const double tolerance = c_.cache == DataType::int8       ? 0.04
                             : c_.cache == DataType::bfloat16 ? 0.02
                             : c_.cache == DataType::float16  ? 2e-3
                                                              : 2e-5;
    std::vector<bool> written(static_cast<std::size_t>(blocks_ * c_.kv * c_.block_size), false);
    std::int64_t first = 0;
    for (std::size_t s = 0; s < c_.texts.size(); ++s) {
      const auto [past, fresh] = c_.texts[s];
      if (fresh == 0) continue;
      const std::vector<Value> expected = alone(s, first);
      const Tensor& y = expected[0].tensor();
      for (std::int64_t i = 0; i < y.size(); ++i) {
        ASSERT_NEAR(element_as_double(output, first * c_.heads * c_.size + i), element_as_double(y, i), tolerance)
            << "text " << s << ", element " << i;
      }
      for (std::size_t cache = 0; cache < 2; ++cache) {
        for (std::int64_t h = 0; h < c_.kv; ++h) {
          for (std::int64_t at = past; at < past + fresh; ++at) {
            const std::int64_t row = row_of(s, h, at);
            written[static_cast<std::size_t>(row)] = true;
            for (std::int64_t d = 0; d < c_.size; ++d) {
              const std::int64_t there = (h * (past + fresh) + at) * c_.size + d;
              ASSERT_NEAR(number_at(after, cache, row, d), element_as_double(expected[cache + 1].tensor(), there), tolerance)
                  << "text " << s << ", cache " << cache << ", head " << h << ", position " << at;
            }
          }
        }
      }
      first += fresh;
    }
    for (std::size_t cache = 0; cache < before.size(); ++cache) {
      const auto bytes = static_cast<std::size_t>(before[cache].bytes()) / written.size();
      const auto* was = static_cast<const std::byte*>(before[cache].data());
      const auto* is = static_cast<const std::byte*>(after[cache].data());
      for (std::size_t row = 0; row < written.size(); ++row) {
        if (written[row]) continue;
        ASSERT_TRUE(std::equal(was + row * bytes, was + (row + 1) * bytes, is + row * bytes)) << "row " << row;
      }
    }
  }

  std::vector<Tensor> copies_of_caches() const {
    std::vector<Tensor> out;
    for (std::int64_t i = 0; i < caches(); ++i)
      out.push_back(inputs_[ops::PagedIn::kKeyCache + static_cast<std::size_t>(i)].clone());
    return out;
  }

 private:
  std::int64_t blocks_of(std::int64_t tokens) const { return (tokens + c_.block_size - 1) / c_.block_size; }
  std::int64_t row_of(std::size_t text, std::int64_t head, std::int64_t position) const {
    const Tensor& table = inputs_[ops::PagedIn::kTable];
    const auto at = static_cast<std::int64_t>(text) * table.dim(1) + position / c_.block_size;
    const std::int64_t block = table.values<std::int32_t>()[static_cast<std::size_t>(at)];
    return (block * c_.kv + head) * c_.block_size + position % c_.block_size;
  }
  double number_at(const std::vector<Tensor>& caches, std::size_t cache, std::int64_t row, std::int64_t d) const {
    const double x = element_as_double(caches[cache], row * c_.size + d);
    return caches.size() == 4 ? x * element_as_double(caches[cache + 2], row) : x;
  }

  static Tensor filled(DataType type, const Shape& shape) {
    Tensor t(type, shape);
    set_element(t, 0, kForeign);
    auto* at = static_cast<std::byte*>(t.mutable_data());
    const auto element = t.bytes() / static_cast<std::size_t>(t.size());
    for (std::size_t i = element; i < t.bytes(); i += element) std::memcpy(at + i, at, element);
    return t;
  }

  static Tensor side_by_side(const std::vector<Tensor>& parts) {
    const std::int64_t rows = parts[0].dim(1);
    std::int64_t width = 0;
    for (const Tensor& p : parts) width += p.dim(2);
    Tensor out(DataType::float32, {1, rows, width});
    auto* to = static_cast<float*>(out.mutable_data());
    for (std::int64_t r = 0; r < rows; ++r) {
      for (const Tensor& p : parts) to = std::copy_n(static_cast<const float*>(p.data()) + r * p.dim(2), p.dim(2), to);
    }
    return out;
  }

  void make_table(std::int64_t widest) {
    std::vector<std::int32_t> blocks(static_cast<std::size_t>(blocks_));
    std::iota(blocks.begin(), blocks.end(), 0);
    std::shuffle(blocks.begin(), blocks.end(), rng_);
    Tensor table(DataType::int32, {static_cast<std::int64_t>(c_.texts.size()), widest});
    std::size_t next = 0, at = 0;
    for (const auto& [past, fresh] : c_.texts) {
      for (std::int64_t i = 0; i < widest; ++i)
        table.mutable_values<std::int32_t>()[at++] = i < blocks_of(past + fresh) ? blocks[next++] : -1;
    }
    inputs_[ops::PagedIn::kTable] = table;
  }

  void make_caches() {
    using enum ops::PagedIn::Slot;
    const Shape shape{blocks_, c_.kv, c_.block_size, c_.size}, scales{blocks_, c_.kv, c_.block_size};
    const bool quantised = c_.cache == DataType::int8;
    for (const std::size_t i : {kKeyCache, kValueCache}) {
      inputs_[i] = filled(c_.cache, shape);
      if (quantised) inputs_[i + 2] = filled(DataType::float32, scales);
    }
    for (std::size_t s = 0; s < c_.texts.size(); ++s) {
      const std::int64_t past = c_.texts[s].first;
      for (std::size_t cache = 0; cache < 2; ++cache) {
        Tensor rows = random_tensor({1, c_.kv, past, c_.size}, rng_);
        for (std::int64_t r = 0; r < c_.kv * past; ++r) put_row(cache, row_of(s, r / past, r % past), rows, r);
        past_[cache].push_back(rows);
      }
    }
  }

  // Row r of `rows` goes into a cache, and comes back as the cache holds it.
  void put_row(std::size_t cache, std::int64_t row, Tensor& rows, std::int64_t r) {
    Tensor& to = inputs_[ops::PagedIn::kKeyCache + cache];
    auto* from = static_cast<float*>(rows.mutable_data()) + r * c_.size;
    float scale = 1;
    if (c_.cache == DataType::int8) {
      scale = ops::quantize_row(from, c_.size, static_cast<std::int8_t*>(to.mutable_data()) + row * c_.size);
      set_element(inputs_[ops::PagedIn::kKeyScales + cache], row, scale);
    } else {
      for (std::int64_t d = 0; d < c_.size; ++d) set_element(to, row * c_.size + d, from[d]);
    }
    for (std::int64_t d = 0; d < c_.size; ++d) from[d] = static_cast<float>(element_as_double(to, row * c_.size + d)) * scale;
  }

  void set_attributes(Node& n) const {
    n.attributes.set("num_heads", c_.heads);
    n.attributes.set("kv_num_heads", c_.kv);
    n.attributes.set("scale", c_.scale);
    n.attributes.set("softcap", c_.softcap);
    n.attributes.set("do_rotary", std::int64_t{c_.angles > 0 ? 1 : 0});
    n.attributes.set("rotary_interleaved", std::int64_t{c_.interleaved ? 1 : 0});
    n.attributes.set("smooth_softmax", std::int64_t{c_.smooth ? 1 : 0});
  }

  std::vector<Value> alone(std::size_t s, std::int64_t first) const {
    using enum ops::PagedIn::Slot;
    const auto [past, fresh] = c_.texts[s];
    Node n = ops::testing::make_node("com.microsoft", "GroupQueryAttention", 1, 16, 3);
    set_attributes(n);
    n.attributes.set("local_window_size", c_.window);
    const auto part = [&, count = fresh](const Tensor& t) {
      Tensor out(DataType::float32, {1, count, t.dim(2)});
      std::copy_n(static_cast<const float*>(t.data()) + first * t.dim(2), out.size(), static_cast<float*>(out.mutable_data()));
      return out;
    };
    const auto total = static_cast<std::int32_t>(past + fresh);
    std::vector<Value> in(16);
    in[0] = part(query_), in[1] = part(key_), in[2] = part(value_);
    in[3] = past_[0][s], in[4] = past_[1][s];
    in[5] = Tensor::of<std::int32_t>({1}, {total - 1}), in[6] = Tensor::scalar<std::int32_t>(total);
    if (c_.angles > 0) in[7] = inputs_[kCos], in[8] = inputs_[kSin];
    if (c_.sink) in[11] = inputs_[kSink];
    if (c_.norms) in[14] = inputs_[kQNorm], in[15] = inputs_[kKNorm];
    return ops::testing::run_op(n, in);
  }

  PagedCase c_;
  std::mt19937 rng_;
  std::int64_t blocks_ = 0, positions_ = 1;
  Tensor query_, key_, value_;
  std::vector<Tensor> past_[2];  // of each text, contiguous, float32
  std::vector<Tensor> inputs_;
};

// What every kernel must get right.
inline std::vector<PagedCase> paged_cases() {
  std::vector<PagedCase> cases;
  const std::vector<std::pair<std::int64_t, std::int64_t>> ragged{{0, 5}, {37, 1}, {16, 16}, {0, 1}, {20, 0}, {3, 29}, {64, 1}};
  for (const DataType type : {DataType::float32, DataType::float16, DataType::bfloat16, DataType::int8}) {
    const auto add = [&](auto change) {
      PagedCase c;
      c.texts = ragged, c.cache = type, c.seed = static_cast<unsigned>(cases.size()) + 1;
      change(c);
      cases.push_back(c);
    };
    add([](PagedCase&) {});
    add([](PagedCase& c) { c.angles = 8, c.heads = 9, c.kv = 3; });
    add([](PagedCase& c) { c.angles = 4, c.interleaved = true, c.packed = true, c.heads = 2; });
    add([](PagedCase& c) { c.window = 9, c.block_size = 32, c.scale = 0.3F; });
    add([](PagedCase& c) { c.softcap = 2, c.smooth = true, c.packed = true, c.size = 40; });
    add([](PagedCase& c) { c.sink = true, c.norms = true, c.angles = 3, c.size = 7, c.block_size = 5; });
    add([](PagedCase& c) { c.texts = {{200, 1}, {131, 1}, {15, 1}}, c.heads = 8, c.kv = 1, c.angles = 8; });
    add([](PagedCase& c) {
      c.texts = {{300, 70}, {0, 40}}, c.window = 50, c.angles = 8, c.block_size = 64, c.heads = 3, c.kv = 3;
    });
    add([](PagedCase& c) { c.texts = {{700, 33}}, c.heads = 4, c.kv = 1, c.softcap = 5, c.size = 64, c.block_size = 64; });
    add([](PagedCase& c) { c.texts = {{900, 1}}, c.heads = 2, c.kv = 1, c.sink = true, c.window = 600, c.size = 24; });
    add([](PagedCase& c) { c.texts = {{0, 0}}; });
  }
  return cases;
}

}  // namespace sdx::testing
