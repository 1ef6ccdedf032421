#pragma once
// WAV files, and changing the sample rate.

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include <sdx/tensor.hpp>

namespace sdx::media {

struct Sound {
  int rate = 0;                // samples a second
  int channels = 1;            // of the file, before they were mixed
  std::vector<float> samples;  // one channel, -1 to 1
};

// RIFF/WAVE with PCM of 8, 16, 24 or 32 bits or floats of 32 or 64 bits; channels are averaged. A data chunk of unknown
// length (as recorders that stream write it) goes to the file's end. Throws Error(invalid_argument).
Sound decode_wav(std::span<const std::byte> bytes);
// The same; nothing where the file is in another encoding.
std::optional<Sound> decode_plain_wav(std::span<const std::byte> bytes);

constexpr int kMinRate = 100, kMaxRate = 768000, kMaxChannels = 64;

// Polyphase windowed-sinc resampling: 16 zero crossings to each side, Kaiser window with beta 8.6 (stop band below -80 dB),
// cut off at the lower rate's Nyquist frequency. Throws Error(invalid_argument) for rates out of range.
std::vector<float> resample(std::span<const float> samples, int from, int to);

// float32 [1, n]; at `rate` samples a second unless that is 0.
Tensor to_tensor(const Sound& sound, int rate = 0);

}  // namespace sdx::media
