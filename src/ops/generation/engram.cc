// com.microsoft 1: NGramHashMapping and EngramGate: embeddings of hashed n-grams, and the gate that mixes them in.

#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/context.h"
#include "ops/control/subgraphs.h"
#include "ops/math/convert.h"
#include "ops/norm/norm_reference.h"
#include "ops/op.h"
#include "ops/signature.h"

namespace sdx::ops {
namespace {

constexpr TypeSet kInts = types::indices;
constexpr TypeSet kFloat = set_of(DataType::float32, DataType::float16, DataType::bfloat16);

enum In : std::size_t { kIds, kMultipliers, kVocab, kPast, kOffsets, kEos, kSegments };

struct Sizes {
  std::int64_t most, heads;  // n-grams of 2 to `most` tokens, each with so many heads
  std::int64_t columns() const { return (most - 1) * heads; }
};

struct HashAttrs {
  std::int64_t max_ngram_size = 0, n_head_per_ngram = 0, pad_id = 0;
  bool reset_on_eos = false;

  void fields(auto& f) {
    f.required("max_ngram_size", max_ngram_size);
    f.required("n_head_per_ngram", n_head_per_ngram);
    f.required("pad_id", pad_id);
    f("reset_on_eos", reset_on_eos);
  }
};

struct GateAttrs {
  float epsilon = 1e-5F;

  void fields(auto& f) { f("epsilon", epsilon); }
};

Sizes sizes_of(const HashAttrs& attr) {
  const Sizes s{attr.max_ngram_size, attr.n_head_per_ngram};
  if (s.most < 2 || s.most > (1 << 16)) fail(ErrorCode::invalid_model, "max_ngram_size is {}; expected 2 or more", s.most);
  if (s.heads < 1 || s.heads > (1 << 20)) fail(ErrorCode::invalid_model, "n_head_per_ngram is {}; it must be positive", s.heads);
  return s;
}

void infer_hash(InferContext& c) {
  const Sizes s = sizes_of(parse<HashAttrs>(c));
  const SymShape* ids = c.shape(kIds);
  if (ids != nullptr && ids->size() != 2) c.fail("input_ids must have 2 axes, received {}", to_string(*ids));
  const Dim batch = ids != nullptr ? (*ids)[0] : Dim();
  c.output(0, c.dtype(kIds), {batch, ids != nullptr ? (*ids)[1] : Dim(), Dim(s.columns())});
  c.output(1, c.dtype(kIds), {batch, Dim(s.most - 1)});
}

// Hashes wrap around in the ids' own type: multiplication and xor on unsigned numbers, read as signed for the remainder.
template <class T>
struct Hasher {
  using U = std::make_unsigned_t<T>;
  Sizes sizes{};
  std::vector<T> multipliers, vocab, offsets;
  T missing = 0, eos = 0;

