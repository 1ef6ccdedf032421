// Concat for elements of 1, 2, 4, 8 and 16 bytes: strided copies.

#include "kernels/cpu/movement/transpose.h"
#include "ops/tensor/axes.h"
#include "ops/tensor/signatures.h"
#include "providers/cpu/kernel_table.h"

namespace sdx::cpu {
namespace {

class ConcatKernel : public Kernel {
 public:
  ConcatKernel(std::size_t axis, std::size_t element_size) : axis_(axis), element_size_(element_size) {}
  std::string_view name() const override { return "concat"; }
  int joins_along() const override { return static_cast<int>(axis_); }
  void run(const KernelContext& c) const override {
    const Shape& y = c.output(0).shape();
    if (c.output(0).size() == 0) return;
    const std::int64_t outer = ops::product(y, 0, axis_);
    const std::int64_t row = ops::product(y, axis_, y.size());
    const std::int64_t inner = ops::product(y, axis_ + 1, y.size());
    auto* to = static_cast<std::byte*>(c.output(0).mutable_data());
    std::int64_t at = 0;
    for (std::size_t i = 0; i < c.inputs.size(); ++i) {
      const Tensor& x = c.input(i);
      const std::int64_t dims[] = {outer, x.shape()[axis_] * inner};
      const std::int64_t strides[] = {row, 1};
      std::byte* const place = to + static_cast<std::size_t>(at) * element_size_;
      if (x.size() > 0 && x.data() != place) copy_strided_to(x.data(), place, element_size_, 2, dims, strides);
      at += dims[1];
    }
  }

 private:
  std::size_t axis_, element_size_;
};

std::unique_ptr<Kernel> make_concat(LowerContext& c) {
  const auto attr = ops::parse<ops::ConcatAttrs>(c);
  const DataType dtype = c.dtype(0);
  if (!c.input(0).is_tensor() || bit_width(dtype) < 8) return c.refuse("strings and elements below one byte");
  if (c.shape(0) == nullptr || c.shape(0)->empty()) return c.refuse("rank unknown or 0");
  for (std::size_t i = 0; i < c.node().inputs.size(); ++i) {
    const bool fits = c.has_input(i) && c.dtype(i) == dtype && c.shape(i) != nullptr && c.shape(i)->size() == c.shape(0)->size();
    if (!fits) return c.refuse("types or ranks are unknown or differ");
  }
  if (!attr.axis) return c.refuse("opset 1 without an axis");
  const auto axis = static_cast<std::size_t>(ops::normalize_axis(*attr.axis, c.shape(0)->size()));
  return std::make_unique<ConcatKernel>(axis, static_cast<std::size_t>(bit_width(dtype)) / 8);
}

}  // namespace

void register_kernels_concat(KernelTable& t) { t.add("", "Concat", "concat", 10, make_concat); }

}  // namespace sdx::cpu
