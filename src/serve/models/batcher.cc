#include "serve/models/batcher.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>
#include <unordered_set>

#include "base/error.h"
#include "base/suggest.h"
#include "serve/models/batch_join.h"

namespace sdx::serve {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::nanoseconds;

// The most sizes of runs that are counted separately: clients choose how many samples they send.
constexpr std::size_t kMostSizes = 1024;

// The interval at which waiting requests are checked for cancellation, which is not signalled.
constexpr std::chrono::milliseconds kCancelInterval{10};

struct Waiting {
  NamedValues inputs;
  std::vector<std::string> wanted;
  RunOptions options;
  BatchDone done;
  std::optional<JoinKey> key;  // nothing: runs alone
  std::int64_t rows = 1;       // samples
  Clock::time_point arrived;
  std::optional<Clock::time_point> deadline;

  bool cancelled() const { return options.cancel && options.cancel->cancelled(); }
};
using WaitingPtr = std::unique_ptr<Waiting>;
using Batch = std::vector<WaitingPtr>;
// Results that are handed to the callers once the instance is free for others again.
using Answers = std::vector<std::pair<BatchDone, BatchResult>>;

std::uint64_t count_ns(nanoseconds time) { return static_cast<std::uint64_t>(std::max<std::int64_t>(0, time.count())); }

std::int64_t first_extent(const NamedValues& inputs) {
  if (inputs.empty() || !inputs[0].value.is_tensor() || inputs[0].value.tensor().rank() == 0) return 1;
  return inputs[0].value.tensor().dim(0);
}

// Counts like Triton: the full duration for each request of a batch.
class Counts {
 public:
  void succeeded(const BatchTimes& times, nanoseconds all, std::int64_t rows) {
    const std::lock_guard lock(mutex_);
    add(now_.success, all);
    add(now_.queue, times.queue);
    add(now_.input, times.input);
    add(now_.infer, times.infer);
    add(now_.output, times.output);
    now_.inferences += static_cast<std::uint64_t>(rows);
    now_.last_inference_ms =
        std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
  }
  void failed(nanoseconds all) {
    const std::lock_guard lock(mutex_);
    add(now_.fail, all);
  }
  void executed(const BatchTimes& times) {
    const std::lock_guard lock(mutex_);
    ++now_.executions;
    if (sizes_.size() >= kMostSizes && !sizes_.contains(times.batch)) return;
    BatchStatistics::OfSize& of = sizes_[times.batch];
    of.size = times.batch;
    add(of.input, times.input);
    add(of.infer, times.infer);
    add(of.output, times.output);
  }
  BatchStatistics read() const {
    const std::lock_guard lock(mutex_);
    BatchStatistics out = now_;
    for (const auto& [size, of] : sizes_) out.sizes.push_back(of);
    return out;
  }

 private:
  static void add(BatchStatistics::Duration& to, nanoseconds time) {
    ++to.count;
    to.ns += count_ns(time);
  }
  mutable std::mutex mutex_;
  BatchStatistics now_;
  std::map<std::int64_t, BatchStatistics::OfSize> sizes_;
};

}  // namespace

struct Batcher::Impl {
  std::shared_ptr<const Session> session;
  BatchOptions options;
  JoinRules rules;
  std::unordered_set<std::string> names;  // of outputs
  bool has_batch;
  std::atomic<bool> joins;  // requests may run together
  Counts counts;

  mutable std::mutex mutex;
  std::condition_variable wake;
  std::deque<WaitingPtr> queue;
  int free;  // instances that run nothing
  bool ending = false;
  std::vector<std::thread> threads;  // one more than instances, so that one sees deadlines while all run; from the first wait on

  Impl(std::shared_ptr<const Session> of, bool batched, const BatchOptions& given)
      : session(std::move(of)),
        options(given),
        has_batch(batched),
        joins(batched && given.max_batch_size > 1),
        free(std::max(1, given.instances)) {
    options.instances = free;
    rules = {session->inputs(), session->outputs(), given.mask_input};
    for (const ValueSpec& output : rules.outputs) names.insert(output.name);
    std::sort(options.preferred.begin(), options.preferred.end());
  }

  ~Impl() {
    {
      const std::lock_guard lock(mutex);
      ending = true;
    }
    wake.notify_all();
    for (std::thread& thread : threads) thread.join();
  }

  // ---- Taking requests ----

