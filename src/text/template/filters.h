#pragma once
// The built-in filters, by what they work on: filters_text.cc, filters_sequence.cc.

#include <span>
#include <string_view>

#include "text/template/runtime.h"

namespace sdx::text::jinja {

struct NamedFilter {
  std::string_view name;
  Filter call;
};

std::span<const NamedFilter> text_filters();
std::span<const NamedFilter> sequence_filters();

[[noreturn]] void filter_error(std::string message);  // FilterArgumentError
// An attribute as filters name it: "a.b", "0", 0. An element that lacks it gives `otherwise`, where there is one.
class Getter {
 public:
  Getter(Runtime& rt, const Value& attribute, bool lower_case = false, const Value* otherwise = nullptr);
  Value operator()(const Value& item) const;

 private:
  Runtime& rt_;
  Values parts_;
  bool lower_case_;
  const Value* otherwise_;
};

}  // namespace sdx::text::jinja
