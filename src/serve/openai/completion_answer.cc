#include "serve/openai/completion_answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text/json_text.h"

namespace sdx::serve::openai {
namespace {

std::int64_t characters(std::string_view bytes) {
  return std::count_if(bytes.begin(), bytes.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

void append_item(std::string& list, const std::string& item) {
  if (!list.empty()) list += ',';
  list += item;
}

}  // namespace

CompletionAnswer::CompletionAnswer(CompletionAnswerOptions options)
    : options_(std::move(options)), answers_(options_.prompts * static_cast<std::size_t>(options_.best_of)) {
  if (options_.stream) {
    chunk_ = std::string(kEventBegin) + answer_prefix(options_.head, "text_completion") + ",\"choices\":[{\"text\":";
  }
  if (options_.echo.empty()) return;
  for (std::size_t i = 0; i < answers_.size(); ++i) {
    const Echo& echo = options_.echo[i / static_cast<std::size_t>(options_.best_of)];
    answers_[i].text = echo.text;
    for (std::size_t t = 0; t < echo.tokens.size(); ++t) {
      append_logprob(answers_[i].logprobs, echo.tokens[t], echo.top[t], t == 0);
    }
  }
}

void CompletionAnswer::append_logprob(Logprobs& to, const TokenLogprob& token, const std::vector<TokenLogprob>& top,
                                      bool first) const {
  const TokenTexts& texts = *options_.texts;
  append_item(to.tokens, json_string(texts.shown(token.id)));
  append_item(to.offsets, std::to_string(to.offset));
  to.offset += characters(texts.bytes(token.id));
  if (first) {  // nothing came before it
    append_item(to.values, "null");
    append_item(to.top, "null");
    return;
  }
  std::string value;
  append_logarithm(value, token.logprob);
  append_item(to.values, value);
  std::string shares;
  std::set<std::string> names;  // tokens may look the same; the likelier one stays
  const auto add = [&](const TokenLogprob& t) {
    std::string name = json_string(texts.shown(t.id));
    if (!names.insert(name).second) return;
    append_item(shares, name + ":");
    append_logarithm(shares, t.logprob);
  };
  for (const TokenLogprob& t : top) add(t);
  add(token);
  append_item(to.top, "{" + shares + "}");
}

std::string CompletionAnswer::logprobs_json(const Logprobs& l) const {
  if (!options_.texts) return "null";
  return fmt::format(R"({{"tokens":[{}],"token_logprobs":[{}],"top_logprobs":[{}],"text_offset":[{}]}})", l.tokens, l.values,
                     l.top, l.offsets);
}

void CompletionAnswer::append_chunk(std::string& out, std::size_t index, OneAnswer& answer, std::string_view text,
                                    std::string_view finish) const {
  out += chunk_;
  append_json_string(out, text);
  out += ",\"index\":" + std::to_string(index) + ",\"logprobs\":";
  out += answer.logprobs.tokens.empty() ? "null" : logprobs_json(answer.logprobs);
  answer.logprobs = Logprobs{{}, {}, {}, {}, answer.logprobs.offset};
  out += ",\"finish_reason\":";
  out += finish.empty() ? std::string("null") : json_string(finish);
  out += options_.include_usage ? "}],\"usage\":null}" : "}]}";
  out += kEventEnd;
}

std::string CompletionAnswer::begin() {
  std::string out;
  if (options_.echo.empty()) return out;
  for (std::size_t i = 0; i < answers_.size(); ++i) append_chunk(out, i, answers_[i], answers_[i].text, {});
  return out;
}

void CompletionAnswer::add(std::size_t prompt, const GeneratedToken& token, std::string& out) {
  const std::size_t index = prompt * static_cast<std::size_t>(options_.best_of) + static_cast<std::size_t>(token.choice);
  OneAnswer& answer = answers_[index];
  if (token.logprob) {
    answer.total += static_cast<double>(token.logprob->logprob);
    ++answer.tokens;
    const bool end = std::find(options_.ends.begin(), options_.ends.end(), token.id) != options_.ends.end();
    if (options_.texts && !end) append_logprob(answer.logprobs, *token.logprob, token.top, false);
  }
  if (!options_.stream) return;
  if (!token.text.empty() || !answer.logprobs.tokens.empty()) append_chunk(out, index, answer, token.text, {});
}

void CompletionAnswer::finish(std::size_t prompt, Generation generation, std::string& out) {
  usage_.add(generation);
  ++finished_;
  for (std::size_t c = 0; c < generation.choices.size(); ++c) {
    const std::size_t index = prompt * static_cast<std::size_t>(options_.best_of) + c;
    OneAnswer& answer = answers_[index];
    answer.finish = finish_reason(generation.choices[c], false);
    if (options_.stream) {
      append_chunk(out, index, answer, "", answer.finish);
    } else {
      answer.text += generation.choices[c].text;
    }
  }
}

std::string CompletionAnswer::end() const {
  std::string out;
  if (options_.include_usage) {
    out += kEventBegin;
    out += answer_prefix(options_.head, "text_completion") + ",\"choices\":[],\"usage\":" + usage_json(usage_) + "}";
    out += kEventEnd;
  }
  out += kStreamEnd;
  return out;
}

std::vector<std::size_t> CompletionAnswer::chosen(std::size_t prompt) const {
  const auto count = static_cast<std::size_t>(options_.best_of);
  std::vector<std::size_t> order(count);
  for (std::size_t i = 0; i < count; ++i) order[i] = prompt * count + i;
  const auto mean = [this](std::size_t i) {
    const OneAnswer& a = answers_[i];
    return a.tokens > 0 ? a.total / static_cast<double>(a.tokens) : 0.0;
  };
  if (options_.best_of > options_.n) {
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return mean(a) > mean(b); });
  }
  order.resize(static_cast<std::size_t>(options_.n));
  return order;
}

std::string CompletionAnswer::whole() const {
  std::string out = answer_prefix(options_.head, "text_completion") + ",\"choices\":[";
  std::size_t index = 0;
  for (std::size_t prompt = 0; prompt < options_.prompts; ++prompt) {
    for (const std::size_t i : chosen(prompt)) {
      const OneAnswer& answer = answers_[i];
      out += fmt::format("{}{{\"text\":{},\"index\":{},\"logprobs\":{},\"finish_reason\":\"{}\"}}", index == 0 ? "" : ",",
                         json_string(answer.text), index, logprobs_json(answer.logprobs), answer.finish);
      ++index;
    }
  }
  return out + "],\"usage\":" + usage_json(usage_) + "}";
}

}  // namespace sdx::serve::openai
