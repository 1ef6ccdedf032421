// com.microsoft MatMulNBits: float32 activations, constant weights of 4 or 8 bits.

#include "kernels/cpu/nbits/nbits.h"

#include <vector>

#include "base/thread_pool.h"
#include "ops/quant/signatures.h"
#include "providers/cpu/kernel_table.h"
#include "providers/cpu/late_packed.h"

namespace sdx::cpu {
namespace {

// Returns the order of activations that fits packed weights. g_idx gives the block of each row of weights, and packing puts the
// rows of a block together. The order has a row for each place, or -1 where a block has fewer rows than places.
std::vector<std::int32_t> block_order(const Tensor& groups, const NBitsSource& s, std::int64_t blocks) {
  std::vector<std::int32_t> order(static_cast<std::size_t>(blocks * s.block), -1);
  std::vector<std::int64_t> used(static_cast<std::size_t>(blocks), 0);
  const auto* of = static_cast<const std::int32_t*>(groups.data());
  for (std::int64_t k = 0; k < s.k; ++k) {
    const std::int64_t g = of[k];
    if (g < 0 || g >= blocks || used[static_cast<std::size_t>(g)] == s.block) return {};
    order[static_cast<std::size_t>(g * s.block + used[static_cast<std::size_t>(g)]++)] = static_cast<std::int32_t>(k);
  }
  return order;
}

// Returns the codes of all columns in that order.
std::vector<std::uint8_t> reordered(const NBitsSource& s, const std::vector<std::int32_t>& order) {
  const auto places = static_cast<std::int64_t>(order.size()), column = places * s.bits / 8;
  std::vector<std::uint8_t> out(static_cast<std::size_t>(s.n * column));
  parallel_for(s.n, 64, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t j = begin; j < end; ++j) {
      const auto* from = static_cast<const std::uint8_t*>(s.b) + j * column;
      std::uint8_t* to = out.data() + j * column;
      for (std::int64_t i = 0; i < places; ++i) {
        const std::int32_t k = order[static_cast<std::size_t>(i)];
        if (k < 0) continue;
        if (s.bits == 8) {
          to[i] = from[k];
        } else {
          const int code = (from[k / 2] >> (k % 2 * 4)) & 15;
          to[i / 2] = static_cast<std::uint8_t>(to[i / 2] | code << (i % 2 * 4));
        }
      }
    }
  });
  return out;
}

class NBitsKernel : public Kernel {
 public:
  NBitsKernel(const NBitsSource& source, NBitsAccuracy accuracy, std::int64_t k, std::vector<std::int32_t> order,
              LatePacked packed)
      : packed_(std::move(packed)), k_(k), order_(std::move(order)) {
    args_.accuracy = accuracy;
    args_.n = source.n;
    args_.k = source.k;
    args_.bits = source.bits;
    args_.block = source.block;
    args_.lda = source.k;
    args_.ldc = source.n;
  }
  std::string_view name() const override { return args_.bits == 4 ? "matmul-4-bits" : "matmul-8-bits"; }
  bool uses_input(std::size_t i) const override { return i == 0 || i == 5; }
  std::unique_ptr<KernelState> resolve(ResolveContext& c) const override {
    if (!order_.empty()) {
      const std::int64_t rows = element_count(c.input_shape(0)) / k_;
      c.workspace_bytes = byte_size(DataType::float32, rows * static_cast<std::int64_t>(order_.size()));
    }
    return nullptr;
  }
  void run(const KernelContext& c) const override {
    const Tensor& a = c.input(0);
    if (a.rank() == 0 || a.shape().back() != k_) {
      fail(ErrorCode::runtime_failure, "A's last extent must be K = {}, received {}", k_, a.type_string());
    }
    NBitsArgs args = args_;
    args.packed = packed_.data();
    args.m = a.size() / k_;
    args.a = order_.empty() ? c.in<float>(0) : in_order(c.in<float>(0), args.m, static_cast<float*>(c.workspace));
    args.bias = c.has_input(5) ? c.in<float>(5) : nullptr;
    args.c = c.out<float>(0);
    nbits_gemm(args);
  }

 private:
  const float* in_order(const float* a, std::int64_t rows, float* out) const {
    const auto places = static_cast<std::int64_t>(order_.size());
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t i = 0; i < places; ++i) {
        const std::int32_t k = order_[static_cast<std::size_t>(i)];
        out[r * places + i] = k < 0 ? 0.0F : a[r * k_ + k];
      }
    }
    return out;
  }

  LatePacked packed_;
  NBitsArgs args_;
  std::int64_t k_;                   // of A; args_.k counts places, where there is an order
  std::vector<std::int32_t> order_;  // empty: as they come
};

