// Gather for elements of whole bytes: rows are copied as they lie in memory, also from a model file whose tables are not aligned;
// the reference would hold a copy of them (an embedding of 50,257 words takes 154 MB).

#include <cstring>

#include "base/thread_pool.h"
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
    const std::int64_t extent = s[axis_], picks = indices.size();
    const std::int64_t outer = ops::product(s, 0, axis_);
    const std::int64_t run = ops::product(s, axis_ + 1, s.size()) * element_bytes_;
    const auto* from = static_cast<const std::byte*>(data.data());
    auto* to = static_cast<std::byte*>(c.output(0).mutable_data());
    // All are checked, also where nothing is copied.
    for (std::int64_t i = 0; i < picks; ++i) index_at(indices, i, extent);
    if (run == 0 || outer == 0) return;
    parallel_for(outer * picks, std::max<std::int64_t>(1, 65536 / run), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t row = i / picks * extent + index_at(indices, i % picks, extent);
        std::memcpy(to + i * run, from + row * run, static_cast<std::size_t>(run));
      }
    });
  }

 private:
  std::int64_t index_at(const Tensor& indices, std::int64_t i, std::int64_t extent) const {
    std::int64_t at = 0;
    if (wide_) {
      std::memcpy(&at, static_cast<const std::byte*>(indices.data()) + 8 * i, 8);
    } else {
      std::int32_t narrow = 0;
      std::memcpy(&narrow, static_cast<const std::byte*>(indices.data()) + 4 * i, 4);
      at = narrow;
    }
    if (at < -extent || at >= extent) {
      fail(ErrorCode::runtime_failure, "index {} is out of range for extent {}; permitted: {} to {}", at, extent, -extent,
           extent - 1);
    }
    return at < 0 ? at + extent : at;
  }

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
