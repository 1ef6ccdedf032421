// Fourier transforms. One over several axes is a sequence of transforms over single axes.

#include <sdx/array/fft.hpp>

#include <algorithm>
#include <numeric>

#include <sdx/array.hpp>

#include "array/array_op.h"
#include "array/fft/transform.h"
#include "array/ops/common.h"
#include "array/transforms/tape.h"

namespace sdx::array {
namespace detail {
namespace {

// transform.h says what params.ints of both kinds hold.
void emit_fourier(Emitter& e) { e.results<run_fourier>("Fourier", e.inputs(), {{"ints", e.params().ints}}); }

struct Step {
  Fourier what = Fourier::complex;
  std::int64_t n = 0;
  int axis = 0;
  bool up = false;
  FourierNorm norm = FourierNorm::none;
};

array apply(const Step& step, const array& a, Dtype dtype, std::int64_t extent, const StreamOrDevice& s);

bool wide(Dtype t) { return t == Dtype::float64 || t == Dtype::complex128; }
Dtype complex_of(Dtype t) { return wide(t) ? Dtype::complex128 : Dtype::complex64; }
Dtype real_of(Dtype t) { return wide(t) ? Dtype::float64 : Dtype::float32; }

Step step_of(const Params& p) {
  return {static_cast<Fourier>(p.ints[0]), p.ints[1], static_cast<int>(p.ints[2]), p.ints[3] != 0,
          static_cast<FourierNorm>(p.ints[4])};
}

// The gradient is the adjoint transform: it fills with zeros what the transform cuts, and cuts what the transform fills.
std::vector<array> fourier_vjp(const VjpCall& c) {
  Step step = step_of(c.params);
  const array& input = c.inputs[0];
  switch (step.what) {
    case Fourier::complex: step.up = !step.up; break;
    case Fourier::half: step.what = Fourier::real_of_complex; break;
    case Fourier::half_doubled: step.what = Fourier::whole; break;
    case Fourier::whole: step.what = Fourier::half_doubled; break;
    case Fourier::real_of_complex: step.what = Fourier::half; break;
  }
  if (step.what == Fourier::real_of_complex) step.up = true;
  return {apply(step, c.of_outputs[0], input.dtype(), input.shape()[static_cast<std::size_t>(step.axis)], {})};
}

VmapResult fourier_vmap(const VmapCall& c) {
  Step step = step_of(c.params);
  ++step.axis;
  return {{apply(step, moveaxis(c.inputs[0], c.in_axes[0], 0), static_cast<Dtype>(c.params.ints[5]), c.params.ints[6], {})}, {0}};
}

const Kind kFourier{.name = "fft", .emit = emit_fourier, .vjp = fourier_vjp, .vmap = fourier_vmap};

array apply(const Step& step, const array& a, Dtype dtype, std::int64_t extent, const StreamOrDevice& s) {
  Shape shape = a.shape();
  shape[static_cast<std::size_t>(step.axis)] = extent;
  Params params;
  params.ints = {static_cast<std::int64_t>(step.what), step.n, step.axis, step.up ? 1 : 0, static_cast<std::int64_t>(step.norm),
                 static_cast<std::int64_t>(dtype),     extent};
  return make(kFourier, dtype, std::move(shape), {a}, std::move(params), s);
}

FourierNorm norm_of(const char* name, const std::string& norm, bool inverse) {
  if (norm == "ortho") return FourierNorm::by_root;
  if (norm != "backward" && norm != "forward") {
    refuse(name, "norm must be \"backward\", \"ortho\" or \"forward\", received \"{}\"", norm);
  }
  return (norm == "backward") == inverse ? FourierNorm::by_length : FourierNorm::none;
}

// The axes of a transform and the number of points along each.
struct Plan {
  std::vector<int> axes;
  std::vector<std::int64_t> points;
};

// With `real_result`, the last axis of the input holds half of the numbers.
Plan plan_of(const char* name, const array& a, const fft::OptionalShape& shape, const fft::OptionalAxes& given,
             bool real_result) {
  Plan plan;
  const auto rank = static_cast<int>(a.shape().size());
  if (given) {
    for (const int axis : *given) plan.axes.push_back(axis_of(name, axis, a.shape().size()));
  } else {
    const int count = shape ? static_cast<int>(shape->size()) : rank;
    if (count > rank) refuse(name, "{} axes of an array of shape {}", count, to_string(a.shape()));
    for (int i = rank - count; i < rank; ++i) plan.axes.push_back(i);
  }
  if (plan.axes.empty()) refuse(name, "an array of shape {} has no axis to transform", to_string(a.shape()));
  std::vector<int> sorted = plan.axes;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) refuse(name, "an axis is given twice");
  if (shape && shape->size() != plan.axes.size()) {
    refuse(name, "numbers of points {} for {} axes", to_string(*shape), plan.axes.size());
  }
  for (std::size_t i = 0; i < plan.axes.size(); ++i) {
    const std::int64_t extent = a.shape()[static_cast<std::size_t>(plan.axes[i])];
    const bool half = real_result && i + 1 == plan.axes.size();
    plan.points.push_back(shape ? (*shape)[i] : half ? 2 * (extent - 1) : extent);
    if (plan.points.back() <= 0) refuse(name, "a transform of {} points along axis {}", plan.points.back(), plan.axes[i]);
  }
  return plan;
}

enum class Which { complex, inverse, real, inverse_real };

array transformed(const char* name, Which which, const array& a, const fft::OptionalShape& shape, const fft::OptionalAxes& axes,
                  const std::string& norm, const StreamOrDevice& s) {
  const bool inverse = which == Which::inverse || which == Which::inverse_real;
  const Plan plan = plan_of(name, a, shape, axes, which == Which::inverse_real);
  const FourierNorm by = norm_of(name, norm, inverse);
  const Dtype whole = complex_of(a.dtype()), real = real_of(a.dtype());
  if (which == Which::real && is_complex(a.dtype())) refuse(name, "expected real numbers, received {}", sdx::name(a.dtype()));
  array x = as_type(a, which == Which::real ? real : whole, s);
  std::size_t left = plan.axes.size();
  const std::size_t last = left - 1;
  if (which == Which::real) {
    x = apply({Fourier::half, plan.points[last], plan.axes[last], false, by}, x, whole, plan.points[last] / 2 + 1, s);
    --left;
  }
  for (std::size_t i = which == Which::inverse_real ? last : left; i-- > 0;) {
    x = apply({Fourier::complex, plan.points[i], plan.axes[i], inverse, by}, x, whole, plan.points[i], s);
  }
  if (which != Which::inverse_real) return x;
  return apply({Fourier::whole, plan.points[last], plan.axes[last], true, by}, x, real, plan.points[last], s);
}

array along_one(const char* name, Which which, const array& a, fft::Points n, int axis, const std::string& norm,
                const StreamOrDevice& s) {
  return transformed(name, which, a, n ? fft::OptionalShape(Shape{*n}) : std::nullopt, std::vector<int>{axis}, norm, s);
}

// Exchanges the two halves of each axis, as fftshift() does; `back` undoes it.
array turned(const char* name, const array& a, const fft::OptionalAxes& given, bool back, const StreamOrDevice& s) {
  fft::OptionalAxes axes = given;
  if (!axes) {
    axes.emplace(a.shape().size());
    std::iota(axes->begin(), axes->end(), 0);
  }
  Shape shift;
  for (const int axis : *axes) {
    const std::int64_t extent = a.shape()[static_cast<std::size_t>(axis_of(name, axis, a.shape().size()))];
    shift.push_back(back ? -(extent / 2) : extent / 2);
  }
  return axes->empty() ? a : roll(a, shift, axes, s);
}

}  // namespace
}  // namespace detail

