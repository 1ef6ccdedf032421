#include "speech/whisper/decode.h"

#include <zlib.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/splitmix64.h"
#include "speech/whisper/rules.h"

namespace sdx::speech {
namespace {

std::size_t most_probable(std::span<const float> logits) {
  return static_cast<std::size_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

std::size_t sampled(std::span<const float> logits, double temperature, SplitMix64& random) {
  const double most = static_cast<double>(*std::max_element(logits.begin(), logits.end()));
  std::vector<double> sums(logits.size());
  double sum = 0;
  for (std::size_t i = 0; i < logits.size(); ++i)
    sums[i] = sum += std::exp((static_cast<double>(logits[i]) - most) / temperature);
  const double place = random.uniform() * sum;
  const auto at = std::upper_bound(sums.begin(), sums.end(), place);
  return at == sums.end() ? most_probable(logits) : static_cast<std::size_t>(at - sums.begin());
}

double probability_of(std::span<const float> logits, TokenId token) {
  return token < logits.size() ? std::exp(static_cast<double>(logits[token]) - log_sum(logits)) : 0;
}

void check(std::span<const float> logits, const WhisperSettings& s) {
  if (static_cast<std::int64_t>(logits.size()) < s.vocabulary) {
    fail(ErrorCode::invalid_model, "the decoder has {} logits; config.json: vocab_size = {}", logits.size(), s.vocabulary);
  }
  for (const float x : logits) {
    if (std::isnan(x)) fail(ErrorCode::runtime_failure, "the decoder's logits are not numbers");
  }
}

bool needs_another(const WindowAnswer& a, const TranscribeSettings& wanted) {
  const bool repetitive = wanted.compression_ratio && a.compression_ratio > *wanted.compression_ratio;
  const bool improbable = wanted.log_probability && a.log_probability < *wanted.log_probability;
  const bool silent = wanted.no_speech && improbable && a.no_speech > *wanted.no_speech;
  return (repetitive || improbable) && !silent;
}

// Of answers that are all bad: the most probable one, of those that are not repetitive where there are any.
const WindowAnswer& best_of(const std::vector<WindowAnswer>& answers, const TranscribeSettings& wanted) {
  const auto rank = [&](const WindowAnswer& a) {
    const bool repetitive = wanted.compression_ratio && a.compression_ratio > *wanted.compression_ratio;
    return std::pair(!repetitive, a.log_probability);
  };
  return *std::max_element(answers.begin(), answers.end(),
                           [&](const WindowAnswer& a, const WindowAnswer& b) { return rank(a) < rank(b); });
}

bool is_silent(const WindowAnswer& a, const TranscribeSettings& wanted) {
  const bool sure = wanted.log_probability && a.log_probability > *wanted.log_probability;
  return wanted.no_speech && a.no_speech > *wanted.no_speech && !sure;
}

}  // namespace

std::vector<TokenId> text_tokens(const WhisperSettings& s, std::span<const TokenId> tokens) {
  std::vector<TokenId> words;
  std::copy_if(tokens.begin(), tokens.end(), std::back_inserter(words), [&](TokenId t) { return t < s.end; });
  return words;
}

std::vector<TokenId> prompt_of(const WhisperSettings& s, std::span<const TokenId> previous, std::span<const TokenId> begin) {
  std::vector<TokenId> prompt;
  if (!previous.empty() && s.previous) {
    const std::size_t kept = std::min(previous.size(), static_cast<std::size_t>(s.positions / 2 - 1));
    prompt.push_back(*s.previous);
    prompt.insert(prompt.end(), previous.end() - static_cast<std::ptrdiff_t>(kept), previous.end());
  }
  prompt.insert(prompt.end(), begin.begin(), begin.end());
  return prompt;
}

double compression_ratio(const std::string& text) {
  if (text.empty()) return 0;
  uLongf size = compressBound(static_cast<uLong>(text.size()));
  std::vector<Bytef> packed(size);
  if (compress(packed.data(), &size, reinterpret_cast<const Bytef*>(text.data()), static_cast<uLong>(text.size())) != Z_OK)
    fail(ErrorCode::out_of_memory, "zlib has no memory");
  return static_cast<double>(text.size()) / static_cast<double>(size);
}

WindowAnswer decode_window(const WhisperSettings& s, const Tokenizer& tokenizer, DecoderText& text,
                           const DecodeRequest& request) {
  text.clear();
  WindowAnswer a;
  a.temperature = request.temperature;
  SplitMix64 random(request.seed);
  const auto prompt = static_cast<std::int64_t>(request.prompt.size());
  // As transformers counts it: what comes before the answer does not make it shorter, as long as there is room.
  const std::int64_t most = std::min(s.positions, s.max_length + std::min(s.positions / 2 - 1, prompt - 1));
  Tensor logits = text.append(request.prompt);
  const auto row_of = [](Tensor& t, std::int64_t row) {
    const auto width = static_cast<std::size_t>(t.dim(1));
    return t.mutable_values<float>().subspan(static_cast<std::size_t>(row) * width, width);
  };
  check(row_of(logits, prompt - 1), s);
  const auto start = std::find(request.prompt.rbegin(), request.prompt.rend(), s.start);
  if (s.no_speech && start != request.prompt.rend()) {
    a.no_speech = probability_of(row_of(logits, request.prompt.rend() - start - 1), *s.no_speech);
  }
  double sum = 0;
  while (true) {
    const std::span<float> row = row_of(logits, logits.dim(0) - 1);
    check(row, s);
    apply_rules(s, request.timestamps, a.tokens, row);
    const std::size_t chosen = request.temperature > 0 ? sampled(row, request.temperature, random) : most_probable(row);
    sum += static_cast<double>(row[chosen]) - log_sum(row);
    const auto token = static_cast<TokenId>(chosen);
    if (token == s.end) break;
    a.tokens.push_back(token);
    if (prompt + static_cast<std::int64_t>(a.tokens.size()) >= most) break;
    logits = text.append(std::span(&token, 1));
  }
  a.log_probability = sum / static_cast<double>(a.tokens.size() + 1);
  a.text = tokenizer.decode(text_tokens(s, a.tokens));
  a.compression_ratio = compression_ratio(a.text);
  return a;
}

WindowAnswer decode_with_fallback(const WhisperSettings& s, const Tokenizer& tokenizer, DecoderText& text, DecodeRequest request,
                                  const TranscribeSettings& wanted) {
  std::vector<WindowAnswer> answers;
  for (const double temperature : wanted.temperatures) {
    request.temperature = temperature;
    ++request.seed;
    answers.push_back(decode_window(s, tokenizer, text, request));
    if (!needs_another(answers.back(), wanted)) break;
  }
  WindowAnswer a = needs_another(answers.back(), wanted) ? best_of(answers, wanted) : answers.back();
  a.temperature = answers.back().temperature;
  if (is_silent(a, wanted)) {
    a.tokens.clear();
    a.text.clear();
  }
  return a;
}

}  // namespace sdx::speech
