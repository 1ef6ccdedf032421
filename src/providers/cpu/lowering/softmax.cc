// Softmax and LogSoftmax in float32. ai.onnx 1 and 11 see the input as two axes, split at `axis`; 13 normalises along one axis.

#include "kernels/cpu/rows/softmax.h"

#include "ops/reduce/signatures.h"
#include "ops/tensor/axes.h"
#include "providers/cpu/kernel_table.h"

namespace sdx::cpu {
namespace {

class SoftmaxKernel : public Kernel {
 public:
  SoftmaxKernel(std::size_t axis, bool flattened, bool log) : axis_(axis), flattened_(flattened), log_(log) {}
  std::string_view name() const override { return log_ ? "log-softmax-f32" : "softmax-f32"; }
  int in_place() const override { return 0; }
  void run(const KernelContext& c) const override {
    const Shape& x = c.input(0).shape();
    if (c.output(0).size() == 0) return;
    const std::size_t end = flattened_ ? x.size() : axis_ + 1;
    const std::int64_t outer = ops::product(x, 0, axis_);
    const std::int64_t length = ops::product(x, axis_, end);
    const std::int64_t inner = ops::product(x, end, x.size());
    (log_ ? log_softmax_f32 : softmax_f32)(c.in<float>(0), c.out<float>(0), outer, length, inner);
  }

 private:
  std::size_t axis_;
  bool flattened_, log_;
};

template <bool Log>
std::unique_ptr<Kernel> make_softmax(LowerContext& c) {
  if (c.dtype(0) != DataType::float32) return c.refuse("not float32");
  if (c.shape(0) == nullptr || c.shape(0)->empty()) return c.refuse("rank unknown or 0");
  const auto attr = ops::parse<ops::SoftmaxAttrs>(c);
  const std::int64_t axis = attr.axis;
  const auto rank = static_cast<std::int64_t>(c.shape(0)->size());
  if (axis < -rank || axis >= rank) return c.refuse("axis is the rank: every element is a row");
  return std::make_unique<SoftmaxKernel>(static_cast<std::size_t>(axis < 0 ? axis + rank : axis), attr.flattened, Log);
}

}  // namespace

void register_kernels_softmax(KernelTable& t) {
  t.add("", "Softmax", "softmax-f32", 10, make_softmax<false>);
  t.add("", "LogSoftmax", "log-softmax-f32", 10, make_softmax<true>);
}

}  // namespace sdx::cpu
