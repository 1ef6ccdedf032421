#pragma once
// What one request's body takes of the bytes that all bodies may have.

#include <atomic>
#include <cstdint>
#include <memory>

namespace sdx::serve {

// Thread-safe, but only one thread at a time may call grow().
class BodyShare {
 public:
  // `all`: what all bodies take together; `most`: what they may.
  BodyShare(std::shared_ptr<std::atomic<std::uint64_t>> all, std::uint64_t most) : all_(std::move(all)), most_(most) {}
  ~BodyShare() { release(); }
  BodyShare(const BodyShare&) = delete;
  BodyShare& operator=(const BodyShare&) = delete;
  // To so many bytes; false where all bodies together would take too many.
  bool grow(std::uint64_t bytes);
  void release() { *all_ -= bytes_.exchange(0); }

 private:
  std::shared_ptr<std::atomic<std::uint64_t>> all_;
  const std::uint64_t most_;
  std::atomic<std::uint64_t> bytes_{0};
};

}  // namespace sdx::serve
