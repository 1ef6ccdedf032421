// Cast between float32 and the 16-bit floating types, and between the common types of numbers.

#include "kernels/cpu/elementwise/convert.h"
#include "providers/cpu/kernel_table.h"
#include "tensor/halves.h"

namespace sdx::cpu {
namespace {

class CastKernel : public Kernel {
 public:
  CastKernel(DataType from, DataType to) : from_(from), to_(to) {}
  std::string_view name() const override { return "cast-16"; }
  bool accepts_unaligned(std::size_t) const override { return from_ != DataType::float32; }
  void run(const KernelContext& c) const override {
    const void* x = c.input(0).data();
    void* y = c.output(0).mutable_data();
    const std::int64_t n = c.output(0).size();
    if (n == 0) return;
    if (from_ == DataType::float16) return half_to_f32(x, static_cast<float*>(y), n);
    if (from_ == DataType::bfloat16) return bfloat_to_f32(x, static_cast<float*>(y), n);
    if (to_ == DataType::float16) return f32_to_half(static_cast<const float*>(x), y, n);
    f32_to_bfloat(static_cast<const float*>(x), y, n);
  }

 private:
  DataType from_, to_;
};

std::unique_ptr<Kernel> make_cast(LowerContext& c) {
  const DataType from = c.dtype(0), to = c.output(0).elem;
  const bool widens = is_half(from) && to == DataType::float32;
  const bool narrows = from == DataType::float32 && is_half(to);
  if (!widens && !narrows) return c.refuse("not between float32 and float16 or bfloat16");
  return std::make_unique<CastKernel>(from, to);
}

class CastNumbersKernel : public Kernel {
 public:
  CastNumbersKernel(DataType from, DataType to) : from_(from), to_(to) {}
  std::string_view name() const override { return "cast-numbers"; }
  void run(const KernelContext& c) const override {
    const std::int64_t n = c.output(0).size();
    if (n != 0) cast_elements(from_, to_, c.input(0).data(), c.output(0).mutable_data(), n);
  }

 private:
  DataType from_, to_;
};

std::unique_ptr<Kernel> make_cast_numbers(LowerContext& c) {
  const DataType from = c.dtype(0), to = c.output(0).elem;
  if (!can_cast(from, to)) return c.refuse("not between two of float32, float64, float16, int32, int64, int8, uint8 and bool");
  return std::make_unique<CastNumbersKernel>(from, to);
}

}  // namespace

void register_kernels_cast(KernelTable& t) {
  t.add("", "Cast", "cast-16", 10, make_cast);
  t.add("", "Cast", "cast-numbers", 20, make_cast_numbers);
}

}  // namespace sdx::cpu
