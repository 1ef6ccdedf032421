#include "base/thread_pool.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "base/system/control_group.h"
#include "base/system/cpu/share.h"
#include "base/system/processors.h"
#include "base/system/thread_maker.h"

namespace sdx {
namespace {

int count_of(int threads, const std::vector<int>& cores) {
  if (threads > 0) return threads;
  return cores.empty() ? usable_cpus() : within_quota(static_cast<int>(cores.size()), cpu_quota());
}

std::optional<int> core_number(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0 || number >= most_cores()) return std::nullopt;
  return number;
}

inline void cpu_relax() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

// Up to four chunks a thread, so that an unlucky thread does not hold up the rest. Each thread gets the same number if there are
// enough: two threads would do three chunks in the time of four.
std::int64_t chunks_of(std::int64_t count, std::int64_t grain, std::int64_t threads) {
  const std::int64_t chunks = std::min((count - 1) / grain + 1, threads * 4);
  return chunks <= threads ? chunks : std::min(count, (chunks + threads - 1) / threads * threads);
}

// A variable of the thread rather than a parameter: kernels call parallel_for() far below any function that knows the session.
thread_local ThreadPool* t_pool = nullptr;
thread_local bool t_inside = false;  // this thread is running a chunk: nested regions run inline

}  // namespace

using Clock = std::chrono::steady_clock;

// Waiting workers spin while the next region is likely: within a run regions follow each other faster than a wake-up (25 us,
// more on virtual machines) costs; between runs a caller in a loop comes back at once, or not soon.
constexpr std::chrono::microseconds kSpinInRun{200}, kSpinAfterRun{50};

// One region at a time: `region_mutex` is held by its owner for the whole region. Workers enter a region while it is open, so its
// owner waits only for those that did, not for workers that the operating system has not woken yet.
//
// Chunks are dealt out in contiguous shares, one per thread, and a thread helps others when its own share is done. Neighbouring
// regions thus put the same part of an activation on the same core: where cores have no cache in common, reading what another
// core wrote is three times slower than reading one's own (8 instead of 29 GB/s for 64 KB on two vCPUs of a Zen 4).
struct ThreadPool::Impl {
  struct Worker {
    Impl* pool;
    std::size_t share;
    int core;  // -1: any
    std::thread own;
    void* made = nullptr;  // by `maker`
  };
  std::vector<Worker> workers;  // never grows: threads hold places in it
  ThreadMaker maker;
  std::mutex region_mutex;

  std::mutex mutex;  // for sleeping only
  std::condition_variable wake;
  std::atomic<int> sleepers{0};
  std::atomic<bool> stop{false};
  std::atomic<int> runs{0};  // PoolScopes

  // The current region: written while it is closed and empty, read inside. One cache line with `state`, which workers watch.
  // Region number << 17 | open << 16 | workers inside.
  static constexpr std::uint64_t kInside = 0xFFFF, kOpen = std::uint64_t{1} << 16, kNumber = ~(kInside | kOpen);
  alignas(64) std::atomic<std::uint64_t> state{0};
  const RangeFn* fn = nullptr;
  AllocationContext memory;  // the caller's: allocations of workers are charged to its session
  std::int64_t count = 0;
  std::int64_t chunks = 0;

  // Region number (low 32 bits) << 32 | chunks of the share that are taken. Of an older region: none is taken yet.
  struct alignas(64) Share {
    std::atomic<std::uint64_t> taken{0};
  };
  std::vector<Share> shares;
  std::mutex error_mutex;
  std::exception_ptr error;

  Impl(int threads, ThreadMaker thread_maker) : maker(std::move(thread_maker)), shares(static_cast<std::size_t>(threads)) {}
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() {
    stop = true;
    wake_all();
    for (Worker& w : workers) {
      if (w.own.joinable()) w.own.join();
      if (w.made != nullptr && maker.join) maker.join(w.made);
    }
  }

  static void work(void* worker) {
    const Worker& w = *static_cast<const Worker*>(worker);
    if (w.core >= 0) stay_on(w.core);
    w.pool->worker(w.share);
  }

  void start(Worker& w) {
    if (!maker.start) {
      w.own = std::thread(work, &w);
      return;
    }
    w.made = maker.start(work, &w);
    if (w.made == nullptr) fail(ErrorCode::runtime_failure, "the program's function for new threads made none");
  }

