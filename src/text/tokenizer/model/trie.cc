#include "text/tokenizer/model/trie.h"

#include <algorithm>

namespace sdx::text {

Trie::Trie(std::vector<Key> keys) {
  std::stable_sort(keys.begin(), keys.end(), [](const Key& a, const Key& b) { return a.text < b.text; });
  nodes_[0].parent = kNone - 1;  // nobody's child
  std::vector<Range> ranges = {{0, static_cast<std::uint32_t>(keys.size()), 0, 0}};
  while (!ranges.empty()) {
    const Range range = ranges.back();
    ranges.pop_back();
    expand(keys, range, ranges);
  }
  nodes_.shrink_to_fit();
}

void Trie::ensure(std::size_t size) {
  if (size <= nodes_.size()) return;
  nodes_.resize(std::max(size, nodes_.size() + nodes_.size() / 2 + 256));
}

// The keys of a range share their first `depth` bytes, which lead to `node`.
void Trie::expand(const std::vector<Key>& keys, Range range, std::vector<Range>& to) {
  std::uint32_t i = range.begin;
  for (; i < range.end && keys[i].text.size() == range.depth; ++i) nodes_[range.node].value = keys[i].value;
  std::vector<unsigned> bytes;
  std::vector<std::uint32_t> starts;
  for (; i < range.end; ++i) {
    const auto byte = static_cast<unsigned>(static_cast<unsigned char>(keys[i].text[range.depth]));
    if (bytes.empty() || bytes.back() != byte) {
      bytes.push_back(byte);
      starts.push_back(i);
    }
  }
  if (bytes.empty()) return;
  const std::uint32_t base = find_base(bytes);
  nodes_[range.node].base = base;
  starts.push_back(range.end);
  for (std::size_t k = 0; k < bytes.size(); ++k) {
    const std::uint32_t child = base + bytes[k] + 1;
    nodes_[child].parent = range.node;
    to.push_back({starts[k], starts[k + 1], range.depth + 1, child});
  }
}

// A place for children. Each search begins where the last long one ended: free nodes before that are given up, or a trie of many
// keys would take quadratic time.
std::uint32_t Trie::find_base(const std::vector<unsigned>& bytes) {
  constexpr std::uint32_t kPatience = 64, kBack = 32;
  const std::uint32_t first = std::max(search_from_, bytes[0] + 1);
  for (std::uint32_t slot = first;; ++slot) {
    ensure(slot + 258);
    if (nodes_[slot].parent != kNone) continue;
    const std::uint32_t base = slot - bytes[0] - 1;
    if (!std::all_of(bytes.begin(), bytes.end(), [&](unsigned b) { return nodes_[base + b + 1].parent == kNone; })) continue;
    if (slot - first > kPatience) search_from_ = slot - kBack;
    return base;
  }
}

}  // namespace sdx::text
