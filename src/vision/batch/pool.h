#pragma once
// Many pictures by a few threads, results in the order of the pictures.

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "vision/batch/input/feed.h"
#include "vision/batch/process.h"

namespace sdx::vision::batch {

struct Finished {
  Next next;  // the frame is gone
  Processed processed;
  std::optional<Identity> identity;  // of the file as it was read
  bool done_before = false;
};

// At most four pictures for each worker are in progress, including finished ones that wait for an earlier one, so that memory
// does not grow with the number of pictures.
class Pool {
 public:
  // `work` is called by any worker; it must not throw. The feed may throw: see take().
  Pool(int workers, Feed feed, std::function<Finished(Next)> work);
  // Waits for the pictures in progress.
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  // The next result in order. Empty: none came within `patience`, and ended() says whether one will. Throws what the feed threw,
  // once everything before that has been taken.
  std::optional<Finished> take(std::chrono::milliseconds patience);
  bool ended() const { return ended_; }
  // No further pictures are begun.
  void stop();

 private:
  void run();
  bool reserve();

  Feed feed_;
  std::function<Finished(Next)> work_;
  std::mutex feed_mutex_;
  std::int64_t fed_ = 0;  // under feed_mutex_

  std::mutex mutex_;
  std::condition_variable room_, news_;
  std::map<std::int64_t, Finished> finished_;
  std::int64_t taken_ = 0;
  int free_, running_;
  bool stopped_ = false, exhausted_ = false, ended_ = false;
  std::exception_ptr failure_;
  std::vector<std::thread> workers_;
};

}  // namespace sdx::vision::batch
