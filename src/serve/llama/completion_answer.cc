#include "serve/llama/completion_answer.h"

#include "base/text/json_text.h"

namespace sdx::serve::llama {
namespace {

using openai::Json;

double per_second(std::int64_t count, double ms) { return ms > 0 ? static_cast<double>(count) * 1000 / ms : 0; }
double each(std::int64_t count, double ms) { return count > 0 ? ms / static_cast<double>(count) : 0; }

Json timings_of(const Generation& g) {
  const std::int64_t computed = g.prompt_tokens - g.cached_tokens;
  const double prompt_ms = g.first_token_ms;
  const double decode_ms = g.tokens_per_s > 0 ? static_cast<double>(g.completion_tokens) * 1000 / g.tokens_per_s : 0;
  return {{"cache_n", g.cached_tokens},
          {"prompt_n", computed},
          {"prompt_ms", prompt_ms},
          {"prompt_per_token_ms", each(computed, prompt_ms)},
          {"prompt_per_second", per_second(computed, prompt_ms)},
          {"predicted_n", g.completion_tokens},
          {"predicted_ms", decode_ms},
          {"predicted_per_token_ms", each(g.completion_tokens, decode_ms)},
          {"predicted_per_second", g.tokens_per_s}};
}

}  // namespace

Json settings_json(const GenerationSettings& settings) {
  const SamplingSettings& s = settings.sampling;
  return {{"n_predict", settings.max_tokens},
          {"seed", s.seed ? Json(*s.seed) : Json(-1)},
          {"temperature", s.greedy ? 0.0F : s.temperature},
          {"top_k", s.top_k},
          {"top_p", s.top_p},
          {"min_p", s.min_p},
          {"typical_p", s.typical_p},
          {"repeat_penalty", s.repetition_penalty},
          {"presence_penalty", s.presence_penalty},
          {"frequency_penalty", s.frequency_penalty},
          {"stop", settings.stop},
          {"ignore_eos", settings.ignore_end}};
}

CompletionAnswer::CompletionAnswer(const openai::PreparedChat& prepared, const openai::ChatRequest& request, bool return_tokens)
    : SingleAnswer(prepared, request),
      model_(prepared.found.model->name),
      prompt_(prepared.prompt),
      settings_(settings_json(prepared.job.settings)),
      return_tokens_(return_tokens) {}

void CompletionAnswer::write(const AnswerEvent& event, std::string& out) {
  if (event.kind != AnswerEvent::Kind::content) return;
  out += openai::kEventBegin;
  out += R"({"index":0,"content":)";
  append_json_string(out, event.text);
  out += R"(,"tokens":[],"stop":false,"id_slot":0,"tokens_evaluated":)" + std::to_string(prompt_tokens());
  if (has_scores()) out += ",\"completion_probabilities\":[" + part_scores() + "]";
  out += '}';
  out += openai::kEventEnd;
}

void CompletionAnswer::append_score(std::string& out, const Score& score, const openai::TokenTexts& texts) const {
  const auto append = [&](const TokenLogprob& token) {
    out += "{\"id\":" + std::to_string(token.id) + ",";
    std::string rest;
    texts.append_logprob(rest, token);
    out += rest.substr(1);
  };
  append(score.token);
  out += ",\"top_logprobs\":[";
  for (std::size_t i = 0; i < score.top.size(); ++i) {
    if (i > 0) out += ',';
    append(score.top[i]);
    out += '}';
  }
  out += "]}";
}

Json CompletionAnswer::last(const Generation& generation, const std::string& content) const {
  const Choice& choice = generation.choices.front();
  const bool length = choice.finish_reason == "length";
  Json out = {{"index", 0},
              {"content", content},
              {"tokens", return_tokens_ ? Json(choice.tokens) : Json::array()},
              {"id_slot", 0},
              {"stop", true},
              {"model", model_},
              {"tokens_predicted", generation.completion_tokens},
              {"tokens_evaluated", generation.prompt_tokens},
              {"generation_settings", settings_},
              {"prompt", prompt_},
              {"has_new_line", choice.text.find('\n') != std::string::npos},
              {"truncated", false},
              {"stop_type", length                ? "limit"
                            : choice.stop.empty() ? "eos"
                                                  : "word"},
              {"stopping_word", choice.stop},
              {"tokens_cached", generation.cached_tokens},
              {"timings", timings_of(generation)}};
  if (has_scores() && !content.empty()) {
    out["completion_probabilities"] = Json::parse("[" + scores(AnswerEvent::Kind::content) + "]");
  }
  return out;
}

void CompletionAnswer::finish(const Generation& generation, std::string& out) {
  end(out);
  out += openai::kEventBegin;
  out += dump_json(last(generation, ""));
  out += openai::kEventEnd;
}

std::string CompletionAnswer::whole(const Generation& generation) {
  std::string nowhere;
  end(nowhere);
  return dump_json(last(generation, parsed().content));
}

}  // namespace sdx::serve::llama
