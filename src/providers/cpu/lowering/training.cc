// Gradients of ONNX Runtime's training graphs in float32: activations, Dropout, softmax, Gather; layer normalisation in float64,
// too.

#include <algorithm>
#include <type_traits>

#include "kernels/cpu/elementwise/slopes.h"
#include "kernels/cpu/rows/norm_grad.h"
#include "kernels/cpu/rows/scatter_rows.h"
#include "kernels/cpu/rows/softmax_grad.h"
#include "ops/tensor/axes.h"
#include "ops/tensor/gather_index.h"
#include "ops/tensor/signatures.h"
#include "ops/training/ort/signatures.h"
#include "providers/cpu/kernel_table.h"
#include "tensor/element.h"

namespace sdx::cpu {
namespace {

// Checks in each run that inputs 0 and 1 have one shape.
void check_same_shape(const ResolveContext& c) {
  if (c.input_shape(0) == c.input_shape(1)) return;
  fail(ErrorCode::runtime_failure, "inputs 0 and 1 must have one shape; received {} and {}", to_string(c.input_shape(0)),
       to_string(c.input_shape(1)));
}

bool all_of(LowerContext& c, std::size_t count, DataType type, const char* otherwise) {
  for (std::size_t i = 0; i < count; ++i) {
    if (c.has_input(i) && c.dtype(i) != type) return c.refuse(otherwise), false;
  }
  return true;
}
bool all_f32(LowerContext& c, std::size_t count) { return all_of(c, count, DataType::float32, "not float32"); }

// --- activations --------------------------------------------------------------------------------------------------------

class SlopeKernel : public Kernel {
 public:
  SlopeKernel(Slope op, float alpha) : op_(op), alpha_(alpha) {}
  std::string_view name() const override { return "slope-f32"; }
  int in_place() const override { return 0; }
  std::unique_ptr<KernelState> resolve(ResolveContext& c) const override { return check_same_shape(c), nullptr; }
  void run(const KernelContext& c) const override {
    slope_f32(op_, alpha_, c.in<float>(0), c.in<float>(1), c.out<float>(0), c.output(0).size());
  }

 private:
  Slope op_;
  float alpha_;
};

template <Slope op>
std::unique_ptr<Kernel> make_slope(LowerContext& c) {
  if (!all_f32(c, 2)) return nullptr;
  constexpr bool alpha = op == Slope::leaky_relu || op == Slope::quick_gelu;
  return std::make_unique<SlopeKernel>(op, alpha ? ops::parse<ops::SlopeAttrs>(c).alpha : 0.0F);
}

class DropoutGradKernel : public Kernel {
 public:
  std::string_view name() const override { return "dropout-grad-f32"; }
  int in_place() const override { return 0; }
  std::unique_ptr<KernelState> resolve(ResolveContext& c) const override { return check_same_shape(c), nullptr; }
  void run(const KernelContext& c) const override {
    const double ratio = single(c, 2, 0.5);
    if (!(ratio >= 0 && ratio < 1)) {
      fail(ErrorCode::runtime_failure, "the ratio is {}; permitted: 0 up to but not including 1", ratio);
    }
    const std::int64_t n = c.output(0).size();
    const float* dy = c.in<float>(0);
    if (ratio == 0 || single(c, 3, 1) == 0) {
      if (n != 0 && dy != c.out<float>(0)) std::copy_n(dy, n, c.out<float>(0));
      return;
    }
    masked_f32(dy, static_cast<const std::uint8_t*>(c.input(1).data()), static_cast<float>(1 / (1 - ratio)), c.out<float>(0), n);
  }

 private:
  static double single(const KernelContext& c, std::size_t i, double otherwise) {
    if (!c.has_input(i)) return otherwise;
    if (c.input(i).size() != 1) {
      fail(ErrorCode::runtime_failure, "input {} must be one value, received {}", i, c.input(i).type_string());
    }
    return element_as_double(c.input(i), 0);
  }
};

std::unique_ptr<Kernel> make_dropout_grad(LowerContext& c) {
  if (c.dtype(0) != DataType::float32) return c.refuse("not float32");
  return std::make_unique<DropoutGradKernel>();
}

// --- softmax ------------------------------------------------------------------------------------------------------------

class SoftmaxGradKernel : public Kernel {
 public:
  SoftmaxGradKernel(std::size_t axis, bool flattened, bool log) : axis_(axis), flattened_(flattened), log_(log) {}
  std::string_view name() const override { return "softmax-grad-f32"; }
  int in_place() const override { return 0; }
  std::unique_ptr<KernelState> resolve(ResolveContext& c) const override { return check_same_shape(c), nullptr; }
  void run(const KernelContext& c) const override {
    const Shape& x = c.input(0).shape();
    const std::size_t end = flattened_ ? x.size() : axis_ + 1;
    softmax_grad_f32(c.in<float>(0), c.in<float>(1), c.out<float>(0), ops::product(x, 0, axis_), ops::product(x, axis_, end),
                     ops::product(x, end, x.size()), log_);
  }

