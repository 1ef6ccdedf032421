#include "speech/whisper/segments.h"

#include <algorithm>

namespace sdx::speech {

CutWindow cut_window(const WhisperSettings& s, std::span<const TokenId> tokens, std::int64_t frames) {
  constexpr std::int64_t kStep = 2;  // frames of a step of time
  const auto is_time = [&](std::size_t i) { return tokens[i] >= s.timestamps(); };
  const auto time = [&](std::size_t i) { return static_cast<std::int64_t>(tokens[i] - s.timestamps()) * kStep; };
  CutWindow cut;
  cut.advance = std::max<std::int64_t>(1, frames);
  std::vector<std::size_t> ends;  // places between two times
  for (std::size_t i = 1; i < tokens.size(); ++i) {
    if (is_time(i - 1) && is_time(i)) ends.push_back(i);
  }
  const std::size_t count = tokens.size();
  cut.ends = count > 0 && is_time(count - 1) && (count < 2 || !is_time(count - 2));
  if (ends.empty()) {
    CutSegment whole{0, frames, {tokens.begin(), tokens.end()}};
    for (std::size_t i = count; i-- > 0;) {
      if (!is_time(i)) continue;
      if (time(i) > 0) whole.end = time(i);
      break;
    }
    if (count > 0) cut.segments.push_back(std::move(whole));
    return cut;
  }
  if (cut.ends) {
    ends.push_back(count);  // no speech behind the last time
  } else if (const std::int64_t last = time(ends.back() - 1); last > 0) {
    cut.advance = last;
  }
  std::size_t from = 0;
  for (const std::size_t end : ends) {
    const std::int64_t start = is_time(from) ? time(from) : 0;
    cut.segments.push_back(
        {start,
         std::max(start, time(end - 1)),
         {tokens.begin() + static_cast<std::ptrdiff_t>(from), tokens.begin() + static_cast<std::ptrdiff_t>(end)}});
    from = end;
  }
  return cut;
}

}  // namespace sdx::speech
