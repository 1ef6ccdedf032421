#include "serve/server/keys.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cmath>
#include <fstream>
#include <iterator>

#include "base/error.h"

namespace sdx::serve {
namespace {

constexpr std::size_t kMostFileBytes = 16u << 20;
constexpr std::string_view kHashed = "sha256:";

KeyHash hash_of(std::string_view key) {
  KeyHash hash;
  ::SHA256(reinterpret_cast<const unsigned char*>(key.data()), key.size(), hash.data());
  return hash;
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  constexpr std::string_view blank = " \t\r";
  for (std::size_t at = line.find_first_not_of(blank); at != std::string_view::npos; at = line.find_first_not_of(blank, at)) {
    const std::size_t end = std::min(line.find_first_of(blank, at), line.size());
    words.push_back(line.substr(at, end - at));
    at = end;
  }
  return words;
}

template <class T>
bool parse_number(std::string_view text, T& to) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), to);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

std::optional<KeyHash> parse_hash(std::string_view text) {
  KeyHash hash;
  if (text.size() != 2 * hash.size()) return std::nullopt;
  for (std::size_t i = 0; i < hash.size(); ++i) {
    const auto digits = text.substr(2 * i, 2);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + 2, hash[i], 16);
    if (error != std::errc() || end != digits.data() + 2) return std::nullopt;
  }
  return hash;
}

std::optional<std::chrono::system_clock::time_point> parse_day(std::string_view text) {
  int year = 0;
  unsigned month = 0, day = 0;
  if (text.size() != 10 || text[4] != '-' || text[7] != '-' || !parse_number(text.substr(0, 4), year) ||
      !parse_number(text.substr(5, 2), month) || !parse_number(text.substr(8), day)) {
    return std::nullopt;
  }
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(month), std::chrono::day(day)};
  if (!date.ok()) return std::nullopt;
  return std::chrono::sys_days(date);
}

KeyRule parse_rule(const std::vector<std::string_view>& words, const std::string& place) {
  KeyRule rule;
  if (words[0].starts_with(kHashed)) {
    const auto hash = parse_hash(words[0].substr(kHashed.size()));
    if (!hash) fail(ErrorCode::invalid_argument, "{}: 'sha256:' must be followed by 64 hexadecimal digits", place);
    rule.hash = *hash;
  } else {
    const bool plain = std::all_of(words[0].begin(), words[0].end(), [](unsigned char c) { return c > 0x20 && c < 0x7f; });
    if (!plain) fail(ErrorCode::invalid_argument, "{}: a key consists of visible ASCII characters", place);
    rule.hash = hash_of(words[0]);
  }
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::size_t equals = words[i].find('=');
    const std::string_view name = words[i].substr(0, equals);
    const std::string_view value = equals == std::string_view::npos ? std::string_view() : words[i].substr(equals + 1);
    bool fine = false;
    if (name == "name") {
      rule.name = value;
      fine = !value.empty();
    } else if (name == "rate") {
      fine = parse_number(value, rule.per_minute) && rule.per_minute > 0 && rule.per_minute <= 1e9;
    } else if (name == "concurrency") {
      fine = parse_number(value, rule.concurrency) && rule.concurrency > 0;
    } else if (name == "expires") {
      rule.expires = parse_day(value);
      fine = rule.expires.has_value();
    }
    if (!fine) {
      fail(ErrorCode::invalid_argument,
           "{}: word {} after the key must be name=NAME, rate=REQUESTS_A_MINUTE, concurrency=N or expires=YYYY-MM-DD", place, i);
    }
  }
  return rule;
}

}  // namespace

std::vector<KeyRule> parse_keys(std::string_view text, const std::string& file) {
  std::vector<KeyRule> rules;
  int number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    const auto words = words_of(line.substr(0, line.find('#')));
    if (words.empty()) continue;
    KeyRule rule = parse_rule(words, fmt::format("{}:{}", file, number));
    if (rule.name.empty()) rule.name = fmt::format("key {}", number);
    for (const KeyRule& other : rules) {
      if (other.hash == rule.hash) fail(ErrorCode::invalid_argument, "{}:{}: this key is listed twice", file, number);
    }
    rules.push_back(std::move(rule));
  }
  if (rules.empty()) fail(ErrorCode::invalid_argument, "{} contains no key, so no client could send requests", file);
  return rules;
}

std::vector<KeyRule> read_keys(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::string text(kMostFileBytes + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  if (text.empty() && !in.eof()) fail(ErrorCode::io, "the file of API keys {} cannot be read", file.string());
  if (text.size() > kMostFileBytes) fail(ErrorCode::io, "the file of API keys {} has more than 16 MiB", file.string());
  return parse_keys(text, file.string());
}

Keys::Keys(std::vector<KeyRule> rules) { replace(std::move(rules)); }

void Keys::replace(std::vector<KeyRule> rules) {
  std::vector<State> states;
  const std::lock_guard lock(mutex_);
  for (KeyRule& rule : rules) {
    State state;
    state.tokens = std::max(1.0, rule.per_minute);
    state.running = std::make_shared<std::atomic<int>>(0);
    for (const State& old : states_) {
      if (old.rule.hash != rule.hash) continue;
      state.tokens = std::min(state.tokens, old.rule.per_minute > 0 ? old.tokens : state.tokens);
      state.filled = old.filled;
      state.running = old.running;
    }
    state.rule = std::move(rule);
    states.push_back(std::move(state));
  }
  states_ = std::move(states);
}

Keys::Answer Keys::ask(std::string_view key, bool limited, Now now, std::chrono::system_clock::time_point day) {
  Answer answer;
  if (key.empty()) {
    answer.verdict = Verdict::missing;
    return answer;
  }
  const KeyHash hash = hash_of(key);
  const std::lock_guard lock(mutex_);
  State* found = nullptr;
  for (State& state : states_) {
    if (::CRYPTO_memcmp(state.rule.hash.data(), hash.data(), hash.size()) == 0) found = &state;
  }
  if (found == nullptr) return answer;
  const KeyRule& rule = found->rule;
  answer.name = rule.name;
  answer.verdict = Verdict::expired;
  if (rule.expires && day >= *rule.expires) return answer;
  answer.verdict = Verdict::fine;
  if (!limited) return answer;
  if (rule.concurrency > 0 && *found->running >= rule.concurrency) {
    answer.verdict = Verdict::too_many;
    answer.retry_after = std::chrono::seconds(1);
    return answer;
  }
  if (rule.per_minute > 0) {
    const double most = std::max(1.0, rule.per_minute);
    const double since = found->filled == Now() ? 0 : std::max(0.0, std::chrono::duration<double>(now - found->filled).count());
    found->tokens = std::min(most, found->tokens + since * rule.per_minute / 60);
    found->filled = now;
    if (found->tokens < 1) {
      answer.verdict = Verdict::too_often;
      answer.retry_after = std::chrono::seconds(static_cast<std::int64_t>(std::ceil((1 - found->tokens) * 60 / rule.per_minute)));
      return answer;
    }
    found->tokens -= 1;
  }
  ++*found->running;
  answer.held = std::shared_ptr<void>(nullptr, [running = found->running](void*) { --*running; });
  return answer;
}

}  // namespace sdx::serve
