// Normalisations in float32 and float64: layer, RMS, batch (inference), instance, group, local response, Lp and mean-variance
// normalisation, and com.microsoft's forms with a skip connection.

#include "kernels/cpu/rows/norm.h"

#include <cmath>
#include <type_traits>

#include "kernels/cpu/rows/doubles.h"
#include "ops/norm/signatures.h"
#include "ops/tensor/axes.h"
#include "providers/cpu/kernel_table.h"
#include "tensor/element.h"

namespace sdx::cpu {
namespace {

constexpr int kNone = -1;

template <class T>
inline constexpr bool is_double = std::is_same_v<T, double>;

// Returns the one of two functions that computes in T.
template <class T, class F, class D>
constexpr auto of_type(F for_float, D for_double) {
  if constexpr (is_double<T>) {
    return for_double;
  } else {
    return for_float;
  }
}

// Makes the kernel for the operand's type, or refuses.
template <template <class> class K, class... Args>
std::unique_ptr<Kernel> make_typed(LowerContext& c, Args&&... args) {
  if (c.dtype(0) == DataType::float32) return std::make_unique<K<float>>(std::forward<Args>(args)...);
  if (c.dtype(0) == DataType::float64) return std::make_unique<K<double>>(std::forward<Args>(args)...);
  return c.refuse("neither float32 nor float64");
}

// Where each operand of a row normalisation is among the inputs and outputs; kNone: the operator has none.
struct Slots {
  int skip = kNone, skip_bias = kNone, scale = 1, bias = kNone;
  int sum = kNone, mean = kNone, inv_std = kNone;
};

template <class T>
class LayerNormKernel : public Kernel {
 public:
  LayerNormKernel(Slots slots, std::size_t axis, float epsilon, bool rms)
      : slots_(slots), axis_(axis), epsilon_(epsilon), rms_(rms) {}
  std::string_view name() const override {
    if (is_double<T>) return rms_ ? "rms-norm-f64" : "layer-norm-f64";
    return rms_ ? "rms-norm-f32" : "layer-norm-f32";
  }
  void run(const KernelContext& c) const override {
    const Shape& x = c.input(0).shape();
    if (c.input(0).size() == 0) return;
    const std::int64_t rows = ops::product(x, 0, axis_);
    const std::int64_t n = ops::product(x, axis_, x.size());
    LayerNormArgsOf<T> a;
    a.x = c.in<T>(0);
    a.skip = operand(c, slots_.skip, rows * n);
    a.skip_bias = operand(c, slots_.skip_bias, n);
    a.scale = operand(c, slots_.scale, n);
    a.bias = operand(c, slots_.bias, n);
    a.epsilon = epsilon_;
    a.y = c.out<T>(0);
    a.sum_out = result(c, slots_.sum);
    a.mean_out = result(c, slots_.mean);
    a.inv_std_out = result(c, slots_.inv_std);
    a.rms = rms_;
    of_type<T>(layer_norm_f32, layer_norm_f64)(a, rows, n);
  }

 private:
  static const T* operand(const KernelContext& c, int slot, std::int64_t size) {
    if (slot == kNone || !c.has_input(static_cast<std::size_t>(slot))) return nullptr;
    const auto i = static_cast<std::size_t>(slot);
    if (c.input(i).size() != size) {
      fail(ErrorCode::runtime_failure, "input {} must have {} elements, received shape {}", slot, size,
           to_string(c.input(i).shape()));
    }
    return c.in<T>(i);
  }
  static T* result(const KernelContext& c, int slot) {
    if (slot == kNone || !c.has_output(static_cast<std::size_t>(slot))) return nullptr;
    return c.out<T>(static_cast<std::size_t>(slot));
  }

