// CumSum and CumProd in float32, float64 and integers.

#include "kernels/cpu/rows/running_sum.h"

#include "kernels/cpu/order/reductions.h"
#include "ops/reduce/signatures.h"
#include "ops/tensor/axes.h"
#include "providers/cpu/kernel_table.h"
#include "tensor/element.h"

namespace sdx::cpu {
namespace {

class RunningKernel : public Kernel {
 public:
  RunningKernel(DataType dtype, bool product, std::size_t axis, ops::CumulativeAttrs attr)
      : dtype_(dtype), product_(product), axis_(axis), attr_(attr) {}
  std::string_view name() const override {
    if (dtype_ != DataType::float32) return product_ ? "running-product-typed" : "running-sum-typed";
    return product_ ? "running-product-f32" : "running-sum-f32";
  }
  int in_place() const override { return 0; }
  void run(const KernelContext& c) const override {
    const Shape& x = c.input(0).shape();
    const Lanes e{ops::product(x, 0, axis_), x[axis_], ops::product(x, axis_ + 1, x.size())};
    if (dtype_ != DataType::float32) {
      const ScanFn fn = product_ ? ScanFn::prod : ScanFn::sum;
      scan(fn, dtype_, c.input(0).data(), c.output(0).mutable_data(), e, attr_.reverse, !attr_.exclusive);
    } else if (product_) {
      product_in_double(c.in<float>(0), c.out<float>(0), e, attr_.reverse, !attr_.exclusive);
    } else {
      running_sum_f32({e.outer, e.count, e.inner, attr_.exclusive, attr_.reverse}, c.in<float>(0), c.out<float>(0));
    }
  }

 private:
  DataType dtype_;
  bool product_;
  std::size_t axis_;
  ops::CumulativeAttrs attr_;
};

template <bool kProduct>
std::unique_ptr<Kernel> make_running(LowerContext& c) {
  const DataType type = c.dtype(0);
  if (type != DataType::float32 && !reduces_typed(Reduce::product, type)) return c.refuse("elements of another type");
  const SymShape* x = c.shape(0);
  if (x == nullptr || x->empty()) return c.refuse("rank unknown or 0");
  const Tensor* axis = c.constant(1);
  if (axis == nullptr || axis->size() != 1) return c.refuse("the axis is not constant");
  return std::make_unique<RunningKernel>(type, kProduct,
                                         static_cast<std::size_t>(ops::normalize_axis(element_as_int(*axis, 0), x->size())),
                                         ops::parse<ops::CumulativeAttrs>(c));
}

}  // namespace

void register_kernels_running_sum(KernelTable& t) {
  t.add("", "CumSum", "running-sum-f32", 10, make_running<false>);
  t.add("", "CumProd", "running-product-f32", 10, make_running<true>);
}

}  // namespace sdx::cpu
