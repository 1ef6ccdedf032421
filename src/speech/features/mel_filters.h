#pragma once
// Banks of triangular filters on the mel scale.

#include <cstdint>
#include <vector>

namespace sdx::speech {

enum class MelScale {
  slaney,  // linear below 1000 Hz, logarithmic above: librosa, Whisper, NeMo
  htk,     // 2595 log10(1 + f / 700)
  kaldi,   // 1127 ln(1 + f / 700), and triangles that are straight in mel instead of in Hz
};

struct MelSettings {
  MelScale scale = MelScale::slaney;
  std::int64_t bins = 80;
  double low = 0, high = 8000;  // Hz
  bool equal_area = true;       // Slaney's norm: each triangle has the same area
};

// Bin [first, first + weights.size()) of a spectrum, and what each counts.
struct MelFilter {
  std::int64_t first = 0;
  std::vector<double> weights;
};

// For a spectrum of fft / 2 + 1 bins at `rate` samples a second. Throws Error(invalid_argument) for settings that give none.
std::vector<MelFilter> mel_filters(const MelSettings& settings, std::int64_t fft, double rate);

}  // namespace sdx::speech
