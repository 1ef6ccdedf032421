// Gather for elements of whole bytes. Copies rows as they lie in memory, also from a model file whose tables are not aligned: the
// reference kernel would hold an aligned copy (an embedding of 50,257 words takes 154 MB).

#include "kernels/cpu/movement/gather.h"
#include "ops/tensor/axes.h"
#include "ops/tensor/signatures.h"
#include "providers/cpu/kernel_table.h"

namespace sdx::cpu {
namespace {

class GatherKernel : public Kernel {
 public:
  GatherKernel(std::size_t axis, std::int64_t element_bytes, bool wide)
      : axis_(axis), element_bytes_(element_bytes), wide_(wide) {}
  std::string_view name() const override { return "gather"; }
  bool accepts_unaligned(std::size_t) const override { return true; }

  void run(const KernelContext& c) const override {
    const Tensor &data = c.input(0), &indices = c.input(1);
    const Shape& s = data.shape();
    GatherArgs g;
    g.outer = ops::product(s, 0, axis_);
    g.extent = s[axis_];
    g.picks = indices.size();
    g.run = ops::product(s, axis_ + 1, s.size()) * element_bytes_;
    g.data = data.data();
    g.indices = indices.data();
    g.wide = wide_;
    // Checks all indices, even if nothing is copied.
    if (const auto at = index_out_of_range(g)) {
      fail(ErrorCode::runtime_failure, "index {} is out of range for extent {}; permitted: {} to {}", *at, g.extent, -g.extent,
           g.extent - 1);
    }
    gather(g, c.output(0).mutable_data());
  }

 private:
  std::size_t axis_;
  std::int64_t element_bytes_;
  bool wide_;
};

std::unique_ptr<Kernel> make_gather(LowerContext& c) {
  const DataType dtype = c.dtype(0);
  if (!c.input(0).is_tensor() || dtype == DataType::string || bit_width(dtype) % 8 != 0 || bit_width(dtype) == 0) {
    return c.refuse("strings and elements below one byte");
  }
  if (c.dtype(1) != DataType::int64 && c.dtype(1) != DataType::int32) return c.refuse("indices of another type");
  if (c.shape(0) == nullptr || c.shape(0)->empty() || c.shape(1) == nullptr) return c.refuse("ranks are not known");
  const auto axis = static_cast<std::size_t>(ops::normalize_axis(ops::parse<ops::GatherAttrs>(c).axis, c.shape(0)->size()));
  return std::make_unique<GatherKernel>(axis, static_cast<std::int64_t>(bit_width(dtype)) / 8, c.dtype(1) == DataType::int64);
}

}  // namespace

void register_kernels_gather(KernelTable& t) { t.add("", "Gather", "gather", 10, make_gather); }

}  // namespace sdx::cpu
