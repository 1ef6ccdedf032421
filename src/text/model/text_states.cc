// States of texts in a DecoderState: the slots that a step reads and writes, and those that are kept for rewind().

#include <algorithm>
#include <set>

#include "text/model/decoder.h"
#include "text/model/paged_step.h"

namespace sdx::text {
namespace {

constexpr std::size_t kMostKept = 3;
constexpr std::int64_t kChunk = 512;  // tokens that are computed again at once

}  // namespace

bool DecoderState::reserve_blocks(std::int64_t more) {
  if (!blocks_.reserve(length_, length_ + more)) return false;
  return !decoder_->has_states() || next_.reserve(0, 1);
}

// Takes in what a step has computed. Nothing fails.
void DecoderState::took(std::span<const TokenId> tokens) {
  length_ += static_cast<std::int64_t>(tokens.size());
  if (!decoder_->has_states()) return;
  const bool several = keeps_ && tokens.size() > 1;  // a guess, which may be taken back, or a prompt
  if (several && state_.at > 0) keep(0);
  std::swap(state_.slot, next_);
  state_.at = length_;
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  if (several) keep(static_cast<std::int64_t>(tokens.size()));
}

// Keeps the state where it is. Where there are too many, the one behind the shortest step goes, but not the newest two.
void DecoderState::keep(std::int64_t weight) {
  if (!kept_.empty() && kept_.back().at == state_.at) return;
  kept_.push_back({state_.at, weight, state_.slot});
  if (kept_.size() <= kMostKept) return;
  const auto least =
      std::min_element(kept_.begin(), kept_.end() - 2, [](const State& a, const State& b) { return a.weight < b.weight; });
  kept_.erase(least);
}

void DecoderState::rewind_states(std::int64_t count) {
  tokens_.resize(static_cast<std::size_t>(count));
  std::erase_if(kept_, [count](const State& s) { return s.at > count; });
  if (count == 0) next_.resize(0);  // a text that waits takes no room
  if (state_.at <= count) return;
  if (kept_.empty()) {
    state_.at = 0;
    state_.slot.resize(0);
  } else {
    state_ = kept_.back();
  }
}

// Computes tokens again whose state was not kept.
void DecoderState::catch_up(const RunOptions& options) {
  if (!decoder_->has_states() || state_.at == length_) return;
  const std::int64_t all = length_, begin = state_.at;
  const std::vector<TokenId> again(tokens_.begin() + begin, tokens_.end());
  length_ = begin;
  tokens_.resize(static_cast<std::size_t>(begin));
  try {
    while (length_ < all) {
      const auto count = static_cast<std::size_t>(std::min(kChunk, all - length_));
      const StepPart part{this, std::span(again).subspan(static_cast<std::size_t>(length_ - begin), count),
                          StepPart::Logits::none};
      run_together(std::span(&part, 1), options);
    }
  } catch (...) {
    tokens_.insert(tokens_.end(), again.begin() + (length_ - begin), again.end());
    length_ = all;
    throw;
  }
}

std::size_t DecoderState::state_bytes() const {
  std::set<std::int32_t> slots(state_.slot.ids().begin(), state_.slot.ids().end());
  slots.insert(next_.ids().begin(), next_.ids().end());
  for (const State& s : kept_) slots.insert(s.slot.ids().begin(), s.slot.ids().end());
  return slots.empty() ? 0 : slots.size() * static_cast<std::size_t>(decoder_->state_layout().block_bytes());
}

}  // namespace sdx::text