  Slots slots_;
  std::size_t axis_;
  float epsilon_;
  bool rms_;
};

bool is_of_type(const LowerContext& c, int slot) {
  return slot == kNone || !c.has_input(static_cast<std::size_t>(slot)) || c.dtype(static_cast<std::size_t>(slot)) == c.dtype(0);
}

// Tells whether input `slot` is left out or has exactly x's axes from `axis` on.
bool is_suffix(const LowerContext& c, int slot, std::size_t axis) {
  if (slot == kNone || !c.has_input(static_cast<std::size_t>(slot))) return true;
  const SymShape &x = *c.shape(0), *s = c.shape(static_cast<std::size_t>(slot));
  if (s == nullptr || s->size() != x.size() - axis) return false;
  for (std::size_t i = 0; i < s->size(); ++i) {
    if (!((*s)[i] == x[axis + i])) return false;
  }
  return true;
}

std::unique_ptr<Kernel> make_rows(LowerContext& c, const Slots& slots, std::int64_t axis, float epsilon, bool rms) {
  const SymShape* x = c.shape(0);
  if (x == nullptr || x->empty()) return c.refuse("rank unknown or 0");
  const auto first = static_cast<std::size_t>(ops::normalize_axis(axis, x->size()));
  for (const int slot : {slots.skip, slots.skip_bias, slots.scale, slots.bias}) {
    if (!is_of_type(c, slot)) return c.refuse("operands of several types");
  }
  for (const int slot : {slots.skip_bias, slots.scale, slots.bias}) {
    if (!is_suffix(c, slot, first)) return c.refuse("scale or bias does not have exactly the normalised axes");
  }
  if (!is_suffix(c, slots.skip, 0)) return c.refuse("skip is broadcast, or its shape is not known");
  for (const int slot : {slots.mean, slots.inv_std}) {
    if (c.dtype(0) != DataType::float64 || slot == kNone || !c.has_output(static_cast<std::size_t>(slot))) continue;
    if (c.output(static_cast<std::size_t>(slot)).elem != DataType::float64) return c.refuse("statistics are not float64");
  }
  return make_typed<LayerNormKernel>(c, slots, first, epsilon, rms);
}

template <bool Rms>
std::unique_ptr<Kernel> make_layer_norm(LowerContext& c) {
  const auto attr = ops::parse<ops::LayerNormAttrs>(c);
  Slots slots;
  if (!Rms) slots.bias = ops::LayerNormIn::kBias;
  slots.mean = Rms ? kNone : 1;
  slots.inv_std = Rms ? 1 : 2;
  if ((c.has_output(1) || c.has_output(2)) && attr.stash_type != static_cast<std::int64_t>(c.dtype(0))) {
    return c.refuse("statistics of another type");
  }
  return make_rows(c, slots, attr.axis, attr.epsilon, Rms);
}

template <bool Rms>
std::unique_ptr<Kernel> make_skip(LowerContext& c) {
  Slots slots;
  using In = ops::SkipNormIn;
  slots.skip = In::kSkip;
  slots.scale = In::kGamma;
  slots.bias = Rms ? kNone : static_cast<int>(In::kBeta);
  slots.skip_bias = Rms ? In::kSimplifiedBias : In::kBias;
  slots.sum = 3;
  slots.mean = Rms ? kNone : 1;
  slots.inv_std = 2;
  if (Rms && c.has_output(1)) return c.refuse("the mean is requested");
  const float epsilon = ops::parse<ops::SkipNormAttrs>(c).epsilon;
  if (!(epsilon >= 0)) return c.refuse("epsilon is negative");
  return make_rows(c, slots, -1, epsilon, Rms);
}

template <class T>
class AffineKernel : public Kernel {
 public:
  AffineKernel(const std::vector<double>& scale, const std::vector<double>& shift)
      : scale_(scale.begin(), scale.end()), shift_(shift.begin(), shift.end()) {}
  std::string_view name() const override { return is_double<T> ? "batch-norm-f64" : "batch-norm-f32"; }
  int in_place() const override { return 0; }
  bool uses_input(std::size_t i) const override { return i == 0; }
  void run(const KernelContext& c) const override {
    const Shape& x = c.input(0).shape();
    if (x.size() < 2 || x[1] != static_cast<std::int64_t>(scale_.size())) {
      fail(ErrorCode::runtime_failure, "X must have {} channels, received shape {}", scale_.size(), to_string(x));
    }
    if (c.input(0).size() == 0) return;
    const std::int64_t inner = ops::product(x, 2, x.size());
    if constexpr (is_double<T>) {
      channel_affine_f64(c.in<T>(0), scale_.data(), shift_.data(), c.out<T>(0), x[0], x[1], inner);
    } else {
      channel_affine_f32(c.in<T>(0), scale_.data(), shift_.data(), UnarySpec{}, c.out<T>(0), x[0], x[1], inner);
    }
  }

