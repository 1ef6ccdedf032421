// RegexFullMatch: ai.onnx 20.

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <memory>

#include "ops/context.h"
#include "ops/op.h"

namespace sdx::ops {
namespace {

constexpr std::size_t kMaxPattern = 64 * 1024;
constexpr std::size_t kMaxWorkspace = 1 << 20;

std::string message(int code) {
  PCRE2_UCHAR text[256] = {};
  pcre2_get_error_message(code, text, sizeof(text));
  return reinterpret_cast<const char*>(text);
}

// The pattern is RE2 syntax. The automaton matcher (pcre2_dfa_match) covers what RE2 does and, like RE2, follows all
// alternatives at once, so that a pattern such as (a+)+b takes no exponential time.
class Pattern {
 public:
  explicit Pattern(const std::string& text) {
    const std::unique_ptr<pcre2_compile_context, decltype(&pcre2_compile_context_free)> context(
        pcre2_compile_context_create(nullptr), pcre2_compile_context_free);
    if (!context) fail(ErrorCode::out_of_memory, "no memory for a regular expression");
    pcre2_set_max_pattern_length(context.get(), kMaxPattern);
    int error = 0;
    PCRE2_SIZE at = 0;
    constexpr std::uint32_t options =
        PCRE2_UTF | PCRE2_ANCHORED | PCRE2_ENDANCHORED | PCRE2_DOLLAR_ENDONLY | PCRE2_NEVER_BACKSLASH_C;
    code_.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), options, &error, &at, context.get()));
    if (!code_) {
      fail(ErrorCode::invalid_model, "'pattern' is no valid regular expression: {} at position {}", message(error), at);
    }
    data_.reset(pcre2_match_data_create(1, nullptr));
    limits_.reset(pcre2_match_context_create(nullptr));
    if (!data_ || !limits_) fail(ErrorCode::out_of_memory, "no memory for a regular expression");
    pcre2_set_match_limit(limits_.get(), 1'000'000);
    pcre2_set_depth_limit(limits_.get(), 1'000);
    pcre2_set_heap_limit(limits_.get(), 64 * 1024);  // KiB
  }

  bool matches(const std::string& text) {
    for (;;) {
      const int result = pcre2_dfa_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), 0, 0, data_.get(),
                                         limits_.get(), workspace_.data(), workspace_.size());
      if (result >= 0) return true;
      if (result == PCRE2_ERROR_NOMATCH) return false;
      // Bytes that are not UTF-8: no character class matches them in RE2 either.
      if (result <= PCRE2_ERROR_UTF8_ERR1 && result >= PCRE2_ERROR_UTF8_ERR21) return false;
      if (result == PCRE2_ERROR_DFA_WSSIZE && workspace_.size() < kMaxWorkspace) {
        workspace_.resize(workspace_.size() * 4);
        continue;
      }
      fail(ErrorCode::runtime_failure, "the pattern could not be matched: {}", message(result));
    }
  }

 private:
  std::unique_ptr<pcre2_code, decltype(&pcre2_code_free)> code_{nullptr, pcre2_code_free};
  std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)> data_{nullptr, pcre2_match_data_free};
  std::unique_ptr<pcre2_match_context, decltype(&pcre2_match_context_free)> limits_{nullptr, pcre2_match_context_free};
  std::vector<int> workspace_ = std::vector<int>(1024);
};

void infer_regex(InferContext& c) {
  if (const SymShape* in = c.shape(0)) return c.output(0, DataType::boolean, *in);
  c.output(0, DataType::boolean);
}

void run_regex(OpContext& c) {
  const Tensor& in = c.input(0);
  Pattern pattern(c.attrs().get_string("pattern"));
  Tensor& out = c.output(0, DataType::boolean, in.shape());
  bool* to = static_cast<bool*>(out.mutable_data());
  for (const std::string& text : in.values<std::string>()) {
    c.stop().check();
    *to++ = pattern.matches(text);
  }
}

}  // namespace

void register_regex_full_match(OpTable& t) {
  t.add(OpDef("RegexFullMatch", 20)
            .in("X", "T1", types::string)
            .out("Y", "T2", types::boolean)
            .attr("pattern", AttrKind::s, true)
            .infer_with(infer_regex)
            .run_with(run_regex));
}

}  // namespace sdx::ops
