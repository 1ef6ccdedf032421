// A grammar's states are run as a set of all places where the text may be, each with the rules that it came through: a pushdown
// automaton whose sets become the states of a deterministic one, as they are needed.

#include <algorithm>
#include <array>
#include <unordered_map>

#include "base/error.h"
#include "text/grammar/grammar.h"
#include "text/grammar/program.h"

namespace sdx::text::grammar {
namespace {

constexpr std::size_t max_places = 20'000;  // in one set
constexpr std::uint32_t max_depth = 512;    // of rules within rules
constexpr std::size_t max_bytes = std::size_t{64} << 20;
constexpr std::uint32_t dead = 0, unknown = UINT32_MAX;

struct Place {
  std::uint32_t state = 0, stack = 0;
  bool operator==(const Place&) const = default;
  auto operator<=>(const Place&) const = default;
};

std::uint64_t mixed(std::uint64_t x) {
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccdULL;
  x ^= x >> 33;
  x *= 0xc4ceb9fe1a85ec53ULL;
  return x ^ (x >> 33);
}

struct Places {
  std::vector<Place> at;  // states that take a byte, sorted
  bool end = false;       // the text may end here
  std::unique_ptr<std::array<std::uint32_t, 256>> next;
  std::unique_ptr<std::vector<std::uint64_t>> mask;
};

}  // namespace

struct Matcher::Automaton {
  explicit Automaton(Grammar of) : grammar(std::move(of)), program(grammar.program()) { clear(); }

  Grammar grammar;
  const Program& program;
  struct Frame {
    std::uint32_t state = 0, below = 0, depth = 0;
  };
  std::vector<Frame> frames;  // the stacks, as lists that share their lower parts; 0 is the empty one
  std::unordered_map<std::uint64_t, std::uint32_t> frame_of;
  std::vector<Places> sets;
  std::unordered_multimap<std::uint64_t, std::uint32_t> set_of;
  std::uint32_t current = dead;
  std::size_t bytes = 0;
  std::vector<Place> work, found;
  std::unordered_map<std::uint64_t, bool> seen;

  void clear() {
    frames.assign(1, Frame{});
    frame_of.clear();
    sets.clear();
    sets.emplace_back();  // dead
    set_of.clear();
    bytes = 0;
  }

  void begin() {
    work.assign(1, Place{program.start, 0});
    current = close();
  }

  std::uint32_t push(std::uint32_t state, std::uint32_t below) {
    const std::uint64_t key = std::uint64_t{state} << 32 | below;
    const auto [place, added] = frame_of.try_emplace(key, static_cast<std::uint32_t>(frames.size()));
    if (added) {
      frames.push_back({state, below, frames[below].depth + 1});
      bytes += sizeof(Frame) + 48;
    }
    return place->second;
  }

  // The end of a rule, perhaps after steps that take no byte: nothing has to be remembered for it.
  bool ends(std::uint32_t state) const { return program.states[state].kind == State::Kind::end; }

  // All places that can be reached from `work` without a byte, as a set.
  std::uint32_t close() {
    found.clear();
    seen.clear();
    bool end = false;
    while (!work.empty()) {
      const Place place = work.back();
      work.pop_back();
      if (!seen.emplace(std::uint64_t{place.state} << 32 | place.stack, true).second) continue;
      if (seen.size() > max_places) {
        fail(ErrorCode::invalid_argument, "the grammar is too ambiguous: more than {} ways to continue at one place of the text",
             max_places);
      }
      const State& state = program.states[place.state];
      switch (state.kind) {
        case State::Kind::bytes: found.push_back(place); break;
        case State::Kind::split:
          work.push_back({state.next, place.stack});
          if (state.other != state.next) work.push_back({state.other, place.stack});
          break;
        case State::Kind::call:
          if (ends(state.next)) {
            work.push_back({state.other, place.stack});
          } else if (frames[place.stack].depth < max_depth) {
            work.push_back({state.other, push(state.next, place.stack)});
          }
          break;
        case State::Kind::end:
          if (place.stack == 0) {
            end = true;
          } else {
            work.push_back({frames[place.stack].state, frames[place.stack].below});
          }
      }
    }
    return intern(end);
  }

  std::uint32_t intern(bool end) {
    if (found.empty() && !end) return dead;
    std::sort(found.begin(), found.end());
    std::uint64_t hash = end ? 1 : 0;
    for (const Place& place : found) hash = mixed(hash ^ (std::uint64_t{place.state} << 32 | place.stack)) + 1;
    const auto [first, last] = set_of.equal_range(hash);
    for (auto it = first; it != last; ++it) {
      if (sets[it->second].end == end && sets[it->second].at == found) return it->second;
    }
    const auto id = static_cast<std::uint32_t>(sets.size());
    Places& set = sets.emplace_back();
    set.at = found;
    set.end = end;
    set_of.emplace(hash, id);
    bytes += sizeof(Places) + found.size() * sizeof(Place) + 64;
    return id;
  }