 private:
  std::vector<T> scale_, shift_;
};

std::unique_ptr<Kernel> make_batch_norm(LowerContext& c) {
  const auto attr = ops::parse<ops::BatchNormAttrs>(c);
  if (c.shape(0) == nullptr || c.shape(0)->size() < 2) return c.refuse("rank unknown or below 2");
  if (!attr.spatial) return c.refuse("statistics for each position");
  if (attr.training_mode) return c.refuse("training");
  for (std::size_t i = 1; i < 5; ++i) {
    if (c.has_output(i)) return c.refuse("statistics are requested");
  }
  const Tensor* p[4];
  for (std::size_t i = 0; i < 4; ++i) {
    p[i] = c.constant(i + 1);
    if (p[i] == nullptr || p[i]->rank() != 1 || p[i]->size() != p[0]->size())
      return c.refuse("parameters are not constant vectors");
  }
  const auto epsilon = static_cast<double>(attr.epsilon);
  std::vector<double> scale, shift;
  for (std::int64_t i = 0; i < p[0]->size(); ++i) {
    const double s = element_as_double(*p[0], i) / std::sqrt(element_as_double(*p[3], i) + epsilon);
    const double b = element_as_double(*p[1], i) - element_as_double(*p[2], i) * s;
    if (c.dtype(0) == DataType::float32 && !(std::fabs(s) <= 3e38 && std::fabs(b) <= 3e38))
      return c.refuse("scale or shift leaves float32's range");
    scale.push_back(s);
    shift.push_back(b);
  }
  return make_typed<AffineKernel>(c, scale, shift);
}

// Group normalisation; InstanceNormalization if groups is 0.
template <class T>
class GroupNormKernel : public Kernel {
 public:
  GroupNormKernel(std::int64_t groups, float epsilon) : groups_(groups), epsilon_(epsilon) {}
  std::string_view name() const override {
    if (is_double<T>) return groups_ == 0 ? "instance-norm-f64" : "group-norm-f64";
    return groups_ == 0 ? "instance-norm-f32" : "group-norm-f32";
  }
  void run(const KernelContext& c) const override {
    const Shape& x = c.input(0).shape();
    if (c.input(0).size() == 0) return;
    const std::int64_t groups = groups_ == 0 ? x[1] : groups_;
    if (x[1] % groups != 0 || c.input(1).size() != x[1] || c.input(2).size() != x[1]) {
      fail(ErrorCode::runtime_failure, "{} channels do not fit {} groups, scale {} and bias {}", x[1], groups,
           to_string(c.input(1).shape()), to_string(c.input(2).shape()));
    }
    of_type<T>(group_norm_f32, group_norm_f64)(c.in<T>(0), c.in<T>(1), c.in<T>(2), epsilon_, c.out<T>(0), x[0], x[1], groups,
                                               ops::product(x, 2, x.size()));
  }

 private:
  std::int64_t groups_;
  float epsilon_;
};

template <bool Groups>
std::unique_ptr<Kernel> make_group_norm(LowerContext& c) {
  for (std::size_t i = 1; i < 3; ++i) {
    if (c.dtype(i) != c.dtype(0)) return c.refuse("operands of several types");
  }
  if (c.shape(0) == nullptr || c.shape(0)->size() < 2) return c.refuse("rank unknown or below 2");
  if (Groups && c.node().version < 21) return c.refuse("scale and bias for each group (opset 18)");
  const auto attr = ops::parse<ops::GroupNormAttrs>(c);
  const std::int64_t groups = Groups ? attr.num_groups : 0;
  if (Groups && groups < 1) return c.refuse("num_groups is not positive");
  return make_typed<GroupNormKernel>(c, groups, attr.epsilon);
}

class LrnKernel : public Kernel {
 public:
  explicit LrnKernel(const ops::LrnAttrs& attr) : attr_(attr) {}
  std::string_view name() const override { return "lrn-f32"; }
  void run(const KernelContext& c) const override {
    const Shape& x = c.input(0).shape();
    if (c.input(0).size() == 0) return;
    lrn_f32(c.in<float>(0), c.out<float>(0), x[0], x[1], ops::product(x, 2, x.size()), attr_.size, attr_.alpha, attr_.beta,
            attr_.bias);
  }

 private:
  ops::LrnAttrs attr_;
};

std::unique_ptr<Kernel> make_lrn(LowerContext& c) {
  if (c.dtype(0) != DataType::float32) return c.refuse("not float32");
  if (c.shape(0) == nullptr || c.shape(0)->size() < 2) return c.refuse("rank unknown or below 2");
  const auto attr = ops::parse<ops::LrnAttrs>(c);
  if (attr.size < 1 || attr.size > 4096) return c.refuse("window is empty or above 4096 channels");
  return std::make_unique<LrnKernel>(attr);
}

template <class T>
class LpNormKernel : public Kernel {
 public:
  LpNormKernel(std::size_t axis, bool squares) : axis_(axis), squares_(squares) {}
  std::string_view name() const override { return is_double<T> ? "lp-norm-f64" : "lp-norm-f32"; }
  void run(const KernelContext& c) const override {
    const Shape& x = c.input(0).shape();
    if (c.input(0).size() == 0) return;
    of_type<T>(lp_norm_f32, lp_norm_f64)(c.in<T>(0), c.out<T>(0), ops::product(x, 0, axis_), x[axis_],
                                         ops::product(x, axis_ + 1, x.size()), squares_);
  }