  std::int64_t share_begin(std::size_t share) const {
    return chunks * static_cast<std::int64_t>(share) / static_cast<std::int64_t>(shares.size());
  }

  // Chunks differ by at most 1, and so do shares of equally many chunks. Chunks of one size, the last one shorter, gave one of
  // two threads 6 of 10 tasks, and 28 of 49.
  std::int64_t chunk_begin(std::int64_t i) const { return count / chunks * i + count % chunks * i / chunks; }

  void run_chunk(std::int64_t i) {
    try {
      (*fn)(chunk_begin(i), chunk_begin(i + 1));
    } catch (...) {
      const std::lock_guard lock(error_mutex);
      if (!error) error = std::current_exception();
    }
  }

  void run_share(std::size_t share, std::uint64_t tag) {
    const std::int64_t begin = share_begin(share), size = share_begin(share + 1) - begin;
    std::atomic<std::uint64_t>& taken = shares[share].taken;
    std::uint64_t now = taken.load(std::memory_order_relaxed);
    for (;;) {
      const std::uint64_t done = now >> 32 == tag ? now & 0xFFFFFFFF : 0;
      if (static_cast<std::int64_t>(done) >= size) return;
      if (!taken.compare_exchange_weak(now, tag << 32 | (done + 1), std::memory_order_relaxed)) continue;
      run_chunk(begin + static_cast<std::int64_t>(done));
      now = taken.load(std::memory_order_relaxed);
    }
  }

  void run_chunks(std::size_t own, std::uint64_t s) {
    const std::uint64_t tag = (s & kNumber) >> 17 & 0xFFFFFFFF;
    t_inside = true;
    for (std::size_t i = 0; i < shares.size(); ++i) run_share((own + i) % shares.size(), tag);
    t_inside = false;
  }

  // A region other than number `seen` that can be entered.
  bool is_new(std::uint64_t s, std::uint64_t seen) const { return (s & kOpen) != 0 && (s & kNumber) != seen; }

  // Returns once there is a new region, or the pool stops.
  void wait_for_region(std::uint64_t seen) {
    const auto ready = [&] { return is_new(state.load(), seen) || stop.load(std::memory_order_relaxed); };
    const Clock::time_point start = Clock::now();
    for (;;) {
      for (int i = 0; i < 64; ++i) {
        if (ready()) return;
        cpu_relax();
      }
      const auto limit = runs.load(std::memory_order_relaxed) > 0 ? kSpinInRun : kSpinAfterRun;
      if (Clock::now() - start > limit) break;
    }
    std::unique_lock lock(mutex);
    sleepers.fetch_add(1);  // before the last look at `state`: a thread that opens a region looks at both in reverse order
    wake.wait(lock, ready);
    sleepers.fetch_sub(1);
  }

  void worker(std::size_t own) {
    std::uint64_t seen = 0;
    for (;;) {
      wait_for_region(seen);
      if (stop.load()) return;
      std::uint64_t s = state.load(std::memory_order_acquire);
      while (is_new(s, seen) && !state.compare_exchange_weak(s, s + 1, std::memory_order_acq_rel)) {
      }
      if (!is_new(s, seen)) continue;  // closed again before this worker came
      seen = s & kNumber;
      {
        const LentAllocation lent(memory);
        run_chunks(own, s);
      }
      state.fetch_sub(1, std::memory_order_acq_rel);
    }
  }

  void wake_all() {
    {
      const std::lock_guard lock(mutex);  // a worker about to sleep has seen what changed, or waits already
    }
    wake.notify_all();
  }

