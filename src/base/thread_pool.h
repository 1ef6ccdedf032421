#pragma once
// Fork-join parallelism. The caller works too; workers sleep when there is nothing to do.

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/tools_api.h"

namespace sdx {

struct ThreadMaker;

// A non-owning reference to a callable void(begin, end); the callable must outlive the call it is passed to.
class RangeFn {
 public:
  template <class F, class = std::enable_if_t<!std::is_same_v<std::decay_t<F>, RangeFn>>>
  RangeFn(F&& f)  // NOLINT: implicit on purpose, so that lambdas can be passed
      : object_(const_cast<void*>(static_cast<const void*>(&f))),
        call_([](void* o, std::int64_t b, std::int64_t e) { (*static_cast<std::remove_reference_t<F>*>(o))(b, e); }) {}
  void operator()(std::int64_t begin, std::int64_t end) const { call_(object_, begin, end); }

 private:
  void* object_;
  void (*call_)(void*, std::int64_t, std::int64_t);
};

class SDX_TOOLS_API ThreadPool {
 public:
  // `threads` counts the caller: 1 starts no worker. 0 means one per usable core.
  // Worker i stays on cores[i % size]; empty: wherever the system puts it. Cores are as parse_cores() returns them.
  explicit ThreadPool(int threads = 0, const std::vector<int>& cores = {});
  // `maker` makes the threads (base/system/thread_maker.h); the pool keeps a copy of it. Throws Error(runtime_failure) if it
  // fails.
  ThreadPool(int threads, const std::vector<int>& cores, const ThreadMaker& maker);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const noexcept;

  // Calls fn over disjoint ranges that cover [0, count), on the caller and on the workers; returns when all are done. If there
  // are several, their lengths differ by at most 1, and each is at least half of `grain` long. The split depends on count, grain
  // and threads() alone, so results that depend on it are repeatable; the same part of [0, count) tends to run on the same thread
  // from call to call. The first exception thrown by fn is rethrown here. Nested and concurrent calls are allowed: a call that
  // finds the workers busy runs on its caller.
  void parallel_for(std::int64_t count, std::int64_t grain, RangeFn fn);

  // One pool for the process, with one thread per usable core (SDX_THREADS overrides), made at first use.
  static const std::shared_ptr<ThreadPool>& shared();

 private:
  friend class PoolScope;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Parses cores from "auto" (those that the process may use) or a list such as "0,2-3". Throws Error(invalid_argument) for other
// text, and for cores that the process may not use.
std::vector<int> parse_cores(std::string_view text);

// The pool that code on this thread should use: set by a session's run; ThreadPool::shared() otherwise.
SDX_TOOLS_API ThreadPool& current_pool();

// Sets current_pool() for this scope. Meanwhile, the pool's workers wait longer for the next region before they sleep. `pool`
// must outlive it.
class SDX_TOOLS_API PoolScope {
 public:
  explicit PoolScope(ThreadPool& pool);
  ~PoolScope();
  PoolScope(const PoolScope&) = delete;
  PoolScope& operator=(const PoolScope&) = delete;

 private:
  ThreadPool* previous_;
};

// current_pool().parallel_for(...)
void parallel_for(std::int64_t count, std::int64_t grain, RangeFn fn);

}  // namespace sdx
