#pragma once
// Choosing the next token.

#include <cstdint>
#include <random>
#include <span>
#include <unordered_map>
#include <vector>

#include <sdx/text.hpp>

namespace sdx::text {

// Throws Error(invalid_argument) naming the setting that is out of range.
void check_sampling(const SamplingSettings& settings, std::int64_t vocabulary);

// Chooses tokens for one answer. Not thread-safe.
class Sampler {
 public:
  // `stream`: the number of the answer among several with one seed.
  Sampler(const SamplingSettings& settings, std::span<const TokenId> prompt, std::uint64_t stream);

  // `barred`: tokens that must not come. `allowed`: a bit for each token that may come; null: all. Changes the logits. Throws
  // Error(runtime_failure) if no token is left.
  TokenId choose(std::span<float> logits, std::span<const TokenId> barred,
                 const std::span<const std::uint64_t>* allowed = nullptr);
  // A token of the answer.
  void accept(TokenId id);

 private:
  struct Candidate {
    TokenId id;
    float logit;
    double share = 0;
  };
  void penalise(std::span<float> logits) const;
  void keep_typical();
  void keep_likely();
  double uniform();

  SamplingSettings settings_;
  std::mt19937_64 random_;
  std::unordered_map<TokenId, std::int64_t> seen_;  // of prompt and answer: how often it is in the answer
  std::vector<Candidate> candidates_;
};

// Natural logarithms of shares.
class Logprobs {
 public:
  explicit Logprobs(std::span<const float> logits);
  TokenLogprob of(TokenId id) const { return {id, logits_[id] - sum_}; }
  // In double, for sums of many of them.
  double precise(TokenId id) const { return static_cast<double>(logits_[id]) - exact_; }
  std::vector<TokenLogprob> top(std::size_t count) const;

 private:
  std::span<const float> logits_;
  double exact_ = 0;
  float sum_ = 0;
};

// The first of the largest; NaN is never one.
TokenId largest(std::span<const float> logits);

}  // namespace sdx::text
