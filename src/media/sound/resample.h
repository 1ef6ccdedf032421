#pragma once
// Sample rates.

#include <cstdint>
#include <span>
#include <vector>

#include "base/tools_api.h"

namespace sdx::media {

constexpr int kMinRate = 100, kMaxRate = 768000;

// Changes the sample rate of a sound that comes in pieces, in memory that does not grow with the sound. A polyphase filter of
// sincs in a Kaiser window: flat within 0.01 dB up to 0.91 of the lower rate's Nyquist frequency, and -120 dB or less from that
// frequency on. Output sample i lies at the time of input sample i * from / to: the filter delays nothing. Use from one thread at
// a time.
class SDX_TOOLS_API Resampler {
 public:
  // Throws Error(invalid_argument) for rates out of range.
  Resampler(int from, int to);

  // Appends to `out` what the samples so far allow.
  void push(std::span<const float> samples, std::vector<float>& out);
  // Appends the rest, as if silence followed. Call it once, last: of n samples, ceil(n * to / from) came out.
  void finish(std::vector<float>& out);

 private:
  void make(std::int64_t end, std::vector<float>& out);
  float sample(std::int64_t i) const;

  std::int64_t up_ = 1, down_ = 1;  // output and input samples of one period
  std::int64_t taps_ = 0, reach_ = 0;
  std::int64_t phases_ = 0;   // filters in the table, which has one more
  std::vector<float> table_;  // [phases + 1, taps]
  std::vector<float> held_;   // input from sample `first_` on
  std::int64_t first_ = 0, received_ = 0, made_ = 0;
};

// A whole sound, on several threads.
std::vector<float> resample(std::span<const float> samples, int from, int to);

}  // namespace sdx::media