  std::uint32_t step(std::uint32_t from, std::uint8_t byte) {
    if (!sets[from].next) {
      sets[from].next = std::make_unique<std::array<std::uint32_t, 256>>();
      sets[from].next->fill(unknown);
      bytes += 1024;
    }
    std::uint32_t& known = (*sets[from].next)[byte];
    if (known != unknown) return known;
    work.clear();
    for (const Place& place : sets[from].at) {
      const State& state = program.states[place.state];
      if (byte >= state.first && byte <= state.last) work.push_back({state.next, place.stack});
    }
    const std::uint32_t next = work.empty() ? dead : close();
    return (*sets[from].next)[byte] = next;  // close() may have moved the sets, never their tables
  }

  // Forgets everything but where the text is.
  void shrink() {
    if (bytes < max_bytes) return;
    struct Kept {
      std::uint32_t state;
      std::vector<std::uint32_t> stack;
    };
    std::vector<Kept> kept;
    for (const Place& place : sets[current].at) {
      Kept one{place.state, {}};
      for (std::uint32_t frame = place.stack; frame != 0; frame = frames[frame].below) one.stack.push_back(frames[frame].state);
      kept.push_back(std::move(one));
    }
    const bool end = sets[current].end;
    clear();
    found.clear();
    for (const Kept& one : kept) {
      std::uint32_t stack = 0;
      for (std::size_t i = one.stack.size(); i-- > 0;) stack = push(one.stack[i], stack);
      found.push_back({one.state, stack});
    }
    current = intern(end);
  }

  void fill(const Vocabulary& vocabulary, std::vector<std::uint64_t>& mask) {
    std::array<std::uint32_t, 4097> at{};  // the set after each byte of the path
    at[0] = current;
    const std::size_t last = vocabulary.nodes_.size() - 1;
    for (std::size_t i = 0; i < last;) {
      const Vocabulary::Node& node = vocabulary.nodes_[i];
      const std::uint32_t next = step(at[node.depth - 1U], node.byte);
      if (next == dead) {
        i = node.skip;
        continue;
      }
      at[node.depth] = next;
      for (std::uint32_t t = node.tokens; t < vocabulary.nodes_[i + 1].tokens; t++) {
        const auto token = static_cast<std::size_t>(vocabulary.tokens_[t]);
        mask[token / 64] |= std::uint64_t{1} << (token % 64);
      }
      i++;
      if (bytes > 2 * max_bytes)
        fail(ErrorCode::out_of_memory, "the grammar needs more than {} MiB to find the tokens that fit", 2 * max_bytes >> 20);
    }
  }
};

Matcher::Matcher(Grammar grammar, std::shared_ptr<const Vocabulary> vocabulary)
    : vocabulary_(std::move(vocabulary)), automaton_(std::make_unique<Automaton>(std::move(grammar))) {
  automaton_->begin();
}
Matcher::~Matcher() = default;
Matcher::Matcher(Matcher&&) noexcept = default;
Matcher& Matcher::operator=(Matcher&&) noexcept = default;

std::span<const std::uint64_t> Matcher::mask() {
  automaton_->shrink();
  const std::uint32_t at = automaton_->current;
  if (!automaton_->sets[at].mask) {
    auto mask = std::make_unique<std::vector<std::uint64_t>>((vocabulary_->size() + 63) / 64);
    automaton_->fill(*vocabulary_, *mask);
    if (automaton_->sets[at].end) {
      for (const std::int32_t token : vocabulary_->end_tokens())
        (*mask)[static_cast<std::size_t>(token) / 64] |= std::uint64_t{1} << (token % 64);
    }
    automaton_->bytes += mask->size() * sizeof(std::uint64_t);
    automaton_->sets[at].mask = std::move(mask);
  }
  return *automaton_->sets[at].mask;
}

bool Matcher::allows(std::int32_t token) {
  if (token < 0 || static_cast<std::size_t>(token) >= vocabulary_->size()) return false;
  const auto& ends = vocabulary_->end_tokens();
  if (std::find(ends.begin(), ends.end(), token) != ends.end()) return can_end();
  const std::string_view text = vocabulary_->bytes(static_cast<std::size_t>(token));
  automaton_->shrink();
  std::uint32_t at = automaton_->current;
  for (const char c : text) at = automaton_->step(at, static_cast<std::uint8_t>(c));
  return !text.empty() && at != dead;
}

bool Matcher::accept(std::int32_t token) {
  if (!allows(token)) return false;
  const auto& ends = vocabulary_->end_tokens();
  if (std::find(ends.begin(), ends.end(), token) != ends.end()) return true;
  return accept_text(vocabulary_->bytes(static_cast<std::size_t>(token)));
}

bool Matcher::accept_text(std::string_view text) {
  std::uint32_t at = automaton_->current;
  for (const char c : text) {
    at = automaton_->step(at, static_cast<std::uint8_t>(c));
    if (at == dead) return false;
    if (automaton_->bytes > 2 * max_bytes)
      fail(ErrorCode::out_of_memory, "the grammar needs more than {} MiB for this text", 2 * max_bytes >> 20);
  }
  automaton_->current = at;
  automaton_->shrink();
  return true;
}

bool Matcher::can_end() const { return automaton_->sets[automaton_->current].end; }
bool Matcher::is_complete() const { return can_end() && automaton_->sets[automaton_->current].at.empty(); }
void Matcher::restart() { automaton_->begin(); }

}  // namespace sdx::text::grammar
