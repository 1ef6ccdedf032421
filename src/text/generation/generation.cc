#include "text/generation/generation.h"

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "text/generation/beams.h"
#include "text/generation/guesses.h"
#include "text/model/answer.h"

namespace sdx::text {
namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) { return std::chrono::duration<double, std::milli>(Clock::now() - start).count(); }

// One text that grows by steps; the last token of the answer is not computed.
class Growth {
 public:
  Growth(const LanguageModel& model, TextBody& body, const GenerationSettings& settings, Generation& counts)
      : context_(static_cast<std::size_t>(std::max<std::int64_t>(0, model.info().context))),
        body_(body),
        settings_(settings),
        counts_(counts),
        guesser_(make_guesser(settings, model)) {}

  // Makes the text fit: the first `keep` tokens stay, and of the others the older half, or more, is dropped.
  Tensor append_prompt(std::span<const TokenId> prompt) {
    if (settings_.overflow == ContextOverflow::slide && context_ > 0 && body_.tokens.size() + prompt.size() > context_) {
      std::vector<TokenId> all = body_.tokens;
      all.insert(all.end(), prompt.begin(), prompt.end());
      return slide(std::move(all));
    }
    return body_.append(prompt, false, settings_.run);
  }

  void run(Answer& answer, Tensor logits) {
    TokenId id = answer.next(logits.mutable_values<float>());
    while (!answer.ended()) {
      const std::vector<TokenId> guess = guesses(answer, id);
      if (guess.empty()) {
        logits = step(id);
        id = answer.next(logits.mutable_values<float>());
      } else {
        id = check(answer, id, guess);
      }
    }
  }

 private:
  std::vector<TokenId> guesses(const Answer& answer, TokenId id) {
    if (!guesser_) return {};
    const std::int64_t left = settings_.max_tokens - static_cast<std::int64_t>(answer.tokens().size()) - 1;
    std::size_t most = static_cast<std::size_t>(std::max<std::int64_t>(0, left));
    if (context_ > 0) most = std::min(most, context_ - std::min(context_, body_.tokens.size() + 1));
    if (most == 0) return {};
    text_ = body_.tokens;
    text_.push_back(id);
    std::vector<TokenId> guess = guesser_->guess(text_, most);
    counts_.drafted_tokens += static_cast<std::int64_t>(guess.size());
    return guess;
  }

  // The model chooses behind each guessed token; the first that it would not have chosen ends the guess. Returns the last choice,
  // which is not computed.
  TokenId check(Answer& answer, TokenId id, const std::vector<TokenId>& guess) {
    std::vector<TokenId> step{id};
    step.insert(step.end(), guess.begin(), guess.end());
    const std::size_t before = body_.tokens.size();
    Tensor logits = body_.append(step, true, settings_.run);
    const auto width = static_cast<std::size_t>(logits.dim(1));
    const std::span<float> rows = logits.mutable_values<float>();
    std::size_t kept = 0;
    TokenId chosen = 0;
    while (true) {
      chosen = answer.next(rows.subspan(kept * width, width));
      const bool right = kept < guess.size() && chosen == guess[kept];
      if (right) ++counts_.accepted_tokens;
      if (answer.ended() || !right) break;
      ++kept;
    }
    body_.rewind(before + 1 + kept);
    return chosen;
  }

  Tensor step(TokenId id) {
    if (settings_.overflow == ContextOverflow::slide && context_ > 0 && body_.tokens.size() + 1 > context_) {
      std::vector<TokenId> all = body_.tokens;
      all.push_back(id);
      return slide(std::move(all));
    }
    return body_.append(std::span(&id, 1), false, settings_.run);
  }

  Tensor slide(std::vector<TokenId> all) {
    const auto keep = static_cast<std::size_t>(settings_.keep);
    const std::size_t left = (context_ - keep + 1) / 2;  // of what is not kept, at most
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(keep);
    all.erase(begin, begin + static_cast<std::ptrdiff_t>(all.size() - keep - std::min(left, all.size() - keep - 1)));
    std::size_t same = 0;
    while (same < std::min(keep, body_.tokens.size()) && body_.tokens[same] == all[same]) ++same;
    body_.rewind(same);
    ++counts_.slides;
    return body_.append(std::span(all).subspan(same), false, settings_.run);
  }

  std::size_t context_;
  TextBody& body_;
  const GenerationSettings& settings_;
  Generation& counts_;
  std::unique_ptr<Guesser> guesser_;
  std::vector<TokenId> text_;
};

}  // namespace

std::size_t keep_common(TextState& state, std::span<const TokenId> ids) {
  const std::vector<TokenId>& has = state.tokens();
  const std::size_t most = std::min(has.size(), ids.empty() ? 0 : ids.size() - 1);
  const auto at = std::mismatch(has.begin(), has.begin() + static_cast<std::ptrdiff_t>(most), ids.begin()).first;
  const auto common = static_cast<std::size_t>(at - has.begin());
  state.rewind(common);
  return common;
}

Generation generate_answers(const LanguageModel& model, TextBody& body, std::span<const TokenId> prompt,
                            const GenerationSettings& settings, const OnToken& on_token) {
  const LanguageModelInfo& info = model.info();
  check_settings(settings, info);
  Generation out;
  Growth growth(model, body, settings, out);
  const std::size_t before = body.tokens.size();
  const auto start = Clock::now();
  const Tensor logits = growth.append_prompt(prompt);
  out.first_token_ms = ms_since(start);
  const std::size_t length = body.tokens.size();
  out.prompt_tokens = static_cast<std::int64_t>(before + prompt.size());
  const bool bounded = info.context > 0 && settings.overflow == ContextOverflow::error;
  // The last token is not computed.
  const std::int64_t most =
      bounded ? std::min(settings.max_tokens, info.context - static_cast<std::int64_t>(length) + 1) : settings.max_tokens;
  const auto decoding = Clock::now();
  const std::vector<TokenId> seen = body.tokens;
  if (settings.beams > 1) {
    out.choices = beam_search(info, body, logits, settings, on_token, most);
  } else {
    for (int i = 0; i < settings.n; ++i) {
      if (i > 0) body.rewind(length);
      Answer answer(info, settings, on_token, i, seen, most);
      growth.run(answer, settings.n == 1 ? logits : logits.clone());
      out.choices.push_back(answer.take_choice());
      if (out.choices.back().finish_reason == "cancelled") break;
    }
  }
  for (const Choice& c : out.choices) out.completion_tokens += static_cast<std::int64_t>(c.tokens.size());
  const double seconds = ms_since(decoding) / 1000.0;
  // The first token of each answer comes from the prompt's logits.
  const std::int64_t steps = out.completion_tokens - static_cast<std::int64_t>(out.choices.size());
  if (steps > 0 && seconds > 0) out.tokens_per_s = static_cast<double>(steps) / seconds;
  if (out.first_token_ms > 0) {
    out.prompt_tokens_per_s = static_cast<double>(length - std::min(before, length)) / out.first_token_ms * 1000.0;
  }
  return out;
}

}  // namespace sdx::text