  // `at(k)` is the token k positions back.
  template <class At>
  void write(At&& at, T* out) const {
    U mix = static_cast<U>(at(0)) * static_cast<U>(multipliers[0]);
    for (std::int64_t n = 2; n <= sizes.most; ++n) {
      const auto k = static_cast<std::size_t>(n - 1);
      mix ^= static_cast<U>(at(n - 1)) * static_cast<U>(multipliers[k]);
      for (std::int64_t h = 0; h < sizes.heads; ++h) {
        const auto column = static_cast<std::size_t>((n - 2) * sizes.heads + h);
        T rest = static_cast<T>(static_cast<T>(mix) % vocab[column]);
        if (rest < 0) rest = static_cast<T>(rest + vocab[column]);
        *out++ = offsets.empty() ? rest : static_cast<T>(static_cast<U>(rest) + static_cast<U>(offsets[column]));
      }
    }
  }
};

template <class T>
std::vector<T> list(OpContext& c, std::size_t i, std::int64_t least, const char* what) {
  const Tensor& t = c.input(i);
  if (t.dtype() != DataTypeOf<T>::value || t.size() < least)
    c.fail("{} must have {} elements of the ids' type, received {}", what, least, t.type_string());
  return {t.values<T>().begin(), t.values<T>().end()};
}

template <class T>
void hash_all(OpContext& c) {
  const Tensor& ids = c.input(kIds);
  Hasher<T> hasher;
  const auto attr = parse<HashAttrs>(c);
  hasher.sizes = sizes_of(attr);
  const std::int64_t back = hasher.sizes.most - 1, batch = ids.dim(0), length = ids.dim(1), columns = hasher.sizes.columns();
  hasher.multipliers = list<T>(c, kMultipliers, hasher.sizes.most, "multipliers");
  hasher.vocab = list<T>(c, kVocab, columns, "vocab_sizes");
  if (c.has_input(kOffsets)) hasher.offsets = list<T>(c, kOffsets, columns, "head_offsets");
  for (const T v : hasher.vocab) {
    if (v < 1) c.fail("vocab_sizes holds {}; they must be positive", v);
  }
  const std::int64_t pad = attr.pad_id;
  hasher.missing = static_cast<T>(pad);
  if (static_cast<std::int64_t>(hasher.missing) != pad) c.fail("pad_id {} does not fit the ids' type", pad);
  const bool has_eos = c.has_input(kEos);
  if (has_eos) hasher.missing = hasher.eos = list<T>(c, kEos, 1, "eos_token_id")[0];
  const bool reset = has_eos && attr.reset_on_eos;
  const Tensor *past = c.optional_input(kPast), *segments = c.optional_input(kSegments);
  if (past != nullptr && past->shape() != Shape{batch, back})
    c.fail("past_ids must be [{},{}], received {}", batch, back, past->type_string());
  if (segments != nullptr && segments->shape() != ids.shape())
    c.fail("segment_ids must be {}, received {}", to_string(ids.shape()), segments->type_string());
  Tensor& out = c.output(0, ids.dtype(), {batch, length, columns});
  Tensor& present = c.output(1, ids.dtype(), {batch, back});
  auto* to = static_cast<T*>(out.mutable_data());
  for (std::int64_t b = 0; b < batch; ++b) {
    c.stop().check();
    std::vector<T> line(static_cast<std::size_t>(back), hasher.missing);
    if (past != nullptr) std::copy_n(c.data<T>(kPast) + b * back, back, line.begin());
    line.insert(line.end(), c.data<T>(kIds) + b * length, c.data<T>(kIds) + (b + 1) * length);
    std::copy(line.end() - back, line.end(), static_cast<T*>(present.mutable_data()) + b * back);
    std::int64_t first = 0;  // where the history begins
    for (std::int64_t s = 0; s < length; ++s, to += columns) {
      const std::int64_t here = back + s;
      if (segments != nullptr && s > 0 &&
          c.data<std::int32_t>(kSegments)[b * length + s] != c.data<std::int32_t>(kSegments)[b * length + s - 1])
        first = here;
      if (reset) {
        for (std::int64_t i = std::max(first, here - back); i < here; ++i) {
          if (line[static_cast<std::size_t>(i)] == hasher.eos) first = i + 1;
        }
      }
      hasher.write([&](std::int64_t k) { return here - k >= first ? line[static_cast<std::size_t>(here - k)] : hasher.missing; },
                   to);
    }
  }
}

void run_hash(OpContext& c) {
  const Tensor& ids = c.input(kIds);
  if (ids.rank() != 2) c.fail("input_ids must have 2 axes, received {}", ids.type_string());
  if (ids.dtype() == DataType::int32) return hash_all<std::int32_t>(c);
  hash_all<std::int64_t>(c);
}

// --- EngramGate --------------------------------------------------------------------------------------------------------------

void infer_gate(InferContext& c) {
  for (std::size_t i = 0; i < c.num_outputs(); ++i) c.output(i, c.type(0));
}

void run_gate(OpContext& c) {
  const Tensor& shape = c.input(0);
  std::vector<Tensor> in;
  for (std::size_t i = 0; i < 5; ++i) in.push_back(converted(c.input(i), DataType::float32));
  if (shape.rank() != 4) c.fail("key must have 4 axes, received {}", shape.type_string());
  const std::int64_t streams = shape.dim(2), n = shape.dim(3), tokens = element_count(Shape{shape.dim(0), shape.dim(1)});
  const bool fits = in[1].shape() == shape.shape() && in[2].shape() == Shape{shape.dim(0), shape.dim(1), n} &&
                    in[3].shape() == Shape{streams, n} && in[4].shape() == Shape{streams, n};
  if (!fits) c.fail("query, value and the scales do not fit key {}", shape.type_string());
  const float epsilon = parse<GateAttrs>(c).epsilon;
  Tensor scale;
  if (c.wants_output(1)) {
    scale = converted(c.input(5), DataType::float32);
    if (scale.shape() != Shape{streams, n})
      c.fail("conv_norm_scale must be [{},{}], received {}", streams, n, scale.type_string());
  }
  const auto data = [&](std::size_t i) { return static_cast<const float*>(in[i].data()); };
  Tensor y(DataType::float32, shape.shape()), normed(DataType::float32, shape.shape());
  auto *out = static_cast<float*>(y.mutable_data()), *second = static_cast<float*>(normed.mutable_data());
  for (std::int64_t i = 0; n > 0 && i < tokens * streams; ++i) {
    const std::int64_t stream = i % streams, token = i / streams;
    const float *key = data(0) + i * n, *query = data(1) + i * n;
    const float k = inverse_rms(key, n, epsilon), q = inverse_rms(query, n, epsilon);
    float dot = 0;
    for (std::int64_t d = 0; d < n; ++d) dot += key[d] * k * data(3)[stream * n + d] * query[d] * q * data(4)[stream * n + d];
    dot /= std::sqrt(static_cast<float>(n));
    const float root = std::copysign(std::sqrt(std::max(std::fabs(dot), 1e-6F)), dot) * (dot == 0 ? 0.0F : 1.0F);
    const float gate = 1 / (1 + std::exp(-root));
    for (std::int64_t d = 0; d < n; ++d) out[i * n + d] = gate * data(2)[token * n + d];
    if (!scale.defined()) continue;
    const float factor = inverse_rms(out + i * n, n, epsilon);
    for (std::int64_t d = 0; d < n; ++d)
      second[i * n + d] = out[i * n + d] * factor * static_cast<const float*>(scale.data())[stream * n + d];
  }
  const DataType type = shape.dtype();
  c.set_output(0, type == DataType::float32 ? y : converted(y, type));
  if (c.wants_output(1)) c.set_output(1, type == DataType::float32 ? normed : converted(normed, type));
}

}  // namespace

void register_engram(OpTable& t) {
  constexpr Arity kOptional = Arity::optional;
  OpDef d("com.microsoft", "NGramHashMapping", 1);
  d.in("input_ids multipliers vocab_sizes", "M", kInts);
  d.in("past_ids head_offsets eos_token_id", "M", kInts, kOptional);
  d.in("segment_ids", "", bit(DataType::int32), kOptional);
  d.out("hash_ids", "M", kInts).out("present_ids", "M", kInts, kOptional);
  t.add(std::move(d.attrs<HashAttrs>()).infer_with(infer_hash).run_with(run_hash));
  OpDef g("com.microsoft", "EngramGate", 1);
  g.in("key query value key_norm_scale query_norm_scale", "T", kFloat);
  g.in("conv_norm_scale", "T", kFloat, kOptional);
  g.out("output", "T", kFloat).out("gated_value_normed", "T", kFloat, kOptional).attrs<GateAttrs>();
  t.add(std::move(g).infer_with(infer_gate).run_with(run_gate));
}

}  // namespace sdx::ops
