#include "text/model/sampler.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "base/system/random_bits.h"

namespace sdx::text {

void check_sampling(const SamplingSettings& s, std::int64_t vocabulary) {
  const auto need = [](bool ok, const char* name, auto value, const char* range) {
    if (!ok) fail(ErrorCode::invalid_argument, "{} must be {}, received {}", name, range, value);
  };
  need(s.temperature >= 0.0F && std::isfinite(s.temperature), "temperature", s.temperature, "0 or greater");
  need(s.top_k >= 0, "top_k", s.top_k, "0 (all tokens) or greater");
  need(s.top_p > 0.0F && s.top_p <= 1.0F, "top_p", s.top_p, "greater than 0 and at most 1");
  need(s.min_p >= 0.0F && s.min_p <= 1.0F, "min_p", s.min_p, "from 0 to 1");
  need(s.typical_p > 0.0F && s.typical_p <= 1.0F, "typical_p", s.typical_p, "greater than 0 and at most 1");
  need(s.repetition_penalty > 0.0F && std::isfinite(s.repetition_penalty), "repetition_penalty", s.repetition_penalty,
       "greater than 0");
  need(std::isfinite(s.presence_penalty), "presence_penalty", s.presence_penalty, "a finite number");
  need(std::isfinite(s.frequency_penalty), "frequency_penalty", s.frequency_penalty, "a finite number");
  for (const auto& [id, bias] : s.logit_bias) {
    need(!std::isnan(bias), "logit_bias", bias, "a number");
    if (vocabulary > 0 && static_cast<std::int64_t>(id) >= vocabulary) {
      fail(ErrorCode::invalid_argument, "logit_bias names token {}, the vocabulary has {}", id, vocabulary);
    }
  }
}

Sampler::Sampler(const SamplingSettings& settings, std::span<const TokenId> prompt, std::uint64_t stream) : settings_(settings) {
  const std::uint64_t seed = settings.seed ? *settings.seed : random_bits();
  std::seed_seq sequence{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32),
                         static_cast<std::uint32_t>(stream)};
  random_.seed(sequence);
  if (settings.repetition_penalty != 1.0F) {
    for (const TokenId id : prompt) seen_.emplace(id, 0);
  }
}

void Sampler::accept(TokenId id) { ++seen_[id]; }

void Sampler::penalise(std::span<float> logits) const {
  for (const auto& [id, count] : seen_) {
    if (id >= logits.size()) continue;
    float& x = logits[id];
    x = x > 0.0F ? x / settings_.repetition_penalty : x * settings_.repetition_penalty;
    if (count > 0) x -= settings_.presence_penalty + settings_.frequency_penalty * static_cast<float>(count);
  }
  for (const auto& [id, bias] : settings_.logit_bias) {
    if (id < logits.size()) logits[id] += bias;
  }
}

// The largest value first, sixteen at a time, which compilers make vectors of; then where it is.
TokenId largest(std::span<const float> logits) {
  constexpr std::size_t kAtOnce = 16;
  constexpr float kLeast = -std::numeric_limits<float>::infinity();
  std::array<float, kAtOnce> most;
  most.fill(kLeast);
  std::size_t i = 0;
  for (; i + kAtOnce <= logits.size(); i += kAtOnce) {
    for (std::size_t k = 0; k < kAtOnce; ++k) most[k] = logits[i + k] > most[k] ? logits[i + k] : most[k];
  }
  float top = kLeast;
  for (; i < logits.size(); ++i) top = logits[i] > top ? logits[i] : top;
  for (const float m : most) top = m > top ? m : top;
  const auto at = std::find(logits.begin(), logits.end(), top);
  return at == logits.end() ? 0 : static_cast<TokenId>(at - logits.begin());
}

// 53 bits, the same on every platform.
double Sampler::uniform() { return static_cast<double>(random_() >> 11) * 0x1p-53; }

// Keeps the tokens whose information -log p differs least from the mean, until their shares reach typical_p.
void Sampler::keep_typical() {
  if (settings_.typical_p >= 1.0F) return;
  double total = 0, entropy = 0;
  for (const Candidate& c : candidates_) total += c.share;
  for (const Candidate& c : candidates_) {
    const double p = c.share / total;
    if (p > 0) entropy -= p * std::log(p);
  }
  const auto distance = [&](const Candidate& c) { return std::abs(-std::log(std::max(c.share / total, 1e-300)) - entropy); };
  std::stable_sort(candidates_.begin(), candidates_.end(),
                   [&](const Candidate& a, const Candidate& b) { return distance(a) < distance(b); });
  double sum = 0;
  std::size_t kept = 0;
  while (kept < candidates_.size() && sum < static_cast<double>(settings_.typical_p) * total) sum += candidates_[kept++].share;
  candidates_.resize(std::max<std::size_t>(1, kept));
  std::stable_sort(candidates_.begin(), candidates_.end(),
                   [](const Candidate& a, const Candidate& b) { return a.share > b.share; });
}

