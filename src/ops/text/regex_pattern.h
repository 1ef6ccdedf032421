#pragma once
// Regular expressions in the syntax that the operators' specifications ask for (RE2), in time that patterns cannot make
// exponential.

#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

namespace sdx::ops {

class RegexPattern {
 public:
  // `whole`: a match must cover the text. `what`: the attribute that holds the pattern, for errors. Throws Error(invalid_model)
  // for an invalid regular expression, or one longer than 64 KiB.
  RegexPattern(std::string_view pattern, bool whole, std::string_view what);
  ~RegexPattern();
  RegexPattern(RegexPattern&&) noexcept;

  // The leftmost match from byte `start` on, the longest of those: [first, last). Nothing where there is none, or where the text
  // is not UTF-8. Not thread-safe. Throws Error(runtime_failure) when it takes too much memory.
  std::optional<std::pair<std::size_t, std::size_t>> find(std::string_view text, std::size_t start);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sdx::ops
