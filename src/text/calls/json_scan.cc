#include "text/calls/json_scan.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace sdx::text {
namespace {

constexpr std::size_t kMostDepth = 512, kMostHeld = std::size_t{16} << 10;

// The text of a JSON string; false where it is none.
bool read_string(const std::string& json, std::string& to) {
  const nlohmann::json value = nlohmann::json::parse(json, nullptr, false);
  if (!value.is_string()) return false;
  to = value.get<std::string>();
  return true;
}

}  // namespace

ValueScan::Result ValueScan::feed(char c) {
  if (text_) {
    if (escaped_) {
      escaped_ = false;
    } else if (c == '\\') {
      escaped_ = true;
    } else if (c == '"') {
      text_ = false;
      if (open_.empty()) return Result::last;
    }
    return Result::inside;
  }
  if (!begun_) first_ = c;
  const bool plain = begun_ && open_.empty();  // within a number or a word
  begun_ = true;
  if (c == '"') {
    if (plain) return Result::wrong;
    text_ = true;
  } else if (c == '{' || c == '[') {
    if (plain || open_.size() >= kMostDepth) return Result::wrong;
    open_ += c == '{' ? '}' : ']';
  } else if (c == '}' || c == ']') {
    if (plain) return Result::beyond;
    if (open_.empty() || open_.back() != c) return Result::wrong;
    open_.pop_back();
    if (open_.empty()) return Result::last;
  } else if (open_.empty()) {
    if (plain && (c == ',' || is_blank(c))) return Result::beyond;
    const bool word =
        (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '+' || c == '.';
    if (!word) return Result::wrong;
  }
  return Result::inside;
}

// The name is known and the arguments begin, or the object is over: the call may be told. False: it is none.
bool ObjectCall::tell() {
  if (told_) return true;
  const bool known = names_ == nullptr || std::find(names_->begin(), names_->end(), name_) != names_->end();
  if (!known || !good_name(name_) || !out_.can_begin()) return false;
  out_.begin(name_, id_);
  told_ = true;
  held_.clear();
  return true;
}

ObjectCall::Result ObjectCall::close_value() {
  place_ = Place::after;
  if (streaming_) {
    streaming_ = false;
    arguments_over_ = true;
    return Result::more;
  }
  if ((key_ == "\"name\"" || key_ == "\"tool_name\"") && !name_known_) {
    if (!read_string(value_, name_)) return Result::failed;
    name_known_ = true;
  } else if (key_ == "\"id\"" && !told_) {
    std::string id;
    if (read_string(value_, id) && good_name(id)) id_ = id;
  } else if ((key_ == "\"arguments\"" || key_ == "\"parameters\"") && !arguments_known_) {
    arguments_known_ = true;
    // Some models write the arguments as a text that holds JSON.
    if (!(value_.starts_with('"') && read_string(value_, arguments_))) arguments_ = value_;
  }
  if (name_known_ && arguments_known_ && !arguments_over_) {
    if (!tell()) return Result::failed;
    out_.arguments(arguments_);
    arguments_over_ = true;
  }
  return Result::more;
}

ObjectCall::Result ObjectCall::value(char c) {
  if (scan_.empty()) {
    if (is_blank(c)) return Result::more;
    // The text of an object is passed on as it comes.
    const bool arguments = (key_ == "\"arguments\"" || key_ == "\"parameters\"") && !arguments_known_;
    if (arguments && name_known_ && c == '{') {
      if (!tell()) return Result::failed;
      streaming_ = arguments_known_ = true;
    }
  }
  const ValueScan::Result result = scan_.feed(c);
  if (result == ValueScan::Result::wrong) return Result::failed;
  place_ = Place::in_value;
  if (result != ValueScan::Result::beyond) {
    if (streaming_) {
      out_.arguments(std::string_view(&c, 1));
    } else {
      if (value_.size() < kMostHeld) value_ += c;
    }
  }
  if (result == ValueScan::Result::inside) return Result::more;
  const Result closed = close_value();
  if (closed == Result::failed || result == ValueScan::Result::last) return closed;
  if (c == ',') place_ = Place::key;
  return c == '}' ? Result::done : c == ',' || is_blank(c) ? Result::more : Result::failed;
}

ObjectCall::Result ObjectCall::feed(char c) {
  if (!told_ && held_.size() >= kMostHeld) return Result::failed;
  const bool blank = is_blank(c);
  Result result = Result::failed;
  switch (place_) {
    case Place::before:
      if (c == '{') place_ = Place::key_or_end, result = Result::more;
      break;
    case Place::key_or_end:
    case Place::key:
      if (c == '"') key_.assign(1, c), place_ = Place::in_key, result = Result::more;
      if (blank) result = Result::more;
      if (c == '}' && place_ == Place::key_or_end) result = Result::done;
      break;
    case Place::in_key:
      key_ += c;
      result = key_.size() > 64 ? Result::failed : Result::more;
      if (c == '"') place_ = Place::colon;
      break;
    case Place::colon:
      if (c == ':') place_ = Place::value, scan_ = ValueScan(), value_.clear(), result = Result::more;
      if (blank) result = Result::more;
      break;
    case Place::value:
    case Place::in_value: result = value(c); break;
    case Place::after:
      if (blank) result = Result::more;
      if (c == ',') place_ = Place::key, result = Result::more;
      if (c == '}') result = Result::done;
      break;
  }
  if (result == Result::failed) return result;
  if (!told_) held_ += c;
  if (result == Result::done && !told_ && name_known_ && !bare_) tell();
  return result;
}

}  // namespace sdx::text
