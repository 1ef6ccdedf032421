#include "text/tokenizer/pattern.h"
#include "text/tokenizer/onig_library.h"

#include <chrono>
#include <mutex>
#include <optional>

#include "base/error.h"
#include "text/tokenizer/scanners.h"
#include "text/unicode/unicode.h"

namespace sdx::text {
namespace {

// Backtracking: a step back keeps some 40 bytes. Ten million attempts at one place are Oniguruma's own limit.
constexpr unsigned kStack = 8'000'000;
constexpr unsigned long kRetries = 10'000'000, kRetriesOfSearch = 100'000'000;
constexpr std::chrono::seconds kTime{60};

std::mutex& compiling() {
  static std::mutex mutex;
  return mutex;
}

std::string describe(int code, const OnigErrorInfo* info) {
  OnigUChar text[ONIG_MAX_ERROR_MESSAGE_LEN] = {};
  const int size = info == nullptr ? onig().error_code_to_str(text, code) : onig().error_code_to_str(text, code, info);
  return {reinterpret_cast<const char*>(text), static_cast<std::size_t>(size > 0 ? size : 0)};
}

const OnigUChar* bytes_of(const char* text) { return reinterpret_cast<const OnigUChar*>(text); }

}  // namespace

class Regex {
 public:
  explicit Regex(const std::string& expression) {
    const std::scoped_lock lock(compiling());
    OnigErrorInfo info{};
    const int code = onig().make(&regex_, bytes_of(expression.data()), bytes_of(expression.data() + expression.size()),
                                 ONIG_OPTION_NONE, onig().utf8, onig().ruby, &info);
    if (code != ONIG_NORMAL) {
      fail(ErrorCode::invalid_model, "the regular expression '{}' is not valid: {}", expression, describe(code, &info));
    }
  }
  ~Regex() { onig().free(regex_); }
  Regex(const Regex&) = delete;
  Regex& operator=(const Regex&) = delete;

  const OnigRegex& get() const { return regex_; }

 private:
  OnigRegex regex_ = nullptr;
};

namespace {

// One search after the other through a text.
class Search {
 public:
  Search(const Regex& regex, std::string_view text)
      : regex_(regex.get()),
        text_(text),
        region_(onig().region_new(), &free_region),
        limits_(onig().new_match_param(), onig().free_match_param) {
    if (!region_ || !limits_) throw std::bad_alloc();
    onig().initialize_match_param(limits_.get());
    onig().set_stack_limit(limits_.get(), kStack);
    onig().set_retry_limit(limits_.get(), kRetries);
    onig().set_search_retry_limit(limits_.get(), kRetriesOfSearch);
  }

  // The next match, but no empty one directly behind another.
  std::optional<Span> next() {
    while (from_ <= text_.size()) {
      check_time();
      const OnigUChar *begin = bytes_of(text_.data()), *end = begin + text_.size();
      onig().region_clear(region_.get());
      const int found = onig().search(regex_, begin, end, begin + from_, end, region_.get(), ONIG_OPTION_NONE, limits_.get());
      if (found == ONIG_MISMATCH) break;
      if (found < 0)
        fail(ErrorCode::runtime_failure, "a regular expression of the tokenizer cannot be matched: {}", describe(found, nullptr));
      const auto first = static_cast<std::size_t>(region_->beg[0]), last = static_cast<std::size_t>(region_->end[0]);
      if (first == last && last_end_ == last) {
        from_ += from_ < text_.size() ? bytes_of_lead(text_[from_]) : 1;
        continue;
      }
      from_ = last;
      last_end_ = last;
      return Span{static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(last)};
    }
    return std::nullopt;
  }

 private:
  static void free_region(OnigRegion* region) { onig().region_free(region, 1); }

  void check_time() {
    if (++searches_ % 64 != 1) return;
    const auto now = std::chrono::steady_clock::now();
    if (searches_ == 1) {
      until_ = now + kTime;
    } else if (now > until_) {
      fail(ErrorCode::runtime_failure, "a regular expression of the tokenizer takes longer than {} s for {} bytes of text",
           kTime.count(), text_.size());
    }
  }

  OnigRegex regex_;
  std::string_view text_;
  std::unique_ptr<OnigRegion, void (*)(OnigRegion*)> region_;
  std::unique_ptr<OnigMatchParam, void (*)(OnigMatchParam*)> limits_;
  std::size_t from_ = 0, searches_ = 0;
  std::optional<std::size_t> last_end_;
  std::chrono::steady_clock::time_point until_;
};

// Collects matches and fills the gaps.
class Collector {
 public:
  Collector(std::string_view text, std::vector<Match>& to) : size_(static_cast<std::uint32_t>(text.size())), to_(to) {
    to.clear();
  }
  void add(std::uint32_t begin, std::uint32_t end) {
    if (begin != last_) to_.push_back({last_, begin, false});
    to_.push_back({begin, end, true});
    last_ = end;
  }
  void finish() {
    if (last_ != size_) to_.push_back({last_, size_, false});
  }

 private:
  std::uint32_t size_, last_ = 0;
  std::vector<Match>& to_;
};

}  // namespace

Pattern Pattern::literal(std::string text) {
  if (text.empty()) return slow_regex("");
  Pattern p;
  p.literal_ = std::move(text);
  return p;
}

Pattern Pattern::slow_regex(const std::string& expression) {
  Pattern p;
  p.regex_ = std::make_shared<Regex>(expression);
  return p;
}

Pattern Pattern::regex(const std::string& expression) {
  const Scanner known = find_scanner(expression);
  return known != nullptr ? scanner(known) : slow_regex(expression);
}

Pattern Pattern::scanner(Scanner scan) {
  Pattern p;
  p.scan_ = scan;
  return p;
}

void Pattern::find_literal(std::string_view text, std::vector<Match>& to) const {
  Collector matches(text, to);
  for (std::size_t at = text.find(literal_); at != std::string_view::npos; at = text.find(literal_, at + literal_.size())) {
    matches.add(static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(at + literal_.size()));
  }
  matches.finish();
}

void Pattern::find(std::string_view text, std::vector<Match>& to) const {
  if (text.empty()) {
    to.assign(1, {0, 0, false});
    return;
  }
  if (!literal_.empty()) return find_literal(text, to);
  Collector matches(text, to);
  if (scan_ != nullptr) {
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = scan_(text, at);
      if (end == at) {
        at += bytes_of_lead(text[at]);
        continue;
      }
      matches.add(static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(end));
      at = end;
    }
  } else {
    Search search(*regex_, text);
    while (const auto match = search.next()) matches.add(match->begin, match->end);
  }
  matches.finish();
}

}  // namespace sdx::text
