#include "serve/openai/heartbeats.h"

#include <algorithm>

namespace sdx::serve::openai {

Heartbeats::Heartbeats(std::chrono::milliseconds silence) : silence_(silence), thread_([this] { run(); }) {}

Heartbeats::~Heartbeats() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Heartbeats::watch(const std::shared_ptr<Reply>& reply) {
  const std::lock_guard lock(mutex_);
  replies_.push_back(reply);
}

void Heartbeats::run() {
  const std::chrono::milliseconds round = std::max(silence_ / 8, std::chrono::milliseconds(10));
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, round, [this] { return stop_; })) {
    std::erase_if(replies_, [](const auto& reply) { return reply.expired(); });
    const std::vector<std::weak_ptr<Reply>> replies = replies_;
    lock.unlock();
    for (const auto& weak : replies) {
      if (const std::shared_ptr<Reply> reply = weak.lock()) reply->beat(silence_);
    }
    lock.lock();
  }
}

}  // namespace sdx::serve::openai
