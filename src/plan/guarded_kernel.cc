#include "plan/guarded_kernel.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace sdx::plan {
namespace {

template <class T, class F>
bool any_of(const Tensor& t, F&& is_nan) {
  const auto values = t.values<T>();
  return std::any_of(values.begin(), values.end(), is_nan);
}

bool fits(const Type& promised, const Value& value) {
  if (promised.kind == Type::Kind::optional) return true;
  if (promised.kind != Type::Kind::tensor) return !value.empty() && !value.is_tensor();
  if (!value.is_tensor()) return false;
  const Tensor& t = value.tensor();
  if (promised.elem != DataType::undefined && t.dtype() != promised.elem) return false;
  if (!promised.shape) return true;
  if (t.rank() != promised.shape->size()) return false;
  for (std::size_t i = 0; i < t.rank(); ++i) {
    const Dim& d = (*promised.shape)[i];
    if (d.is_const() && d.value() != t.shape()[i]) return false;
  }
  return true;
}

class GuardedKernel : public Kernel {
 public:
  GuardedKernel(std::unique_ptr<Kernel> kernel, const Graph& region, std::string provider,
                std::shared_ptr<const std::atomic<bool>> reject_nan)
      : kernel_(std::move(kernel)), provider_(std::move(provider)), reject_nan_(std::move(reject_nan)) {
    for (const ValueId v : region.outputs()) {
      promised_.push_back(region.value(v).type);
      names_.push_back(region.value(v).name);
    }
  }

  std::string_view name() const override { return kernel_->name(); }
  int view_of() const override { return kernel_->view_of(); }
  int in_place() const override { return kernel_->in_place(); }
  int joins_along() const override { return kernel_->joins_along(); }
  std::int64_t begins_at(const ResolveContext& c, std::size_t output) const override { return kernel_->begins_at(c, output); }
  bool uses_input(std::size_t i) const override { return kernel_->uses_input(i); }
  bool accepts_unaligned(std::size_t i) const override { return kernel_->accepts_unaligned(i); }
  bool allocates_outputs() const override { return kernel_->allocates_outputs(); }
  bool keeps_output(std::size_t i) const override { return kernel_->keeps_output(i); }
  std::unique_ptr<KernelState> resolve(ResolveContext& context) const override { return kernel_->resolve(context); }

  void run(const KernelContext& context) const override {
    kernel_->run(context);
    for (std::size_t i = 0; i < promised_.size(); ++i) {
      if (context.outputs[i] == nullptr || !promised_[i].known()) continue;
      if (!fits(promised_[i], *context.outputs[i])) {
        fail(ErrorCode::runtime_failure, "{} returned {} for '{}', which must be {}", provider_,
             context.outputs[i]->type_string(), names_[i], promised_[i].str());
      }
    }
    if (reject_nan_ && reject_nan_->load(std::memory_order_relaxed)) check_nan(context);
  }

 private:
  void check_nan(const KernelContext& context) const {
    for (std::size_t i = 0; i < names_.size(); ++i) {
      if (context.outputs[i] == nullptr || !has_nan(*context.outputs[i])) continue;
      const auto nan = [](const Value* v) { return v != nullptr && has_nan(*v); };
      if (std::any_of(context.inputs.begin(), context.inputs.end(), nan)) return;
      fail(ErrorCode::runtime_failure, "{} returned NaN in '{}'", provider_, names_[i]);
    }
  }

  std::unique_ptr<Kernel> kernel_;
  std::string provider_;
  std::shared_ptr<const std::atomic<bool>> reject_nan_;
  std::vector<Type> promised_;
  std::vector<std::string> names_;
};

}  // namespace

bool has_nan(const Value& value) {
  if (!value.is_tensor()) return false;
  const Tensor& t = value.tensor();
  // Half precision: exponent all ones, mantissa not zero (IEEE 754; bfloat16 has 8 exponent bits).
  const auto half = [](std::uint16_t x) { return (x & 0x7FFF) > 0x7C00; };
  const auto brain = [](std::uint16_t x) { return (x & 0x7FFF) > 0x7F80; };
  const auto bits = [&](auto is_nan) {
    const auto* at = static_cast<const std::uint16_t*>(t.data());
    return std::any_of(at, at + t.size(), is_nan);
  };
  switch (t.dtype()) {
    case DataType::float32: return any_of<float>(t, [](float x) { return std::isnan(x); });
    case DataType::float64: return any_of<double>(t, [](double x) { return std::isnan(x); });
    case DataType::float16: return bits(half);
    case DataType::bfloat16: return bits(brain);
    default: return false;
  }
}

std::unique_ptr<Kernel> guard_results(std::unique_ptr<Kernel> kernel, const Graph& region, std::string provider,
                                      std::shared_ptr<const std::atomic<bool>> reject_nan) {
  return std::make_unique<GuardedKernel>(std::move(kernel), region, std::move(provider), std::move(reject_nan));
}

}  // namespace sdx::plan
