#pragma once
// WAV files.

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include <sdx/tensor.hpp>

#include "media/sound/resample.h"

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

constexpr int kMaxChannels = 64;

// Receives a sound in pieces: first its rate and channels, then samples of one channel, into which the others are mixed.
struct SoundSink {
  std::function<void(int rate, int channels)> begin;
  std::function<void(std::span<const float> samples)> take;
};
// The same in pieces. False where the file is in another encoding; the sink has received nothing then.
bool stream_plain_wav(std::span<const std::byte> bytes, const SoundSink& sink);

// float32 [1, n]; at `rate` samples a second unless that is 0.
Tensor to_tensor(const Sound& sound, int rate = 0);

}  // namespace sdx::media
