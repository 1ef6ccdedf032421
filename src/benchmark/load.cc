#include "benchmark/load.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>
#include <thread>

#include "base/splitmix64.h"
#include "base/system/processes/usage.h"

namespace sdx::benchmark {
namespace {

using Clock = std::chrono::steady_clock;

// Sleeping wakes up some 60 microseconds late, so the last bit is spent awake.
void wait_until(std::int64_t when_ns) {
  constexpr std::int64_t kAwake = 200'000;
  const std::int64_t left = when_ns - now_ns();
  if (left > kAwake) std::this_thread::sleep_for(std::chrono::nanoseconds(left - kAwake));
  while (now_ns() < when_ns) {
  }
}

// Hands out runs to clients. With a rate each has a moment at which it is to start.
class Schedule {
 public:
  Schedule(const LoadOptions& options, std::int64_t count, std::int64_t duration_ns, std::uint64_t seed)
      : options_(options), count_(count), end_(duration_ns > 0 ? now_ns() + duration_ns : 0), next_(now_ns()), random_(seed) {}

  // The moment at which the next run starts; false when there is none.
  bool next(std::int64_t& start_ns) {
    const std::lock_guard lock(mutex_);
    if (stopped_) return false;
    if (options_.rate > 0) {
      if (given_ > 0) next_ += gap();
      start_ns = next_;
    } else {
      start_ns = now_ns();
    }
    // Past the end nothing starts any more, not even what a rate beyond the model's speed has piled up.
    const bool more = end_ > 0 ? given_ == 0 || (start_ns < end_ && now_ns() < end_) : given_ < count_;
    if (more) ++given_;
    return more;
  }

  void stop(std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    if (!error_) error_ = std::move(error);
  }

  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  std::int64_t gap() {
    const double mean = 1e9 / options_.rate;
    return static_cast<std::int64_t>(options_.arrival == Arrival::poisson ? mean * random_.exponential() : mean);
  }

  const LoadOptions& options_;
  std::int64_t count_, end_, next_;
  std::int64_t given_ = 0;
  bool stopped_ = false;
  std::exception_ptr error_;
  SplitMix64 random_;
  std::mutex mutex_;
};

}  // namespace

std::int64_t now_ns() { return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch()).count(); }

Load generate_load(const LoadOptions& options, std::int64_t count, std::int64_t duration_ns, std::uint64_t seed,
                   const std::function<void()>& run, const std::function<void(std::int64_t)>& done) {
  Schedule schedule(options, count, duration_ns, seed);
  std::vector<std::vector<Sample>> samples(static_cast<std::size_t>(options.clients));
  std::atomic<std::int64_t> finished{0};
  const auto client = [&](int index) {
    Sample s;
    s.client = index;
    try {
      while (schedule.next(s.start_ns)) {
        if (options.rate > 0) {
          wait_until(s.start_ns);
        } else {
          s.start_ns = now_ns();
        }
        run();
        s.end_ns = now_ns();
        samples[static_cast<std::size_t>(index)].push_back(s);
        const std::int64_t n = finished.fetch_add(1) + 1;
        if (done) done(n);
      }
    } catch (...) {
      schedule.stop(std::current_exception());
    }
  };
  const ProcessUse before = process_use();
  std::vector<std::thread> threads;
  for (int i = 1; i < options.clients; ++i) threads.emplace_back(client, i);
  client(0);
  for (std::thread& t : threads) t.join();
  const ProcessUse after = process_use();
  schedule.rethrow();
  Load load;
  for (const auto& part : samples) load.samples.insert(load.samples.end(), part.begin(), part.end());
  std::sort(load.samples.begin(), load.samples.end(), [](const Sample& a, const Sample& b) { return a.start_ns < b.start_ns; });
  if (!load.samples.empty()) {
    const auto last = std::max_element(load.samples.begin(), load.samples.end(),
                                       [](const Sample& a, const Sample& b) { return a.end_ns < b.end_ns; });
    load.wall_ns = last->end_ns - load.samples.front().start_ns;
  }
  load.cpu_ns = after.cpu_ns - before.cpu_ns;
  load.preempted = after.preempted - before.preempted;
  return load;
}

}  // namespace sdx::benchmark
