#include "session/background_compile.h"

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "session/pipeline.h"

namespace sdx::session {
namespace {

using Clock = std::chrono::steady_clock;

double seconds(Clock::duration d) { return std::chrono::duration<double>(d).count(); }

// Abandoned compilers, by provider.
class LeftBehind {
 public:
  void change(const Provider* provider, int by) {
    const std::lock_guard lock(mutex_);
    if ((count_[provider] += by) == 0) count_.erase(provider);
  }
  int first_of(const Selection& selection) {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < selection.chain.size(); ++i) {
      if (count_.contains(selection.chain[i])) return static_cast<int>(i);
    }
    return -1;
  }

 private:
  std::mutex mutex_;
  std::map<const Provider*, int> count_;
};

// Never destroyed: threads that were left behind may outlive everything.
LeftBehind& left_behind() {
  static auto* const all = new LeftBehind;
  return *all;
}

struct Compilation {
  std::mutex mutex;  // guards all below
  std::condition_variable changed;
  int working = -1;  // the provider that compiles
  Clock::time_point since;
  bool done = false;
  std::shared_ptr<const CompiledChain> chain;
  std::exception_ptr error;
  std::function<void()> over;  // set when it is left behind

  static void run(const std::shared_ptr<Compilation>& c, const std::shared_ptr<SessionContext>& context,
                  const Selection& selection) {
    std::shared_ptr<const CompiledChain> chain;
    std::exception_ptr error;
    try {
      chain = std::make_shared<const CompiledChain>(context, selection, [&](int provider) {
        const std::lock_guard lock(c->mutex);
        c->working = provider;
        c->since = Clock::now();
        c->changed.notify_all();
      });
    } catch (...) {
      error = std::current_exception();
    }
    std::function<void()> over;
    {
      const std::lock_guard lock(c->mutex);
      c->chain = std::move(chain);
      c->error = error;
      c->done = true;
      over = std::move(c->over);
      c->changed.notify_all();
    }
    if (over) over();
  }

  // The provider that has had more than its time; -1: it is done.
  int wait(std::chrono::milliseconds limit) {
    std::unique_lock lock(mutex);
    while (!done) {
      if (working < 0) {
        changed.wait(lock);
      } else if (changed.wait_until(lock, since + limit) == std::cv_status::timeout && !done && working >= 0 &&
                 Clock::now() >= since + limit) {
        return working;
      }
    }
    return -1;
  }
};

}  // namespace

std::shared_ptr<const CompiledChain> compile_in_time(const std::shared_ptr<SessionContext>& context, const Selection& selection,
                                                     LateProvider& late,
                                                     std::function<void(int, std::shared_ptr<const CompiledChain>)> over) {
  const std::chrono::milliseconds limit = context->options.provider_timeout;
  if (limit.count() <= 0 || !compiles_regions(selection)) return std::make_shared<const CompiledChain>(context, selection);
  const auto name = [&] { return selection.chain[static_cast<std::size_t>(late.index)]->name(); };
  if ((late.index = left_behind().first_of(selection)) >= 0) {
    fail(ErrorCode::runtime_failure, "{} has not finished compiling another model", name());
  }
  const auto c = std::make_shared<Compilation>();
  std::thread thread([c, context, selection] { Compilation::run(c, context, selection); });
  late.index = c->wait(limit);
  if (late.index >= 0) {
    const Provider* provider = selection.chain[static_cast<std::size_t>(late.index)];
    const std::lock_guard lock(c->mutex);
    if (!c->done) {
      thread.detach();
      left_behind().change(provider, 1);
      c->over = [state = std::weak_ptr(c), provider, index = late.index, over = std::move(over)] {
        left_behind().change(provider, -1);
        if (const auto s = state.lock(); s && over) over(index, std::move(s->chain));
      };
      late.left_behind = true;
      fail(ErrorCode::runtime_failure, "{} has not compiled the model after {:.3f} s", name(), seconds(limit));
    }
    late.index = -1;
  }
  thread.join();
  if (c->error) std::rethrow_exception(c->error);
  return std::move(c->chain);
}

}  // namespace sdx::session
