#include "vision/batch/pool.h"

#include <system_error>
#include <utility>

namespace sdx::vision::batch {

Pool::Pool(int workers, Feed feed, std::function<Finished(Next)> work)
    : feed_(std::move(feed)), work_(std::move(work)), free_(4 * workers), running_(workers) {
  for (int i = 0; i < workers; ++i) {
    try {
      workers_.emplace_back([this] { run(); });
    } catch (const std::system_error&) {  // the system permits no more threads: fewer do the work
      if (workers_.empty()) throw;
      const std::lock_guard lock(mutex_);
      running_ -= workers - i;
      break;
    }
  }
}

Pool::~Pool() {
  stop();
  for (std::thread& worker : workers_) worker.join();
}

void Pool::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  room_.notify_all();
}

bool Pool::reserve() {
  std::unique_lock lock(mutex_);
  room_.wait(lock, [&] { return free_ > 0 || stopped_ || exhausted_; });
  if (stopped_ || exhausted_) return false;
  --free_;
  return true;
}

void Pool::run() {
  while (reserve()) {
    std::optional<Next> next;
    std::int64_t index = 0;
    std::exception_ptr failure;
    {
      const std::lock_guard lock(feed_mutex_);
      try {
        bool over = false;
        {
          const std::lock_guard state(mutex_);
          over = stopped_ || exhausted_;
        }
        if (!over) next = feed_();
      } catch (...) {
        failure = std::current_exception();
      }
      index = fed_;
      fed_ += next ? 1 : 0;
      if (!next) {
        const std::lock_guard state(mutex_);
        exhausted_ = true;
        if (failure) failure_ = failure;
        room_.notify_all();
      }
    }
    if (!next) break;
    Finished finished = work_(std::move(*next));
    const std::lock_guard lock(mutex_);
    finished_.emplace(index, std::move(finished));
    news_.notify_one();
  }
  const std::lock_guard lock(mutex_);
  --running_;
  news_.notify_one();
}

std::optional<Finished> Pool::take(std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  const auto ready = [&] { return running_ == 0 || (!finished_.empty() && finished_.begin()->first == taken_); };
  if (!news_.wait_for(lock, patience, ready)) return std::nullopt;
  if (finished_.empty()) {
    ended_ = true;
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
    return std::nullopt;
  }
  Finished out = std::move(finished_.begin()->second);
  finished_.erase(finished_.begin());
  ++taken_;
  ++free_;
  room_.notify_one();
  return out;
}

}  // namespace sdx::vision::batch
