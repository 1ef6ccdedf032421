#pragma once
// Memory for many blocks that are filled once and live about equally long, such as a model's weights.

#include <cstddef>
#include <memory>

namespace sdx {

// Hands out parts of large ranges, side by side, which lie in huge pages where the system has them. A small page costs 2 to 3 us
// when it is touched first (Zen 4, virtual machine), as part of a huge one 0.4: the packed weights of Inception-v2 in blocks of
// their own took 80 of 140 ms of its loading. Not thread-safe; the blocks may go on any thread, and outlive the pool. A block's
// pages are given back with it.
class BlockPool {
 public:
  // Allocates like sdx::allocate(): 64-byte aligned, uninitialised, charged to the current budget while it is held, never null.
  std::shared_ptr<void> allocate(std::size_t bytes);

 private:
  std::shared_ptr<void> chunk_;
  std::size_t size_ = 0, used_ = 0;
};

}  // namespace sdx
