#pragma once
// Destroys models that are no longer used. The last thread to release a model may be one of the model's own (of its batcher
// or its engine), which cannot wait for itself; therefore a separate thread destroys them.

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "serve/models/catalog.h"

namespace sdx::serve {

// Thread-safe.
class Unloader : public std::enable_shared_from_this<Unloader> {
 public:
  Unloader() : thread_([this] { work(); }) {}
  ~Unloader() { close(); }
  Unloader(const Unloader&) = delete;
  Unloader& operator=(const Unloader&) = delete;

  ModelPtr own(std::unique_ptr<LoadedModel> model) {
    {
      const std::lock_guard lock(mutex_);
      ++out_;
    }
    return {model.release(), [self = shared_from_this()](const LoadedModel* dead) { self->take(dead); }};
  }

  // Returns when every model that was let go of is destroyed.
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return dead_.empty() && !busy_; });
  }

  // Waits a while for the models that are still held. Each model that is released even later gets a thread of its own.
  void close() {
    {
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, kPatience, [&] { return out_ == 0; });
      closed_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

 private:
  static constexpr std::chrono::seconds kPatience{10};

  void take(const LoadedModel* dead) {
    std::unique_ptr<const LoadedModel> model(dead);
    const std::lock_guard lock(mutex_);
    --out_;
    if (closed_) return destroy_elsewhere(std::move(model));
    dead_.push_back(std::move(model));
    changed_.notify_all();
  }

  static void destroy_elsewhere(std::unique_ptr<const LoadedModel> model) {
    const LoadedModel* dead = model.release();
    try {
      std::thread([dead] { delete dead; }).detach();
    } catch (const std::system_error&) {  // the process ends: better a leak than a thread that waits for itself
    }
  }

  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return closed_ || !dead_.empty(); });
      if (dead_.empty()) return;
      std::vector<std::unique_ptr<const LoadedModel>> now = std::move(dead_);
      dead_.clear();
      busy_ = true;
      lock.unlock();
      now.clear();
      lock.lock();
      busy_ = false;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::unique_ptr<const LoadedModel>> dead_;
  std::int64_t out_ = 0;  // models that somebody has
  bool busy_ = false, closed_ = false;
  std::thread thread_;
};

}  // namespace sdx::serve
