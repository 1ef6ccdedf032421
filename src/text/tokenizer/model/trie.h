#pragma once
// All keys that a text begins with, in one walk along it: a trie as a double array.

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace sdx::text {

class Trie {
 public:
  static constexpr std::uint32_t kNone = 0xFFFFFFFF;
  struct Key {
    std::string_view text;  // not empty
    std::uint32_t value;
  };
  Trie() = default;
  // If a key comes twice, the last one counts.
  explicit Trie(std::vector<Key> keys);

  // A place within the walk: the root, then along bytes. False where no key continues so.
  bool step(std::uint32_t& node, char byte) const noexcept {
    const std::uint32_t next = nodes_[node].base + static_cast<unsigned char>(byte) + 1U;
    if (next >= nodes_.size() || nodes_[next].parent != node) return false;
    node = next;
    return true;
  }
  // kNone: no key ends here.
  std::uint32_t value(std::uint32_t node) const noexcept { return nodes_[node].value; }
  bool empty() const noexcept { return nodes_.size() < 2; }

  // Calls f(length, value) for each key that text begins with, shortest first.
  template <class F>
  void prefixes(std::string_view text, const F& f) const {
    std::uint32_t node = 0;
    for (std::size_t i = 0; i < text.size() && step(node, text[i]); ++i) {
      if (nodes_[node].value != kNone) f(i + 1, nodes_[node].value);
    }
  }
  // The longest: its length (0: none) and value.
  std::pair<std::size_t, std::uint32_t> longest(std::string_view text) const noexcept {
    std::pair<std::size_t, std::uint32_t> found{0, kNone};
    prefixes(text, [&](std::size_t length, std::uint32_t value) { found = {length, value}; });
    return found;
  }

 private:
  struct Node {
    std::uint32_t base = 0;        // children are at base + byte + 1
    std::uint32_t parent = kNone;  // kNone: free
    std::uint32_t value = kNone;
  };
  struct Range {
    std::uint32_t begin, end, depth, node;
  };
  void expand(const std::vector<Key>& keys, Range range, std::vector<Range>& to);
  std::uint32_t find_base(const std::vector<unsigned>& bytes);
  void ensure(std::size_t size);

  std::vector<Node> nodes_ = {Node{0, 0, kNone}};
  std::uint32_t search_from_ = 1;
};

}  // namespace sdx::text
