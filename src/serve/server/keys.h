#pragma once
// API keys: who may ask, how often and how much at a time.
//
// A file has one key a line, and behind it what holds for it; '#' begins a comment:
//
//   sk-alice-1f6e…  name=alice rate=60 concurrency=4 expires=2027-01-31
//   sha256:9f86d081884c7d65…  name=bob
//
// rate: requests a minute, as many of them at once. expires: the first day (UTC) on which it no longer holds.

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sdx::serve {

using KeyHash = std::array<unsigned char, 32>;  // SHA-256

struct KeyRule {
  KeyHash hash{};
  std::string name;  // "key 3" where the file gives none: its line
  double per_minute = 0;
  int concurrency = 0;  // 0 and 0: any
  std::optional<std::chrono::system_clock::time_point> expires;
};

// Throws Error(invalid_argument) "FILE:LINE: …", which never quotes a key.
std::vector<KeyRule> parse_keys(std::string_view text, const std::string& file);
// Throws Error(io) as well.
std::vector<KeyRule> read_keys(const std::filesystem::path& file);

// Thread-safe.
class Keys {
 public:
  using Now = std::chrono::steady_clock::time_point;
  enum class Verdict { fine, missing, unknown, expired, too_often, too_many };
  struct Answer {
    Verdict verdict = Verdict::unknown;
    std::string name;
    std::chrono::seconds retry_after{0};
    std::shared_ptr<void> held;  // of the key's concurrency, until it is let go of
  };

  explicit Keys(std::vector<KeyRule> rules);
  // The used share of a key that is still in the file stays used.
  void replace(std::vector<KeyRule> rules);

  // `key`: the text after "Bearer ". Compares with every key, so that the time does not reveal which one is close. `limited`:
  // counts against rate and concurrency.
  Answer ask(std::string_view key, bool limited, Now now, std::chrono::system_clock::time_point day);

 private:
  struct State {
    KeyRule rule;
    double tokens = 0;
    Now filled;
    std::shared_ptr<std::atomic<int>> running;
  };
  mutable std::mutex mutex_;
  std::vector<State> states_;
};

}  // namespace sdx::serve
