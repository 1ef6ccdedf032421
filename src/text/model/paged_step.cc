#include "text/model/paged_step.h"

#include <algorithm>

#include "base/error.h"
#include "tensor/element.h"
#include "text/model/paged/paged_graph.h"

namespace sdx::text {

class PagedStep {
 public:
  explicit PagedStep(std::span<const StepPart> parts) : parts_(parts), d_(*parts.front().state->decoder_) {
    for (const StepPart& p : parts_) {
      tokens_ += static_cast<std::int64_t>(p.tokens.size());
      longest_ = std::max(longest_, p.state->length_ + static_cast<std::int64_t>(p.tokens.size()));
      if (p.logits == StepPart::Logits::last) ++wanted_;
      if (p.logits == StepPart::Logits::all) wanted_ += static_cast<std::int64_t>(p.tokens.size());
    }
  }

  Tensor run(const RunOptions& options) {
    for (const StepPart& p : parts_) p.state->catch_up(options);
    for (const StepPart& p : parts_) {
      if (p.state->reserve_blocks(static_cast<std::int64_t>(p.tokens.size()))) continue;
      fail(ErrorCode::out_of_memory, "there is no room for the keys and values of {} more tokens", p.tokens.size());
    }
    inputs();
    RunOptions with = options;
    caches(with);
    const NamedValues out = d_.session->run(in_, with);
    Tensor logits = to_float32(out.tensor(d_.names.logits));
    const std::int64_t width = logits.shape().back();
    logits = logits.reshaped({logits.size() / std::max<std::int64_t>(1, width), width});
    for (const StepPart& p : parts_) p.state->took(p.tokens);
    return logits;
  }

 private:
  // Values of each token, by its text and its place there.
  template <class F>
  Tensor per_token(F&& value) {
    Tensor t(DataType::int64, {1, tokens_});
    auto* to = t.mutable_values<std::int64_t>().data();
    for (const StepPart& p : parts_) {
      for (std::size_t i = 0; i < p.tokens.size(); ++i) *to++ = value(p, i);
    }
    return t;
  }

  void inputs() {
    in_.add(d_.names.ids, per_token([](const StepPart& p, std::size_t i) { return std::int64_t{p.tokens[i]}; }));
    if (!d_.names.positions.empty()) {
      in_.add(d_.names.positions,
              per_token([](const StepPart& p, std::size_t i) { return p.state->length_ + static_cast<std::int64_t>(i); }));
    }
    const auto count = static_cast<std::int64_t>(parts_.size());
    Tensor starts(DataType::int64, {count + 1}), past(DataType::int64, {count});
    auto s = starts.mutable_values<std::int64_t>(), l = past.mutable_values<std::int64_t>();
    s[0] = 0;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      s[i + 1] = s[i] + static_cast<std::int64_t>(parts_[i].tokens.size());
      l[i] = parts_[i].state->length_;
    }
    in_.add(kStarts, starts);
    in_.add(kPastLengths, past);
    in_.add(kTable, table());
    in_.add(d_.names.wanted, wanted(s));
    if (d_.has_states()) in_.add(kSlots, slots());
    const auto angles = d_.angle_tables(longest_);
    for (std::size_t i = 0; i < d_.angles.size(); ++i) {
      in_.add(d_.angles[i].cos, angles->cos[i]);
      in_.add(d_.angles[i].sin, angles->sin[i]);
    }
  }

  // Its width is the next power of two, so that a new plan is needed only when a text has doubled.
  Tensor table() const {
    std::int64_t width = 8;
    while (width * CacheLayout::kBlockTokens < longest_) width *= 2;
    Tensor t(DataType::int32, {static_cast<std::int64_t>(parts_.size()), width});
    auto* to = t.mutable_values<std::int32_t>().data();
    std::fill_n(to, t.size(), -1);
    for (const StepPart& p : parts_) {
      std::copy(p.state->blocks_.ids().begin(), p.state->blocks_.ids().end(), to);
      to += width;
    }
    return t;
  }

  // Where each text's state is read, if it has one, and written.
  Tensor slots() const {
    Tensor t(DataType::int32, {static_cast<std::int64_t>(parts_.size()), 2});
    auto* to = t.mutable_values<std::int32_t>().data();
    for (const StepPart& p : parts_) {
      *to++ = p.state->state_.at > 0 ? p.state->state_.slot.ids()[0] : -1;
      *to++ = p.state->next_.ids()[0];
    }
    return t;
  }

  Tensor wanted(std::span<const std::int64_t> starts) const {
    Tensor t(DataType::int64, {std::max<std::int64_t>(1, wanted_)});
    auto* to = t.mutable_values<std::int64_t>().data();
    *to = 0;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      if (parts_[i].logits == StepPart::Logits::last) *to++ = starts[i + 1] - 1;
      if (parts_[i].logits != StepPart::Logits::all) continue;
      for (std::int64_t at = starts[i]; at < starts[i + 1]; ++at) *to++ = at;
    }
    return t;
  }

  void caches(RunOptions& options) {
    const BlockPool& pool = *parts_.front().state->blocks_.pool();
    const auto bind = [&](const std::string& past, const std::string& present, const Tensor& memory) {
      in_.add(past, memory);
      options.bound.emplace_back(present, memory);
    };
    for (std::size_t i = 0; i < d_.caches.pasts.size(); ++i) {
      bind(d_.caches.pasts[i], d_.caches.presents[i], pool.caches()[i]);
      if (!pool.scales().empty()) bind(d_.caches.pasts[i] + kScales, d_.caches.presents[i] + kScales, pool.scales()[i]);
    }
    for (std::size_t i = 0; i < d_.states.pasts.size(); ++i)
      bind(d_.states.pasts[i], d_.states.presents[i], pool.states()->caches()[i]);
  }

  std::span<const StepPart> parts_;
  const Decoder& d_;
  std::int64_t tokens_ = 0, longest_ = 0, wanted_ = 0;
  NamedValues in_;
};

Tensor run_together(std::span<const StepPart> parts, const RunOptions& options) { return PagedStep(parts).run(options); }

}  // namespace sdx::text
