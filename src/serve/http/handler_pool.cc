#include "serve/http/handler_pool.h"

#include <algorithm>

namespace sdx::serve {

HandlerPool::HandlerPool(int threads, int waiting) : waiting_(static_cast<std::size_t>(std::max(1, waiting))) {
  for (int i = 0; i < std::max(1, threads); ++i) threads_.emplace_back([this] { run(); });
}

HandlerPool::~HandlerPool() { join(); }

bool HandlerPool::submit(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    if (ending_ || queue_.size() >= waiting_) return false;
    queue_.push_back(std::move(work));
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
    wake_.wait(lock, [this] { return ending_ || !queue_.empty(); });
    if (queue_.empty()) return;
    const std::function<void()> work = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    work();
    lock.lock();
  }
}

}  // namespace sdx::serve
