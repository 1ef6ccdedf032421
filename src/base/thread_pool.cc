#include "base/thread_pool.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace sdx {
namespace {

int usable_cores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

inline void cpu_relax() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

thread_local ThreadPool* t_pool = nullptr;
thread_local bool t_inside = false;  // this thread is running a chunk: nested regions run inline

}  // namespace

// One region at a time: `region_mutex` is held by its owner for the whole region. Workers wait on `generation`: they spin
// for a short while after each region (the next one usually follows at once within a run), then sleep.
struct ThreadPool::Impl {
  std::vector<std::thread> workers;
  std::mutex region_mutex;

  std::mutex mutex;
  std::condition_variable wake;
  std::atomic<std::uint64_t> generation{0};
  std::atomic<bool> stop{false};

  // The current region; written before `generation` is advanced, read by workers after they saw the advance.
  const RangeFn* fn = nullptr;
  std::int64_t count = 0;
  std::int64_t chunk = 1;
  std::int64_t chunks = 0;
  std::atomic<std::int64_t> next{0};
  std::atomic<int> active{0};  // workers that have not finished this region
  std::mutex error_mutex;
  std::exception_ptr error;

  void run_chunks() {
    t_inside = true;
    for (;;) {
      const std::int64_t i = next.fetch_add(1, std::memory_order_relaxed);
      if (i >= chunks) break;
      const std::int64_t begin = i * chunk;
      const std::int64_t end = std::min(count, begin + chunk);
      try {
        (*fn)(begin, end);
      } catch (...) {
        const std::lock_guard lock(error_mutex);
        if (!error) error = std::current_exception();
      }
    }
    t_inside = false;
  }

  bool wait_for_region(std::uint64_t seen) {
    // About 50 microseconds of spinning: regions inside one run follow each other faster than a wake-up (25 us) costs.
    for (int i = 0; i < 2000; ++i) {
      if (generation.load(std::memory_order_acquire) != seen || stop.load(std::memory_order_relaxed)) return true;
      cpu_relax();
    }
    std::unique_lock lock(mutex);
    wake.wait(lock, [&] { return generation.load(std::memory_order_acquire) != seen || stop.load(); });
    return true;
  }

  void worker() {
    std::uint64_t seen = 0;
    for (;;) {
      wait_for_region(seen);
      if (stop.load()) return;
      seen = generation.load(std::memory_order_acquire);
      run_chunks();
      active.fetch_sub(1, std::memory_order_acq_rel);
    }
  }
};

ThreadPool::ThreadPool(int threads) : impl_(std::make_unique<Impl>()) {
  const int n = threads > 0 ? threads : usable_cores();
  for (int i = 1; i < n; ++i) impl_->workers.emplace_back([this] { impl_->worker(); });
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->stop = true;
  }
  impl_->wake.notify_all();
  for (auto& t : impl_->workers) t.join();
}

int ThreadPool::threads() const noexcept { return static_cast<int>(impl_->workers.size()) + 1; }

void ThreadPool::parallel_for(std::int64_t count, std::int64_t grain, RangeFn fn) {
  if (count <= 0) return;
  grain = std::max<std::int64_t>(grain, 1);
  Impl& p = *impl_;
  const std::int64_t n = threads();
  if (n == 1 || count <= grain || t_inside || !p.region_mutex.try_lock()) {
    fn(0, count);
    return;
  }
  const std::lock_guard region(p.region_mutex, std::adopt_lock);
  // Up to four chunks a thread, so that an unlucky thread does not hold up the rest.
  const std::int64_t chunks = std::min((count + grain - 1) / grain, n * 4);
  p.fn = &fn;
  p.count = count;
  p.chunk = (count + chunks - 1) / chunks;
  p.chunks = (count + p.chunk - 1) / p.chunk;
  p.next.store(0, std::memory_order_relaxed);
  p.error = nullptr;
  p.active.store(static_cast<int>(p.workers.size()), std::memory_order_relaxed);
  {
    const std::lock_guard lock(p.mutex);
    p.generation.fetch_add(1, std::memory_order_acq_rel);
  }
  p.wake.notify_all();
  p.run_chunks();
  for (int spins = 0; p.active.load(std::memory_order_acquire) != 0; ++spins) {
    if (spins < 4000) {
      cpu_relax();
    } else {
      std::this_thread::yield();
    }
  }
  if (p.error) std::rethrow_exception(p.error);
}

const std::shared_ptr<ThreadPool>& ThreadPool::shared() {
  static const std::shared_ptr<ThreadPool> pool = [] {
    const char* text = std::getenv("SDX_THREADS");
    return std::make_shared<ThreadPool>(text ? std::clamp(std::atoi(text), 0, 1024) : 0);
  }();
  return pool;
}

ThreadPool& current_pool() { return t_pool ? *t_pool : *ThreadPool::shared(); }

PoolScope::PoolScope(ThreadPool& pool) : previous_(t_pool) { t_pool = &pool; }
PoolScope::~PoolScope() { t_pool = previous_; }

void parallel_for(std::int64_t count, std::int64_t grain, RangeFn fn) {
  if (count <= grain) {  // spare small work the look-up
    if (count > 0) fn(0, count);
    return;
  }
  current_pool().parallel_for(count, grain, fn);
}

}  // namespace sdx
