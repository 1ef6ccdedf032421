// com.microsoft 1: RelativePositionBias: T5's bias by distance, in logarithmic buckets (Raffel et al., arXiv:1910.10683), and
// GatedRelativePositionBias: such a bias, gated by the queries (WavLM, arXiv:2110.13900).

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/thread_pool.h"
#include "ops/attention/attention_core.h"
#include "ops/context.h"
#include "ops/control/subgraphs.h"
#include "ops/op.h"
#include "ops/signature.h"

namespace sdx::ops {
namespace {

struct RelativePositionBiasAttrs {
  bool is_bidirectional = false;
  std::int64_t max_distance = 0;

  void fields(auto& f) {
    f("is_bidirectional", is_bidirectional);
    f.required("max_distance", max_distance);
  }
};

struct GatedRelativePositionBiasAttrs {
  std::int64_t num_heads = 0;

  void fields(auto& f) { f.required("num_heads", num_heads); }
};

constexpr TypeSet kFloat = set_of(DataType::float32, DataType::float16);

Dim single(InferContext& c, std::size_t i) {
  const std::vector<Dim>* values = c.sym(i);
  return values != nullptr && values->size() == 1 ? values->front() : Dim();
}

void infer_bias(InferContext& c) {
  const SymShape* table = c.shape(0);
  if (table != nullptr && table->size() != 2) c.fail("bias_table must have 2 axes, received {}", to_string(*table));
  c.output(0, c.dtype(0), {Dim(1), table != nullptr ? (*table)[1] : Dim(), single(c, 1), single(c, 2)});
}

// Half of the buckets hold one distance each, the others grow up to `far`. With both directions, each has half of the buckets.
std::int64_t bucket_of(std::int64_t key_minus_query, bool both, std::int64_t buckets, std::int64_t far) {
  std::int64_t first = 0, distance = -key_minus_query;
  if (both) {
    buckets /= 2;
    if (distance < 0) first = buckets;
    distance = std::abs(distance);
  } else {
    distance = std::max<std::int64_t>(distance, 0);
  }
  const std::int64_t exact = buckets / 2;
  if (distance < exact || exact < 1) return first + std::min(distance, std::max<std::int64_t>(0, buckets - 1));
  const double share = std::log(static_cast<double>(distance) / static_cast<double>(exact)) /
                       std::log(static_cast<double>(far) / static_cast<double>(exact));
  const auto more = static_cast<std::int64_t>(share * static_cast<double>(buckets - exact));
  return first + std::min(exact + more, buckets - 1);
}

void run_bias(OpContext& c) {
  const auto attr = parse<RelativePositionBiasAttrs>(c);
  const Tensor& table = c.input(0);
  const std::int64_t queries = single_int(c.input(1), "query_length"), keys = single_int(c.input(2), "key_length");
  const std::int64_t far = attr.max_distance;
  const bool both = attr.is_bidirectional;
  if (table.rank() != 2 || table.dim(0) < 1) c.fail("bias_table must be [buckets,heads], received {}", table.type_string());
  constexpr std::int64_t kLongest = std::int64_t{1} << 24;
  if (queries < 0 || keys < 0 || queries > kLongest || keys > kLongest)
    c.fail("lengths {} and {} are out of range", queries, keys);
  const std::int64_t buckets = table.dim(0), heads = table.dim(1);
  if (far <= buckets / (both ? 4 : 2) || far > kLongest)
    c.fail("max_distance is {}; it must exceed the number of buckets with a single distance", far);
  const Tensor values = converted(table, DataType::float32);
  Tensor y(DataType::float32, {1, heads, queries, keys});
  auto* to = static_cast<float*>(y.mutable_data());
  for (std::int64_t h = 0; h < heads; ++h) {
    // The table is stored column by column.
    const float* column = static_cast<const float*>(values.data()) + h * buckets;
    for (std::int64_t i = 0; i < queries; ++i) {
      c.stop().check();
      for (std::int64_t j = 0; j < keys; ++j) *to++ = column[bucket_of(j - i, both, buckets, far)];
    }
  }
  convert_into(c.output(0, table.dtype(), y.shape()), y);
}

// --- GatedRelativePositionBias -----------------------------------------------------------------------------------------------

enum In : std::size_t { kQuery, kQueryBias, kRelative, kWeight, kBias, kEco, kOffset };

void infer_gated(InferContext& c) {
  const std::int64_t heads = checked_heads(parse<GatedRelativePositionBiasAttrs>(c).num_heads);
  if (c.has_input(kOffset))
    fail(ErrorCode::not_implemented, "GatedRelativePositionBias without padding (token_offset) is not supported");
  const SymShape* q = c.shape(kQuery);
  if (q != nullptr && q->size() != 3) c.fail("query_layer must have 3 axes, received {}", to_string(*q));
  const Dim batch = q != nullptr ? (*q)[0] : Dim(), length = q != nullptr ? (*q)[1] : Dim();
  c.output(0, c.dtype(kQuery), {batch, Dim(heads), length, length});
}

void run_gated(OpContext& c) {
  const std::int64_t heads = checked_heads(parse<GatedRelativePositionBiasAttrs>(c).num_heads);
  const Tensor query = converted(c.input(kQuery), DataType::float32),
               query_bias = converted(c.input(kQueryBias), DataType::float32);
  const Tensor relative = converted(c.input(kRelative), DataType::float32),
               weight = converted(c.input(kWeight), DataType::float32);
  const Tensor bias = converted(c.input(kBias), DataType::float32), eco = converted(c.input(kEco), DataType::float32);
  if (c.has_input(kOffset))
    fail(ErrorCode::not_implemented, "GatedRelativePositionBias without padding (token_offset) is not supported");
  if (query.rank() != 3 || query.dim(2) % heads != 0)
    c.fail("query_layer must be [batch,length,features of {} heads], received {}", heads, query.type_string());
  const std::int64_t batch = query.dim(0), length = query.dim(1), size = query.dim(2) / heads;
  const std::int64_t wide = weight.rank() == 2 ? weight.dim(1) : 0;
  if (query_bias.size() != query.dim(2) || relative.shape() != Shape{1, heads, length, length} || weight.rank() != 2 ||
      weight.dim(0) != size || wide % 2 != 0 || bias.size() != wide || eco.size() != heads) {
    c.fail("query_bias, rel_pos, weight, bias and eco_a do not fit query_layer {}", c.input(kQuery).type_string());
  }
  Tensor y(DataType::float32, {batch, heads, length, length});
  auto* out = static_cast<float*>(y.mutable_data());
  const auto at = [](const Tensor& t, std::int64_t i) { return static_cast<const float*>(t.data())[i]; };
  parallel_for(y.size() == 0 ? 0 : batch * heads, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      const std::int64_t b = i / heads, h = i % heads;
      for (std::int64_t s = 0; s < length; ++s) {
        c.stop().check();
        float half[2] = {0, 0};
        for (std::int64_t d = 0; d < wide; ++d) {
          float sum = at(bias, d);
          for (std::int64_t k = 0; k < size; ++k) {
            sum += (at(query, (b * length + s) * heads * size + h * size + k) + at(query_bias, h * size + k)) *
                   at(weight, k * wide + d);
          }
          half[d / (wide / 2)] += sum;
        }
        const float u = 1 / (1 + std::exp(-half[0])), r = 1 / (1 + std::exp(-half[1]));
        const float gate = u * (r * at(eco, h) - 1) + 2;
        for (std::int64_t j = 0; j < length; ++j)
          out[(i * length + s) * length + j] = gate * at(relative, (h * length + s) * length + j);
      }
    }
  });
  convert_into(c.output(0, c.input(kQuery).dtype(), y.shape()), y);
}

}  // namespace

void register_relative_position_bias(OpTable& t) {
  t.add(OpDef("com.microsoft", "RelativePositionBias", 1)
            .in("bias_table", "T", kFloat)
            .in("query_length key_length", "U", types::int64)
            .out("output", "T", kFloat)
            .attrs<RelativePositionBiasAttrs>()
            .infer_with(infer_bias)
            .run_with(run_bias));
  OpDef d("com.microsoft", "GatedRelativePositionBias", 1);
  d.in("query_layer query_bias rel_pos weight bias eco_a", "T", kFloat);
  d.in("token_offset", "M", bit(DataType::int32), Arity::optional)
      .out("output", "T", kFloat)
      .attrs<GatedRelativePositionBiasAttrs>();
  t.add(std::move(d).infer_with(infer_gated).run_with(run_gated));
}

}  // namespace sdx::ops
