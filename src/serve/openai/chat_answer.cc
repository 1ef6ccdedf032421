#include "serve/openai/chat_answer.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/json_text.h"

namespace sdx::serve::openai {
namespace {

void append_call_begin(std::string& out, const AnswerEvent& event) {
  out += fmt::format(R"("tool_calls":[{{"index":{},"id":)", event.index);
  append_json_string(out, event.id);
  out += R"(,"type":"function","function":{"name":)";
  append_json_string(out, event.name);
  out += R"(,"arguments":""}}])";
}

void append_delta(std::string& out, const AnswerEvent& event) {
  switch (event.kind) {
    case AnswerEvent::Kind::content:
      out += "\"content\":";
      append_json_string(out, event.text);
      break;
    case AnswerEvent::Kind::reasoning:
      out += "\"reasoning_content\":";
      append_json_string(out, event.text);
      break;
    case AnswerEvent::Kind::call_begin: append_call_begin(out, event); break;
    case AnswerEvent::Kind::arguments:
      out += fmt::format(R"("tool_calls":[{{"index":{},"function":{{"arguments":)", event.index);
      append_json_string(out, event.text);
      out += "}}]";
      break;
    case AnswerEvent::Kind::call_end: break;
  }
}

}  // namespace

ChatAnswer::ChatAnswer(ChatAnswerOptions options) : options_(std::move(options)) {
  if (options_.stream) {
    chunk_ = std::string(kEventBegin) + answer_prefix(options_.head, "chat.completion.chunk") + ",\"choices\":[{\"index\":";
  }
  for (int i = 0; i < options_.n; ++i) {
    answers_.push_back({AnswerParser(options_.format, options_.tools, options_.prompt), {}, false, false, 0});
  }
}

void ChatAnswer::open_chunk(std::string& out, int index) const {
  out += chunk_;
  out += std::to_string(index);
  out += ",\"delta\":{";
}

void ChatAnswer::close_chunk(std::string& out, std::string_view logprobs, std::string_view finish) const {
  out += "},\"logprobs\":";
  if (logprobs.empty()) {
    out += "null";
  } else {
    out += "{\"content\":[";
    out += logprobs;
    out += "],\"refusal\":null}";
  }
  out += ",\"finish_reason\":";
  if (finish.empty()) {
    out += "null";
  } else {
    (out += '"') += finish;
    out += '"';
  }
  out += options_.include_usage ? "}],\"usage\":null}" : "}]}";
  out += kEventEnd;
}

std::string ChatAnswer::begin() {
  std::string out;
  for (int i = 0; i < options_.n; ++i) {
    open_chunk(out, i);
    out += R"("role":"assistant","content":"","refusal":null)";
    close_chunk(out, {}, {});
  }
  return out;
}

std::string ChatAnswer::logprob_entry(const GeneratedToken& token) const {
  std::string out;
  if (!options_.texts || !token.logprob) return out;
  if (std::find(options_.ends.begin(), options_.ends.end(), token.id) != options_.ends.end()) return out;
  options_.texts->append_logprobs(out, *token.logprob, token.top);
  return out;
}

bool ChatAnswer::add(const GeneratedToken& token, std::string& out) {
  OneAnswer& answer = answers_[static_cast<std::size_t>(token.choice)];
  if (answer.over) return false;
  std::vector<AnswerEvent> events = answer.parser.add(token.text);
  const auto reasons = [](const AnswerEvent& e) { return e.kind == AnswerEvent::Kind::reasoning; };
  if (std::any_of(events.begin(), events.end(), reasons)) ++answer.reasoning_tokens;
  write(answer, token.choice, std::move(events), logprob_entry(token), out);
  return !answer.over;
}

void ChatAnswer::write(OneAnswer& answer, int index, std::vector<AnswerEvent>&& events, std::string logprobs, std::string& out) {
  if (!options_.stream && !logprobs.empty()) {
    if (!answer.logprobs.empty()) answer.logprobs += ',';
    answer.logprobs += logprobs;
    logprobs.clear();
  }
  for (const AnswerEvent& event : events) {
    if (event.kind == AnswerEvent::Kind::call_begin) answer.calls = true;
    if (event.kind == AnswerEvent::Kind::call_end) {
      if (options_.parallel_calls) continue;
      answer.over = true;  // the one call that was asked for
      break;
    }
    if (!options_.stream) continue;
    open_chunk(out, index);
    append_delta(out, event);
    close_chunk(out, logprobs, {});
    logprobs.clear();
  }
  if (options_.stream && !logprobs.empty()) {
    open_chunk(out, index);
    out += "\"content\":\"\"";
    close_chunk(out, logprobs, {});
  }
}

Usage ChatAnswer::usage(const Generation& generation) const {
  Usage usage;
  usage.add(generation);
  for (const OneAnswer& answer : answers_) usage.reasoning += answer.reasoning_tokens;
  return usage;
}

void ChatAnswer::finish(const Generation& generation, std::string& out) {
  for (std::size_t i = 0; i < answers_.size() && i < generation.choices.size(); ++i) {
    OneAnswer& answer = answers_[i];
    const int index = static_cast<int>(i);
    if (!answer.over) write(answer, index, answer.parser.finish(), {}, out);
    open_chunk(out, index);
    close_chunk(out, {}, finish_reason(generation.choices[i], answer.calls));
  }
  if (options_.include_usage) {
    out += kEventBegin;
    out += answer_prefix(options_.head, "chat.completion.chunk");
    out += ",\"choices\":[],\"usage\":" + usage_json(usage(generation)) + "}";
    out += kEventEnd;
  }
  out += kStreamEnd;
}

std::string ChatAnswer::message(OneAnswer& answer) const {
  const ParsedAnswer& parsed = answer.parser.answer();
  const std::size_t calls = options_.parallel_calls ? parsed.calls.size() : std::min<std::size_t>(parsed.calls.size(), 1);
  std::string out = R"({"role":"assistant","content":)";
  if (parsed.content.empty() && calls > 0) {
    out += "null";
  } else {
    append_json_string(out, parsed.content);
  }
  out += ",\"refusal\":null";
  if (!parsed.reasoning.empty()) {
    out += ",\"reasoning_content\":";
    append_json_string(out, parsed.reasoning);
  }
  for (std::size_t i = 0; i < calls; ++i) {
    const ToolCall& call = parsed.calls[i];
    out += i == 0 ? R"(,"tool_calls":[{"id":)" : R"(,{"id":)";
    append_json_string(out, call.id);
    out += R"(,"type":"function","function":{"name":)";
    append_json_string(out, call.name);
    out += ",\"arguments\":";
    append_json_string(out, call.arguments);
    out += "}}";
  }
  if (calls > 0) out += ']';
  return out + '}';
}

std::string ChatAnswer::whole(const Generation& generation) {
  std::string out = answer_prefix(options_.head, "chat.completion") + ",\"choices\":[";
  for (std::size_t i = 0; i < answers_.size() && i < generation.choices.size(); ++i) {
    OneAnswer& answer = answers_[i];
    std::string nowhere;
    if (!answer.over) write(answer, static_cast<int>(i), answer.parser.finish(), {}, nowhere);
    out += fmt::format("{}{{\"index\":{},\"message\":{},\"logprobs\":", i == 0 ? "" : ",", i, message(answer));
    out += options_.texts ? "{\"content\":[" + answer.logprobs + "],\"refusal\":null}" : "null";
    out += fmt::format(",\"finish_reason\":\"{}\"}}", finish_reason(generation.choices[i], answer.calls));
  }
  return out + "],\"usage\":" + usage_json(usage(generation)) + "}";
}

bool ChatAnswer::cut_short(const Generation& generation) const {
  for (std::size_t i = 0; i < answers_.size(); ++i) {
    if (i >= generation.choices.size()) return true;
    if (generation.choices[i].finish_reason == "cancelled" && !answers_[i].over) return true;
  }
  return false;
}

}  // namespace sdx::serve::openai
