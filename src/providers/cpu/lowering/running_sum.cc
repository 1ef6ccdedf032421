// CumSum in float32.

#include "kernels/cpu/rows/running_sum.h"

#include "ops/reduce/signatures.h"
#include "ops/tensor/axes.h"
#include "providers/cpu/kernel_table.h"
#include "tensor/element.h"

namespace sdx::cpu {
namespace {

class RunningSumKernel : public Kernel {
 public:
  RunningSumKernel(std::size_t axis, bool exclusive, bool reverse) : axis_(axis), exclusive_(exclusive), reverse_(reverse) {}
  std::string_view name() const override { return "running-sum-f32"; }
  int in_place() const override { return 0; }
  void run(const KernelContext& c) const override {
    const Shape& x = c.input(0).shape();
    running_sum_f32({ops::product(x, 0, axis_), x[axis_], ops::product(x, axis_ + 1, x.size()), exclusive_, reverse_},
                    c.in<float>(0), c.out<float>(0));
  }

 private:
  std::size_t axis_;
  bool exclusive_, reverse_;
};

std::unique_ptr<Kernel> make_running_sum(LowerContext& c) {
  if (c.dtype(0) != DataType::float32) return c.refuse("not float32");
  const SymShape* x = c.shape(0);
  if (x == nullptr || x->empty()) return c.refuse("rank unknown or 0");
  const Tensor* axis = c.constant(1);
  if (axis == nullptr || axis->size() != 1) return c.refuse("the axis is not constant");
  const auto attr = ops::parse<ops::CumulativeAttrs>(c);
  return std::make_unique<RunningSumKernel>(static_cast<std::size_t>(ops::normalize_axis(element_as_int(*axis, 0), x->size())),
                                            attr.exclusive, attr.reverse);
}

}  // namespace

void register_kernels_running_sum(KernelTable& t) { t.add("", "CumSum", "running-sum-f32", 10, make_running_sum); }

}  // namespace sdx::cpu
