#pragma once
// Threads that run handlers, and a queue of bounded length before them. A thread is made when work finds none that is free.

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace sdx::serve {

class HandlerPool {
 public:
  HandlerPool(int threads, int waiting);
  ~HandlerPool();  // as join()
  HandlerPool(const HandlerPool&) = delete;
  HandlerPool& operator=(const HandlerPool&) = delete;

  // False when too many wait. `work` must not throw.
  bool submit(std::function<void()> work);
  // Runs what waits, and returns when all is done; submit() then always says no.
  void join();

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> queue_;
  std::size_t most_threads_, waiting_;
  std::size_t free_ = 0, busy_ = 0;  // threads that wait for work, and that do it
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace sdx::serve
