// DFT: ai.onnx 17 (axis is an attribute), 20 (axis is an input). STFT: ai.onnx 17.

#include <optional>
#include <vector>

#include "base/thread_pool.h"
#include "ops/context.h"
#include "ops/math/float_view.h"
#include "ops/op.h"
#include "ops/signal/fourier.h"
#include "ops/signal/signatures.h"
#include "ops/tensor/axes.h"
#include "tensor/element.h"

namespace sdx::ops {
namespace {

constexpr std::size_t kLength = 1, kAxis = 2;

std::int64_t scalar(const Tensor& t, const char* name) {
  if (t.size() != 1) fail(ErrorCode::invalid_model, "'{}' must be a scalar, received shape {}", name, to_string(t.shape()));
  return element_as_int(t, 0);
}

std::size_t check_axis(std::int64_t axis, std::size_t rank) {
  if (rank < 2) fail(ErrorCode::invalid_model, "the input must have rank 2 or more ([..., 1 or 2]), received rank {}", rank);
  const auto a = static_cast<std::size_t>(normalize_axis(axis, rank));
  if (a + 1 == rank) fail(ErrorCode::invalid_model, "axis {} is the last one, which holds real and imaginary parts", axis);
  return a;
}

std::int64_t check_length(std::int64_t n) {
  if (n < 1) fail(ErrorCode::invalid_model, "dft_length is {}; it must be positive", n);
  return n;
}

// Without dft_length. Source: ONNX DFT-20.
Dim default_length(const DftAttrs& a, const Dim& extent) { return a.inverse && a.onesided ? Dim(2) * (extent - Dim(1)) : extent; }

void infer_dft(InferContext& c) {
  const auto a = parse<DftAttrs>(c);
  const SymShape* x = c.shape(0);
  if (x == nullptr) return c.output(0, c.dtype(0));
  SymShape out = *x;
  if (out.empty()) c.fail("the input must have rank 2 or more ([..., 1 or 2]), received a scalar");
  out.back() = Dim(a.inverse && a.onesided ? 1 : 2);
  std::optional<std::int64_t> axis = a.axis;
  if (c.version() >= 20 && c.has_input(kAxis)) {
    axis = c.value(kAxis) != nullptr ? std::optional(scalar(*c.value(kAxis), "axis")) : std::nullopt;
  }
  if (!axis) {
    for (std::size_t i = 0; i + 1 < out.size(); ++i) out[i] = Dim();
    return c.output(0, c.dtype(0), std::move(out));
  }
  const std::size_t at = check_axis(*axis, out.size());
  Dim length = default_length(a, (*x)[at]);
  if (c.has_input(kLength)) {
    const auto* given = c.sym(kLength);
    length = given != nullptr && given->size() == 1 ? (*given)[0] : Dim();
  }
  if (length.is_const()) check_length(length.value());
  out[at] = a.onesided && !a.inverse ? floor_div(length, Dim(2)) + Dim(1) : length;
  c.output(0, c.dtype(0), std::move(out));
}

struct DftJob {
  DftAttrs attrs;
  std::int64_t length;               // of the transform
  std::int64_t in, out;              // extents of the axis
  std::int64_t inner;                // signals side by side: elements between neighbours on the axis
  std::int64_t parts_in, parts_out;  // 1 or 2

