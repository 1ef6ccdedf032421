// Cast and CastLike between bool, integers of whole bytes and floating types of 16 to 64 bits.

#include "kernels/cpu/elementwise/convert.h"
#include "providers/cpu/kernel_table.h"
#include "tensor/halves.h"

namespace sdx::cpu {
namespace {

class CastKernel : public Kernel {
 public:
  CastKernel(DataType from, DataType to) : from_(from), to_(to) {}
  std::string_view name() const override { return "cast"; }
  bool accepts_unaligned(std::size_t i) const override { return i == 0 && is_half(from_) && to_ == DataType::float32; }
  void run(const KernelContext& c) const override {
    const std::int64_t n = c.output(0).size();
    if (n != 0) cast_elements(from_, to_, c.input(0).data(), c.output(0).mutable_data(), n);
  }

 private:
  DataType from_, to_;
};

std::unique_ptr<Kernel> make_cast(LowerContext& c) {
  const DataType from = c.dtype(0), to = c.output(0).elem;
  if (!can_cast(from, to)) return c.refuse("not between bool, integers of whole bytes and floats of 16 to 64 bits");
  return std::make_unique<CastKernel>(from, to);
}

}  // namespace

void register_kernels_cast(KernelTable& t) {
  for (const char* op : {"Cast", "CastLike"}) t.add("", op, "cast", 10, make_cast);
}

}  // namespace sdx::cpu