  // Before it can be part of a run with others.
  void check_outputs(const std::vector<std::string>& wanted) {
    for (const std::string& name : wanted) {
      if (names.contains(name)) continue;
      counts.failed(nanoseconds(0));
      const std::vector<std::string> known(names.begin(), names.end());
      const std::string near = closest(name.substr(0, 256), known);
      fail(ErrorCode::invalid_argument, "the model has no output '{}'{}", name.substr(0, 256),
           near.empty() ? "" : "; did you mean '" + near + "'?");
    }
  }

  void submit(WaitingPtr one) {
    check_outputs(one->wanted);
    check_outputs(one->options.outputs);
    one->arrived = Clock::now();
    std::optional<std::chrono::milliseconds> timeout = one->options.timeout;
    if (options.timeout) timeout = std::min(timeout.value_or(*options.timeout), *options.timeout);
    if (timeout) one->deadline = one->arrived + *timeout;
    if (has_batch) one->rows = first_extent(one->inputs);
    if (joins.load(std::memory_order_relaxed) && one->options.bound.empty()) one->key = join_key(rules, one->inputs);
    if (one->key && one->key->rows >= options.max_batch_size) one->key.reset();
    {
      std::unique_lock lock(mutex);
      const bool idle = free > 0 && queue.empty();
      if (!idle || !starts_at_once(*one)) {
        if (static_cast<int>(queue.size()) >= options.queue) {
          counts.failed(nanoseconds(0));
          throw Overloaded(ErrorCode::out_of_memory,
                           fmt::format("{} requests already wait for this model: try again later", queue.size()));
        }
        start_threads();
        queue.push_back(std::move(one));
        lock.unlock();
        wake.notify_one();
        return;
      }
      --free;
    }
    Batch batch;
    batch.push_back(std::move(one));
    run_and_tell(std::move(batch));
  }

  bool starts_at_once(const Waiting& one) const {
    return !one.key || options.max_queue_delay.count() == 0 ||
           std::binary_search(options.preferred.begin(), options.preferred.end(), one.key->rows);
  }

  void release() {
    bool more = false;
    {
      const std::lock_guard lock(mutex);
      ++free;
      more = !queue.empty();
    }
    if (more) wake.notify_one();
  }

  // One thread suffices for answers; if the system has no more, the next request tries again.
  void start_threads() {
    try {
      while (static_cast<int>(threads.size()) <= options.instances) threads.emplace_back([this] { serve(); });
    } catch (const std::system_error&) {
      if (threads.empty()) throw;
    }
  }

  // ---- Choosing what runs next ----

  void serve() {
    std::unique_lock lock(mutex);
    while (true) {
      drop_expired(lock);
      if (queue.empty() && ending) return;
      std::optional<Clock::time_point> next;
      if (free > 0 && !queue.empty()) {
        if (Batch batch = choose(next); !batch.empty()) {
          --free;
          lock.unlock();
          wake.notify_one();  // somebody else may have to look at the rest
          run_and_tell(std::move(batch));
          lock.lock();
          continue;
        }
      }
      for (const WaitingPtr& one : queue) {
        if (one->deadline) next = std::min(next.value_or(*one->deadline), *one->deadline);
        if (one->options.cancel) next = std::min(next.value_or(Clock::time_point::max()), Clock::now() + kCancelInterval);
      }
      if (next) {
        wake.wait_until(lock, *next);
      } else {
        wake.wait(lock);
      }
    }
  }

  // Removes requests that expired or were cancelled from the queue. Releases the mutex while it answers them.
  void drop_expired(std::unique_lock<std::mutex>& lock) {
    const Clock::time_point now = Clock::now();
    Batch late;
    for (auto at = queue.begin(); at != queue.end();) {
      const bool drop = (*at)->cancelled() || ((*at)->deadline && *(*at)->deadline <= now);
      if (!drop) {
        ++at;
        continue;
      }
      late.push_back(std::move(*at));
      at = queue.erase(at);
    }
    if (late.empty()) return;
    lock.unlock();
    Answers answers;
    for (WaitingPtr& one : late) refuse_late(std::move(one), answers);
    tell(answers);
    lock.lock();
  }

  struct Group {
    const Waiting* first;
    std::vector<std::size_t> members;  // places in the queue
    std::int64_t rows = 0;             // of all members
    std::size_t take = 0;              // members whose rows make up the largest preferred size
    bool full = false;                 // the next one did not fit, or nothing does any more
  };

