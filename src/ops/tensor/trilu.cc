// Trilu: ai.onnx 14; com.microsoft 1. ReverseSequence: ai.onnx 10, 28.

#include <algorithm>

#include "base/thread_pool.h"
#include "ops/context.h"
#include "ops/op.h"
#include "ops/signature.h"
#include "ops/tensor/axes.h"
#include "ops/tensor/movement.h"
#include "ops/tensor/shape_values.h"
#include "tensor/element.h"

namespace sdx::ops {
namespace {

struct TriluAttrs {
  bool upper = true;

  void fields(auto& f) { f("upper", upper); }
};

struct ReverseSequenceAttrs {
  std::int64_t batch_axis = 1;
  std::int64_t time_axis = 0;

  void fields(auto& f) {
    f("batch_axis", batch_axis);
    f("time_axis", time_axis);
  }
};

void infer_trilu(InferContext& c) {
  const SymShape* in = c.shape(0);
  if (in != nullptr && in->size() < 2) c.fail("the input must be of rank 2 or more, received {}", to_string(*in));
  c.output(0, c.type(0));
}

void run_trilu(OpContext& c) {
  const Tensor in = widened(c.input(0));
  if (in.rank() < 2) c.fail("the input must be of rank 2 or more, received {}", in.type_string());
  std::int64_t k = 0;
  if (const Tensor* given = c.optional_input(1)) {
    if (given->size() != 1) c.fail("'k' must be one number, received {}", given->type_string());
    k = element_as_int(*given, 0);
  }
  const bool upper = parse<TriluAttrs>(c).upper;
  const std::int64_t rows = in.dim(in.rank() - 2);
  const std::int64_t columns = in.dim(in.rank() - 1);
  k = std::clamp(k, -rows - 1, columns + 1);
  produce(c, 0, c.input(0).dtype(), in.shape(), [&](Tensor& out) {
    if (out.size() == 0) return;
    dispatch_unit(out.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      const auto* from = static_cast<const T*>(in.data());
      auto* to = static_cast<T*>(out.mutable_data());
      const std::int64_t grain = grain_for(columns * static_cast<std::int64_t>(sizeof(T)));
      parallel_for(out.size() / columns, grain, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t r = begin; r < end; ++r) {
          // Columns from the diagonal on belong to the upper part; the lower part includes the diagonal as well.
          const std::int64_t diagonal = r % rows + k;
          const std::int64_t split = std::clamp<std::int64_t>(upper ? diagonal : diagonal + 1, 0, columns);
          const T* f = from + r * columns;
          T* t = to + r * columns;
          std::fill(t + (upper ? 0 : split), t + (upper ? split : columns), T{});
          std::copy(f + (upper ? split : 0), f + (upper ? columns : split), t + (upper ? split : 0));
        }
      });
    });
  });
}

std::pair<std::size_t, std::size_t> batch_and_time(const ReverseSequenceAttrs& attr, std::size_t rank) {
  const std::int64_t batch = attr.batch_axis;
  const std::int64_t time = attr.time_axis;
  if (rank < 2 || batch == time || batch < 0 || batch > 1 || time < 0 || time > 1) {
    fail(ErrorCode::invalid_model, "batch_axis {} and time_axis {} must be 0 and 1, for an input of rank 2 or more ({})", batch,
         time, rank);
  }
  return {static_cast<std::size_t>(batch), static_cast<std::size_t>(time)};
}

void infer_reverse(InferContext& c) {
  if (const SymShape* in = c.shape(0)) batch_and_time(parse<ReverseSequenceAttrs>(c), in->size());
  c.output(0, c.type(0));
}

void run_reverse(OpContext& c) {
  const Tensor in = widened(c.input(0));
  const auto axes = batch_and_time(parse<ReverseSequenceAttrs>(c), in.rank());
  const std::size_t batch = axes.first, time = axes.second;
  const Ints lengths = to_ints(c.input(1));
  if (static_cast<std::int64_t>(lengths.size()) != in.dim(batch)) {
    c.fail("'sequence_lens' must hold {} numbers, received {}", in.dim(batch), lengths.size());
  }
  const std::int64_t steps = in.dim(time);
  for (const std::int64_t n : lengths) {
    if (n < 0 || n > steps) c.fail("sequence length {} is out of range; permitted: 0 to {}", n, steps);
  }
  produce(c, 0, c.input(0).dtype(), in.shape(), [&](Tensor& out) {
    if (out.size() == 0) return;
    const std::int64_t first = time == 0 ? steps : in.dim(0), second = in.dim(1);
    const std::int64_t inner = product(in.shape(), 2, in.rank());
    dispatch_unit(out.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      const auto* from = static_cast<const T*>(in.data());
      auto* to = static_cast<T*>(out.mutable_data());
      const std::int64_t row_bytes = second * inner * static_cast<std::int64_t>(sizeof(T));
      parallel_for(first, grain_for(row_bytes), [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          for (std::int64_t j = 0; j < second; ++j) {
            const std::int64_t at = time == 0 ? i : j, n = lengths[static_cast<std::size_t>(time == 0 ? j : i)];
            const std::int64_t source = at < n ? n - 1 - at : at;
            const std::int64_t row = time == 0 ? source * second + j : i * second + source;
            if (inner == 1) {
              to[i * second + j] = from[row];
            } else {
              copy_units(from + row * inner, to + (i * second + j) * inner, inner);
            }
          }
        }
      });
    });
  });
}

}  // namespace

void register_trilu(OpTable& t) {
  for (const char* domain : {"", "com.microsoft"}) {
    OpDef trilu(domain, "Trilu", *domain == '\0' ? 14 : 1);
    trilu.in("input", "T", types::any_tensor).in("k", "", types::int64, Arity::optional).out("output", "T", types::any_tensor);
    trilu.attrs<TriluAttrs>();
    t.add(std::move(trilu).infer_with(infer_trilu).run_with(run_trilu));
  }
  OpDef reverse_sequence("ReverseSequence", 10);
  reverse_sequence.in("input", "T", types::any_tensor).in("sequence_lens", "", types::int64);
  reverse_sequence.out("Y", "T", types::any_tensor).attrs<ReverseSequenceAttrs>();
  t.add(std::move(reverse_sequence).infer_with(infer_reverse).run_with(run_reverse));
}

}  // namespace sdx::ops
