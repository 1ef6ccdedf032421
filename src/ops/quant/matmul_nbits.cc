// com.microsoft MatMulNBits 1: A [.., K] times a weight matrix [N, K] quantised in blocks along K.

#include <vector>

#include "base/checked.h"
#include "base/thread_pool.h"
#include "ops/attention/attention_core.h"
#include "ops/context.h"
#include "ops/op.h"
#include "ops/quant/signatures.h"
#include "tensor/types.h"

namespace sdx::ops {
namespace {

struct Layout {
  std::int64_t rows_k, cols_n, bits, block, blocks, blob;  // blob: bytes of one block
};

Layout layout_of(const MatMulNBitsAttrs& attr) {
  Layout l{attr.k, attr.n, attr.bits, attr.block_size, 0, 0};
  constexpr std::int64_t kMost = std::int64_t{1} << 31;
  if (l.rows_k < 1 || l.cols_n < 1 || l.rows_k > kMost || l.cols_n > kMost) {
    fail(ErrorCode::invalid_model, "K and N must be positive, received {} and {}", l.rows_k, l.cols_n);
  }
  if (l.bits != 2 && l.bits != 4 && l.bits != 8) {
    fail(ErrorCode::invalid_model, "bits must be 2, 4 or 8, received {}", l.bits);
  }
  if (l.block < 16 || l.block > kMost || (l.block & (l.block - 1)) != 0) {
    fail(ErrorCode::invalid_model, "block_size must be a power of two from 16, received {}", l.block);
  }
  if (attr.weight_prepacked) {
    fail(ErrorCode::not_implemented, "weights packed beforehand for one device cannot be read: export with weight_prepacked = 0");
  }
  l.blocks = ceil_div(l.rows_k, l.block);
  l.blob = l.block * l.bits / 8;
  return l;
}

void infer_matmul_nbits(InferContext& c) {
  const Layout l = layout_of(parse<MatMulNBitsAttrs>(c));
  const SymShape* a = c.shape(0);
  if (a == nullptr) return c.output(0, c.dtype(0));
  if (a->empty()) c.fail("A must have at least one axis");
  if (a->back().is_const() && a->back().value() != l.rows_k) {
    c.fail("A's last extent is {}; expected K = {}", a->back().value(), l.rows_k);
  }
  SymShape out = *a;
  out.back() = l.cols_n;
  c.output(0, c.dtype(0), std::move(out));
}

// Everything about the weights, checked.
struct Weights {
  Layout l{};
  const std::uint8_t* packed = nullptr;
  Tensor scales;                              // float32
  Tensor float_zero;                          // float32, or undefined
  const std::uint8_t* packed_zero = nullptr;  // rows of whole bytes
  std::int64_t zero_row = 0;
  const std::int32_t* group = nullptr;
};

Weights weights_of(OpContext& c) {
  Weights w;
  w.l = layout_of(parse<MatMulNBitsAttrs>(c));
  const Tensor& b = c.input(1);
  const std::int64_t expected = element_count(Shape{w.l.cols_n, w.l.blocks, w.l.blob});
  if (b.dtype() != DataType::uint8 || b.size() != expected) {
    c.fail("B must be uint8[{},{},{}], received {}", w.l.cols_n, w.l.blocks, w.l.blob, b.type_string());
  }
  w.packed = static_cast<const std::uint8_t*>(b.data());
  w.scales = converted(c.input(2), DataType::float32);
  const std::int64_t groups = w.l.cols_n * w.l.blocks;
  if (w.scales.size() != groups) c.fail("scales must be [{},{}], received {}", w.l.cols_n, w.l.blocks, w.scales.type_string());
  if (const Tensor* z = c.optional_input(3)) {
    w.zero_row = ceil_div(w.l.blocks * w.l.bits, 8);
    const bool is_packed = z->dtype() == DataType::uint8;
    if (z->size() != (is_packed ? w.l.cols_n * w.zero_row : groups)) {
      c.fail("zero_points must have {} elements, received {}", is_packed ? w.l.cols_n * w.zero_row : groups, z->type_string());
    }
    if (is_packed) {
      w.packed_zero = static_cast<const std::uint8_t*>(z->data());
    } else {
      w.float_zero = converted(*z, DataType::float32);
    }
  }
  if (const Tensor* g = c.optional_input(4)) {
    if (g->dtype() != DataType::int32 || g->size() < w.l.rows_k) {
      c.fail("g_idx must be int32[{}], received {}", w.l.rows_k, g->type_string());
    }
    w.group = static_cast<const std::int32_t*>(g->data());
    for (std::int64_t k = 0; k < w.l.rows_k; ++k) {
      if (w.group[k] < 0 || w.group[k] >= w.l.blocks) c.fail("g_idx[{}] is {}; there are {} groups", k, w.group[k], w.l.blocks);
    }
  }
  return w;
}

float zero_point(const Weights& w, std::int64_t n, std::int64_t block) {
  if (w.float_zero.defined()) return static_cast<const float*>(w.float_zero.data())[n * w.l.blocks + block];
  if (w.packed_zero != nullptr) {
    return static_cast<float>(get_packed(w.packed_zero + n * w.zero_row, static_cast<int>(w.l.bits), block));
  }
  return static_cast<float>(1 << (w.l.bits - 1));
}

// Row n of the weight matrix as floats.
void dequantize_row(const Weights& w, std::int64_t n, float* out) {
  const auto* scales = static_cast<const float*>(w.scales.data()) + n * w.l.blocks;
  for (std::int64_t block = 0; block < w.l.blocks; ++block) {
    const std::uint8_t* blob = w.packed + (n * w.l.blocks + block) * w.l.blob;
    const std::int64_t first = block * w.l.block;
    const std::int64_t count = std::min(w.l.block, w.l.rows_k - first);
    const float scale = scales[block], zero = zero_point(w, n, block);
    for (std::int64_t i = 0; i < count; ++i) {
      const auto q = static_cast<float>(get_packed(blob, static_cast<int>(w.l.bits), i));
      if (w.group == nullptr) {
        out[first + i] = (q - zero) * scale;
      } else {
        const std::int64_t g = w.group[first + i];
        out[first + i] = (q - zero_point(w, n, g)) * scales[g];
      }
    }
  }
}

void run_matmul_nbits(OpContext& c) {
  const Weights w = weights_of(c);
  const std::int64_t k = w.l.rows_k, n = w.l.cols_n;
  const Tensor& input = c.input(0);
  if (input.rank() == 0 || input.shape().back() != k)
    c.fail("A's last extent must be K = {}, received {}", k, input.type_string());
  const Tensor a = converted(input, DataType::float32);
  const auto* x = static_cast<const float*>(a.data());
  Shape shape = input.shape();
  shape.back() = n;
  Tensor y(DataType::float32, shape);
  auto* out = static_cast<float*>(y.mutable_data());
  Tensor bias;
  if (const Tensor* b = c.optional_input(5)) {
    bias = converted(*b, DataType::float32);
    if (bias.size() != n) c.fail("bias must have {} elements, received {}", n, bias.type_string());
  }
  const std::int64_t rows = a.size() / k;
  parallel_for(n, 8, [&](std::int64_t first, std::int64_t last) {
    std::vector<float> row(static_cast<std::size_t>(k));
    for (std::int64_t col = first; col < last; ++col) {
      c.stop().check();
      dequantize_row(w, col, row.data());
      const float start = bias.defined() ? static_cast<const float*>(bias.data())[col] : 0.0F;
      for (std::int64_t r = 0; r < rows; ++r) out[r * n + col] = start + dot(x + r * k, row.data(), k);
    }
  });
  convert_into(c.output(0, input.dtype(), shape), y);
}

}  // namespace

void register_matmul_nbits(OpTable& t) {
  t.add(OpDef("com.microsoft", "MatMulNBits", 1)
            .in("A", "T1", types::floats)
            .in("B", "T2", bit(DataType::uint8))
            .in("scales", "T1", types::floats)
            .in("zero_points", "T3", types::floats | bit(DataType::uint8), Arity::optional)
            .in("g_idx", "T4", bit(DataType::int32), Arity::optional)
            .in("bias", "T1", types::floats, Arity::optional)
            .out("Y", "T1", types::floats)
            .attrs<MatMulNBitsAttrs>()
            .infer_with(infer_matmul_nbits)
            .run_with(run_matmul_nbits));
}

}  // namespace sdx::ops
