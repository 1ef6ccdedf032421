#include "serve/http/handler_pool.h"

#include <algorithm>
#include <system_error>

namespace sdx::serve {

HandlerPool::HandlerPool(int threads, int waiting)
    : most_threads_(static_cast<std::size_t>(std::max(1, threads))), waiting_(static_cast<std::size_t>(std::max(1, waiting))) {}

HandlerPool::~HandlerPool() { join(); }

bool HandlerPool::submit(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    if (ending_ || queue_.size() >= waiting_ + most_threads_ - busy_) return false;
    queue_.push_back(std::move(work));
    if (queue_.size() > free_ && threads_.size() < most_threads_) {
      try {
        threads_.emplace_back([this] { run(); });
      } catch (const std::system_error&) {  // the system has no more threads: those that there are do
        if (threads_.empty()) {
          queue_.pop_back();
          return false;
        }
      }
    }
  }
  wake_.notify_one();
  return true;
}

void HandlerPool::join() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

void HandlerPool::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    ++free_;
    wake_.wait(lock, [this] { return ending_ || !queue_.empty(); });
    --free_;
    if (queue_.empty()) return;
    std::function<void()> work = std::move(queue_.front());
    queue_.pop_front();
    ++busy_;
    lock.unlock();
    work();
    work = nullptr;  // what it holds may take its time to end, or submit work
    lock.lock();
    --busy_;
  }
}

}  // namespace sdx::serve
