#include "array/trace.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <unordered_map>

#include "array/backend.h"
#include "array/transforms/tape.h"
#include "base/error.h"

namespace sdx::array::detail {

std::uint64_t hash_of(std::span<const std::uint64_t> key) {
  std::uint64_t hash = 0x9E3779B97F4A7C15ULL ^ key.size();
  for (const std::uint64_t word : key) {
    hash = (hash ^ word) * 0xFF51AFD7ED558CCDULL;
    hash ^= hash >> 32;
  }
  return hash;
}

bool held_in_key(const Node& node) { return node.params.held != nullptr && !is_custom(node); }

void describe(const Node& node, std::vector<std::uint64_t>& key) {
  const auto pointer = [&](const void* p) { key.push_back(reinterpret_cast<std::uintptr_t>(p)); };
  pointer(node.kind);
  const Params& p = node.params;
  const std::uint64_t sizes[] = {p.ints.size(), p.reals.size(), p.text.size(), node.inputs.size(), node.results.size()};
  if (std::all_of(std::begin(sizes), std::end(sizes), [](std::uint64_t n) { return n < 1 << 12; })) {
    key.push_back(sizes[0] | sizes[1] << 12 | sizes[2] << 24 | sizes[3] << 36 | sizes[4] << 48);
  } else {
    key.push_back(UINT64_MAX);
    key.insert(key.end(), std::begin(sizes), std::end(sizes));
  }
  for (const std::int64_t v : p.ints) key.push_back(static_cast<std::uint64_t>(v));
  for (const double v : p.reals) key.push_back(std::bit_cast<std::uint64_t>(v));
  for (std::size_t i = 0; i < p.text.size(); i += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, p.text.data() + i, std::min<std::size_t>(8, p.text.size() - i));
    key.push_back(word);
  }
  pointer(held_in_key(node) ? p.held.get() : nullptr);
  for (const Result& r : node.results) {
    key.push_back(static_cast<std::uint64_t>(r.dtype) << 32 | r.shape.size());
    for (const std::int64_t extent : r.shape) key.push_back(static_cast<std::uint64_t>(extent));
  }
}

namespace {

// Numbers of walks and traces: `mark` of the nodes in them. Under the evaluation's lock.
std::uint64_t marks = 0;

// Few leaves are found faster one after the other.
class LeafNumbers {
 public:
  std::pair<std::uint32_t, bool> number_of(const array& leaf, std::uint32_t next) {
    const void* const identity = &leaf.node()->results[leaf.index()];
    if (list_.size() < kFew) {
      for (std::uint32_t i = 0; i < list_.size(); ++i) {
        if (list_[i] == identity) return {i, false};
      }
      list_.push_back(identity);
      if (list_.size() == kFew) {
        for (std::uint32_t i = 0; i < kFew; ++i) map_.emplace(list_[i], i);
      }
      return {next, true};
    }
    const auto [it, fresh] = map_.try_emplace(identity, next);
    return {it->second, fresh};
  }

 private:
  static constexpr std::size_t kFew = 8;
  std::vector<const void*> list_;
  std::unordered_map<const void*, std::uint32_t> map_;
};

void describe_leaf(const array& leaf, std::vector<std::uint64_t>& key) {
  key.push_back(static_cast<std::uint64_t>(leaf.dtype()) << 32 | leaf.shape().size());
  for (const std::int64_t extent : leaf.shape()) key.push_back(static_cast<std::uint64_t>(extent));
}

[[noreturn]] void throw_error_of(const Node& node) {
  if (node.error) throw Error(*node.error);
  fail(ErrorCode::out_of_memory, "an array of shape {} could not be computed: memory ran out", to_string(node.results[0].shape));
}

}  // namespace

Walk walk_from(std::span<const array> arrays) {
  Walk walk;
  const std::uint64_t mark = ++marks;
  std::vector<std::pair<Node*, std::size_t>> path;
  const auto visit = [&](Node* node) {
    if (node->state.load(std::memory_order_acquire) == Node::State::failed) throw_error_of(*node);
    if (!is_lazy(*node) || node->mark == mark) return;
    node->mark = mark;
    path.emplace_back(node, 0);
  };
  for (const array& a : arrays) {
    visit(a.node());
    while (!path.empty()) {
      auto& [node, next] = path.back();
      if (next < node->inputs.size()) {
        visit(node->inputs[next++].node());
        continue;
      }
      walk.push_back(node);
      path.pop_back();
    }
  }
  return walk;
}

Trace trace_of(std::span<Node* const> operations) {
  Trace trace;
  trace.keeps = tracing();
  trace.order.assign(operations.begin(), operations.end());
  trace.key.reserve(operations.size() * 10 + 8);
  trace.sources.reserve(operations.size() * 2);
  trace.key.push_back(backend_number() << 8 | static_cast<std::uint64_t>(operations.front()->stream.device.type));
  const std::uint64_t mark = ++marks;
  for (std::uint32_t i = 0; i < operations.size(); ++i) {
    operations[i]->mark = mark;
    operations[i]->slot = i;
  }
  LeafNumbers numbers;
  std::vector<std::uint32_t> uses_inside(operations.size(), 0);
  for (const Node* node : operations) {
    describe(*node, trace.key);
    for (const array& input : node->inputs) {
      const Node* from = input.node();
      Source source;
      source.leaf = from->mark != mark;
      source.result = input.index();
      if (source.leaf) {
        const auto [number, fresh] = numbers.number_of(input, static_cast<std::uint32_t>(trace.leaves.size()));
        if (fresh) {
          trace.leaves.push_back(input);
          trace.leaf_uses.push_back(0);
        }
        source.at = number;
        ++trace.leaf_uses[number];
      } else {
        source.at = from->slot;
        ++uses_inside[source.at];
      }
      trace.key.push_back(std::uint64_t{source.at} << 32 | std::uint64_t{source.result} << 1 | (source.leaf ? 1 : 0));
      trace.sources.push_back(source);
    }
  }
  for (std::uint32_t i = 0; i < operations.size(); ++i) {
    const Node& node = *operations[i];
    // Held by nothing but inputs of this part: nobody can ask for it.
    if (node.refs.load(std::memory_order_acquire) == uses_inside[i] && !(node.traced != 0 && trace.keeps)) continue;
    for (std::uint32_t r = 0; r < node.results.size(); ++r) {
      trace.wanted.emplace_back(i, r);
      trace.key.push_back(std::uint64_t{1} << 63 | std::uint64_t{i} << 32 | r);
    }
  }
  for (const array& leaf : trace.leaves) describe_leaf(leaf, trace.key);
  return trace;
}

}  // namespace sdx::array::detail
