// Transpose for elements of 1, 2, 4, 8 and 16 bytes.

#include "kernels/cpu/movement/transpose.h"

#include "ops/tensor/axes.h"
#include "ops/tensor/signatures.h"
#include "providers/cpu/kernel_table.h"

namespace sdx::cpu {
namespace {

class TransposeKernel : public Kernel {
 public:
  TransposeKernel(std::vector<int> perm, std::size_t element_size, bool moves)
      : perm_(std::move(perm)), element_size_(element_size), moves_(moves) {}
  std::string_view name() const override { return "transpose"; }
  int view_of() const override { return moves_ ? -1 : 0; }
  void run(const KernelContext& c) const override {
    const Tensor& x = c.input(0);
    if (x.size() == 0) return;
    if (x.rank() != perm_.size()) {
      fail(ErrorCode::runtime_failure, "perm lists {} axes, the input has shape {}", perm_.size(), to_string(x.shape()));
    }
    transpose(x.data(), c.output(0).mutable_data(), element_size_, static_cast<int>(perm_.size()), x.shape().data(),
              perm_.data());
  }

 private:
  std::vector<int> perm_;
  std::size_t element_size_;
  bool moves_;
};

// Returns false if only axes of extent 1 change places: elements then stay in order.
bool moves_elements(const SymShape& x, const std::vector<int>& perm) {
  int last = -1;
  for (const int axis : perm) {
    const Dim& d = x[static_cast<std::size_t>(axis)];
    if (d.is_const() && d.value() == 1) continue;
    if (axis < last) return true;
    last = axis;
  }
  return false;
}

std::unique_ptr<Kernel> make_transpose(LowerContext& c) {
  const auto attr = ops::parse<ops::TransposeAttrs>(c);
  if (!c.input(0).is_tensor() || bit_width(c.dtype(0)) < 8) return c.refuse("strings and elements below one byte");
  const SymShape* x = c.shape(0);
  if (x == nullptr || x->empty() || x->size() > 32) return c.refuse("rank unknown, 0 or above 32");
  std::vector<int> perm;
  if (attr.perm) {
    const auto axes = ops::normalize_axes(*attr.perm, x->size());
    if (axes.size() != x->size()) return c.refuse("perm does not list every axis");
    for (const std::int64_t a : axes) perm.push_back(static_cast<int>(a));
  } else {
    for (std::size_t i = x->size(); i-- > 0;) perm.push_back(static_cast<int>(i));
  }
  const bool moves = moves_elements(*x, perm);
  return std::make_unique<TransposeKernel>(std::move(perm), static_cast<std::size_t>(bit_width(c.dtype(0))) / 8, moves);
}

}  // namespace

void register_kernels_transpose(KernelTable& t) { t.add("", "Transpose", "transpose", 10, make_transpose); }

}  // namespace sdx::cpu
