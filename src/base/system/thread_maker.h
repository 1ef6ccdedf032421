#pragma once
// Threads that a program makes itself, for pools.

#include <functional>

namespace sdx {

struct ThreadMaker {
  // A new thread that calls work(argument), by a handle for `join`; null: there is none.
  std::function<void*(void (*work)(void*), void* argument)> start;
  std::function<void(void* thread)> join;  // returns when the thread has ended; the pool has told it to before
};

}  // namespace sdx
