#pragma once
// Responses that were given, for `previous_response_id` and for whoever asks for one again: bounded, in memory.

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "serve/openai/fields.h"

namespace sdx::serve::responses {

// One response: what was asked in this turn, what was answered, and the turn before. Does not change.
struct Turn {
  struct Item {
    std::string id, text;  // of JSON
  };
  Turn(std::string of, std::shared_ptr<const Turn> before, std::string asked, std::string answered, std::vector<Item> made,
       std::shared_ptr<std::atomic<std::uint64_t>> counter);
  ~Turn();
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  const std::string owner;  // the name of the key that may read it; "" without keys
  const std::string input;  // a JSON list of items
  const std::string response;
  const std::vector<Item> items;  // of the response's output

  // The items of all turns up to and with this one, in order.
  openai::Json conversation() const;

 private:
  mutable std::shared_ptr<const Turn> previous_;  // let go of by the destructor
  std::shared_ptr<std::atomic<std::uint64_t>> counter_;
  std::uint64_t bytes_;
};
using TurnPtr = std::shared_ptr<const Turn>;

struct StoreLimits {
  std::size_t turns = 10000;
  std::uint64_t bytes = 64 << 20;  // of texts
};

// Thread-safe. The oldest turns make room for new ones; a turn whose successor is there stays with that.
class Store {
 public:
  explicit Store(const StoreLimits& limits = {}) : limits_(limits) {}

  // Null where there is none, or another key's.
  TurnPtr find(std::string_view id, std::string_view owner) const;
  // The text of an item of an answer by its id.
  std::optional<std::string> find_item(std::string_view id, std::string_view owner) const;
  void add(const std::string& id, std::string owner, TurnPtr previous, std::string input, const openai::Json& response);
  bool remove(std::string_view id, std::string_view owner);
  std::uint64_t bytes() const { return *bytes_; }

 private:
  void erase(std::unordered_map<std::string, TurnPtr>::iterator turn);

  const StoreLimits limits_;
  std::shared_ptr<std::atomic<std::uint64_t>> bytes_ = std::make_shared<std::atomic<std::uint64_t>>(0);
  mutable std::mutex mutex_;
  std::unordered_map<std::string, TurnPtr> turns_;  // guarded by `mutex_`
  std::unordered_map<std::string, TurnPtr> items_;  // by the ids of their items; guarded by `mutex_`
  std::deque<std::string> order_;                   // of arrival; guarded by `mutex_`
};

}  // namespace sdx::serve::responses
