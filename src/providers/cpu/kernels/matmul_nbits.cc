// com.microsoft MatMulNBits: float32 activations, constant weights of 4 or 8 bits.

#include "kernels/cpu/nbits.h"

#include "providers/cpu/kernel_table.h"
#include "providers/cpu/packed.h"

namespace sdx::cpu {
namespace {

class NBitsKernel : public Kernel {
 public:
  NBitsKernel(const NBitsSource& source, Packed packed) : packed_(std::move(packed)) {
    args_.n = source.n;
    args_.k = source.k;
    args_.bits = source.bits;
    args_.block = source.block;
    args_.packed = packed_.data();
    args_.lda = source.k;
    args_.ldc = source.n;
  }
  std::string_view name() const override { return args_.bits == 4 ? "matmul-4-bits" : "matmul-8-bits"; }
  bool uses_input(std::size_t i) const override { return i == 0 || i == 5; }
  void run(const KernelContext& c) const override {
    const Tensor& a = c.input(0);
    if (a.rank() == 0 || a.shape().back() != args_.k) {
      fail(ErrorCode::runtime_failure, "A's last extent must be K = {}, received {}", args_.k, a.type_string());
    }
    NBitsArgs args = args_;
    args.m = a.size() / args_.k;
    args.a = c.in<float>(0);
    args.bias = c.has_input(5) ? c.in<float>(5) : nullptr;
    args.c = c.out<float>(0);
    nbits_gemm(args);
  }

 private:
  Packed packed_;
  NBitsArgs args_;
};

std::unique_ptr<Kernel> make_nbits(LowerContext& c) {
  if (c.dtype(0) != DataType::float32) return c.refuse("not float32");
  const Attributes& attrs = c.attrs();
  NBitsSource s;
  s.k = attrs.get_int("K", 0);
  s.n = attrs.get_int("N", 0);
  s.block = attrs.get_int("block_size", 0);
  const std::int64_t bits = attrs.get_int("bits", 4);
  constexpr std::int64_t kMost = std::int64_t{1} << 31;
  if (bits != 4 && bits != 8) return c.refuse("neither 4 nor 8 bits");
  if (s.k < 1 || s.n < 1 || s.k > kMost || s.n > kMost) return c.refuse("K or N is out of range");
  // Larger blocks than K are legal, but packing pads to whole blocks.
  if (s.block < 16 || s.block > 4096 || (s.block & (s.block - 1)) != 0)
    return c.refuse("block_size is no power of two up to 4096");
  if (attrs.get_int("weight_prepacked", 0) != 0) return c.refuse("the weights are packed for a device");
  if (c.has_input(4)) return c.refuse("groups are permuted (g_idx)");
  s.bits = static_cast<int>(bits);
  const std::int64_t blocks = (s.k + s.block - 1) / s.block;
  const Tensor *b = c.constant(1), *scales = c.constant(2);
  if (b == nullptr || scales == nullptr) return c.refuse("weights or scales are not constant");
  if (b->dtype() != DataType::uint8 || b->size() != element_count(Shape{s.n, blocks, s.block * bits / 8})) {
    return c.refuse("B has not the size that K, N and block_size ask for");
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
  Packed packed = c.pack({b, scales, zero}, nbits_packed_bytes(s), PackKey("nbits", s.k, s.n, s.bits, s.block),
                         [&](float* to) { nbits_pack(s, to); });
  return std::make_unique<NBitsKernel>(s, std::move(packed));
}

}  // namespace

void register_kernels_matmul_nbits(KernelTable& t) { t.add("com.microsoft", "MatMulNBits", "matmul-n-bits", 10, make_nbits); }

}  // namespace sdx::cpu