 private:
  std::size_t axis_;
  bool squares_;
};

std::unique_ptr<Kernel> make_lp_norm(LowerContext& c) {
  if (c.shape(0) == nullptr || c.shape(0)->empty()) return c.refuse("rank unknown or 0");
  const auto attr = ops::parse<ops::LpNormalizationAttrs>(c);
  const std::int64_t p = attr.p;
  if (p != 1 && p != 2) return c.refuse("p is neither 1 nor 2");
  const std::int64_t axis = ops::normalize_axis(attr.axis, c.shape(0)->size());
  return make_typed<LpNormKernel>(c, static_cast<std::size_t>(axis), p == 2);
}

// A tensor as [outer, groups, inner] with statistics over outer and inner; groups is 0 if it has no such form.
struct Grouped : KernelState {
  std::int64_t outer = 1, groups = 1, inner = 1;
};

template <class T>
class MeanVarianceKernel : public Kernel {
 public:
  MeanVarianceKernel(const Node& node, std::vector<bool> reduced)
      : reference_(make_reference(node)), reduced_(std::move(reduced)) {}
  std::string_view name() const override { return is_double<T> ? "mean-variance-norm-f64" : "mean-variance-norm-f32"; }
  std::unique_ptr<KernelState> resolve(ResolveContext& c) const override {
    auto state = std::make_unique<Grouped>();
    const Shape x = c.input_shape(0);
    std::size_t begin = 0, end = x.size();
    while (end > 0 && (reduced_[end - 1] || x[end - 1] == 1)) --end;
    while (begin < end && (reduced_[begin] || x[begin] == 1)) ++begin;
    bool between = false;
    for (std::size_t i = begin; i < end; ++i) between = between || (reduced_[i] && x[i] != 1);
    state->outer = ops::product(x, 0, begin);
    state->groups = ops::product(x, begin, end);
    state->inner = ops::product(x, end, x.size());
    // The reference kernel handles rows of a few elements that lie far apart.
    if (between || (state->outer > 1 && state->inner < 16)) state->groups = 0;
    return state;
  }
  void run(const KernelContext& c) const override {
    const auto& s = *static_cast<const Grouped*>(c.state);
    if (s.groups == 0) return reference_->run(c);
    of_type<T>(mean_variance_norm_f32, mean_variance_norm_f64)(c.in<T>(0), c.out<T>(0), s.outer, s.groups, s.inner);
  }

 private:
  std::unique_ptr<Kernel> reference_;
  std::vector<bool> reduced_;
};

std::unique_ptr<Kernel> make_mean_variance(LowerContext& c) {
  const auto attr = ops::parse<ops::MeanVarianceAttrs>(c);
  if (c.shape(0) == nullptr || c.shape(0)->empty()) return c.refuse("rank unknown or 0");
  std::vector<bool> reduced(c.shape(0)->size(), false);
  for (const std::int64_t axis : attr.of_rank(reduced.size())) {
    reduced[static_cast<std::size_t>(axis)] = true;
  }
  return make_typed<MeanVarianceKernel>(c, c.node(), std::move(reduced));
}

}  // namespace

void register_kernels_norm(KernelTable& t) {
  for (const char* domain : {"", "com.microsoft"}) {
    t.add(domain, "LayerNormalization", "layer-norm-f32", 10, make_layer_norm<false>);
    t.add(domain, "SimplifiedLayerNormalization", "rms-norm-f32", 10, make_layer_norm<true>);
  }
  t.add("", "RMSNormalization", "rms-norm-f32", 10, make_layer_norm<true>);
  t.add("com.microsoft", "SkipLayerNormalization", "layer-norm-f32", 10, make_skip<false>);
  t.add("com.microsoft", "SkipSimplifiedLayerNormalization", "rms-norm-f32", 10, make_skip<true>);
  t.add("", "BatchNormalization", "batch-norm-f32", 10, make_batch_norm);
  t.add("", "InstanceNormalization", "instance-norm-f32", 10, make_group_norm<false>);
  t.add("", "GroupNormalization", "group-norm-f32", 10, make_group_norm<true>);
  t.add("", "LRN", "lrn-f32", 10, make_lrn);
  t.add("", "LpNormalization", "lp-norm-f32", 10, make_lp_norm);
  t.add("", "MeanVarianceNormalization", "mean-variance-norm-f32", 10, make_mean_variance);
}

}  // namespace sdx::cpu
