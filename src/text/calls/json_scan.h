#pragma once
// JSON that comes byte by byte: where a value ends, and calls that are written as objects.

#include <string>
#include <vector>

#include "text/calls/builder.h"

namespace sdx::text {

// Finds the end of one value. It looks at brackets and strings only: a parser must decide whether the value is JSON.
class ValueScan {
 public:
  enum class Result {
    inside,  // the byte belongs to the value
    last,    // it is the value's last one
    beyond,  // the value ended before it (numbers and words)
    wrong,   // brackets do not match, or are more than 512 deep
  };
  Result feed(char c);
  bool empty() const { return !begun_; }
  char first() const { return first_; }

 private:
  std::string open_;  // closing brackets that are due
  char first_ = 0;
  bool begun_ = false, text_ = false, escaped_ = false;
};

// {"name": …, "arguments" or "parameters": {…}}, other members being passed over. What comes before the name is known is held: at
// most 16 KiB.
class ObjectCall {
 public:
  // `names`: names that a call may have; null: any. `bare`: no mark says that this is a call, so it must have arguments.
  ObjectCall(AnswerBuilder& out, const std::vector<std::string>* names, bool bare) : out_(out), names_(names), bare_(bare) {}

  enum class Result {
    more,
    done,    // the object is over; if it was not a call (nothing told), held() is its text
    failed,  // the byte does not fit, and was not taken
  };
  Result feed(char c);
  bool told() const { return told_; }
  const std::string& held() const { return held_; }
  // Whether the arguments are complete although the object itself was cut.
  bool has_arguments() const { return arguments_over_; }

 private:
  enum class Place { before, key_or_end, key, in_key, colon, value, in_value, after };
  Result value(char c);
  Result close_value();
  bool tell();

  AnswerBuilder& out_;
  const std::vector<std::string>* names_;
  bool bare_, told_ = false, name_known_ = false, arguments_known_ = false, arguments_over_ = false, streaming_ = false;
  Place place_ = Place::before;
  ValueScan scan_;
  std::string held_, key_, value_, name_, id_, arguments_;
};

}  // namespace sdx::text
