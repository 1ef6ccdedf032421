#include "text/calls/builder.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/splitmix64.h"
#include "base/system/random_bits.h"
#include "base/text/utf8.h"

namespace sdx::text {
namespace {

using Kind = AnswerEvent::Kind;

constexpr std::size_t kMostBlanks = 64;

bool is_object(const std::string& text) {
  return text.find_first_not_of(" \t\r\n") != std::string::npos && text[text.find_first_not_of(" \t\r\n")] == '{' &&
         nlohmann::json::accept(text);
}

}  // namespace

bool good_name(std::string_view name) {
  if (name.empty() || name.size() > kMostName || !is_utf8(name)) return false;
  return std::none_of(name.begin(), name.end(), [](char c) {
    return static_cast<unsigned char>(c) <= 0x20 || c == 0x7F ||
           std::string_view("\"'`<>[]{}()=").find(c) != std::string_view::npos;
  });
}

std::string AnswerBuilder::made_up_id() const {
  constexpr std::string_view letters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  std::string id = id_prefix_;
  // An id only tells the calls of one conversation apart, so it may come from one seed.
  SplitMix64 numbers(random_bits());
  for (std::size_t i = 0; i < id_length_; ++i) id += letters[numbers.below(letters.size())];
  return id;
}

void AnswerBuilder::append(Kind kind, std::string_view text) {
  if (text.empty()) return;
  (kind == Kind::content ? answer_.content : answer_.reasoning) += text;
  if (events_.empty() || events_.back().kind != kind) {
    events_.emplace_back();
    events_.back().kind = kind;
  }
  events_.back().text += text;
}

void AnswerBuilder::keep_blanks() {
  append(blanks_of_, blanks_);
  blanks_.clear();
}

void AnswerBuilder::say(Kind kind, std::string_view text) {
  if (blanks_of_ != kind) keep_blanks();
  blanks_of_ = kind;
  if (at_start_) {
    while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
    if (text.empty()) return;
    at_start_ = false;
  }
  std::size_t end = text.size();
  while (end > 0 && text.size() - end < kMostBlanks && is_blank(text[end - 1])) --end;
  const std::string_view blanks = text.substr(end);
  if (end > 0 || blanks_.size() + blanks.size() > kMostBlanks) keep_blanks();
  append(kind, text.substr(0, end));
  blanks_ += blanks;
}

void AnswerBuilder::begin(std::string_view name, std::string_view id) {
  drop_blanks();
  ToolCall call;
  call.name = name;
  call.id = id.empty() ? made_up_id() : std::string(id);
  AnswerEvent event;
  event.kind = Kind::call_begin;
  event.index = static_cast<int>(answer_.calls.size());
  event.name = call.name;
  event.id = call.id;
  events_.push_back(std::move(event));
  answer_.calls.push_back(std::move(call));
  in_call_ = true;
}

void AnswerBuilder::arguments(std::string_view text) {
  if (text.empty()) return;
  const int index = static_cast<int>(answer_.calls.size()) - 1;
  answer_.calls.back().arguments += text;
  if (events_.empty() || events_.back().kind != Kind::arguments || events_.back().index != index) {
    events_.emplace_back();
    events_.back().kind = Kind::arguments;
    events_.back().index = index;
  }
  events_.back().text += text;
}

void AnswerBuilder::end(bool whole) {
  ToolCall& call = answer_.calls.back();
  if (whole && call.arguments.empty()) arguments("{}");
  call.complete = whole && is_object(call.arguments);
  AnswerEvent event;
  event.kind = Kind::call_end;
  event.index = static_cast<int>(answer_.calls.size()) - 1;
  event.complete = call.complete;
  events_.push_back(std::move(event));
  in_call_ = false;
  at_start_ = true;  // what separates a call from the text behind it is no part of the text
}

}  // namespace sdx::text