  // Takes the first requests that are to run at this time; otherwise nothing, and `next` is the time of the next check.
  Batch choose(std::optional<Clock::time_point>& next) {
    std::vector<Group> groups;
    for (std::size_t i = 0; i < queue.size(); ++i) {
      const Waiting& one = *queue[i];
      if (!one.key) {
        groups.push_back({&one, {i}, 1, 1, true});
        continue;
      }
      const auto same = [&](const Group& g) { return g.first->key && !g.full && g.first->key->text == one.key->text; };
      auto at = std::find_if(groups.begin(), groups.end(), same);
      if (at != groups.end() && at->rows + one.key->rows > options.max_batch_size) {
        at->full = true;
        at = groups.end();
      }
      if (at == groups.end()) at = groups.insert(groups.end(), Group{&one, {}});
      at->members.push_back(i);
      at->rows += one.key->rows;
      if (std::binary_search(options.preferred.begin(), options.preferred.end(), at->rows)) at->take = at->members.size();
      at->full = at->rows >= options.max_batch_size;
    }
    const Clock::time_point now = Clock::now();
    for (Group& group : groups) {
      const Clock::time_point due = group.first->arrived + options.max_queue_delay;
      if (group.full || ending || now >= due) return take(group.members);
      if (group.take > 0) {
        group.members.resize(group.take);
        return take(group.members);
      }
      next = std::min(next.value_or(due), due);
    }
    return {};
  }

  Batch take(const std::vector<std::size_t>& members) {
    Batch batch;
    for (const std::size_t i : members) batch.push_back(std::move(queue[i]));
    std::erase_if(queue, [](const WaitingPtr& one) { return one == nullptr; });
    return batch;
  }

  // ---- Running ----

  void run_and_tell(Batch batch) {
    Answers answers;
    execute(std::move(batch), answers);
    release();
    tell(answers);
  }

  static void tell(Answers& answers) {
    for (auto& [done, result] : answers) {
      try {
        done(std::move(result));
      } catch (...) {  // which it must not: but the others get their answers, and this thread goes on
      }
    }
  }

  void execute(Batch batch, Answers& answers) {
    for (WaitingPtr& one : batch) {
      if (one->cancelled() || (one->deadline && *one->deadline <= Clock::now())) refuse_late(std::move(one), answers);
    }
    std::erase_if(batch, [](const WaitingPtr& one) { return one == nullptr; });
    if (batch.size() > 1 && run_together(batch, answers)) return;
    for (WaitingPtr& one : batch) run_alone(std::move(one), answers);
  }

  void run_alone(WaitingPtr one, Answers& answers) {
    BatchResult result;
    const Clock::time_point begin = Clock::now();
    result.times.queue = begin - one->arrived;
    result.times.batch = one->rows;
    try {
      RunOptions run = one->options;
      if (!one->wanted.empty()) run.outputs = one->wanted;
      if (one->deadline) run.timeout = time_left(*one->deadline, begin);
      result.outputs = session->run(one->inputs, run);
      result.times.infer = Clock::now() - begin;
      counts.executed(result.times);
      counts.succeeded(result.times, Clock::now() - one->arrived, one->rows);
    } catch (...) {
      result.error = std::current_exception();
      counts.failed(Clock::now() - one->arrived);
    }
    answers.emplace_back(std::move(one->done), std::move(result));
  }

  static std::chrono::milliseconds time_left(Clock::time_point deadline, Clock::time_point now) {
    return std::max(std::chrono::ceil<std::chrono::milliseconds>(deadline - now), std::chrono::milliseconds(1));
  }

  // The union of the outputs that they want, with the latest of their deadlines.
  static RunOptions common_options(const Batch& batch, Clock::time_point now) {
    RunOptions run;
    std::unordered_set<std::string_view> seen;
    bool all = false, endless = false;
    Clock::time_point last = now;
    for (const WaitingPtr& one : batch) {
      const std::vector<std::string>& wanted = one->wanted.empty() ? one->options.outputs : one->wanted;
      all = all || wanted.empty();
      for (const std::string& name : wanted) {
        if (seen.insert(name).second) run.outputs.push_back(name);
      }
      endless = endless || !one->deadline;
      if (one->deadline) last = std::max(last, *one->deadline);
    }
    if (all) run.outputs.clear();
    if (!endless) run.timeout = time_left(last, now);
    return run;
  }

