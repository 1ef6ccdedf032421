#pragma once
// Discrete Fourier transforms of any length along any axes, in O(n log n). float64 and complex128 are computed in double
// precision, everything else in float32 and complex64. `n`, `s`: points of each axis; shorter axes are filled with zeros, longer
// ones cut. norm: "backward" (the inverse divides by the number of points), "ortho" (both divide by its root), "forward" (the
// other one divides). All have derivatives. Errors: Error(invalid_argument).

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <sdx/array/array.hpp>

namespace sdx::array::fft {

using Points = std::optional<std::int64_t>;
using OptionalShape = std::optional<Shape>;
using OptionalAxes = std::optional<std::vector<int>>;

SDX_API array fft(const array& a, Points n = std::nullopt, int axis = -1, const std::string& norm = "backward",
                  StreamOrDevice s = {});
SDX_API array ifft(const array& a, Points n = std::nullopt, int axis = -1, const std::string& norm = "backward",
                   StreamOrDevice s = {});
// Transforms of real input give the first n / 2 + 1 results, since the others are their mirror image. The inverse takes these.
SDX_API array rfft(const array& a, Points n = std::nullopt, int axis = -1, const std::string& norm = "backward",
                   StreamOrDevice s = {});
SDX_API array irfft(const array& a, Points n = std::nullopt, int axis = -1, const std::string& norm = "backward",
                    StreamOrDevice s = {});

// Along several axes; the last one of `axes` is the real one. No axes: the last ones, as many as `shape` has, or all.
SDX_API array fftn(const array& a, const OptionalShape& shape = std::nullopt, const OptionalAxes& axes = std::nullopt,
                   const std::string& norm = "backward", StreamOrDevice s = {});
SDX_API array ifftn(const array& a, const OptionalShape& shape = std::nullopt, const OptionalAxes& axes = std::nullopt,
                    const std::string& norm = "backward", StreamOrDevice s = {});
SDX_API array rfftn(const array& a, const OptionalShape& shape = std::nullopt, const OptionalAxes& axes = std::nullopt,
                    const std::string& norm = "backward", StreamOrDevice s = {});
SDX_API array irfftn(const array& a, const OptionalShape& shape = std::nullopt, const OptionalAxes& axes = std::nullopt,
                     const std::string& norm = "backward", StreamOrDevice s = {});
SDX_API array fft2(const array& a, const OptionalShape& shape = std::nullopt, const std::vector<int>& axes = {-2, -1},
                   const std::string& norm = "backward", StreamOrDevice s = {});
SDX_API array ifft2(const array& a, const OptionalShape& shape = std::nullopt, const std::vector<int>& axes = {-2, -1},
                    const std::string& norm = "backward", StreamOrDevice s = {});
SDX_API array rfft2(const array& a, const OptionalShape& shape = std::nullopt, const std::vector<int>& axes = {-2, -1},
                    const std::string& norm = "backward", StreamOrDevice s = {});
SDX_API array irfft2(const array& a, const OptionalShape& shape = std::nullopt, const std::vector<int>& axes = {-2, -1},
                     const std::string& norm = "backward", StreamOrDevice s = {});

// Frequencies of the results, float32: 0 and upwards, then the negative ones; of rfft: none negative. d: distance of samples.
SDX_API array fftfreq(std::int64_t n, double d = 1.0, StreamOrDevice s = {});
SDX_API array rfftfreq(std::int64_t n, double d = 1.0, StreamOrDevice s = {});
// Shifts frequency 0 to the middle, and back. No axes: all.
SDX_API array fftshift(const array& a, const OptionalAxes& axes = std::nullopt, StreamOrDevice s = {});
SDX_API array ifftshift(const array& a, const OptionalAxes& axes = std::nullopt, StreamOrDevice s = {});

// Short-time transforms. stft(): windows of `n_fft` samples of the last axis, one every `hop` samples, become [..., frequencies,
// windows]. `window`: one dimension, at most n_fft long, centred; default: ones. center: x is extended at both ends as pad() does
// with `pad_mode`, so that window i is centred at sample i * hop. one_sided: the first n_fft / 2 + 1 frequencies; default: for
// real numbers. istft() sums the windows and divides by the sum of the squared windows (at least 1e-8), so it returns the input
// of stft(), `length` samples of it; with all frequencies (one_sided false), the real parts.
struct ShortTime {
  std::optional<std::int64_t> hop;         // n_fft / 4
  std::optional<std::int64_t> win_length;  // the window has this many ones without `window`; default: n_fft
  std::optional<array> window;
  bool center = true;
  std::string norm = "backward";
  std::optional<bool> one_sided;
};
SDX_API array stft(const array& x, std::int64_t n_fft = 2048, const ShortTime& how = {}, const std::string& pad_mode = "reflect",
                   StreamOrDevice s = {});
// Without n_fft: the even number for this many frequencies.
SDX_API array istft(const array& transformed, Points n_fft = std::nullopt, const ShortTime& how = {},
                    std::optional<std::int64_t> length = std::nullopt, StreamOrDevice s = {});

}  // namespace sdx::array::fft
