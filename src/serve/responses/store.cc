#include "serve/responses/store.h"

#include <algorithm>

namespace sdx::serve::responses {

using openai::Json;

namespace {

constexpr std::uint64_t kOverhead = 512;  // of a turn beside its texts, about

}  // namespace

Turn::Turn(std::string of, TurnPtr before, std::string asked, std::string answered,
           std::shared_ptr<std::atomic<std::uint64_t>> counter)
    : owner(std::move(of)),
      input(std::move(asked)),
      response(std::move(answered)),
      previous_(std::move(before)),
      counter_(std::move(counter)),
      bytes_(input.size() + response.size() + kOverhead) {
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
    Json response = Json::parse((*turn)->response);
    for (Json& item : response["output"]) out.push_back(std::move(item));
  }
  return out;
}

TurnPtr Store::find(std::string_view id, std::string_view owner) const {
  const std::lock_guard lock(mutex_);
  const auto found = turns_.find(std::string(id));
  return found == turns_.end() || found->second->owner != owner ? nullptr : found->second;
}

std::optional<Json> Store::find_item(std::string_view id, std::string_view owner) const {
  std::vector<TurnPtr> turns;
  const std::string mark = "\"" + std::string(id) + "\"";
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [name, turn] : turns_) {
      if (turn->owner == owner && turn->response.find(mark) != std::string::npos) turns.push_back(turn);
    }
  }
  for (const TurnPtr& turn : turns) {
    Json response = Json::parse(turn->response);
    for (Json& item : response["output"]) {
      if (item["id"] == Json(id)) return std::move(item);
    }
  }
  return std::nullopt;
}

void Store::add(const std::string& id, std::string owner, TurnPtr previous, std::string input, std::string response) {
  if (input.size() + response.size() + kOverhead > limits_.bytes) return;
  auto turn = std::make_shared<const Turn>(std::move(owner), std::move(previous), std::move(input), std::move(response), bytes_);
  const std::lock_guard lock(mutex_);
  turns_.emplace(id, std::move(turn));
  order_.push_back(id);
  while (order_.size() > 1 && (order_.size() > limits_.turns || *bytes_ > limits_.bytes)) {
    const auto oldest = turns_.find(order_.front());
    order_.pop_front();
    if (oldest != turns_.end()) turns_.erase(oldest);
  }
}

bool Store::remove(std::string_view id, std::string_view owner) {
  TurnPtr gone;
  const std::lock_guard lock(mutex_);
  const auto found = turns_.find(std::string(id));
  if (found == turns_.end() || found->second->owner != owner) return false;
  gone = std::move(found->second);
  turns_.erase(found);
  order_.erase(std::find(order_.begin(), order_.end(), id));
  return true;
}

}  // namespace sdx::serve::responses
