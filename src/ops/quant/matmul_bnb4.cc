// com.microsoft MatMulBnb4 1: A times a weight matrix [N, K] (transposed, unless transB is 0) of 4-bit floats in blocks that
// share their largest magnitude. Source: QLoRA, arXiv:2305.14314.

#include <vector>

#include "base/thread_pool.h"
#include "ops/attention/attention_core.h"
#include "ops/context.h"
#include "ops/op.h"
#include "ops/signature.h"

namespace sdx::ops {
namespace {

struct MatMulBnb4Attrs {
  std::int64_t k = 0;
  std::int64_t n = 0;
  std::int64_t block_size = 0;
  std::int64_t quant_type = 0;
  bool trans_b = true;

  void fields(auto& f) {
    f.required("K", k);
    f.required("N", n);
    f.required("block_size", block_size);
    f.required("quant_type", quant_type);
    f.unread("training_mode", AttrKind::i);
    f("transB", trans_b);
  }
};

// The values of the 16 codes: sign, and magnitudes in the order of bitsandbytes' "FP4"; and NF4, the quantiles of a normal
// distribution (appendix E of the paper).
constexpr float kFp4[16] = {0.0F,  5.208333333e-03F,  0.66666667F,  1.0F,  0.33333333F,  0.5F,  0.16666667F,  0.25F,
                            -0.0F, -5.208333333e-03F, -0.66666667F, -1.0F, -0.33333333F, -0.5F, -0.16666667F, -0.25F};
constexpr float kNf4[16] = {-1.0F,
                            -0.6961928009986877F,
                            -0.5250730514526367F,
                            -0.39491748809814453F,
                            -0.28444138169288635F,
                            -0.18477343022823334F,
                            -0.09105003625154495F,
                            0.0F,
                            0.07958029955625534F,
                            0.16093020141124725F,
                            0.24611230194568634F,
                            0.33791524171829224F,
                            0.44070982933044434F,
                            0.5626170039176941F,
                            0.7229568362236023F,
                            1.0F};

struct Layout {
  std::int64_t n, k, block;
  bool normal, transposed;
};

Layout layout_of(const MatMulBnb4Attrs& attr) {
  const std::int64_t type = attr.quant_type;
  if (type != 0 && type != 1) fail(ErrorCode::invalid_model, "quant_type must be 0 (FP4) or 1 (NF4), received {}", type);
  const Layout l{attr.n, attr.k, attr.block_size, type == 1, attr.trans_b};
  constexpr std::int64_t kMost = std::int64_t{1} << 31;
  if (l.n < 1 || l.k < 1 || l.n > kMost || l.k > kMost)
    fail(ErrorCode::invalid_model, "K and N must be positive, received {} and {}", l.k, l.n);
  if (l.block < 16 || l.block > kMost || (l.block & (l.block - 1)) != 0) {
    fail(ErrorCode::invalid_model, "block_size must be a power of two from 16, received {}", l.block);
  }
  return l;
}

void infer_bnb4(InferContext& c) {
  const Layout l = layout_of(parse<MatMulBnb4Attrs>(c));
  const SymShape* a = c.shape(0);
  if (a == nullptr) return c.output(0, c.dtype(0));
  const std::int64_t inner = l.transposed ? l.k : l.n;
  if (a->empty()) c.fail("A must have at least one axis");
  if (a->back().is_const() && a->back().value() != inner) c.fail("A's last extent is {}; expected {}", a->back().value(), inner);
  SymShape out = *a;
  out.back() = l.transposed ? l.n : l.k;
  c.output(0, c.dtype(0), std::move(out));
}

void run_bnb4(OpContext& c) {
  const Layout l = layout_of(parse<MatMulBnb4Attrs>(c));
  const Tensor &input = c.input(0), &b = c.input(1);
  const std::int64_t inner = l.transposed ? l.k : l.n, cols = l.transposed ? l.n : l.k;
  if (input.rank() == 0 || input.shape().back() != inner)
    c.fail("A's last extent must be {}, received {}", inner, input.type_string());
  const std::int64_t count = element_count(Shape{l.n, l.k});
  if (b.dtype() != DataType::uint8 || b.size() != (count + 1) / 2)
    c.fail("B must be uint8[{}], received {}", (count + 1) / 2, b.type_string());
  const Tensor scales = converted(c.input(2), DataType::float32);
  if (scales.size() != (count + l.block - 1) / l.block)
    c.fail("absmax must have {} elements, received {}", (count + l.block - 1) / l.block, scales.type_string());
  const auto* packed = static_cast<const std::uint8_t*>(b.data());
  const auto* scale = static_cast<const float*>(scales.data());
  const float* codes = l.normal ? kNf4 : kFp4;
  const auto weight = [&](std::int64_t i) {  // the first of two is in the high bits
    return codes[i % 2 == 0 ? packed[i / 2] >> 4 : packed[i / 2] & 15] * scale[i / l.block];
  };
  const Tensor a = converted(input, DataType::float32);
  const auto* x = static_cast<const float*>(a.data());
  Shape shape = input.shape();
  shape.back() = cols;
  Tensor y(DataType::float32, shape);
  auto* out = static_cast<float*>(y.mutable_data());
  const std::int64_t rows = a.size() / inner;
  parallel_for(cols, 8, [&](std::int64_t first, std::int64_t last) {
    std::vector<float> column(static_cast<std::size_t>(inner));
    for (std::int64_t j = first; j < last; ++j) {
      c.stop().check();
      for (std::int64_t i = 0; i < inner; ++i)
        column[static_cast<std::size_t>(i)] = weight(l.transposed ? j * l.k + i : i * l.k + j);
      for (std::int64_t r = 0; r < rows; ++r) out[r * cols + j] = dot(x + r * inner, column.data(), inner);
    }
  });
  convert_into(c.output(0, input.dtype(), shape), y);
}

}  // namespace

void register_matmul_bnb4(OpTable& t) {
  constexpr TypeSet kFloat = set_of(DataType::float32, DataType::float16, DataType::bfloat16);
  OpDef d("com.microsoft", "MatMulBnb4", 1);
  d.in("A", "T1", kFloat).in("B", "T2", bit(DataType::uint8)).in("absmax", "T1", kFloat).out("Y", "T1", kFloat);
  d.attrs<MatMulBnb4Attrs>();
  t.add(std::move(d).infer_with(infer_bnb4).run_with(run_bnb4));
}

}  // namespace sdx::ops
