#include "train/loop/loader.h"

#include <utility>

namespace sdx::train::loop {

Loader::Loader(Dataset& data, std::function<std::optional<BatchRequest>()> next, std::size_t ahead)
    : data_(data), next_(std::move(next)), ahead_(ahead), thread_([this] { work(); }) {}

Loader::~Loader() {
  {
    const std::scoped_lock lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Loader::work() {
  try {
    while (const std::optional<BatchRequest> request = next_()) {
      std::vector<Tensor> batch = data_.batch(request->samples, request->epoch);
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stop_ || ready_.size() < ahead_; });
      if (stop_) return;
      ready_.push_back(std::move(batch));
      changed_.notify_all();
    }
  } catch (...) {
    const std::scoped_lock lock(mutex_);
    error_ = std::current_exception();
  }
  const std::scoped_lock lock(mutex_);
  done_ = true;
  changed_.notify_all();
}

std::optional<std::vector<Tensor>> Loader::take() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return done_ || !ready_.empty(); });
  if (!ready_.empty()) {
    std::vector<Tensor> batch = std::move(ready_.front());
    ready_.pop_front();
    changed_.notify_all();
    return batch;
  }
  if (error_) std::rethrow_exception(error_);
  return std::nullopt;
}

}  // namespace sdx::train::loop
