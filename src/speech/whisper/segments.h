#pragma once
// A window's tokens, cut at the times in them.

#include <cstdint>
#include <span>
#include <vector>

#include "speech/whisper/settings.h"

namespace sdx::speech {

struct CutSegment {
  std::int64_t start = 0, end = 0;  // frames from the window's begin
  std::vector<TokenId> tokens;
};

struct CutWindow {
  std::vector<CutSegment> segments;
  std::int64_t advance = 0;  // frames to the next window, above 0
  bool ends = false;         // a single time is last: nothing is said behind it
};

// `frames`: of the window that are sound. A text behind the last pair of times is left to the next window, which begins there.
CutWindow cut_window(const WhisperSettings& settings, std::span<const TokenId> tokens, std::int64_t frames);

}  // namespace sdx::speech
