// sdx 1: GgmlMatMul and GgmlGather: weights in ggml's blocks, as GGUF files hold them (tensor/ggml.h).

#include "ops/quant/ggml.h"

#include <algorithm>
#include <vector>

#include "base/thread_pool.h"
#include "ops/attention/attention_core.h"
#include "ops/context.h"
#include "ops/op.h"
#include "ops/tensor/gather_index.h"
#include "tensor/types.h"

namespace sdx::ops {
namespace {

SymShape with_last(SymShape shape, const Dim& last) {
  shape.back() = last;
  return shape;
}

void infer_ggml_matmul(InferContext& c) {
  const auto attr = parse<GgmlProductAttrs>(c);
  const std::int64_t k = ggml_rows(attr.rows).k * ggml_groups(attr, 0);
  const SymShape *a = c.shape(0), *w = c.shape(1);
  if (a == nullptr) return c.output(0, DataType::float32);
  if (a->empty()) c.fail("A must have at least one axis");
  if (a->back().is_const() && a->back().value() != k)
    c.fail("A's last extent is {}; expected K = {} for each group, {} in all", a->back().value(), attr.rows.k, k);
  c.output(0, DataType::float32, with_last(*a, w != nullptr && w->size() == 2 ? (*w)[0] : Dim()));
}

const Tensor& checked_weights(OpContext& c, std::size_t input, const GgmlRows& rows) {
  const Tensor& w = c.input(input);
  if (w.rank() != 2 || w.dim(1) != rows.bytes)
    c.fail("the weights must be uint8[rows,{}], received {}", rows.bytes, w.type_string());
  return w;
}

void run_ggml_matmul(OpContext& c) {
  const auto attr = parse<GgmlProductAttrs>(c);
  const GgmlRows rows = ggml_rows(attr.rows);
  const Tensor &a = c.input(0), &w = checked_weights(c, 1, rows);
  const std::int64_t n = w.dim(0), groups = ggml_groups(attr, n), width = groups * rows.k;
  if (a.rank() == 0 || a.shape().back() != width) c.fail("A's last extent must be {}, received {}", width, a.type_string());
  const std::int64_t m = a.size() / width, of_group = std::max<std::int64_t>(1, n / groups);
  const Tensor* bias = c.optional_input(2);
  if (bias != nullptr && bias->size() != n) c.fail("bias must have {} elements, received {}", n, bias->type_string());
  Shape shape = a.shape();
  shape.back() = n;
  auto* y = static_cast<float*>(c.output(0, DataType::float32, shape).mutable_data());
  const auto* x = static_cast<const float*>(a.data());
  parallel_for(n, 8, [&](std::int64_t begin, std::int64_t end) {
    std::vector<float> row(static_cast<std::size_t>(rows.k));
    for (std::int64_t j = begin; j < end; ++j) {
      c.stop().check();
      ggml_dequantize(*rows.format, static_cast<const char*>(w.data()) + j * rows.bytes, rows.k / rows.format->block, row.data());
      const float start = bias != nullptr ? static_cast<const float*>(bias->data())[j] : 0.0F;
      const float* from = x + j / of_group * rows.k;
      for (std::int64_t i = 0; i < m; ++i) y[i * n + j] = start + dot(from + i * width, row.data(), rows.k);
    }
  });
}

void infer_ggml_gather(InferContext& c) {
  const GgmlRows rows = ggml_rows(parse<GgmlAttrs>(c));
  const SymShape* indices = c.shape(1);
  if (indices == nullptr) return c.output(0, DataType::float32);
  SymShape out = *indices;
  out.emplace_back(rows.k);
  c.output(0, DataType::float32, std::move(out));
}

void run_ggml_gather(OpContext& c) {
  const GgmlRows rows = ggml_rows(parse<GgmlAttrs>(c));
  const Tensor &w = checked_weights(c, 0, rows), &indices = c.input(1);
  const Ints at = checked_indices(indices, w.dim(0));
  Shape shape = indices.shape();
  shape.push_back(rows.k);
  auto* y = static_cast<float*>(c.output(0, DataType::float32, shape).mutable_data());
  parallel_for(indices.size(), std::max<std::int64_t>(1, 16384 / rows.k), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const char* row = static_cast<const char*>(w.data()) + at[static_cast<std::size_t>(i)] * rows.bytes;
      ggml_dequantize(*rows.format, row, rows.k / rows.format->block, y + i * rows.k);
    }
  });
}

}  // namespace

GgmlRows ggml_rows(const GgmlAttrs& attr) {
  const GgmlFormat* format = find_ggml(attr.type);
  if (format == nullptr) fail(ErrorCode::invalid_model, "'{}' is not a block type that can be read", attr.type);
  if (attr.k < 1 || attr.k > std::int64_t{1} << 31 || attr.k % format->block != 0) {
    fail(ErrorCode::invalid_model, "K must be a multiple of the {} elements of a {} block, received {}", format->block,
         format->name, attr.k);
  }
  return {format, attr.k, format->row_bytes(attr.k)};
}

std::int64_t ggml_groups(const GgmlProductAttrs& attr, std::int64_t n) {
  constexpr std::int64_t kMost = std::int64_t{1} << 20;
  if (attr.groups < 1 || attr.groups > kMost || n % attr.groups != 0)
    fail(ErrorCode::invalid_model, "{} rows cannot be divided among {} groups", n, attr.groups);
  return attr.groups;
}

bool ggml_may_round(std::int64_t accuracy_level) {
  if (accuracy_level < 0 || accuracy_level > 4)
    fail(ErrorCode::invalid_model, "accuracy_level must be from 0 to 4, received {}", accuracy_level);
  return accuracy_level == 0 || accuracy_level == 4;
}

void register_ggml(OpTable& t) {
  t.add(OpDef("sdx", "GgmlMatMul", 1)
            .in("A", "T", bit(DataType::float32))
            .in("W", "B", bit(DataType::uint8))
            .in("bias", "T", bit(DataType::float32), Arity::optional)
            .out("Y", "T", bit(DataType::float32))
            .attrs<GgmlProductAttrs>()
            .infer_with(infer_ggml_matmul)
            .run_with(run_ggml_matmul));
  t.add(OpDef("sdx", "GgmlGather", 1)
            .in("W", "B", bit(DataType::uint8))
            .in("indices", "I", types::indices)
            .out("Y", "T", bit(DataType::float32))
            .attrs<GgmlAttrs>()
            .infer_with(infer_ggml_gather)
            .run_with(run_ggml_gather));
}

}  // namespace sdx::ops
