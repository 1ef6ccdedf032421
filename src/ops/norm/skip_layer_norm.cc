// com.microsoft 1: SkipLayerNormalization, SkipSimplifiedLayerNormalization, EmbedLayerNormalization.

#include <cmath>

#include "base/thread_pool.h"
#include "ops/context.h"
#include "ops/math/float_view.h"
#include "ops/norm/norm_reference.h"
#include "ops/norm/signatures.h"
#include "ops/op.h"
#include "ops/tensor/axes.h"
#include "tensor/element.h"

namespace sdx::ops {
namespace {

double read_epsilon(const SkipNormAttrs& attr) {
  const float epsilon = attr.epsilon;
  if (!(epsilon >= 0)) fail(ErrorCode::invalid_model, "attribute 'epsilon' is {}; it must not be negative", epsilon);
  return static_cast<double>(epsilon);
}

// Normalises one row: centred when `beta` may exist (layer norm), else by its root mean square.
template <class C>
Moments normalize_row(const C* x, std::int64_t n, bool center, double epsilon, const C* gamma, const C* beta, C* y) {
  const Moments m = center ? moments_of(x, n) : Moments{0, mean_square(x, n)};
  const double inverse = 1 / std::sqrt(m.variance + epsilon);
  scale_row(x, n, m.mean, inverse, 0, y);
  for (std::int64_t i = 0; i < n; ++i) y[i] = y[i] * gamma[i] + (beta == nullptr ? C(0) : beta[i]);
  return {m.mean, inverse};
}

// --- Skip(Simplified)LayerNormalization: the input plus skip plus bias, normalised over the last axis ---------------------

template <class S>
S statistics_shape(S x) {
  if (x.empty()) fail(ErrorCode::invalid_model, "the input must have rank 1 or more, received a scalar");
  x.back() = typename S::value_type(1);
  return x;
}

void infer_skip(InferContext& c) {
  read_epsilon(parse<SkipNormAttrs>(c));
  const SymShape* x = c.shape(0);
  for (const std::size_t i : {std::size_t{1}, std::size_t{2}}) {
    if (x != nullptr) {
      c.output(i, DataType::float32, statistics_shape(*x));
    } else {
      c.output(i, DataType::float32);
    }
  }
  for (const std::size_t i : {std::size_t{0}, std::size_t{3}}) c.output(i, c.type(0));
}

void check_vector(const Tensor* t, std::int64_t n, const char* name) {
  if (t == nullptr || t->size() == n) return;
  fail(ErrorCode::runtime_failure, "'{}' must have shape [{}], received {}", name, n, to_string(t->shape()));
}

// skip: the input's shape, or the same without the batch axis or with a batch axis of 1.
void check_skip(OpContext& c, const Tensor& x, const Tensor& skip) {
  Shape s = skip.shape();
  if (s == x.shape()) return;
  Shape tail(x.shape().begin() + 1, x.shape().end());
  if (x.rank() == 3 && s == tail) return;
  tail.insert(tail.begin(), 1);
  if (x.rank() == 3 && s == tail) return;
  c.fail("skip must have the input's shape {} (its first axis may be 1 or missing), received {}", to_string(x.shape()),
         to_string(s));
}

template <bool kSimplified>
void run_skip(OpContext& c) {
  const Tensor& x = c.input(SkipNormIn::kInput);
  const Tensor& skip = c.input(SkipNormIn::kSkip);
  const Shape statistics = statistics_shape(x.shape());
  const std::int64_t n = x.dim(x.rank() - 1);
  check_skip(c, x, skip);
  const Tensor* beta = kSimplified ? nullptr : c.optional_input(SkipNormIn::kBeta);
  const Tensor* bias = c.optional_input(kSimplified ? SkipNormIn::kSimplifiedBias : SkipNormIn::kBias);
  check_vector(&c.input(SkipNormIn::kGamma), n, "gamma");
  check_vector(beta, n, "beta");
  check_vector(bias, n, "bias");
  const double epsilon = read_epsilon(parse<SkipNormAttrs>(c));
  const std::int64_t rows = product(x.shape(), 0, x.rank() - 1);
  Tensor& y = c.output(0, x.dtype(), x.shape());
  Tensor* sum_out = c.wants_output(3) ? &c.output(3, x.dtype(), x.shape()) : nullptr;
  std::vector<float> means(static_cast<std::size_t>(rows)), inverses(static_cast<std::size_t>(rows));
  if (y.size() > 0) {
    dispatch_compute(x.dtype(), c.node().op_type, [&](auto tag) {
      using C = typename decltype(tag)::type;
      const FloatInput<C> fx(x), fs(skip), fg(c.input(SkipNormIn::kGamma)), fb(beta), fa(bias);
      FloatOutput<C> fy(y);
      std::vector<C> sums(static_cast<std::size_t>(x.size()));
      const std::int64_t skip_rows = skip.size() / n;
      parallel_for(rows, 1 + 16384 / n, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t r = begin; r < end; ++r) {
          C* sum = sums.data() + r * n;
          const C* other = fs.data() + r % skip_rows * n;
          for (std::int64_t i = 0; i < n; ++i) sum[i] = fx[r * n + i] + other[i] + (fa ? fa[i] : C(0));
          const Moments m = normalize_row(sum, n, !kSimplified, epsilon, fg.data(), fb.data(), fy.data() + r * n);
          means[static_cast<std::size_t>(r)] = static_cast<float>(m.mean);
          inverses[static_cast<std::size_t>(r)] = static_cast<float>(m.variance);
        }
      });
      fy.store();
      if (sum_out != nullptr) store_floats(sums.data(), *sum_out);
    });
  }
  if (c.wants_output(1)) store_floats(means.data(), c.output(1, DataType::float32, statistics));
  if (c.wants_output(2)) store_floats(inverses.data(), c.output(2, DataType::float32, statistics));
}

