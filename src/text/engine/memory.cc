#include <algorithm>
#include <utility>

#include "base/error.h"
#include "text/engine/scheduler.h"

namespace sdx::text {
namespace {

constexpr std::int64_t kBlock = CacheLayout::kBlockTokens;

std::int64_t blocks_for(std::size_t tokens) { return (static_cast<std::int64_t>(tokens) + kBlock - 1) / kBlock; }

// a * b, or the most there is.
std::uint64_t product(std::uint64_t a, std::uint64_t b) {
  std::uint64_t out = 0;
  return __builtin_mul_overflow(a, b, &out) ? ~std::uint64_t{0} : out;
}

std::uint64_t sum(std::uint64_t a, std::uint64_t b) { return a + std::min(b, ~a); }

// The overhead of buffers that grow by doubling.
std::uint64_t most_bytes_per_token(const Decoder& d) {
  return 2 * static_cast<std::uint64_t>(2 * d.layers * d.kv_heads) * byte_size(d.cache_type, d.head_size);
}

}  // namespace

// The last token of an answer is not computed.
std::int64_t Scheduler::most_tokens(const GenerationRequest& request) const {
  const auto prompt = static_cast<std::int64_t>(request.prompt.size());
  std::int64_t most = request.settings.max_tokens;
  if (info_.context > 0) most = std::min(most, info_.context - prompt + 1);
  // Texts at once: answers, or one answer and the prompt that the others begin with.
  const std::int64_t texts = std::min(request.settings.n, std::max(2, options_.max_sequences));
  std::int64_t room = std::max<std::int64_t>(most, 1), tokens = 0;
  if (pool_) {
    // They share the full blocks of the prompt where the engine finds these again after a text had to make room; else each
    // computes all by itself then. While some answers are still to begin, the prompt's last block stays as it is.
    const std::int64_t shared = known_ ? prompt / kBlock : 0;
    const std::int64_t left = pool_->capacity() - shared - (texts > 1 ? 1 : 0);
    room = left < 0 ? 0 : left / texts * kBlock - (prompt - shared * kBlock) + 1;
    tokens = pool_->capacity() * kBlock;
  } else if (const std::uint64_t bytes = most_bytes_per_token(*decoder_); bytes > 0) {
    constexpr std::uint64_t kMost = std::uint64_t{1} << 40;
    tokens = static_cast<std::int64_t>(std::min(options_.cache_bytes / bytes, kMost));
    room = tokens / texts - prompt + 1;
  }
  if (room < 1) {
    fail(ErrorCode::out_of_memory,
         "a prompt of {} tokens with {} answers exceeds the cache, which has room for {} tokens: raise cache_bytes", prompt,
         request.settings.n, tokens);
  }
  return std::min(most, room);
}

std::vector<bool> Scheduler::held() const {
  std::vector<bool> blocks(static_cast<std::size_t>(pool_->capacity()));
  for (const Task& t : running_) {
    for (const Sequence* s : t->texts()) {
      for (const std::int32_t b : s->state.blocks().ids()) blocks[static_cast<std::size_t>(b)] = true;
    }
  }
  return blocks;
}

// Whether there is room for the known part of its texts, besides the tokens that running requests are still to compute.
bool Scheduler::fits(const Task& task) {
  if (!pool_) {  // then each takes its place for as long as it runs
    std::uint64_t tokens = 0;
    const auto need = [&](const Task& t) {
      const auto texts = static_cast<std::uint64_t>(std::min(t->request.settings.n, std::max(2, options_.max_sequences)));
      return product(sum(t->request.prompt.size(), static_cast<std::uint64_t>(std::max<std::int64_t>(0, t->most_tokens))), texts);
    };
    for (const Task& t : running_) tokens = sum(tokens, need(t));
    return product(sum(tokens, need(task)), most_bytes_per_token(*decoder_)) <= options_.cache_bytes;
  }
  const std::vector<bool> taken = held();
  std::int64_t free = pool_->capacity() - std::count(taken.begin(), taken.end(), true);
  for (const Task& t : running_) {
    for (const Sequence* s : t->texts()) free -= blocks_for(s->missing().size());
  }
  const auto need = [&](const std::vector<TokenId>& tokens) {
    std::int64_t blocks = blocks_for(tokens.size()) + 1;
    if (!known_) return blocks;
    for (const std::int32_t b : known_->find(PrefixCache::kStart, tokens, (tokens.size() - 1) / kBlock).blocks) {
      blocks -= taken[static_cast<std::size_t>(b)] ? 1 : 0;
    }
    return blocks;
  };
  std::int64_t blocks = task->started ? 0 : need(task->request.prompt);
  for (const Sequence* s : task->texts()) blocks += need(s->tokens);
  return blocks <= free;
}

// Uses blocks that were computed earlier. The last token is computed in any case, because the next one depends on its result.
void Scheduler::use_known_blocks(const Task& task, Sequence& s) {
  const auto size = static_cast<std::size_t>(s.state.size());
  if (!known_ || size != s.known_blocks * kBlock || s.missing().size() < 2) return;
  const PrefixCache::Found found = known_->find(s.place, s.missing(), (s.missing().size() - 1) / kBlock);
  if (found.blocks.empty()) return;
  s.state.share_blocks(found.blocks);
  s.place = found.place;
  s.known_blocks += found.blocks.size();
  if (s.answer || task->preempted) return;
  const std::size_t tokens = found.blocks.size() * kBlock;
  task->cached_tokens += static_cast<std::int64_t>(tokens);
  note([&](EngineStatus& st) { st.cached_tokens += tokens; });
}

// If a prompt begins like an earlier one in the same step, the common part is computed once.
bool Scheduler::waits_for_another(const Part& part, const std::vector<Part>& prompts) const {
  const Sequence& s = *part.sequence;
  const auto size = static_cast<std::size_t>(s.state.size());
  if (!known_ || size != s.known_blocks * kBlock) return false;
  const std::size_t least = size + kBlock;
  return std::any_of(prompts.begin(), prompts.end(), [&](const Part& p) {
    const Sequence& other = *p.sequence;
    return other.known_blocks >= s.known_blocks && std::min(s.tokens.size() - 1, other.tokens.size()) >= least &&
           std::equal(s.tokens.begin(), s.tokens.begin() + static_cast<std::ptrdiff_t>(least), other.tokens.begin());
  });
}

// Makes room for all of them, in order: known but unused blocks are released first, then the youngest requests return to the
// queue.
void Scheduler::reserve(std::vector<Part>& parts) {
  for (Part& p : parts) {
    while (!p.task->waits_again && !p.sequence->state.reserve_blocks(static_cast<std::int64_t>(p.tokens))) {
      if (known_ && known_->evict()) continue;
      if (running_.size() == 1 && running_.front() == p.task) {  // most_tokens() sees to it that this cannot be
        p.error = std::make_exception_ptr(Error(ErrorCode::out_of_memory, "the request exceeds the cache: raise cache_bytes"));
        break;
      }
      preempt(running_.back());
    }
  }
  std::vector<Part> failed;
  for (const Part& p : parts) {
    if (p.error) failed.push_back(p);
  }
  std::erase_if(parts, [](const Part& p) { return p.task->waits_again || p.error; });
  for (const Part& p : failed) {
    if (!p.task->over) end(p.task, p.error);
  }
  std::erase_if(parts, [](const Part& p) { return p.task->over; });  // its other texts are gone too
}

void Scheduler::preempt(const Task& t) {
  Task task = t;  // which may lie in running_
  for (Sequence* s : task->texts()) {
    s->state.rewind(0);
    s->known_blocks = 0;
    s->place = PrefixCache::kStart;
  }
  task->logits = Tensor();
  task->preempted = task->waits_again = true;
  running_.remove(task);
  waiting_.push_front(std::move(task));
  note([](EngineStatus& s) { ++s.preempted; });
}

// The blocks that have become full.
void Scheduler::remember(Sequence& s) {
  if (!known_) return;
  const auto full = static_cast<std::size_t>(s.state.size() / kBlock);
  for (; s.known_blocks < full; ++s.known_blocks) {
    const std::size_t at = s.known_blocks * kBlock;
    s.place =
        known_->add(s.place, std::span<const TokenId>(s.tokens).subspan(at, kBlock), s.state.blocks().ids()[s.known_blocks]);
  }
}

// Releases blocks that no running text uses, beyond the number that may be kept. `held` is the number that running texts use.
// Least recently used blocks go first.
void Scheduler::forget_unused(std::int64_t held) {
  if (!known_) return;
  std::int64_t unused = pool_->in_use() - held;
  while (unused > unused_blocks_ && known_->evict()) --unused;
}

}  // namespace sdx::text
