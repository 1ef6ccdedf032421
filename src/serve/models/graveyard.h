#pragma once
// Where models go when nobody uses them any more. The last one to let go of a model may be one of its own threads (of its
// batcher, of its engine), which cannot wait for itself: so a thread of its own destroys them.

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "serve/models/catalog.h"

namespace sdx::serve {

// Thread-safe.
class Graveyard : public std::enable_shared_from_this<Graveyard> {
 public:
  Graveyard() : thread_([this] { work(); }) {}
  ~Graveyard() { close(); }
  Graveyard(const Graveyard&) = delete;
  Graveyard& operator=(const Graveyard&) = delete;

  ModelPtr own(std::unique_ptr<LoadedModel> model) {
    return {model.release(), [self = shared_from_this()](const LoadedModel* dead) { self->take(dead); }};
  }

  // Returns when every model that was let go of is destroyed.
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return dead_.empty() && !busy_; });
  }

  // The same; models that are let go of later are destroyed at once, by whoever does.
  void close() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

 private:
  void take(const LoadedModel* dead) {
    std::unique_ptr<const LoadedModel> model(dead);
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    dead_.push_back(std::move(model));
    changed_.notify_all();
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
  bool busy_ = false, closed_ = false;
  std::thread thread_;
};

}  // namespace sdx::serve