// --- EmbedLayerNormalization ---------------------------------------------------------------------------------------------

constexpr std::size_t kIds = 0, kSegments = 1, kWords = 2, kPositions = 3, kSegmentTable = 4, kGamma = 5, kBeta = 6, kMask = 7,
                      kPositionIds = 8;

void infer_embed(InferContext& c) {
  read_epsilon(parse<SkipNormAttrs>(c));
  const SymShape* ids = c.shape(kIds);
  const SymShape* words = c.shape(kWords);
  if (ids != nullptr && ids->size() != 2) c.fail("input_ids must have shape [batch, sequence], received {}", to_string(*ids));
  if (words != nullptr && words->size() != 2) c.fail("word_embedding must have rank 2, received {}", to_string(*words));
  const Dim batch = ids != nullptr ? (*ids)[0] : Dim();
  const SymShape out{batch, ids != nullptr ? (*ids)[1] : Dim(), words != nullptr ? (*words)[1] : Dim()};
  c.output(0, c.dtype(kWords), out);
  c.output(1, DataType::int32, {batch});
  c.output(2, c.dtype(kWords), out);
}

// Row `index` of a table, checked.
template <class C>
const C* table_row(const FloatInput<C>& table, const Tensor& shape, std::int64_t index, const char* name) {
  if (index < 0 || index >= shape.dim(0)) {
    fail(ErrorCode::runtime_failure, "{} {} is out of range; permitted: 0 to {}", name, index, shape.dim(0) - 1);
  }
  return table.data() + index * shape.dim(1);
}

void check_embed(OpContext& c, std::int64_t hidden) {
  const Shape& ids = c.input(kIds).shape();
  if (ids.size() != 2) c.fail("input_ids must have shape [batch, sequence], received {}", to_string(ids));
  if (c.has_input(kSegments) && (c.input(kSegments).shape() != ids || !c.has_input(kSegmentTable))) {
    c.fail("segment_ids must have the shape of input_ids {} and come with segment_embedding", to_string(ids));
  }
  for (const std::size_t i : {kWords, kPositions, kSegmentTable}) {
    const Tensor* t = c.optional_input(i);
    if (t != nullptr && (t->rank() != 2 || t->dim(1) != hidden)) {
      c.fail("embedding table {} must have shape [*, {}], received {}", i, hidden, to_string(t->shape()));
    }
  }
  if (const Tensor* p = c.optional_input(kPositionIds)) {
    if (p->rank() != 2 || p->dim(1) != ids[1] || (p->dim(0) != ids[0] && p->dim(0) != 1)) {
      c.fail("position_ids must have shape {} (or a first extent of 1), received {}", to_string(ids), to_string(p->shape()));
    }
  }
  if (c.has_input(kMask) && c.input(kMask).shape() != ids) {
    c.fail("mask must have shape {}, received {}", to_string(ids), to_string(c.input(kMask).shape()));
  }
  check_vector(c.optional_input(kGamma), hidden, "gamma");
  check_vector(c.optional_input(kBeta), hidden, "beta");
}