  bool real_to_complex() const { return parts_in == 1 && !attrs.inverse; }
  cpu::FourierJob fourier() const {
    const auto what = real_to_complex() ? cpu::Fourier::half : (parts_out == 1 ? cpu::Fourier::whole : cpu::Fourier::complex);
    return {what, length, in, out, inner, attrs.inverse, attrs.inverse ? 1 / static_cast<double>(length) : 1};
  }
};

// The transform of a real signal is its own mirror image; `half` is the first half.
template <class C>
void mirror(const DftJob& j, C* y, std::int64_t outer) {
  for (std::int64_t o = 0; o < outer; ++o, y += j.out * j.inner * 2) {
    for (std::int64_t k = j.length / 2 + 1; k < j.length; ++k) {
      const C* from = y + (j.length - k) * j.inner * 2;
      C* to = y + k * j.inner * 2;
      for (std::int64_t i = 0; i < j.inner; ++i) {
        to[2 * i] = from[2 * i];
        to[2 * i + 1] = -from[2 * i + 1];
      }
    }
  }
}

template <class C>
void transform(OpContext& c, const DftJob& j, Tensor& y) {
  const Tensor& x = c.input(0);
  const FloatInput<C> in(x);
  FloatOutput<C> out(y);
  const C* from = in.data();
  std::vector<C> pairs;
  if (j.parts_in == 1 && !j.real_to_complex()) {
    pairs.resize(static_cast<std::size_t>(2 * x.size()));
    for (std::size_t i = 0; i < pairs.size(); i += 2) pairs[i] = from[i / 2];
    from = pairs.data();
  }
  const std::int64_t outer = y.size() / (j.out * j.inner * j.parts_out);
  transform_signals(c, j.fourier(), outer, from, out.data());
  if (j.real_to_complex() && j.out == j.length) {
    const std::int64_t numbers = j.out * j.inner * 2;
    parallel_for(outer, 1 + 65536 / numbers,
                 [&](std::int64_t begin, std::int64_t end) { mirror(j, out.data() + begin * numbers, end - begin); });
  }
  out.store();
}

std::int64_t check_parts(const Shape& shape) {
  if (shape.back() != 1 && shape.back() != 2) {
    fail(ErrorCode::invalid_model, "the last extent must be 1 (real) or 2 (complex), received shape {}", to_string(shape));
  }
  return shape.back();
}

void run_dft(OpContext& c) {
  const Tensor& x = c.input(0);
  const auto attr = parse<DftAttrs>(c);
  std::int64_t axis = attr.axis;
  if (const Tensor* given = c.version() >= 20 ? c.optional_input(kAxis) : nullptr) axis = scalar(*given, "axis");
  const std::size_t at = check_axis(axis, x.rank());
  DftJob j{attr, 0, x.dim(at), 0, product(x.shape(), at + 1, x.rank() - 1), check_parts(x.shape()), 2};
  const Tensor* length = c.optional_input(kLength);
  j.length = check_length(length != nullptr ? scalar(*length, "dft_length") : default_length(j.attrs, Dim(j.in)).value());
  if (j.attrs.onesided && !j.attrs.inverse && j.parts_in == 2) {
    c.fail("onesided needs a real input (last extent 1), received shape {}", to_string(x.shape()));
  }
  j.out = j.attrs.onesided && !j.attrs.inverse ? j.length / 2 + 1 : j.length;
  j.parts_out = j.attrs.inverse && j.attrs.onesided ? 1 : 2;
  Shape shape = x.shape();
  shape[at] = j.out;
  shape.back() = j.parts_out;
  Tensor& y = c.output(0, x.dtype(), shape);
  if (y.size() == 0) return;
  dispatch_compute(x.dtype(), "DFT", [&](auto tag) { transform<typename decltype(tag)::type>(c, j, y); });
}

// --- STFT: inputs signal, frame_step, window, frame_length ---------------------------------------------------------------
//
// ONNX names a last extent of 1 for real signals; ONNX Runtime, and therefore exporters, leave it out as well. A complex signal
// has no mirror image to leave out: `onesided` gives the first half of its transform all the same.

constexpr std::size_t kStep = 1, kWindow = 2, kFrame = 3;

Dim scalar_dim(const InferContext& c, std::size_t i) {
  const auto* s = c.sym(i);
  return s != nullptr && s->size() == 1 ? (*s)[0] : Dim();
}

void check_frame(std::int64_t step, std::int64_t frame, std::int64_t signal) {
  if (step < 1) fail(ErrorCode::invalid_model, "frame_step is {}; it must be positive", step);
  if (frame < 1 || frame > signal) {
    fail(ErrorCode::invalid_model, "the frame length is {}; permitted for a signal of length {}: 1 to {}", frame, signal, signal);
  }
}

void infer_stft(InferContext& c) {
  const SymShape* x = c.shape(0);
  const SymShape* window = c.shape(kWindow);
  Dim batch, signal, frame;
  if (x != nullptr) {
    if (x->size() != 2 && x->size() != 3) {
      c.fail("the signal must have shape [batch, length] or [batch, length, 1 or 2], received {}", to_string(*x));
    }
    batch = (*x)[0];
    signal = (*x)[1];
  }
  if (c.has_input(kFrame)) {
    frame = scalar_dim(c, kFrame);
  } else if (!c.has_input(kWindow)) {
    frame = signal;
  }
  if (window != nullptr && window->size() == 1 && !frame.is_const()) frame = (*window)[0];
  const Dim step = scalar_dim(c, kStep);
  if (step.is_const() && frame.is_const() && signal.is_const()) check_frame(step.value(), frame.value(), signal.value());
  if (step.is_const() && step.value() < 1) c.fail("frame_step is {}; it must be positive", step.value());
  const bool onesided = parse<StftAttrs>(c).onesided;
  const Dim bins = onesided ? floor_div(frame, Dim(2)) + Dim(1) : frame;
  c.output(0, c.dtype(0), {batch, floor_div(signal - frame, step) + Dim(1), bins, Dim(2)});
}

// Frames that are cut out and weighted at once.
constexpr std::int64_t kFrames = 16;

template <class C>
void transform_frames(OpContext& c, const DftJob& j, std::int64_t step, Tensor& y) {
  const Tensor& x = c.input(0);
  const FloatInput<C> in(x), window(c.optional_input(kWindow));
  FloatOutput<C> out(y);
  const std::int64_t frames = y.dim(1), numbers = j.length * j.parts_in;
  parallel_for(y.dim(0) * frames, 1 + 4096 / j.length, [&](std::int64_t begin, std::int64_t end) {
    std::vector<C> cut(static_cast<std::size_t>(std::min(kFrames, end - begin) * numbers));
    for (std::int64_t f = begin; f < end; f += kFrames) {
      c.stop().check();
      const std::int64_t count = std::min(kFrames, end - f);
      for (std::int64_t i = 0; i < count; ++i) {
        const C* from = in.data() + ((f + i) / frames * x.dim(1) + (f + i) % frames * step) * j.parts_in;
        C* to = cut.data() + i * numbers;
        for (std::int64_t k = 0; k < numbers; ++k) to[k] = window ? from[k] * window[k / j.parts_in] : from[k];
      }
      const cpu::FourierTransform<C, double> fourier(j.fourier(), count);
      C* to = out.data() + f * j.out * 2;
      fourier.run(cut.data(), to, 0, fourier.count());
      if (j.real_to_complex() && j.out == j.length) mirror(j, to, count);
    }
  });
  out.store();
}

void run_stft(OpContext& c) {
  const Tensor& x = c.input(0);
  if (x.rank() != 2 && x.rank() != 3) {
    c.fail("the signal must have shape [batch, length] or [batch, length, 1 or 2], received {}", to_string(x.shape()));
  }
  const std::int64_t parts = x.rank() == 2 ? 1 : check_parts(x.shape());
  const Tensor* window = c.optional_input(kWindow);
  const std::int64_t step = scalar(c.input(kStep), "frame_step");
  std::int64_t frame = x.dim(1);
  if (window != nullptr) {
    if (window->rank() != 1) c.fail("the window must have rank 1, received shape {}", to_string(window->shape()));
    frame = window->size();
  }
  if (const Tensor* given = c.optional_input(kFrame)) frame = scalar(*given, "frame_length");
  check_frame(step, frame, x.dim(1));
  if (window != nullptr && window->size() != frame) c.fail("the window has {} values, frame_length is {}", window->size(), frame);
  const bool onesided = parse<StftAttrs>(c).onesided;
  const DftJob j{{.inverse = false, .onesided = onesided}, frame, frame, onesided ? frame / 2 + 1 : frame, 1, parts, 2};
  Tensor& y = c.output(0, x.dtype(), {x.dim(0), (x.dim(1) - frame) / step + 1, j.out, 2});
  if (y.size() == 0) return;
  dispatch_compute(x.dtype(), "STFT", [&](auto tag) { transform_frames<typename decltype(tag)::type>(c, j, step, y); });
}

OpDef dft_def(int since) {
  return OpDef("DFT", since)
      .in("input", "T1", types::floats)
      .in("dft_length", "T2", types::indices, Arity::optional)
      .out("output", "T1", types::floats)
      .attrs<DftAttrs>()
      .infer_with(infer_dft)
      .run_with(run_dft);
}

}  // namespace

void register_dft(OpTable& t) {
  t.add(dft_def(17));
  t.add(dft_def(20).in("axis", "", types::int64, Arity::optional));
  t.add(OpDef("STFT", 17)
            .in("signal", "T1", types::floats)
            .in("frame_step", "T2", types::indices)
            .in("window", "T1", types::floats, Arity::optional)
            .in("frame_length", "T2", types::indices, Arity::optional)
            .out("output", "T1", types::floats)
            .attrs<StftAttrs>()
            .infer_with(infer_stft)
            .run_with(run_stft));
}

}  // namespace sdx::ops
