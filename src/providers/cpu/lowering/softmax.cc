// Softmax, LogSoftmax and Hardmax in float32 and float64. ai.onnx 1 and 11 see the input as two axes, split at `axis`; 13
// normalises along one axis.

#include "kernels/cpu/rows/softmax.h"

#include <algorithm>

#include "kernels/cpu/order/reduce.h"
#include "kernels/cpu/rows/doubles.h"
#include "ops/reduce/signatures.h"
#include "ops/tensor/axes.h"
#include "providers/cpu/kernel_table.h"

namespace sdx::cpu {
namespace {

class SoftmaxKernel : public Kernel {
 public:
  SoftmaxKernel(bool wide, std::size_t axis, bool flattened, bool log)
      : wide_(wide), axis_(axis), flattened_(flattened), log_(log) {}
  std::string_view name() const override {
    if (wide_) return log_ ? "log-softmax-f64" : "softmax-f64";
    return log_ ? "log-softmax-f32" : "softmax-f32";
  }
  int in_place() const override { return 0; }
  void run(const KernelContext& c) const override {
    const Shape& x = c.input(0).shape();
    if (c.output(0).size() == 0) return;
    const std::size_t end = flattened_ ? x.size() : axis_ + 1;
    const std::int64_t outer = ops::product(x, 0, axis_);
    const std::int64_t length = ops::product(x, axis_, end);
    const std::int64_t inner = ops::product(x, end, x.size());
    if (wide_) return softmax_f64(c.in<double>(0), c.out<double>(0), outer, length, inner, log_);
    (log_ ? log_softmax_f32 : softmax_f32)(c.in<float>(0), c.out<float>(0), outer, length, inner);
  }

 private:
  bool wide_;  // float64
  std::size_t axis_;
  bool flattened_, log_;
};

// Writes 1 at the first largest element and 0 elsewhere.
class HardmaxKernel : public Kernel {
 public:
  HardmaxKernel(DataType type, std::size_t axis, bool flattened) : type_(type), axis_(axis), flattened_(flattened) {}
  std::string_view name() const override { return type_ == DataType::float64 ? "hardmax-f64" : "hardmax-f32"; }
  std::unique_ptr<KernelState> resolve(ResolveContext& c) const override {
    const Lanes e = lanes(c.input_shape(0));
    c.workspace_bytes = static_cast<std::size_t>(e.outer * e.inner) * sizeof(std::int64_t);
    return nullptr;
  }
  void run(const KernelContext& c) const override {
    const Lanes e = lanes(c.input(0).shape());
    if (c.output(0).size() == 0) return;
    auto* const places = static_cast<std::int64_t*>(c.workspace);
    arg_extreme(type_, true, false, c.input(0).data(), places, e);
    type_ == DataType::float64 ? set_ones<double>(c, e, places) : set_ones<float>(c, e, places);
  }

 private:
  Lanes lanes(const Shape& x) const {
    const std::size_t end = flattened_ ? x.size() : axis_ + 1;
    return {ops::product(x, 0, axis_), ops::product(x, axis_, end), ops::product(x, end, x.size())};
  }
  // Returns the largest element's place. NaN is the largest only if it is the first element.
  template <class T>
  static std::int64_t place_of(const T* lane, const Lanes& e, std::int64_t found) {
    if (lane[found * e.inner] == lane[found * e.inner]) return found;
    std::int64_t best = 0;
    for (std::int64_t k = 1; k < e.count; ++k) {
      if (lane[k * e.inner] > lane[best * e.inner]) best = k;
    }
    return best;
  }
  template <class T>
  static void set_ones(const KernelContext& c, const Lanes& e, const std::int64_t* places) {
    const T* x = c.in<T>(0);
    T* y = c.out<T>(0);
    std::fill_n(y, c.output(0).size(), T(0));
    for (std::int64_t l = 0; l < e.outer * e.inner; ++l) {
      const std::int64_t at = l / e.inner * e.count * e.inner + l % e.inner;
      y[at + place_of(x + at, e, places[l]) * e.inner] = T(1);
    }
  }

  DataType type_;
  std::size_t axis_;
  bool flattened_;
};

enum class Kind : std::uint8_t { softmax, log_softmax, hardmax };

template <Kind kKind>
std::unique_ptr<Kernel> make_softmax(LowerContext& c) {
  const DataType type = c.dtype(0);
  if (type != DataType::float32 && type != DataType::float64) return c.refuse("neither float32 nor float64");
  if (c.shape(0) == nullptr || c.shape(0)->empty()) return c.refuse("rank unknown or 0");
  const auto attr = ops::parse<ops::SoftmaxAttrs>(c);
  const auto rank = static_cast<std::int64_t>(c.shape(0)->size());
  if (attr.axis < -rank || attr.axis >= rank) return c.refuse("axis is the rank: every element is a row");
  const auto axis = static_cast<std::size_t>(attr.axis < 0 ? attr.axis + rank : attr.axis);
  if (kKind == Kind::hardmax) return std::make_unique<HardmaxKernel>(type, axis, attr.flattened);
  return std::make_unique<SoftmaxKernel>(type == DataType::float64, axis, attr.flattened, kKind == Kind::log_softmax);
}

}  // namespace

void register_kernels_softmax(KernelTable& t) {
  t.add("", "Softmax", "softmax-f32", 10, make_softmax<Kind::softmax>);
  t.add("", "LogSoftmax", "log-softmax-f32", 10, make_softmax<Kind::log_softmax>);
  t.add("", "Hardmax", "hardmax-f32", 10, make_softmax<Kind::hardmax>);
}

}  // namespace sdx::cpu
