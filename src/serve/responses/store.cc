#include "serve/responses/store.h"

#include <algorithm>

#include "base/text/json_text.h"

namespace sdx::serve::responses {

using openai::Json;

namespace {

constexpr std::uint64_t kOverhead = 512;  // of a turn beside its texts, about

std::uint64_t bytes_of(const std::string& input, const std::string& response, const std::vector<Turn::Item>& items) {
  std::uint64_t out = input.size() + response.size() + kOverhead;
  for (const Turn::Item& item : items) out += item.text.size() + kOverhead;
  return out;
}

std::vector<Turn::Item> items_of(const Json& response) {
  std::vector<Turn::Item> out;
  const auto output = response.find("output");
  if (output == response.end()) return out;
  for (const Json& item : *output) out.push_back({item.at("id").get<std::string>(), dump_json(item)});
  return out;
}

}  // namespace

Turn::Turn(std::string of, TurnPtr before, std::string asked, std::string answered, std::vector<Item> made,
           std::shared_ptr<std::atomic<std::uint64_t>> counter)
    : owner(std::move(of)),
      input(std::move(asked)),
      response(std::move(answered)),
      items(std::move(made)),
      previous_(std::move(before)),
      counter_(std::move(counter)),
      bytes_(bytes_of(input, response, items)) {
  *counter_ += bytes_;
}

// One by one: a conversation of many turns would end in as many calls within each other.
Turn::~Turn() {
  *counter_ -= bytes_;
  TurnPtr next = std::move(previous_);
  while (next && next.use_count() == 1) {
    TurnPtr after = std::move(next->previous_);
    next = std::move(after);
  }
}

Json Turn::conversation() const {
  std::vector<const Turn*> turns;
  for (const Turn* turn = this; turn != nullptr; turn = turn->previous_.get()) turns.push_back(turn);
  Json out = Json::array();
  for (auto turn = turns.rbegin(); turn != turns.rend(); ++turn) {
    for (Json& item : Json::parse((*turn)->input)) out.push_back(std::move(item));
    for (const Item& item : (*turn)->items) out.push_back(Json::parse(item.text));
  }
  return out;
}

TurnPtr Store::find(std::string_view id, std::string_view owner) const {
  const std::lock_guard lock(mutex_);
  const auto found = turns_.find(std::string(id));
  return found == turns_.end() || found->second->owner != owner ? nullptr : found->second;
}

std::optional<std::string> Store::find_item(std::string_view id, std::string_view owner) const {
  const std::lock_guard lock(mutex_);
  const auto found = items_.find(std::string(id));
  if (found == items_.end() || found->second->owner != owner) return std::nullopt;
  for (const Turn::Item& item : found->second->items) {
    if (item.id == id) return item.text;
  }
  return std::nullopt;
}

void Store::erase(std::unordered_map<std::string, TurnPtr>::iterator turn) {
  for (const Turn::Item& item : turn->second->items) items_.erase(item.id);
  turns_.erase(turn);
}

void Store::add(const std::string& id, std::string owner, TurnPtr previous, std::string input, const Json& response) {
  std::vector<Turn::Item> items = items_of(response);
  std::string text = dump_json(response);
  if (bytes_of(input, text, items) > limits_.bytes) return;
  const auto turn = std::make_shared<const Turn>(std::move(owner), std::move(previous), std::move(input), std::move(text),
                                                 std::move(items), bytes_);
  const std::lock_guard lock(mutex_);
  for (const Turn::Item& item : turn->items) items_[item.id] = turn;
  turns_.emplace(id, turn);
  order_.push_back(id);
  while (order_.size() > 1 && (order_.size() > limits_.turns || *bytes_ > limits_.bytes)) {
    if (const auto oldest = turns_.find(order_.front()); oldest != turns_.end()) erase(oldest);
    order_.pop_front();
  }
}

bool Store::remove(std::string_view id, std::string_view owner) {
  TurnPtr gone;  // ends without the lock
  const std::lock_guard lock(mutex_);
  const auto found = turns_.find(std::string(id));
  if (found == turns_.end() || found->second->owner != owner) return false;
  gone = found->second;
  erase(found);
  order_.erase(std::find(order_.begin(), order_.end(), id));
  return true;
}

}  // namespace sdx::serve::responses