 private:
  std::size_t axis_;
  bool flattened_, log_;
};

template <bool log>
std::unique_ptr<Kernel> make_softmax_grad(LowerContext& c) {
  if (!all_f32(c, 2)) return nullptr;
  if (c.shape(0) == nullptr || c.shape(0)->empty()) return c.refuse("rank unknown or 0");
  const auto attr = ops::parse<ops::SoftmaxGradAttrs>(c);
  const auto rank = static_cast<std::int64_t>(c.shape(0)->size());
  if (attr.axis < -rank || attr.axis >= rank) return c.refuse("axis outside the rank");
  return std::make_unique<SoftmaxGradKernel>(static_cast<std::size_t>(ops::normalize_axis(attr.axis, c.shape(0)->size())),
                                             attr.flattened, log);
}

// --- layer normalisation ------------------------------------------------------------------------------------------------

template <class T>
class LayerNormGradKernel : public Kernel {
 public:
  LayerNormGradKernel(std::size_t axis, bool rms) : axis_(axis), rms_(rms) {}
  std::string_view name() const override {
    if (std::is_same_v<T, double>) return rms_ ? "rms-norm-grad-f64" : "layer-norm-grad-f64";
    return rms_ ? "rms-norm-grad-f32" : "layer-norm-grad-f32";
  }
  int in_place() const override { return 0; }

  std::unique_ptr<KernelState> resolve(ResolveContext& c) const override {
    check_same_shape(c);
    const Shape x = c.input_shape(1);
    const std::int64_t rows = ops::product(x, 0, axis_), n = ops::product(x, axis_, x.size());
    const auto expect = [&](std::size_t i, std::int64_t size) {
      if (element_count(c.input_shape(i)) == size) return;
      fail(ErrorCode::runtime_failure, "input {} must have {} elements for X {}, received shape {}", i, size, to_string(x),
           to_string(c.input_shape(i)));
    };
    expect(kScale, n);
    if (!rms_) expect(kMean, rows);
    expect(inverse(), rows);
    c.workspace_bytes = layer_norm_grad_bytes(rows, n, sizeof(T));
    return nullptr;
  }

  void run(const KernelContext& c) const override {
    const Shape& x = c.input(kX).shape();
    LayerNormGradArgs<T> a;
    a.dy = c.in<T>(kDy), a.x = c.in<T>(kX), a.scale = c.in<T>(kScale);
    a.mean = rms_ ? nullptr : c.in<T>(kMean);
    a.inverse = c.in<T>(inverse());
    a.dx = c.out<T>(0);
    a.dscale = c.has_output(1) ? c.out<T>(1) : nullptr;
    a.dbias = c.has_output(2) ? c.out<T>(2) : nullptr;
    layer_norm_grad(a, ops::product(x, 0, axis_), ops::product(x, axis_, x.size()), c.workspace);
  }

 private:
  enum Slot : std::size_t {
    kDy = ops::LayerNormGradIn::kDy,
    kX = ops::LayerNormGradIn::kX,
    kScale = ops::LayerNormGradIn::kScale,
    kMean = ops::LayerNormGradIn::kMean
  };
  std::size_t inverse() const {
    return rms_ ? std::size_t{ops::LayerNormGradIn::kSimplifiedInverse} : std::size_t{ops::LayerNormGradIn::kInverse};
  }