  std::uint64_t open_region() {
    const std::uint64_t number = ((state.load(std::memory_order_relaxed) & kNumber) + (kOpen << 1)) & kNumber;
    state.store(number | kOpen);
    if (sleepers.load() != 0) wake_all();
    return number;
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

ThreadPool::ThreadPool(int threads, const std::vector<int>& cores) : ThreadPool(threads, cores, ThreadMaker()) {}

ThreadPool::ThreadPool(int threads, const std::vector<int>& cores, const ThreadMaker& maker)
    : impl_(std::make_unique<Impl>(count_of(threads, cores), maker)) {
  impl_->workers.reserve(impl_->shares.size());
  for (std::size_t i = 1; i < impl_->shares.size(); ++i) {
    const int core = cores.empty() ? -1 : cores[i % cores.size()];
    impl_->start(impl_->workers.emplace_back(Impl::Worker{impl_.get(), i, core, {}}));
  }
}

ThreadPool::~ThreadPool() = default;

int ThreadPool::threads() const noexcept { return static_cast<int>(impl_->shares.size()); }

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
  p.fn = &fn;
  p.memory = allocation_context();
  p.count = count;
  p.chunks = chunks_of(count, grain, n);
  p.error = nullptr;
  p.run_chunks(0, p.open_region());
  p.close_region();
  if (p.error) std::rethrow_exception(p.error);
}

namespace {

struct SharedPool {
  std::once_flag once;
  std::shared_ptr<ThreadPool> pool;
};

// Replaced in a child after fork(): threads do not exist there, and their locks stay locked.
constinit std::atomic<SharedPool*> g_shared{nullptr};

SharedPool& shared_pool() {
  static const int registered = [] {
    g_shared.store(new SharedPool);
    at_fork(nullptr, nullptr, [] { g_shared.store(new SharedPool); });
    return 0;
  }();
  (void)registered;
  return *g_shared.load(std::memory_order_acquire);
}

// Its threads end with the process, as those of a static pool would.
struct EndOfShared {
  ~EndOfShared() {
    if (SharedPool* s = g_shared.load()) s->pool.reset();
  }
};

int threads_of_environment() {
  constexpr int kMost = 1024;
  const char* const text = std::getenv("SDX_THREADS");
  if (text == nullptr || *text == '\0') return 0;
  int threads = 0;
  const auto result = std::from_chars(text, text + std::strlen(text), threads);
  if (result.ec == std::errc{} && *result.ptr == '\0' && threads >= 0 && threads <= kMost) return threads;
  log::warning("SDX_THREADS is '{}': expected a whole number of 0 to {}; one thread per core is used", text, kMost);
  return 0;
}

}  // namespace

const std::shared_ptr<ThreadPool>& ThreadPool::shared() {
  SharedPool& s = shared_pool();
  std::call_once(s.once, [&] {
    s.pool = std::make_shared<ThreadPool>(threads_of_environment());
    static const EndOfShared end;
  });
  return s.pool;
}

int shared_threads() { return count_of(threads_of_environment(), {}); }

// Exported here, as parallel_for() below: the header is in 200 files.
SDX_TOOLS_API std::vector<int> parse_cores(std::string_view text) {
  std::vector<int> usable = usable_cores();
  if (text == "auto") return usable;
  std::vector<int> cores;
  for (std::string_view rest = text; !rest.empty() || cores.empty();) {
    const std::string_view item = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), item.size() + 1));
    const std::size_t dash = item.find('-');
    const auto first = core_number(item.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : core_number(item.substr(dash + 1));
    if (!first || !last || *last < *first) {
      fail(ErrorCode::invalid_argument, "'{}' is not a list of cores; expected auto, or numbers and ranges such as 0,2-3", text);
    }
    for (int core = *first; core <= *last; ++core) cores.push_back(core);
  }
  for (const int core : cores) {
    if (!usable.empty() && std::find(usable.begin(), usable.end(), core) == usable.end()) {
      fail(ErrorCode::invalid_argument, "core {} of the list '{}' cannot be used; this process may use {}", core, text,
           fmt::join(usable, ", "));
    }
  }
  return cores;
}

ThreadPool& current_pool() { return t_pool ? *t_pool : *ThreadPool::shared(); }

PoolScope::PoolScope(ThreadPool& pool) : previous_(t_pool) {
  pool.impl_->runs.fetch_add(1, std::memory_order_relaxed);
  t_pool = &pool;
}
PoolScope::~PoolScope() {
  t_pool->impl_->runs.fetch_sub(1, std::memory_order_relaxed);
  t_pool = previous_;
}

SDX_TOOLS_API void parallel_for(std::int64_t count, std::int64_t grain, RangeFn fn) {
  if (count <= grain) {  // spare small work the look-up
    if (count > 0) fn(0, count);
    return;
  }
  current_pool().parallel_for(count, grain, fn);
}

void in_parallel(std::int64_t count, std::int64_t grain, const std::function<void(std::int64_t, std::int64_t)>& fn) {
  parallel_for(count, grain, [&](std::int64_t begin, std::int64_t end) { fn(begin, end); });
}

}  // namespace sdx
