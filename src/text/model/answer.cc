#include "text/model/answer.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace sdx::text {
namespace {

void need(bool ok, const char* name, auto value, const char* range) {
  if (!ok) fail(ErrorCode::invalid_argument, "{} must be {}, received {}", name, range, value);
}

// Refuses two settings that exclude each other.
void refuse_both(bool both, const char* one, const char* other) {
  if (both) fail(ErrorCode::invalid_argument, "{} cannot be combined with {}", one, other);
}

void check_beams(const GenerationSettings& s) {
  need(s.beams >= 1 && s.beams <= 64, "beams", s.beams, "from 1 to 64");
  if (s.beams == 1) return;
  need(std::isfinite(s.length_penalty), "length_penalty", s.length_penalty, "a finite number");
  if (s.n > s.beams) fail(ErrorCode::invalid_argument, "n must be at most the number of beams, {}, received {}", s.beams, s.n);
  refuse_both(s.mask != nullptr, "beams", "a grammar");
  refuse_both(!s.stop.empty(), "beams", "stop texts");
  refuse_both(s.logprobs >= 0, "beams", "logprobs");
  refuse_both(s.lookup > 0, "beams", "lookup");
  refuse_both(s.draft != nullptr, "beams", "draft");
  refuse_both(s.overflow == ContextOverflow::slide, "beams", "a context that slides");
  refuse_both(s.sampling.repetition_penalty != 1.0F, "beams", "a repetition_penalty other than 1");
  refuse_both(s.sampling.presence_penalty != 0.0F, "beams", "a presence_penalty other than 0");
  refuse_both(s.sampling.frequency_penalty != 0.0F, "beams", "a frequency_penalty other than 0");
  refuse_both(!s.sampling.logit_bias.empty(), "beams", "logit_bias");
}

}  // namespace

void check_alone(const GenerationSettings& s) {
  const char* what = s.beams > 1                            ? "beams"
                     : s.lookup > 0                         ? "lookup"
                     : s.draft != nullptr                   ? "draft"
                     : s.overflow == ContextOverflow::slide ? "a context that slides"
                                                            : nullptr;
  if (what != nullptr) {
    fail(ErrorCode::invalid_argument, "{} is not possible where steps are shared; use LanguageModel::generate", what);
  }
}

void check_settings(const GenerationSettings& s, const LanguageModelInfo& info) {
  check_sampling(s.sampling, info.vocabulary);
  if (s.max_tokens < 1) fail(ErrorCode::invalid_argument, "max_tokens must be 1 or greater, received {}", s.max_tokens);
  if (s.min_tokens < 0) fail(ErrorCode::invalid_argument, "min_tokens must be 0 or greater, received {}", s.min_tokens);
  if (s.n < 1 || s.n > 1024) fail(ErrorCode::invalid_argument, "n must be from 1 to 1024, received {}", s.n);
  if (s.logprobs > 1000) fail(ErrorCode::invalid_argument, "logprobs must be at most 1000, received {}", s.logprobs);
  if (!s.stop.empty() && !s.detokenize) fail(ErrorCode::invalid_argument, "stop texts need `detokenize`");
  if (s.mask && s.ignore_end) fail(ErrorCode::invalid_argument, "ignore_end cannot be honoured if a grammar ends the answer");
  if (std::any_of(s.stop.begin(), s.stop.end(), [](const std::string& t) { return t.empty(); })) {
    fail(ErrorCode::invalid_argument, "a stop text must not be empty");
  }
  check_beams(s);
  need(s.lookup >= 0 && s.lookup <= 64, "lookup", s.lookup, "from 0 to 64");
  need(s.draft_tokens >= 1 && s.draft_tokens <= 64, "draft_tokens", s.draft_tokens, "from 1 to 64");
  refuse_both(s.lookup > 0 && s.draft != nullptr, "lookup", "draft");
  if (s.overflow != ContextOverflow::slide) return;
  refuse_both(s.n > 1, "a context that slides", "n beyond 1");
  if (s.keep < 0 || (info.context > 0 && s.keep > info.context - 2)) {
    fail(ErrorCode::invalid_argument, "keep must be from 0 to {} (two tokens of the context slide), received {}",
         info.context - 2, s.keep);
  }
}

Answer::Answer(const LanguageModelInfo& info, const GenerationSettings& settings, const OnToken& on_token, int index,
               std::span<const TokenId> prompt, std::int64_t most_tokens)
    : settings_(settings),
      on_token_(on_token),
      index_(index),
      most_tokens_(most_tokens),
      sampler_(settings.sampling, prompt, static_cast<std::uint64_t>(index)),
      text_(settings.detokenize, settings.stop),
      ends_(settings.stop_tokens) {
  if (settings.mask) mask_ = settings.mask();
  if (!settings.ignore_end) ends_.insert(ends_.end(), info.eos.begin(), info.eos.end());
}

void Answer::choose(std::span<float> logits) {
  token_ = GeneratedToken();
  token_.choice = index_;
  const bool probs = settings_.logprobs >= 0;
  if (probs) original_.assign(logits.begin(), logits.end());
  const bool early = static_cast<std::int64_t>(choice_.tokens.size()) < settings_.min_tokens;
  token_.id = sample(logits, early ? std::span<const TokenId>(ends_) : std::span<const TokenId>());
  if (probs) {
    const Logprobs shares(original_);
    token_.logprob = shares.of(token_.id);
    token_.top = shares.top(static_cast<std::size_t>(settings_.logprobs));
  }
}

TokenId Answer::sample(std::span<float> logits, std::span<const TokenId> barred) {
  if (!mask_) return sampler_.choose(logits, barred);
  const std::span<const std::uint64_t> allowed = mask_->allowed();
  const TokenId id = sampler_.choose(logits, barred, &allowed);
  if (!mask_->accept(id)) fail(ErrorCode::runtime_failure, "token {} does not fit the grammar that allowed it", id);
  return id;
}

TokenId Answer::tell() {
  const TokenId id = token_.id;
  if (token_.logprob) {
    choice_.logprobs.push_back(*token_.logprob);
    choice_.top_logprobs.push_back(token_.top);
  }
  sampler_.accept(id);
  choice_.tokens.push_back(id);
  if (mask_ && mask_->complete()) choice_.finish_reason = "stop";
  if (std::find(ends_.begin(), ends_.end(), id) != ends_.end()) {
    choice_.finish_reason = "stop";
  } else {
    token_.text = text_.add(id);
    if (text_.stopped()) choice_.finish_reason = "stop", choice_.stop = text_.stop();
  }
  if (!ended() && static_cast<std::int64_t>(choice_.tokens.size()) >= most_tokens_) choice_.finish_reason = "length";
  if (ended()) token_.text += text_.finish();
  if (on_token_ && !on_token_(token_) && !ended()) end("cancelled");
  return id;
}

void Answer::end(const std::string& reason) {
  choice_.finish_reason = reason;
  text_.finish();
}

Choice Answer::take_choice() {
  choice_.text = text_.text();
  return std::move(choice_);
}

}  // namespace sdx::text