  // False where each has to run alone: it failed together, or the outputs cannot be cut.
  bool run_together(Batch& batch, Answers& answers) {
    std::vector<JoinPart> parts;
    BatchTimes times;
    times.batch = 0;
    for (const WaitingPtr& one : batch) {
      parts.push_back({&one->inputs, one->key->rows, one->key->length});
      times.batch += one->key->rows;
    }
    const Clock::time_point begin = Clock::now();
    std::vector<NamedValues> shares;
    try {
      const NamedValues inputs = join(rules, parts);
      const Clock::time_point joined = Clock::now();
      const NamedValues outputs = session->run(inputs, common_options(batch, joined));
      const Clock::time_point ran = Clock::now();
      shares = cut(rules, outputs, parts);
      times.input = joined - begin;
      times.infer = ran - joined;
      times.output = Clock::now() - ran;
    } catch (...) {
      return false;  // whose fault it was shows when they run alone
    }
    if (shares.empty()) {
      joins = false;
      return false;
    }
    counts.executed(times);
    for (std::size_t i = 0; i < batch.size(); ++i) deliver(std::move(batch[i]), std::move(shares[i]), times, begin, answers);
    return true;
  }

  void deliver(WaitingPtr one, NamedValues outputs, BatchTimes times, Clock::time_point begin, Answers& answers) {
    const Clock::time_point now = Clock::now();
    if (one->cancelled() || (one->deadline && *one->deadline <= now)) return refuse_late(std::move(one), answers);
    BatchResult result;
    result.times = times;
    result.times.queue = begin - one->arrived;
    try {
      const std::vector<std::string>& wanted = one->wanted.empty() ? one->options.outputs : one->wanted;
      if (wanted.empty()) {
        result.outputs = std::move(outputs);
      } else {
        for (const std::string& name : wanted) result.outputs.add(name, outputs.at(name));
      }
      counts.succeeded(result.times, now - one->arrived, one->rows);
    } catch (...) {  // this thread serves others too
      result.error = std::current_exception();
      counts.failed(now - one->arrived);
    }
    answers.emplace_back(std::move(one->done), std::move(result));
  }

  void refuse_late(WaitingPtr one, Answers& answers) {
    const Error late(ErrorCode::deadline_exceeded, "the request was not answered within its time");
    const Error cancelled(ErrorCode::cancelled, "the request was cancelled");
    const bool was_cancelled = one->cancelled();
    refuse(std::move(one), was_cancelled ? cancelled : late, answers);
  }

  void refuse(WaitingPtr one, const Error& error, Answers& answers) {
    BatchResult result;
    result.error = std::make_exception_ptr(error);
    result.times.queue = Clock::now() - one->arrived;
    counts.failed(result.times.queue);
    answers.emplace_back(std::move(one->done), std::move(result));
  }
};

Batcher::Batcher(std::shared_ptr<const Session> session, bool has_batch, const BatchOptions& options)
    : impl_(std::make_unique<Impl>(std::move(session), has_batch, options)) {}

Batcher::~Batcher() = default;

void Batcher::submit(NamedValues inputs, std::vector<std::string> wanted, const RunOptions& options, BatchDone done) {
  auto one = std::make_unique<Waiting>();
  one->inputs = std::move(inputs);
  one->wanted = std::move(wanted);
  one->options = options;
  one->done = std::move(done);
  impl_->submit(std::move(one));
}

NamedValues Batcher::run(const NamedValues& inputs, const std::vector<std::string>& wanted, const RunOptions& options,
                         BatchTimes* times) {
  std::mutex mutex;
  std::condition_variable ended;
  std::optional<BatchResult> result;
  submit(inputs, wanted, options, [&](BatchResult got) {
    const std::lock_guard lock(mutex);  // held until notified: the waiting thread owns what is notified
    result = std::move(got);
    ended.notify_one();
  });
  std::unique_lock lock(mutex);
  ended.wait(lock, [&] { return result.has_value(); });
  if (times != nullptr) *times = result->times;
  if (result->error) std::rethrow_exception(result->error);
  return std::move(result->outputs);
}

BatchStatistics Batcher::statistics() const {
  BatchStatistics out = impl_->counts.read();
  const std::lock_guard lock(impl_->mutex);
  out.pending = static_cast<int>(impl_->queue.size());
  return out;
}

const Session& Batcher::session() const { return *impl_->session; }

}  // namespace sdx::serve