// Writes the number of positions that the mask keeps, for each sequence; 0 without a mask.
void write_mask_index(OpContext& c, std::int64_t batch, std::int64_t length) {
  if (!c.wants_output(1)) return;
  Tensor& out = c.output(1, DataType::int32, {batch});
  const Tensor* mask = c.optional_input(kMask);
  for (std::int64_t b = 0; b < batch; ++b) {
    std::int64_t kept = 0;
    for (std::int64_t i = 0; mask != nullptr && i < length; ++i) kept += element_as_int(*mask, b * length + i) == 1 ? 1 : 0;
    set_element_int(out, b, kept);
  }
}

void run_embed(OpContext& c) {
  const Tensor& ids = c.input(kIds);
  const Tensor& words = c.input(kWords);
  const Tensor& positions = c.input(kPositions);
  const Tensor* segments = c.optional_input(kSegments);
  const Tensor* position_ids = c.optional_input(kPositionIds);
  if (words.rank() != 2) c.fail("word_embedding must have rank 2, received {}", to_string(words.shape()));
  const std::int64_t n = words.dim(1);
  check_embed(c, n);
  const std::int64_t length = ids.dim(1);
  const double epsilon = read_epsilon(parse<SkipNormAttrs>(c));
  const Shape shape{ids.dim(0), length, n};
  Tensor& y = c.output(0, words.dtype(), shape);
  dispatch_compute(words.dtype(), "EmbedLayerNormalization", [&](auto tag) {
    using C = typename decltype(tag)::type;
    const FloatInput<C> fw(words), fp(positions), fs(c.optional_input(kSegmentTable)), fg(c.input(kGamma)), fb(c.input(kBeta));
    FloatOutput<C> fy(y);
    std::vector<C> sums(static_cast<std::size_t>(y.size()));
    for (std::int64_t r = 0; r < ids.size(); ++r) {
      C* sum = sums.data() + r * n;
      const C* word = table_row(fw, words, element_as_int(ids, r), "word id");
      const std::int64_t at = position_ids != nullptr ? element_as_int(*position_ids, r % position_ids->size()) : r % length;
      const C* position = table_row(fp, positions, at, "position");
      for (std::int64_t i = 0; i < n; ++i) sum[i] = word[i] + position[i];
      if (segments != nullptr) {
        const C* segment = table_row(fs, c.input(kSegmentTable), element_as_int(*segments, r), "segment id");
        for (std::int64_t i = 0; i < n; ++i) sum[i] += segment[i];
      }
      normalize_row(sum, n, true, epsilon, fg.data(), fb.data(), fy.data() + r * n);
    }
    fy.store();
    if (c.wants_output(2)) store_floats(sums.data(), c.output(2, words.dtype(), shape));
  });
  write_mask_index(c, ids.dim(0), length);
}

OpDef skip_def(const char* name, bool beta) {
  OpDef d("com.microsoft", name, 1);
  d.in("input skip gamma", "T", types::floats);
  if (beta) d.in("beta", "T", types::floats, Arity::optional);
  d.in("bias", "T", types::floats, Arity::optional);
  d.out("output", "T", types::floats).out("mean", "U", bit(DataType::float32), Arity::optional);
  d.out("inv_std_var", "U", bit(DataType::float32), Arity::optional);
  d.out("input_skip_bias_sum", "T", types::floats, Arity::optional).attrs<SkipNormAttrs>();
  return std::move(d).infer_with(infer_skip).run_with(beta ? run_skip<false> : run_skip<true>);
}

}  // namespace

void register_skip_layer_norm(OpTable& t) {
  t.add(skip_def("SkipLayerNormalization", true));
  t.add(skip_def("SkipSimplifiedLayerNormalization", false));
  t.add(OpDef("com.microsoft", "EmbedLayerNormalization", 1)
            .in("input_ids", "T1", types::indices)
            .in("segment_ids", "T1", types::indices, Arity::optional)
            .in("word_embedding position_embedding", "T", types::floats)
            .in("segment_embedding", "T", types::floats, Arity::optional)
            .in("gamma beta", "T", types::floats)
            .in("mask position_ids", "T1", types::indices, Arity::optional)
            .out("output", "T", types::floats)
            .out("mask_index", "", bit(DataType::int32), Arity::optional)
            .out("embedding_sum", "T", types::floats, Arity::optional)
            .attrs<SkipNormAttrs>()
            .infer_with(infer_embed)
            .run_with(run_embed));
}

}  // namespace sdx::ops
