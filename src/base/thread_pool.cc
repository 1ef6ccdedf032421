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

// One region at a time: `region_mutex` is held by its owner for the whole region. Workers enter a region while it is open, so its
// owner waits only for those that did, not for workers that the operating system has not woken yet. After a region they spin for
// a short while (the next one usually follows at once within a run), then sleep.
struct ThreadPool::Impl {
  std::vector<std::thread> workers;
  std::mutex region_mutex;

  std::mutex mutex;  // for sleeping only
  std::condition_variable wake;
  std::atomic<bool> stop{false};

  // Region number << 17 | open << 16 | workers inside.
  static constexpr std::uint64_t kInside = 0xFFFF, kOpen = std::uint64_t{1} << 16, kNumber = ~(kInside | kOpen);
  std::atomic<std::uint64_t> state{0};

  // The current region: written while it is closed and empty, read inside.
  const RangeFn* fn = nullptr;
  std::int64_t count = 0;
  std::int64_t chunk = 1;
  std::int64_t chunks = 0;
  std::atomic<std::int64_t> next{0};
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

  // A region other than number `seen` that can be entered.
  bool is_new(std::uint64_t s, std::uint64_t seen) const { return (s & kOpen) != 0 && (s & kNumber) != seen; }

  // Returns once there is a new region, or the pool stops.
  void wait_for_region(std::uint64_t seen) {
    const auto ready = [&] {
      return is_new(state.load(std::memory_order_acquire), seen) || stop.load(std::memory_order_relaxed);
    };
    // About 50 microseconds: regions inside one run follow each other faster than a wake-up (25 us) costs.
    for (int i = 0; i < 2000; ++i) {
      if (ready()) return;
      cpu_relax();
    }
    std::unique_lock lock(mutex);
    wake.wait(lock, ready);
  }

  void worker() {
    std::uint64_t seen = 0;
    for (;;) {
      wait_for_region(seen);
      if (stop.load()) return;
      std::uint64_t s = state.load(std::memory_order_acquire);
      while (is_new(s, seen) && !state.compare_exchange_weak(s, s + 1, std::memory_order_acq_rel)) {
      }
      if (!is_new(s, seen)) continue;  // closed again before this worker came
      seen = s & kNumber;
      run_chunks();
      state.fetch_sub(1, std::memory_order_acq_rel);
    }
  }

  void open_region() {
    const std::uint64_t number = ((state.load(std::memory_order_relaxed) & kNumber) + (kOpen << 1)) & kNumber;
    {
      const std::lock_guard lock(mutex);  // a worker about to sleep sees the region or is notified
      state.store(number | kOpen, std::memory_order_release);
    }
    wake.notify_all();
  }

  void close_region() {
    state.fetch_and(~kOpen, std::memory_order_acq_rel);
    for (int spins = 0; (state.load(std::memory_order_acquire) & kInside) != 0; ++spins) {
      if (spins < 4000) {
        cpu_relax();
      } else {
        std::this_thread::yield();
      }
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
  p.open_region();
  p.run_chunks();
  p.close_region();
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
