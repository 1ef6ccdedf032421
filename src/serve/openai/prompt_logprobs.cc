#include "serve/openai/prompt_logprobs.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "serve/openai/error.h"

namespace sdx::serve::openai {
namespace {

constexpr std::size_t kPart = 64;  // tokens: logits of 12 MB with a vocabulary of 49152
constexpr int kMostInLine = 5;     // one that computes, and four that wait: each keeps a handler's thread

void append(Echo& to, std::span<const float> logits, TokenId next, std::size_t count) {
  if (static_cast<std::size_t>(next) >= logits.size()) {
    fail(ErrorCode::invalid_argument, "token {} of the prompt is not in the model's vocabulary of {}", next, logits.size());
  }
  const float most = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float x : logits) sum += std::exp(static_cast<double>(x - most));
  const double log_sum = static_cast<double>(most) + std::log(sum);
  const auto of = [&](TokenId id) { return TokenLogprob{id, static_cast<float>(static_cast<double>(logits[id]) - log_sum)}; };
  to.tokens.push_back(of(next));
  std::vector<TokenId> order(logits.size());
  std::iota(order.begin(), order.end(), TokenId{0});
  count = std::min(count, order.size());
  const auto end = order.begin() + static_cast<std::ptrdiff_t>(count);
  std::partial_sort(order.begin(), end, order.end(),
                    [&](TokenId a, TokenId b) { return logits[a] != logits[b] ? logits[a] > logits[b] : a < b; });
  to.top.emplace_back();
  for (auto at = order.begin(); at != end; ++at) to.top.back().push_back(of(*at));
}

}  // namespace

Turn::Turn(Line& line, const std::function<bool()>& gone) : line_(line) {
  if (line.length.fetch_add(1) >= kMostInLine) {
    --line.length;
    ApiError busy(503, "The server is overloaded: too many requests wait for log probabilities of their prompts.",
                  "server_error");
    busy.code = "overloaded";
    busy.retry_after = 1;
    throw busy;
  }
  while (!line.first.try_lock_for(std::chrono::milliseconds(50))) {
    if (!gone()) continue;
    --line.length;
    fail(ErrorCode::cancelled, "the client has disconnected");
  }
}

Turn::~Turn() {
  line_.first.unlock();
  --line_.length;
}

void add_prompt_logprobs(Echo& to, const LanguageModel& model, const std::vector<TokenId>& prompt, int count,
                         const std::function<bool()>& gone) {
  TextState state = model.new_state();
  to.tokens.push_back({prompt.front(), 0});
  to.top.emplace_back();
  for (std::size_t begin = 0; begin + 1 < prompt.size(); begin += kPart) {
    if (gone()) fail(ErrorCode::cancelled, "the client has disconnected");
    const std::size_t length = std::min(kPart, prompt.size() - 1 - begin);
    const Tensor logits = state.append(std::span(prompt).subspan(begin, length), true);
    const std::span<const float> all = logits.values<float>();
    const std::size_t width = all.size() / length;
    for (std::size_t i = 0; i < length; ++i) {
      append(to, all.subspan(i * width, width), prompt[begin + i + 1], static_cast<std::size_t>(count));
    }
  }
}

}  // namespace sdx::serve::openai
