#pragma once
// Where in a window of sound each token is said, by the decoder's attention to the sound. Source: openai-whisper's word times.

#include <cstdint>
#include <span>
#include <vector>

namespace sdx::speech {

// Cross-attention of some heads, float[heads, tokens, positions], after Softmax.
struct Attention {
  std::span<const float> weights;
  std::int64_t heads = 0, tokens = 0, positions = 0;
};

// How well tokens [begin, end) fit the first `used` positions, double[end - begin, used]: weights are divided by their sum over
// these positions, normalised over all tokens, smoothed by a median of 7 positions, and averaged over heads.
std::vector<double> token_fit(const Attention& attention, std::int64_t used, std::int64_t begin, std::int64_t end);

// The monotonic path with the greatest fit through double[tokens, positions] from the first token and position to the last ones:
// the position at which it reaches each token.
std::vector<std::int64_t> path_starts(std::span<const double> fit, std::int64_t tokens, std::int64_t positions);

}  // namespace sdx::speech
