#include "text/calls/loose_scan.h"

#include "base/text/json_text.h"
#include "text/calls/builder.h"

namespace sdx::text {
namespace {

constexpr std::string_view kMark = "<|\"|>";
constexpr std::size_t kDeepest = 64;

}  // namespace

// Only the first character of the mark can begin it: text that did not become one is passed on at once.
LooseScan::Result LooseScan::feed(char c, std::string& json) {
  if (in_ == In::quotes) {
    json += static_cast<unsigned char>(c) < 0x20 ? json_piece({&c, 1}) : std::string(1, c);
    const bool ends = c == '"' && !escape_;
    escape_ = c == '\\' && !escape_;
    if (ends) end_text();
    return Result::inside;
  }
  if (c == kMark[mark_]) {
    if (++mark_ < kMark.size()) return Result::inside;
    mark_ = 0;
    const bool ends = in_ == In::text;
    if (!ends && (open_.empty() || colon_ || !word_.empty())) return Result::not_part;
    json += '"';
    if (ends) {
      end_text();
    } else {
      in_ = In::text;
    }
    return Result::inside;
  }
  if (in_ == In::text) {
    json += json_piece(kMark.substr(0, mark_));
    mark_ = c == kMark[0] ? 1 : 0;
    if (mark_ == 0) json += json_piece({&c, 1});
    return Result::inside;
  }
  return mark_ > 0 ? Result::not_part : outside(c, json);
}

void LooseScan::end_text() {
  in_ = In::nothing;
  colon_ = key_;
}

LooseScan::Result LooseScan::open(char c, std::string& json) {
  if (open_.size() >= kDeepest || (open_.empty() && c != '{')) return Result::not_part;
  open_ += c;
  json += c;
  key_ = c == '{';
  return Result::inside;
}

LooseScan::Result LooseScan::close(char c, std::string& json) {
  if (open_.empty() || open_.back() != (c == '}' ? '{' : '[') || colon_ || !word_.empty()) return Result::not_part;
  open_.pop_back();
  json += c;
  key_ = false;
  return open_.empty() ? Result::last : Result::inside;
}

LooseScan::Result LooseScan::outside(char c, std::string& json) {
  if (c == '}' || c == ']') return close(c, json);
  if (key_) {
    if (c == ':') {
      if (!colon_ && word_.empty()) return Result::not_part;
      while (!word_.empty() && is_blank(word_.back())) word_.pop_back();
      json += colon_ ? ": " : json_string(word_) + ": ";
      word_.clear();
      key_ = colon_ = false;
      return Result::inside;
    }
    if (is_blank(c) && word_.empty()) return Result::inside;
    if (colon_ || c == '{' || c == '[' || c == ',' || word_.size() >= kMostName) return Result::not_part;
    if (c == '"' && word_.empty()) {
      in_ = In::quotes;
      json += c;
    } else {
      word_ += c;
    }
    return Result::inside;
  }
  if (c == '{' || c == '[') return open(c, json);
  if (open_.empty()) return Result::not_part;
  if (c == ',') {
    key_ = open_.back() == '{';
    json += ", ";
  } else {
    if (c == '"') in_ = In::quotes;
    json += c;
  }
  return Result::inside;
}

}  // namespace sdx::text
