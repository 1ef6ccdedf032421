#pragma once
// Signs of life in streams that are silent for long: proxies and clients take a connection without any for dead.

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "serve/openai/reply.h"

namespace sdx::serve::openai {

// Thread-safe. Has a thread of its own.
class Heartbeats {
 public:
  explicit Heartbeats(std::chrono::milliseconds silence);
  ~Heartbeats();
  Heartbeats(const Heartbeats&) = delete;
  Heartbeats& operator=(const Heartbeats&) = delete;

  void watch(const std::shared_ptr<Reply>& reply);

 private:
  void run();

  const std::chrono::milliseconds silence_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::weak_ptr<Reply>> replies_;  // guarded by `mutex_`
  bool stop_ = false;                          // guarded by `mutex_`
  std::thread thread_;
};

}  // namespace sdx::serve::openai
