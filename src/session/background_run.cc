#include "session/background_run.h"

#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "base/system/interruption.h"
#include "tensor/own.h"

namespace sdx::session {
namespace {

using Clock = std::chrono::steady_clock;

// The interval at which the caller's wish to stop is checked, and the time that a provider has to stop before its run is
// abandoned.
constexpr std::chrono::milliseconds kLook{5}, kGrace{50};

}  // namespace

struct BackgroundRun::State {
  std::shared_ptr<const CompiledChain> chain;
  Request request;
  plan::RunEnv env;
  std::shared_ptr<std::atomic<bool>> stop = std::make_shared<std::atomic<bool>>(false);

  std::mutex mutex;  // guards all below
  std::condition_variable changed;
  bool done = false;
  std::vector<Value> results;
  std::exception_ptr error;
  std::function<void()> over;

  static void run(const std::shared_ptr<State>& s) {
    std::vector<Value> results;
    std::exception_ptr error;
    try {
      results = s->chain->run(s->request, s->env);
    } catch (...) {
      error = std::current_exception();
    }
    // The waiting side holds the chain as long as it needs it; this thread may go on for a moment after `done` is seen.
    s->chain.reset();
    std::function<void()> over;
    {
      const std::lock_guard lock(s->mutex);
      s->results = std::move(results);
      s->error = std::move(error);
      s->done = true;
      over = std::move(s->over);
      // While the lock is held: the waiting side may be gone right after it.
      s->changed.notify_all();
    }
    if (over) over();
  }
};

BackgroundRun::BackgroundRun(std::shared_ptr<const CompiledChain> chain, const Request& request)
    : state_(std::make_shared<State>()) {
  state_->chain = std::move(chain);
  state_->request = request;
  for (Value& v : state_->request.values) v = owned(v);
  state_->env.stop.deadline = request.stop.deadline;
  state_->env.stop.cancelled = state_->stop;
  std::thread([s = state_] { State::run(s); }).detach();
}

BackgroundRun::~BackgroundRun() {
  if (!state_) return;
  std::unique_lock lock(state_->mutex);
  state_->changed.wait(lock, [&] { return state_->done; });
}

BackgroundRun::Outcome BackgroundRun::wait(Clock::time_point limit, const std::function<bool(const std::string*)>& suspect) {
  const StopCondition& wish = state_->request.stop;
  std::optional<Clock::time_point> stopping;
  std::unique_lock lock(state_->mutex);
  while (true) {
    const auto now = Clock::now();
    auto next = limit;
    if (wish.deadline) next = std::min(next, *wish.deadline + kGrace);
    if (wish.cancelled || interruption != nullptr || stopping || now >= limit) next = now + kLook;
    if (state_->changed.wait_until(lock, next, [&] { return state_->done; })) return Outcome::done;
    const auto then = Clock::now();
    const bool cancelled = (wish.cancelled && wish.cancelled->load(std::memory_order_relaxed)) || interrupted();
    if (!stopping && (cancelled || (wish.deadline && then > *wish.deadline))) {
      stopping = then;
      state_->stop->store(cancelled, std::memory_order_relaxed);
    }
    if (stopping && then > *stopping + kGrace) return Outcome::stopped;
    if (then >= limit && suspect(state_->env.provider.load(std::memory_order_relaxed))) return Outcome::late;
  }
}

std::vector<Value> BackgroundRun::results() {
  const std::lock_guard lock(state_->mutex);
  if (state_->error) std::rethrow_exception(std::exchange(state_->error, nullptr));
  return std::move(state_->results);
}

const std::string* BackgroundRun::provider() const { return state_->env.provider.load(std::memory_order_relaxed); }

void BackgroundRun::abandon(std::function<void()> over) {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stop->store(true, std::memory_order_relaxed);
    if (!state_->done) {
      state_->over = std::move(over);
      over = nullptr;
    }
  }
  state_.reset();
  if (over) over();
}

}  // namespace sdx::session
