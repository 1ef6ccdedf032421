// Split, and Slice with constant positions, for elements of 1, 2, 4, 8 and 16 bytes: strided copies, or none where the results
// are stretches of the input.

#include "ops/tensor/slice.h"
#include "kernels/cpu/movement/transpose.h"
#include "ops/tensor/axes.h"
#include "ops/tensor/signatures.h"
#include "providers/cpu/kernel_table.h"
#include "tensor/element.h"

namespace sdx::cpu {
namespace {

const std::byte* element(const Tensor& t, std::int64_t index, std::size_t element_size) {
  return static_cast<const std::byte*>(t.data()) + static_cast<std::size_t>(index) * element_size;
}

class SplitKernel : public Kernel {
 public:
  SplitKernel(std::size_t axis, std::size_t element_size) : axis_(axis), element_size_(element_size) {}
  std::string_view name() const override { return "split"; }

  std::int64_t begins_at(const ResolveContext& c, std::size_t output) const override {
    const Shape x = c.input_shape(0);
    if (ops::product(x, 0, axis_) != 1) return -1;
    std::int64_t at = 0;
    for (std::size_t i = 0; i < output; ++i) at += element_count(c.output_shape(i));
    return at;
  }

  void run(const KernelContext& c) const override {
    const Shape& x = c.input(0).shape();
    const std::int64_t outer = ops::product(x, 0, axis_), row = ops::product(x, axis_, x.size());
    if (c.input(0).size() == 0) return;
    std::int64_t at = 0;
    for (std::size_t i = 0; i < c.outputs.size(); ++i) {
      Tensor& y = c.output(i);
      const std::byte* const from = element(c.input(0), at, element_size_);
      const std::int64_t dims[] = {outer, y.size() / outer}, strides[] = {row, 1};
      if (y.size() > 0 && y.data() != from) copy_strided(from, y.mutable_data(), element_size_, 2, dims, strides);
      at += dims[1];
    }
  }

 private:
  std::size_t axis_, element_size_;
};

struct Cut {
  std::size_t axis;
  std::int64_t start, end, step;
};

class SliceKernel : public Kernel {
 public:
  SliceKernel(std::vector<Cut> cuts, std::size_t element_size) : cuts_(std::move(cuts)), element_size_(element_size) {}
  std::string_view name() const override { return "slice"; }

  std::int64_t begins_at(const ResolveContext& c, std::size_t) const override {
    const Shape x = c.input_shape(0), y = c.output_shape(0);
    // A stretch of the input: behind the first axis that is cut all is whole, before it there is one element.
    std::size_t axis = 0;
    while (axis < x.size() && x[axis] == y[axis]) ++axis;
    if (axis == x.size()) axis = 0;
    if (ops::product(y, 0, axis) != 1 || !std::equal(x.begin() + static_cast<std::ptrdiff_t>(axis) + 1, x.end(),
                                                     y.begin() + static_cast<std::ptrdiff_t>(axis) + 1)) {
      return -1;
    }
    std::int64_t at = 0;
    for (const Cut& cut : cuts_) {
      const ops::SliceRange r = ops::slice_range(cut.start, cut.end, cut.step, x[cut.axis]);
      if (r.count > 1 && r.step != 1) return -1;
      at += r.start * ops::product(x, cut.axis + 1, x.size());
    }
    return at;
  }

  void run(const KernelContext& c) const override {
    const Tensor& x = c.input(0);
    Tensor& y = c.output(0);
    if (y.size() == 0) return;
    std::vector<std::int64_t> strides = ops::strides_of(x.shape());
    std::int64_t at = 0;
    for (const Cut& cut : cuts_) {
      const ops::SliceRange r = ops::slice_range(cut.start, cut.end, cut.step, x.shape()[cut.axis]);
      at += r.start * strides[cut.axis];
      strides[cut.axis] *= r.count > 1 ? r.step : 1;
    }
    const std::byte* const from = element(x, at, element_size_);
    if (y.data() == from) return;
    copy_strided(from, y.mutable_data(), element_size_, static_cast<int>(y.rank()), y.shape().data(), strides.data());
  }

 private:
  std::vector<Cut> cuts_;
  std::size_t element_size_;
};

std::size_t element_size(const LowerContext& c) {
  const DataType dtype = c.dtype(0);
  const bool whole = c.input(0).is_tensor() && dtype != DataType::string && bit_width(dtype) >= 8;
  return whole ? static_cast<std::size_t>(bit_width(dtype)) / 8 : 0;
}

std::unique_ptr<Kernel> make_split(LowerContext& c) {
  const std::size_t size = element_size(c);
  if (size == 0) return c.refuse("strings and elements below one byte");
  if (c.shape(0) == nullptr || c.shape(0)->empty()) return c.refuse("rank unknown or 0");
  if (c.has_input(1) && c.constant(1) == nullptr) return c.refuse("sizes are not constant");
  for (const ValueId v : c.node().outputs) {
    if (v == kNoValue) return c.refuse("an output is left out");
  }
  const auto axis = ops::normalize_axis(ops::parse<ops::SplitAttrs>(c).axis, c.shape(0)->size());
  return std::make_unique<SplitKernel>(static_cast<std::size_t>(axis), size);
}

std::unique_ptr<Kernel> make_slice(LowerContext& c) {
  const std::size_t size = element_size(c);
  if (size == 0) return c.refuse("strings and elements below one byte");
  if (c.shape(0) == nullptr || c.shape(0)->empty() || c.shape(0)->size() > 32) return c.refuse("rank unknown, 0 or above 32");
  if (c.node().version < 10) return c.refuse("opset before 10");
  std::vector<std::int64_t> given[4];  // starts, ends, axes, steps
  for (std::size_t i = 0; i < 4; ++i) {
    if (i >= 2 && !c.has_input(i + 1)) continue;
    const Tensor* t = c.constant(i + 1);
    if (t == nullptr) return c.refuse("positions are not constant");
    for (std::int64_t k = 0; k < t->size(); ++k) given[i].push_back(element_as_int(*t, k));
  }
  const std::size_t count = given[0].size();
  for (std::size_t i = given[2].size(); !c.has_input(3) && i < count; ++i) given[2].push_back(static_cast<std::int64_t>(i));
  if (!c.has_input(4)) given[3].assign(count, 1);
  if (given[1].size() != count || given[2].size() != count || given[3].size() != count)
    return c.refuse("positions differ in number");
  const std::vector<std::int64_t> axes = ops::normalize_axes(given[2], c.shape(0)->size());
  std::vector<Cut> cuts;
  for (std::size_t i = 0; i < count; ++i) {
    cuts.push_back({static_cast<std::size_t>(axes[i]), given[0][i], given[1][i], given[3][i]});
  }
  return std::make_unique<SliceKernel>(std::move(cuts), size);
}

}  // namespace

void register_kernels_slice(KernelTable& t) {
  t.add("", "Split", "split", 10, make_split);
  t.add("", "Slice", "slice", 10, make_slice);
}

}  // namespace sdx::cpu
