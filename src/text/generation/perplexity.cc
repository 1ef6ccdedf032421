// Measures how well a model predicts a text.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <sdx/text.hpp>

#include "base/error.h"
#include "text/model/sampler.h"

namespace sdx {

using namespace text;

namespace {

constexpr std::int64_t kMostWindow = 2048;
constexpr std::int64_t kRows = 64;  // logits that are there at once: of 150,000 tokens 38 MB

struct Window {
  std::int64_t begin, end, first;  // tokens [begin, end); those from `first` on are scored
};

std::vector<Window> windows_of(std::int64_t tokens, std::int64_t window, std::int64_t stride) {
  std::vector<Window> out;
  std::int64_t scored = 1;  // nothing foretells the first token
  for (std::int64_t begin = 0; scored < tokens; begin += stride) {
    const std::int64_t end = std::min(begin + window, tokens);
    // A stride of a whole window leaves the first token of each without any before it: that one has nothing to be foretold by.
    const std::int64_t first = std::max(scored, begin + 1);
    out.push_back({begin, end, first});
    scored = end;
  }
  return out;
}

// The sum over a window's scored tokens.
double score(TextState& state, std::span<const TokenId> tokens, const Window& w, const RunOptions& run) {
  const auto part = [&](std::int64_t from, std::int64_t to) {
    return tokens.subspan(static_cast<std::size_t>(from), static_cast<std::size_t>(to - from));
  };
  state.rewind(0);
  if (w.first - 1 > w.begin) state.append(part(w.begin, w.first - 1), false, run);
  double sum = 0;
  // Logits behind token i foretell token i + 1.
  for (std::int64_t at = w.first - 1; at < w.end - 1; at += kRows) {
    const std::int64_t end = std::min(at + kRows, w.end - 1);
    const Tensor logits = state.append(part(at, end), true, run);
    const auto width = static_cast<std::size_t>(logits.dim(1));
    const std::span<const float> all = logits.values<float>();
    for (std::int64_t i = at; i < end; ++i) {
      const std::span<const float> row = all.subspan(static_cast<std::size_t>(i - at) * width, width);
      const TokenId id = tokens[static_cast<std::size_t>(i + 1)];
      if (id >= width) fail(ErrorCode::invalid_argument, "token {} is beyond the model's {} logits", id, width);
      sum -= Logprobs(row).precise(id);
    }
  }
  return sum;
}

}  // namespace

Perplexity LanguageModel::perplexity(std::string_view text, const PerplexitySettings& settings) const {
  return perplexity(std::span<const TokenId>(tokenizer().encode(text).ids), settings);
}

Perplexity LanguageModel::perplexity(std::span<const TokenId> tokens, const PerplexitySettings& settings) const {
  const std::int64_t context = info().context;
  const std::int64_t window = settings.window != 0 ? settings.window : std::min(context > 0 ? context : kMostWindow, kMostWindow);
  const std::int64_t stride = settings.stride != 0 ? settings.stride : std::max<std::int64_t>(1, window / 2);
  if (window < 2 || (context > 0 && window > context)) {
    fail(ErrorCode::invalid_argument, "window must be from 2 to {}, received {}",
         context > 0 ? std::to_string(context) + " (the model's context)" : "the model's context", window);
  }
  if (stride < 1 || stride > window) {
    fail(ErrorCode::invalid_argument, "stride must be from 1 to {} (the window), received {}", window, stride);
  }
  if (tokens.size() < 2) {
    fail(ErrorCode::invalid_argument, "a perplexity needs a text of at least two tokens, received {}", tokens.size());
  }
  for (const TokenId id : tokens) {
    if (info().vocabulary > 0 && static_cast<std::int64_t>(id) >= info().vocabulary)
      fail(ErrorCode::invalid_argument, "token {} is not in the model's vocabulary of {}", id, info().vocabulary);
  }
  Perplexity out;
  out.tokens = static_cast<std::int64_t>(tokens.size());
  const auto start = std::chrono::steady_clock::now();
  std::int64_t computed = 0;
  double sum = 0;
  TextState state = new_state();
  for (const Window& w : windows_of(out.tokens, window, stride)) {
    sum += score(state, tokens, w, settings.run);
    out.scored += std::max<std::int64_t>(0, w.end - w.first);
    computed += w.end - w.begin - 1;
    ++out.windows;
    if (settings.progress) settings.progress(w.end, out.tokens);
  }
  out.nll = sum / static_cast<double>(out.scored);
  out.perplexity = std::exp(out.nll);
  out.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (out.seconds > 0) out.tokens_per_s = static_cast<double>(computed) / out.seconds;
  return out;
}

}  // namespace sdx
