// FlexAttention: ai.onnx.preview 1. Attention whose scores and probabilities pass through subgraphs of the model.

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/thread_pool.h"
#include "ops/attention/attention_core.h"
#include "ops/context.h"
#include "ops/control/subgraphs.h"
#include "ops/op.h"
#include "ops/signature.h"
#include "tensor/types.h"

namespace sdx::ops {
namespace {

struct FlexAttrs {
  std::int64_t softmax_precision = 0;  // an element type; 0: float32, or float64 for inputs of it
  std::optional<float> scale;          // else 1 / sqrt(size)

  void fields(auto& f) {
    f("softmax_precision", softmax_precision);
    f("scale", scale);
  }
};

// The element type that the modifiers see.
DataType score_type(const FlexAttrs& attr, DataType input) {
  const std::int64_t given = attr.softmax_precision;
  if (given == 0) return input == DataType::float64 ? DataType::float64 : DataType::float32;
  for (const DataType t : {DataType::float32, DataType::float16, DataType::float64, DataType::bfloat16}) {
    if (given == static_cast<std::int64_t>(t)) return t;
  }
  fail(ErrorCode::invalid_model, "softmax_precision must be 1, 10, 11 or 16, received {}", given);
}

void infer_flex(InferContext& c) {
  const SymShape *q = c.shape(0), *k = c.shape(1), *v = c.shape(2);
  for (const SymShape* s : {q, k, v}) {
    if (s != nullptr && s->size() != 4) c.fail("Q, K and V must have 4 axes, received {}", to_string(*s));
  }
  const Dim none;
  SymShape scores{q != nullptr ? (*q)[0] : none, q != nullptr ? (*q)[1] : none, q != nullptr ? (*q)[2] : none,
                  k != nullptr ? (*k)[2] : none};
  const Type formal =
      Type::tensor(c.dtype(0) == DataType::undefined ? DataType::undefined : score_type(parse<FlexAttrs>(c), c.dtype(0)), scores);
  for (const char* name : {"score_mod", "prob_mod"}) {
    if (c.node().subgraph(name) == nullptr) continue;
    const std::size_t index = subgraph_index(c.node(), name);
    check_signature(c.node(), index, 1, 1);
    c.infer_subgraph(index, std::vector<Type>{formal});
  }
  c.output(0, c.dtype(0), {scores[0], scores[1], scores[2], v != nullptr ? (*v)[3] : none});
}

// The tensor after the modifier, if the node has it, else unchanged; of T.
template <class T>
Tensor modified(OpContext& c, const char* name, Tensor scores) {
  if (c.node().subgraph(name) == nullptr) return scores;
  const DataType type = score_type(parse<FlexAttrs>(c), c.input(0).dtype());
  const std::size_t index = subgraph_index(c.node(), name);
  check_signature(c.node(), index, 1, 1);
  const Shape shape = scores.shape();
  std::vector<Value> formals;
  formals.emplace_back(converted(scores, type));
  std::vector<Value> results = c.run_subgraph(index, std::move(formals));
  const Tensor& r = results.at(0).tensor();
  if (r.dtype() != type || r.shape() != shape) {
    c.fail("{} must give {}{}, received {}", name, sdx::name(type), to_string(shape), r.type_string());
  }
  Tensor out = converted(r, DataTypeOf<T>::value);
  // Softmax works in place, so the memory must not be shared.
  return out.writable() && out.dtype() != type ? out : out.clone();
}

template <class T>
void softmax_rows(Tensor& scores) {
  const std::int64_t keys = scores.shape().back();
  if (scores.size() == 0) return;
  auto* data = static_cast<T*>(scores.mutable_data());
  parallel_for(scores.size() / keys, 16, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t r = first; r < last; ++r) {
      T* row = data + r * keys;
      const T top = *std::max_element(row, row + keys);
      // A row of -infinity alone sees nothing: zeros, as in Attention.
      if (top == -std::numeric_limits<T>::infinity()) {
        std::fill_n(row, keys, T(0));
        continue;
      }
      double sum = 0;
      for (std::int64_t j = 0; j < keys; ++j) {
        row[j] = std::exp(row[j] - top);
        sum += static_cast<double>(row[j]);
      }
      for (std::int64_t j = 0; j < keys; ++j) row[j] = static_cast<T>(static_cast<double>(row[j]) / sum);
    }
  });
}

struct Extents {
  std::int64_t batch, heads, kv_heads, q_len, kv_len, size, v_size;
};