// top_p and then min_p, of candidates in falling order.
void Sampler::keep_likely() {
  if (settings_.top_p < 1.0F) {
    double total = 0, sum = 0;
    for (const Candidate& c : candidates_) total += c.share;
    std::size_t kept = 0;
    while (kept < candidates_.size() && sum < static_cast<double>(settings_.top_p) * total) sum += candidates_[kept++].share;
    candidates_.resize(std::max<std::size_t>(1, kept));
  }
  if (settings_.min_p > 0.0F) {
    const double least = static_cast<double>(settings_.min_p) * candidates_[0].share;
    while (candidates_.size() > 1 && candidates_.back().share < least) candidates_.pop_back();
  }
}

namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

// Excludes NaN logits as well, so that a failure cannot allow a token.
void keep_allowed(std::span<float> logits, std::span<const std::uint64_t> allowed) {
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const bool may = i / 64 < allowed.size() && (allowed[i / 64] >> (i % 64) & 1) != 0;
    if (!may || std::isnan(logits[i])) logits[i] = kNever;
  }
}

}  // namespace

TokenId Sampler::choose(std::span<float> logits, std::span<const TokenId> barred, const std::span<const std::uint64_t>* allowed) {
  penalise(logits);
  if (allowed != nullptr) keep_allowed(logits, *allowed);
  for (const TokenId id : barred) {
    if (id < logits.size()) logits[id] = kNever;
  }
  const TokenId best = largest(logits);
  if (allowed != nullptr && logits[best] == kNever) {
    fail(ErrorCode::runtime_failure,
         "no token of the vocabulary fits here: the model's tokens cannot continue what the grammar demands, or a setting "
         "(min_tokens, logit_bias) forbids those that can");
  }
  if (settings_.greedy || settings_.temperature == 0.0F || settings_.top_k == 1) return best;
  const float top = logits[best];
  if (!std::isfinite(top)) return best;  // an infinite bias, or nothing but NaN
  candidates_.clear();
  // A token with less than 2^-60 of the likeliest one's share cannot be drawn.
  const float least = top - 42.0F * std::max(settings_.temperature, 1e-6F);
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] >= least) candidates_.push_back({static_cast<TokenId>(i), logits[i]});
  }
  const auto before = [](const Candidate& a, const Candidate& b) { return a.logit != b.logit ? a.logit > b.logit : a.id < b.id; };
  if (settings_.top_k > 0 && static_cast<std::size_t>(settings_.top_k) < candidates_.size()) {
    const auto end = candidates_.begin() + settings_.top_k;
    std::nth_element(candidates_.begin(), end, candidates_.end(), before);
    candidates_.erase(end, candidates_.end());
  }
  std::sort(candidates_.begin(), candidates_.end(), before);
  for (Candidate& c : candidates_) {
    c.share = std::exp((static_cast<double>(c.logit) - static_cast<double>(top)) / static_cast<double>(settings_.temperature));
  }
  keep_typical();
  keep_likely();
  double total = 0;
  for (const Candidate& c : candidates_) total += c.share;
  double at = uniform() * total;
  for (const Candidate& c : candidates_) {
    at -= c.share;
    if (at < 0) return c.id;
  }
  return candidates_.back().id;
}

Logprobs::Logprobs(std::span<const float> logits) : logits_(logits) {
  const float top = logits[largest(logits)];
  double sum = 0;
  for (const float x : logits) sum += std::exp(static_cast<double>(x) - static_cast<double>(top));
  exact_ = static_cast<double>(top) + std::log(sum);
  sum_ = static_cast<float>(exact_);
}

std::vector<TokenLogprob> Logprobs::top(std::size_t count) const {
  std::vector<TokenId> ids(logits_.size());
  std::iota(ids.begin(), ids.end(), TokenId{0});
  count = std::min(count, ids.size());
  const auto end = ids.begin() + static_cast<std::ptrdiff_t>(count);
  std::partial_sort(ids.begin(), end, ids.end(),
                    [&](TokenId a, TokenId b) { return logits_[a] != logits_[b] ? logits_[a] > logits_[b] : a < b; });
  std::vector<TokenLogprob> out;
  for (auto it = ids.begin(); it != end; ++it) out.push_back(of(*it));
  return out;
}

}  // namespace sdx::text
