#include "ops/text/regex_pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <cstdint>
#include <vector>

#include "base/error.h"

namespace sdx::ops {
namespace {

constexpr std::size_t kMaxPattern = 64 * 1024;
constexpr std::size_t kMaxWorkspace = 1 << 20;

std::string message(int code) {
  PCRE2_UCHAR text[256] = {};
  pcre2_get_error_message(code, text, sizeof(text));
  return reinterpret_cast<const char*>(text);
}

}  // namespace

// The automaton matcher (pcre2_dfa_match) covers what RE2 does and, like RE2, follows all alternatives at once, so that a pattern
// such as (a+)+b takes no exponential time.
struct RegexPattern::State {
  std::unique_ptr<pcre2_code, decltype(&pcre2_code_free)> code{nullptr, pcre2_code_free};
  std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)> data{nullptr, pcre2_match_data_free};
  std::unique_ptr<pcre2_match_context, decltype(&pcre2_match_context_free)> limits{nullptr, pcre2_match_context_free};
  std::vector<int> workspace = std::vector<int>(1024);
};

RegexPattern::RegexPattern(std::string_view pattern, bool whole, std::string_view what) : state_(std::make_unique<State>()) {
  const std::unique_ptr<pcre2_compile_context, decltype(&pcre2_compile_context_free)> context(
      pcre2_compile_context_create(nullptr), pcre2_compile_context_free);
  if (!context) fail(ErrorCode::out_of_memory, "no memory for a regular expression");
  pcre2_set_max_pattern_length(context.get(), kMaxPattern);
  int error = 0;
  PCRE2_SIZE at = 0;
  std::uint32_t options = PCRE2_UTF | PCRE2_DOLLAR_ENDONLY | PCRE2_NEVER_BACKSLASH_C;
  if (whole) options |= PCRE2_ANCHORED | PCRE2_ENDANCHORED;
  State& s = *state_;
  s.code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(), options, &error, &at, context.get()));
  if (!s.code) {
    fail(ErrorCode::invalid_model, "'{}' is not a valid regular expression: {} at position {}", what, message(error), at);
  }
  s.data.reset(pcre2_match_data_create(1, nullptr));
  s.limits.reset(pcre2_match_context_create(nullptr));
  if (!s.data || !s.limits) fail(ErrorCode::out_of_memory, "no memory for a regular expression");
  pcre2_set_match_limit(s.limits.get(), 1'000'000);
  pcre2_set_depth_limit(s.limits.get(), 1'000);
  pcre2_set_heap_limit(s.limits.get(), 64 * 1024);  // KiB
}

RegexPattern::~RegexPattern() = default;
RegexPattern::RegexPattern(RegexPattern&&) noexcept = default;

std::optional<std::pair<std::size_t, std::size_t>> RegexPattern::find(std::string_view text, std::size_t start) {
  State& s = *state_;
  for (;;) {
    const int result = pcre2_dfa_match(s.code.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), start, 0,
                                       s.data.get(), s.limits.get(), s.workspace.data(), s.workspace.size());
    if (result >= 0) {
      const PCRE2_SIZE* at = pcre2_get_ovector_pointer(s.data.get());
      return std::pair{at[0], at[1]};
    }
    if (result == PCRE2_ERROR_NOMATCH) return std::nullopt;
    // Bytes that are not UTF-8: no character class matches them in RE2 either.
    if (result <= PCRE2_ERROR_UTF8_ERR1 && result >= PCRE2_ERROR_UTF8_ERR21) return std::nullopt;
    if (result == PCRE2_ERROR_DFA_WSSIZE && s.workspace.size() < kMaxWorkspace) {
      s.workspace.resize(s.workspace.size() * 4);
      continue;
    }
    fail(ErrorCode::runtime_failure, "the pattern could not be matched: {}", message(result));
  }
}

}  // namespace sdx::ops