  std::size_t axis_;
  bool rms_;
};

template <class T, bool rms>
std::unique_ptr<Kernel> make_layer_norm_grad(LowerContext& c) {
  constexpr bool wide = std::is_same_v<T, double>;
  if (!all_of(c, rms ? 4 : 5, wide ? DataType::float64 : DataType::float32, wide ? "not float64" : "not float32")) return nullptr;
  if (!c.has_output(0)) return c.refuse("no gradient of X");
  const SymShape* x = c.shape(ops::LayerNormGradIn::kX);
  if (x == nullptr) return c.refuse("rank unknown");
  const auto axis = static_cast<std::size_t>(ops::normalize_axis(ops::parse<ops::NormGradAttrs>(c).axis, x->size()));
  return std::make_unique<LayerNormGradKernel<T>>(axis, rms);
}

// --- Gather -------------------------------------------------------------------------------------------------------------

class GatherGradKernel : public Kernel {
 public:
  explicit GatherGradKernel(std::size_t axis) : axis_(axis) {}
  std::string_view name() const override { return "gather-grad-f32"; }

  std::unique_ptr<KernelState> resolve(ResolveContext& c) const override {
    const Shape table = c.output_shape(0), picked = c.input_shape(kIndices);
    Shape expected(table.begin(), table.begin() + static_cast<std::ptrdiff_t>(axis_));
    expected.insert(expected.end(), picked.begin(), picked.end());
    expected.insert(expected.end(), table.begin() + static_cast<std::ptrdiff_t>(axis_) + 1, table.end());
    if (c.input_shape(kDy) != expected) {
      fail(ErrorCode::runtime_failure, "the gradient must have shape {}, received {}", to_string(expected),
           to_string(c.input_shape(kDy)));
    }
    c.workspace_bytes = static_cast<std::size_t>(element_count(picked)) * sizeof(std::int64_t);
    return nullptr;
  }

  void run(const KernelContext& c) const override {
    const Shape& table = c.output(0).shape();
    const Tensor& indices = c.input(kIndices);
    auto* const places = static_cast<std::int64_t*>(c.workspace);
    ops::dispatch_index(indices, [&](const auto* at) {
      for (std::int64_t i = 0; i < indices.size(); ++i) places[i] = ops::checked_index(at[i], table[axis_]);
    });
    scatter_rows_f32(c.in<float>(kDy), places, ops::product(table, 0, axis_), table[axis_], indices.size(),
                     ops::product(table, axis_ + 1, table.size()), c.out<float>(0));
  }

 private:
  enum Slot : std::size_t { kIndices = ops::GatherGradIn::kIndices, kDy = ops::GatherGradIn::kDy };

  std::size_t axis_;
};

std::unique_ptr<Kernel> make_gather_grad(LowerContext& c) {
  if (c.dtype(ops::GatherGradIn::kDy) != DataType::float32) return c.refuse("not float32");
  const Type& out = c.output(0);
  if (!out.shape || out.shape->empty()) return c.refuse("the table's rank is not known");
  const auto attr = ops::parse<ops::GatherAttrs>(c);
  return std::make_unique<GatherGradKernel>(static_cast<std::size_t>(ops::normalize_axis(attr.axis, out.shape->size())));
}

}  // namespace

void register_kernels_training(KernelTable& t) {
  const auto add = [&](const char* op, const char* name, MakeKernel make) { t.add("com.microsoft", op, name, 10, make); };
  add("LeakyReluGrad", "slope-f32", make_slope<Slope::leaky_relu>);
  add("SigmoidGrad", "slope-f32", make_slope<Slope::sigmoid>);
  add("TanhGrad", "slope-f32", make_slope<Slope::tanh>);
  add("GeluGrad", "slope-f32", make_slope<Slope::gelu>);
  add("FastGeluGrad", "slope-f32", make_slope<Slope::gelu_tanh>);
  add("QuickGeluGrad", "slope-f32", make_slope<Slope::quick_gelu>);
  add("DropoutGrad", "dropout-grad-f32", make_dropout_grad);
  for (const char* op : {"SoftmaxGrad", "SoftmaxGrad_13"}) add(op, "softmax-grad-f32", make_softmax_grad<false>);
  for (const char* op : {"LogSoftmaxGrad", "LogSoftmaxGrad_13"}) add(op, "softmax-grad-f32", make_softmax_grad<true>);
  add("LayerNormalizationGrad", "layer-norm-grad-f32", make_layer_norm_grad<float, false>);
  add("LayerNormalizationGrad", "layer-norm-grad-f64", make_layer_norm_grad<double, false>);
  add("SimplifiedLayerNormalizationGrad", "rms-norm-grad-f32", make_layer_norm_grad<float, true>);
  add("SimplifiedLayerNormalizationGrad", "rms-norm-grad-f64", make_layer_norm_grad<double, true>);
  add("GatherGrad", "gather-grad-f32", make_gather_grad);
}

}  // namespace sdx::cpu
