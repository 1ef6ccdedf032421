#include "speech/whisper/rules.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sdx::speech {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

void forbid(std::span<float> logits, std::size_t from, std::size_t to) {
  to = std::min(to, logits.size());
  if (from < to)
    std::fill(logits.begin() + static_cast<std::ptrdiff_t>(from), logits.begin() + static_cast<std::ptrdiff_t>(to), kNever);
}

void forbid(std::span<float> logits, std::span<const TokenId> tokens) {
  for (const TokenId t : tokens) {
    if (t < logits.size()) logits[t] = kNever;
  }
}

// Times come in pairs: the end of one segment and the start of the next; the last one may stand before the end.
void keep_pairs(const WhisperSettings& s, std::span<const TokenId> answer, std::span<float> logits) {
  const auto is_time = [&](TokenId t) { return t >= s.timestamps(); };
  const bool last = !answer.empty() && is_time(answer.back());
  const bool one_before = answer.size() < 2 || is_time(answer[answer.size() - 2]);
  if (last && one_before) forbid(logits, s.timestamps(), logits.size());
  if (last && !one_before) forbid(logits, 0, s.end);
  const auto latest = std::find_if(answer.rbegin(), answer.rend(), is_time);
  if (latest == answer.rend()) return;
  // A segment has a length: its end differs from its start.
  forbid(logits, s.timestamps(), std::size_t{*latest} + (last && !one_before ? 0 : 1));
}

void keep_times(const WhisperSettings& s, std::span<const TokenId> answer, std::span<float> logits) {
  logits[s.no_timestamps] = kNever;
  keep_pairs(s, answer, logits);
  if (answer.empty()) {
    forbid(logits, 0, s.timestamps());
    if (s.most_initial_timestamp)
      forbid(logits, s.timestamps() + static_cast<std::size_t>(*s.most_initial_timestamp) + 1, logits.size());
  }
  // Where times together are more probable than any text, a time it is.
  const auto text = logits.first(s.timestamps()), times = logits.subspan(s.timestamps());
  if (times.empty()) return;
  const double most = static_cast<double>(*std::max_element(text.begin(), text.end()));
  if (log_sum(times) > most) forbid(logits, 0, s.timestamps());
}

}  // namespace

double log_sum(std::span<const float> logits) {
  const double most = static_cast<double>(*std::max_element(logits.begin(), logits.end()));
  if (!std::isfinite(most)) return most;
  double sum = 0;
  for (const float x : logits) sum += std::exp(static_cast<double>(x) - most);
  return most + std::log(sum);
}

void apply_rules(const WhisperSettings& s, bool timestamps, std::span<const TokenId> answer, std::span<float> logits) {
  if (answer.empty()) forbid(logits, s.suppress_at_begin);
  forbid(logits, s.suppress);
  if (timestamps) keep_times(s, answer, logits);
}

}  // namespace sdx::speech