std::unique_ptr<Kernel> make_nbits(LowerContext& c) {
  if (c.dtype(0) != DataType::float32) return c.refuse("not float32");
  const auto attr = ops::parse<ops::MatMulNBitsAttrs>(c);
  NBitsSource s;
  s.k = attr.k;
  s.n = attr.n;
  s.block = attr.block_size;
  const std::int64_t bits = attr.bits;
  constexpr std::int64_t kMost = std::int64_t{1} << 31;
  if (bits != 4 && bits != 8) return c.refuse("neither 4 nor 8 bits");
  if (s.k < 1 || s.n < 1 || s.k > kMost || s.n > kMost) return c.refuse("K or N is out of range");
  // A block larger than K is legal, but packing pads to whole blocks.
  if (s.block < 16 || s.block > 4096 || (s.block & (s.block - 1)) != 0)
    return c.refuse("block_size is not a power of two up to 4096");
  if (attr.weight_prepacked) return c.refuse("the weights are packed for a device");
  s.bits = static_cast<int>(bits);
  const std::int64_t blocks = (s.k + s.block - 1) / s.block;
  const Tensor *b = c.constant(1), *scales = c.constant(2);
  if (b == nullptr || scales == nullptr) return c.refuse("weights or scales are not constant");
  if (b->dtype() != DataType::uint8 || b->size() != element_count(Shape{s.n, blocks, s.block * bits / 8})) {
    return c.refuse("B does not have the size that K, N and block_size require");
  }
  if (scales->dtype() != DataType::float32 || scales->size() != s.n * blocks)
    return c.refuse("the scales are not float32[N, blocks]");
  s.b = b->data();
  s.scales = scales->data();
  if (c.has_input(3)) {
    const Tensor* zero = c.constant(3);
    if (zero == nullptr) return c.refuse("zero points are not constant");
    if (zero->dtype() == DataType::uint8 && zero->size() == s.n * ((blocks * bits + 7) / 8)) {
      s.zero_points = zero->data();
    } else if (zero->dtype() == DataType::float32 && zero->size() == s.n * blocks) {
      s.zero_points_f32 = zero->data();
    } else {
      return c.refuse("zero points of another type or size");
    }
  }
  if (c.has_input(5)) {
    const SymShape* bias = c.shape(5);
    if (c.dtype(5) != DataType::float32 || bias == nullptr || !all_const(*bias) || element_count(to_shape(*bias)) != s.n) {
      return c.refuse("the bias is not known to be float32[N]");
    }
  }
  const Tensor* zero = c.has_input(3) ? c.constant(3) : nullptr;
  const Tensor* groups = nullptr;
  const std::int64_t k = s.k;
  std::vector<std::int32_t> order;
  if (c.has_input(4)) {
    groups = c.constant(4);
    if (groups == nullptr || groups->dtype() != DataType::int32 || groups->size() < k)
      return c.refuse("g_idx is not a constant int32[K]");
    order = block_order(*groups, s, blocks);
    if (order.empty()) return c.refuse("g_idx gives a block more rows than block_size");
    s.k = blocks * s.block;
  }
  const auto fill = [s, order](float* to) {
    NBitsSource from = s;
    std::vector<std::uint8_t> codes;
    if (!order.empty()) codes = reordered(s, order), from.b = codes.data();
    nbits_pack(from, to);
  };
  LatePacked packed(c, {b, scales, zero, groups}, nbits_packed_bytes(s), cache::PackKey("nbits-2", s.k, s.n, s.bits, s.block),
                    fill);
  // accuracy_level is the lowest precision of activations that the model permits: 1 float32, 2 float16, 3 bfloat16, 4 int8; 0
  // leaves it open.
  const std::int64_t level = attr.accuracy_level;
  const NBitsAccuracy accuracy = level == 4                 ? NBitsAccuracy::int8
                                 : level == 2 || level == 3 ? NBitsAccuracy::float16
                                                            : NBitsAccuracy::float32;
  return std::make_unique<NBitsKernel>(s, accuracy, k, std::move(order), std::move(packed));
}

}  // namespace

void register_kernels_matmul_nbits(KernelTable& t) { t.add("com.microsoft", "MatMulNBits", "matmul-n-bits", 10, make_nbits); }

}  // namespace sdx::cpu