namespace fft {

using detail::along_one;
using detail::transformed;
using detail::Which;

array fft(const array& a, Points n, int axis, const std::string& norm, StreamOrDevice s) {
  return along_one("fft", Which::complex, a, n, axis, norm, s);
}
array ifft(const array& a, Points n, int axis, const std::string& norm, StreamOrDevice s) {
  return along_one("ifft", Which::inverse, a, n, axis, norm, s);
}
array rfft(const array& a, Points n, int axis, const std::string& norm, StreamOrDevice s) {
  return along_one("rfft", Which::real, a, n, axis, norm, s);
}
array irfft(const array& a, Points n, int axis, const std::string& norm, StreamOrDevice s) {
  return along_one("irfft", Which::inverse_real, a, n, axis, norm, s);
}
array fftn(const array& a, const OptionalShape& shape, const OptionalAxes& axes, const std::string& norm, StreamOrDevice s) {
  return transformed("fftn", Which::complex, a, shape, axes, norm, s);
}
array ifftn(const array& a, const OptionalShape& shape, const OptionalAxes& axes, const std::string& norm, StreamOrDevice s) {
  return transformed("ifftn", Which::inverse, a, shape, axes, norm, s);
}
array rfftn(const array& a, const OptionalShape& shape, const OptionalAxes& axes, const std::string& norm, StreamOrDevice s) {
  return transformed("rfftn", Which::real, a, shape, axes, norm, s);
}
array irfftn(const array& a, const OptionalShape& shape, const OptionalAxes& axes, const std::string& norm, StreamOrDevice s) {
  return transformed("irfftn", Which::inverse_real, a, shape, axes, norm, s);
}
array fft2(const array& a, const OptionalShape& shape, const std::vector<int>& axes, const std::string& norm, StreamOrDevice s) {
  return transformed("fft2", Which::complex, a, shape, axes, norm, s);
}
array ifft2(const array& a, const OptionalShape& shape, const std::vector<int>& axes, const std::string& norm, StreamOrDevice s) {
  return transformed("ifft2", Which::inverse, a, shape, axes, norm, s);
}
array rfft2(const array& a, const OptionalShape& shape, const std::vector<int>& axes, const std::string& norm, StreamOrDevice s) {
  return transformed("rfft2", Which::real, a, shape, axes, norm, s);
}
array irfft2(const array& a, const OptionalShape& shape, const std::vector<int>& axes, const std::string& norm,
             StreamOrDevice s) {
  return transformed("irfft2", Which::inverse_real, a, shape, axes, norm, s);
}

namespace {

array frequencies(const char* name, std::int64_t n, std::int64_t count, double d) {
  if (n <= 0) detail::refuse(name, "{} points", n);
  Tensor values(Dtype::float32, {count});
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t k = count == n && i > (n - 1) / 2 ? i - n : i;
    values.mutable_values<float>()[static_cast<std::size_t>(i)] =
        static_cast<float>(static_cast<double>(k) / (static_cast<double>(n) * d));
  }
  return array(std::move(values));
}

}  // namespace

array fftfreq(std::int64_t n, double d, StreamOrDevice) { return frequencies("fftfreq", n, n, d); }
array rfftfreq(std::int64_t n, double d, StreamOrDevice) {
  if (n == 1) return array(Tensor::of<float>({1}, {0.0F}));
  return frequencies("rfftfreq", n, n / 2 + 1, d);
}

array fftshift(const array& a, const OptionalAxes& axes, StreamOrDevice s) {
  return detail::turned("fftshift", a, axes, false, s);
}
array ifftshift(const array& a, const OptionalAxes& axes, StreamOrDevice s) {
  return detail::turned("ifftshift", a, axes, true, s);
}

}  // namespace fft
}  // namespace sdx::array