Extents extents_of(OpContext& c) {
  const Tensor &q = c.input(0), &k = c.input(1), &v = c.input(2);
  if (q.rank() != 4 || k.rank() != 4 || v.rank() != 4) c.fail("Q, K and V must have 4 axes");
  const Extents e{q.dim(0), q.dim(1), k.dim(1), q.dim(2), k.dim(2), q.dim(3), v.dim(3)};
  if (k.shape() != Shape{e.batch, e.kv_heads, e.kv_len, e.size} || v.shape() != Shape{e.batch, e.kv_heads, e.kv_len, e.v_size} ||
      e.kv_heads < 1 || e.heads % e.kv_heads != 0) {
    c.fail("Q, K and V do not fit together: {}, {} and {}", q.type_string(), k.type_string(), v.type_string());
  }
  return e;
}

template <class T>
void run_typed(OpContext& c) {
  const Extents e = extents_of(c);
  const Tensor q = converted(c.input(0), DataTypeOf<T>::value);
  const Tensor k = converted(c.input(1), DataTypeOf<T>::value);
  const Tensor v = converted(c.input(2), DataTypeOf<T>::value);
  const HeadView<T> qs = view_bnsh(static_cast<const T*>(q.data()), e.heads, e.q_len, e.size);
  const HeadView<T> ks = view_bnsh(static_cast<const T*>(k.data()), e.kv_heads, e.kv_len, e.size);
  const HeadView<T> vs = view_bnsh(static_cast<const T*>(v.data()), e.kv_heads, e.kv_len, e.v_size);
  const std::optional<float> given = parse<FlexAttrs>(c).scale;
  const T scale = given ? static_cast<T>(*given) : T(1) / std::sqrt(static_cast<T>(std::max<std::int64_t>(1, e.size)));
  // The modifiers see the scores of all heads at once, so here the whole matrix has to exist.
  Tensor scores(DataTypeOf<T>::value, {e.batch, e.heads, e.q_len, e.kv_len});
  auto* s = static_cast<T*>(scores.mutable_data());
  const std::int64_t rows = element_count(Shape{e.batch, e.heads, e.q_len});
  const std::int64_t group = e.heads / e.kv_heads;
  const auto where = [&](std::int64_t r) {
    return std::array<std::int64_t, 3>{r / e.q_len / e.heads, r / e.q_len % e.heads, r % e.q_len};
  };
  parallel_for(scores.size() > 0 ? rows : 0, 4, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t r = first; r < last; ++r) {
      c.stop().check();
      const auto [b, h, i] = where(r);
      for (std::int64_t j = 0; j < e.kv_len; ++j)
        s[r * e.kv_len + j] = scale * dot(qs.at(b, h, i), ks.at(b, h / group, j), e.size);
    }
  });
  scores = modified<T>(c, "score_mod", std::move(scores));
  softmax_rows<T>(scores);
  scores = modified<T>(c, "prob_mod", std::move(scores));
  const auto* probabilities = static_cast<const T*>(scores.data());
  Tensor y(DataTypeOf<T>::value, {e.batch, e.heads, e.q_len, e.v_size});
  auto* out = static_cast<T*>(y.mutable_data());
  parallel_for(y.size() > 0 ? rows : 0, 4, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t r = first; r < last; ++r) {
      c.stop().check();
      const auto [b, h, i] = where(r);
      T* row = out + r * e.v_size;
      std::fill_n(row, e.v_size, T(0));
      for (std::int64_t j = 0; j < e.kv_len; ++j) {
        const T weight = probabilities[r * e.kv_len + j];
        const T* value = vs.at(b, h / group, j);
        for (std::int64_t d = 0; d < e.v_size; ++d) row[d] += weight * value[d];
      }
    }
  });
  convert_into(c.output(0, c.input(0).dtype(), y.shape()), y);
}

void run_flex(OpContext& c) {
  const DataType elem = c.input(0).dtype();
  if (elem == DataType::float64 || score_type(parse<FlexAttrs>(c), elem) == DataType::float64) {
    run_typed<double>(c);
  } else {
    run_typed<float>(c);
  }
}

}  // namespace

void register_flex_attention(OpTable& t) {
  t.add(OpDef("ai.onnx.preview", "FlexAttention", 1)
            .in("Q K V", "T1", types::floats)
            .out("Y", "T1", types::floats)
            .attr("score_mod", AttrKind::g)
            .attr("prob_mod", AttrKind::g)
            .attrs<FlexAttrs>()
            .infer_with(infer_flex)
            .run_with(run_flex));
}

}  // namespace sdx::ops
