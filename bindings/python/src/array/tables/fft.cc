// sardonyx.array.fft

#include "tables.h"

namespace sdx::python::arrays {

namespace {

// Two axes, or all of them for None.
template <auto Two, auto All>
mx::array two(const mx::array& a, std::optional<Shape> shape, std::optional<std::vector<int>> axes, std::string norm,
              StreamOrDevice s) {
  return axes ? Two(a, shape, *axes, norm, s) : All(a, shape, axes, norm, s);
}

using Count = std::optional<std::int64_t>;

mx::array stft(const mx::array& x, std::int64_t n_fft, Count hop, Count win_length, std::optional<mx::array> window, bool center,
               const std::string& pad_mode, std::string norm, std::optional<bool> onesided, StreamOrDevice s) {
  return mx::fft::stft(x, n_fft, {hop, win_length, std::move(window), center, std::move(norm), onesided}, pad_mode, s);
}

mx::array istft(const mx::array& a, Count n_fft, Count hop, Count win_length, std::optional<mx::array> window, bool center,
                std::string norm, std::optional<bool> onesided, Count length, StreamOrDevice s) {
  return mx::fft::istft(a, n_fft, {hop, win_length, std::move(window), center, std::move(norm), onesided}, length, s);
}

}  // namespace

std::vector<Definition> fft_functions() {
  namespace fft = mx::fft;
  return {
      def<&fft::fft>("fft(a, n=None, axis=-1, norm='backward', stream=None)"),
      def<&fft::ifft>("ifft(a, n=None, axis=-1, norm='backward', stream=None)"),
      def<&fft::rfft>("rfft(a, n=None, axis=-1, norm='backward', stream=None)"),
      def<&fft::irfft>("irfft(a, n=None, axis=-1, norm='backward', stream=None)"),
      def<&fft::fftn>("fftn(a, s=None, axes=None, norm='backward', stream=None)"),
      def<&fft::ifftn>("ifftn(a, s=None, axes=None, norm='backward', stream=None)"),
      def<&fft::rfftn>("rfftn(a, s=None, axes=None, norm='backward', stream=None)"),
      def<&fft::irfftn>("irfftn(a, s=None, axes=None, norm='backward', stream=None)"),
      def<&two<&fft::fft2, &fft::fftn>>("fft2(a, s=None, axes=(-2, -1), norm='backward', stream=None)"),
      def<&two<&fft::ifft2, &fft::ifftn>>("ifft2(a, s=None, axes=(-2, -1), norm='backward', stream=None)"),
      def<&two<&fft::rfft2, &fft::rfftn>>("rfft2(a, s=None, axes=(-2, -1), norm='backward', stream=None)"),
      def<&two<&fft::irfft2, &fft::irfftn>>("irfft2(a, s=None, axes=(-2, -1), norm='backward', stream=None)"),
      def<&stft>(
          "stft(x, n_fft=2048, hop_length=None, win_length=None, window=None, center=True, pad_mode='reflect', norm='backward', "
          "onesided=None, stream=None)"),
      def<&istft>("istft(stft_matrix, n_fft=None, hop_length=None, win_length=None, window=None, center=True, norm='backward', "
                  "onesided=None, length=None, stream=None)"),
      def<&fft::fftfreq>("fftfreq(n, d=1.0, stream=None)"),
      def<&fft::rfftfreq>("rfftfreq(n, d=1.0, stream=None)"),
      def<&fft::fftshift>("fftshift(a, axes=None, stream=None)"),
      def<&fft::ifftshift>("ifftshift(a, axes=None, stream=None)"),
  };
}

}  // namespace sdx::python::arrays
