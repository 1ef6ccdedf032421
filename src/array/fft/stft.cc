// Short-time Fourier transforms, whose windows move over a signal, and their inverses.

#include <algorithm>

#include <sdx/array.hpp>

#include "array/ops/common.h"

namespace sdx::array::fft {
namespace {

// The largest length of a signal that istft() makes.
constexpr std::int64_t kMostSamples = std::int64_t{1} << 40;

struct Frames {
  std::int64_t n_fft, hop;
  array window;  // [n_fft]
};

array padded_window(const char* name, const ShortTime& how, std::int64_t n_fft, Dtype dtype, const StreamOrDevice& s) {
  if (how.window && how.window->ndim() != 1) {
    detail::refuse(name, "a window of shape {}; expected one dimension", to_string(how.window->shape()));
  }
  const std::int64_t length = how.window ? how.window->size() : how.win_length.value_or(n_fft);
  if (length < 1 || length > n_fft) detail::refuse(name, "a window of {} samples; expected 1 to n_fft = {}", length, n_fft);
  array window = how.window ? astype(*how.window, dtype, s) : full({length}, array(1.0F), dtype, s);
  const std::int64_t before = (n_fft - length) / 2;
  if (length == n_fft) return window;
  return pad(window, {{static_cast<int>(before), static_cast<int>(n_fft - length - before)}}, "constant", array(0), s);
}

Frames frames_of(const char* name, std::int64_t n_fft, const ShortTime& how, Dtype dtype, const StreamOrDevice& s) {
  if (n_fft < 1 || n_fft > INT32_MAX) detail::refuse(name, "n_fft = {}; expected at least 1 sample", n_fft);
  const std::int64_t hop = how.hop.value_or(n_fft / 4);
  if (hop < 1 || hop > INT32_MAX) detail::refuse(name, "a hop of {} samples; expected at least 1", hop);
  return {n_fft, hop, padded_window(name, how, n_fft, dtype, s)};
}

// Returns the positions of each window's samples: [windows, n_fft].
array positions_of(const Frames& f, std::int64_t count, const StreamOrDevice& s) {
  const array starts = multiply(arange(0, static_cast<double>(count), 1, Dtype::int64, s), array(f.hop, Dtype::int64), s);
  const array samples = arange(0, static_cast<double>(f.n_fft), 1, Dtype::int64, s);
  return add(expand_dims(starts, 1, s), expand_dims(samples, 0, s), s);
}

bool is_complex(Dtype t) { return t == Dtype::complex64 || t == Dtype::complex128; }
Dtype real_of(Dtype t) { return t == Dtype::float64 || t == Dtype::complex128 ? Dtype::float64 : Dtype::float32; }

// Puts windows at their places and adds up where they overlap.
array overlapped(const array& frames, const array& positions, std::int64_t length, const StreamOrDevice& s) {
  Shape shape(frames.shape().begin(), frames.shape().end() - 2);
  shape.push_back(length);
  return index_update(zeros(shape, frames.dtype(), s), {Ellipsis{}, positions}, frames, Update::add, s);
}

}  // namespace

array stft(const array& x, std::int64_t n_fft, const ShortTime& how, const std::string& pad_mode, StreamOrDevice s) {
  if (x.ndim() == 0) detail::refuse("stft", "a single number; expected a signal along the last axis");
  const bool complex = is_complex(x.dtype());
  const Dtype real = real_of(x.dtype());
  const Frames f = frames_of("stft", n_fft, how, real, s);
  array signal = complex ? x : astype(x, real, s);
  if (how.center) {
    std::vector<std::pair<int, int>> by(x.shape().size(), {0, 0});
    by.back() = {static_cast<int>(n_fft / 2), static_cast<int>(n_fft / 2)};
    signal = pad(signal, by, pad_mode, array(0), s);
  }
  const std::int64_t samples = signal.shape().back();
  if (samples < n_fft) detail::refuse("stft", "{} samples are too few for n_fft = {}", samples, n_fft);
  const std::int64_t count = (samples - n_fft) / f.hop + 1;
  const array frames = multiply(take(signal, positions_of(f, count, s), -1, s), f.window, s);
  const bool half = how.one_sided.value_or(!complex);
  array out = !complex && half ? rfft(frames, n_fft, -1, how.norm, s) : fft(frames, n_fft, -1, how.norm, s);
  if (complex && half) out = split(out, Shape{n_fft / 2 + 1}, -1, s)[0];
  return swapaxes(out, -1, -2, s);
}

array istft(const array& transformed, Points n_fft, const ShortTime& how, std::optional<std::int64_t> length, StreamOrDevice s) {
  if (transformed.ndim() < 2) {
    detail::refuse("istft", "an array of shape {}; expected [..., frequencies, windows]", to_string(transformed.shape()));
  }
  const bool half = how.one_sided.value_or(true);
  const std::int64_t given = transformed.shape(-2), count = transformed.shape(-1);
  const Frames f = frames_of("istft", n_fft.value_or(half ? 2 * (given - 1) : given), how, real_of(transformed.dtype()), s);
  if (count < 1) detail::refuse("istft", "shape {} has no windows", to_string(transformed.shape()));
  const array turned = swapaxes(transformed, -1, -2, s);
  const array frames = half ? irfft(turned, f.n_fft, -1, how.norm, s) : real(ifft(turned, f.n_fft, -1, how.norm, s), s);
  const std::int64_t all = detail::extent_sum("istft", detail::extent_product("istft", count - 1, f.hop), f.n_fft);
  if (all > kMostSamples || length.value_or(0) < 0 || length.value_or(0) > kMostSamples) {
    detail::refuse("istft", "{} samples; expected 0 to {}", length.value_or(all), kMostSamples);
  }
  const array positions = positions_of(f, count, s);
  const array squares = broadcast_to(square(f.window, s), {count, f.n_fft}, s);
  const array weight = maximum(overlapped(squares, positions, all, s), array(1e-8F), s);
  array out = divide(overlapped(multiply(frames, f.window, s), positions, all, s), weight, s);
  const std::int64_t first = how.center ? f.n_fft / 2 : 0;
  const std::int64_t last = length ? std::min(all, first + *length) : all - first;
  Shape start(out.shape().size(), 0), stop = out.shape();
  start.back() = first;
  stop.back() = std::max(first, last);
  out = slice(out, start, stop, {}, s);
  const std::int64_t missing = length ? *length - out.shape().back() : 0;
  if (missing <= 0) return out;
  Shape rest = out.shape();
  rest.back() = missing;
  return concatenate({out, zeros(rest, out.dtype(), s)}, -1, s);
}

}  // namespace sdx::array::fft
