#pragma once
// Threads that a program makes itself, for pools.

#include <functional>

#include "base/tools_api.h"

namespace sdx {

struct ThreadMaker {
  // A new thread that calls work(argument), by a handle for `join`; null: there is none.
  std::function<void*(void (*work)(void*), void* argument)> start;
  std::function<void(void* thread)> join;  // returns when the thread has ended; the pool has told it to before
};

// The pools that this thread makes while the object lives get their threads from it, and keep a copy. Their constructor throws
// Error(runtime_failure) where it makes none.
class SDX_TOOLS_API ThreadMakerScope {
 public:
  explicit ThreadMakerScope(const ThreadMaker& maker) noexcept;
  ~ThreadMakerScope();
  ThreadMakerScope(const ThreadMakerScope&) = delete;
  ThreadMakerScope& operator=(const ThreadMakerScope&) = delete;

 private:
  const ThreadMaker* outer_;
};

}  // namespace sdx
