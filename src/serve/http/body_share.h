#pragma once
// Accounts for one request's body in the memory limit for all bodies.

#include <atomic>
#include <cstdint>
#include <memory>

namespace sdx::serve {

// Thread-safe, but only one thread at a time may call grow().
class BodyShare {
 public:
  // `all`: the bytes of all bodies together; `most`: their limit.
  BodyShare(std::shared_ptr<std::atomic<std::uint64_t>> all, std::uint64_t most) : all_(std::move(all)), most_(most) {}
  ~BodyShare() { release(); }
  BodyShare(const BodyShare&) = delete;
  BodyShare& operator=(const BodyShare&) = delete;
  // Grows to this many bytes; false if all bodies together would exceed the limit.
  bool grow(std::uint64_t bytes);
  void release() { *all_ -= bytes_.exchange(0); }

 private:
  std::shared_ptr<std::atomic<std::uint64_t>> all_;
  const std::uint64_t most_;
  std::atomic<std::uint64_t> bytes_{0};
};

}  // namespace sdx::serve
