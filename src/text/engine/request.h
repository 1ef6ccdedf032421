#pragma once
// An engine's state of one request: the part that its owner sees, and the answers under way.

#include <condition_variable>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include <sdx/generation_engine.hpp>

#include "text/engine/prefix_cache.h"
#include "text/model/answer.h"
#include "text/model/decoder.h"

namespace sdx::text {

using Clock = std::chrono::steady_clock;

// State that requests and their engine share: it outlives the engine while tasks exist.
struct Mailbox {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::shared_ptr<GenerationTask::Impl>> arrived;  // guarded by `mutex`
  // Waiting requests, and the number of further ones that could begin. Guarded by `mutex`.
  std::size_t waiting = 0, free = 0;
  bool stop = false;   // guarded by `mutex`
  CancelToken step{};  // ends the step that is being computed; guarded by `mutex`
};

// One text that grows: a prompt, and behind it an answer.
struct Sequence {
  DecoderState state;
  std::vector<TokenId> tokens;               // all that are known; state.size() of them are computed
  std::unique_ptr<Answer> answer = nullptr;  // none as long as the prompt is not computed
  // The number of its blocks that the engine's prefix cache knows, and the place after them.
  std::size_t known_blocks = 0;
  PrefixCache::Place place = PrefixCache::kStart;

  std::span<const TokenId> missing() const {
    return std::span<const TokenId>(tokens).subspan(static_cast<std::size_t>(state.size()));
  }
};

}  // namespace sdx::text

namespace sdx {

struct GenerationTask::Impl {
  // Set by submit().
  GenerationRequest request;
  std::shared_ptr<text::Mailbox> mailbox;
  std::int64_t most_tokens = 0;  // of each answer
  text::Clock::time_point submitted;

  CancelToken cancel;

  mutable std::mutex mutex;
  mutable std::condition_variable changed;
  bool ended = false;        // guarded by `mutex`
  Generation result;         // guarded by `mutex`
  std::exception_ptr error;  // guarded by `mutex`

  // Used by the engine's thread only.
  std::list<text::Sequence> sequences;  // under way
  // While answers are still to begin: the prompt, and the logits behind it once it is computed.
  std::optional<text::Sequence> prompt;
  Tensor logits;
  int begun = 0;  // of n answers
  std::vector<std::optional<Choice>> choices;
  std::int64_t cached_tokens = 0;
  std::optional<text::Clock::time_point> started, first_token;
  bool over = false;
  bool preempted = false, waits_again = false;  // at least once; at present

  // Calls on_end, then lets wait() return.
  void end(const Generation* done, const std::exception_ptr& failure);
  // All texts under way.
  std::vector<text::Sequence*> texts();
  // The answers so far; those under way end with "cancelled".
  Generation collect();
};

}  // namespace sdx
