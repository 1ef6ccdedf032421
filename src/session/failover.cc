#include "session/failover.h"

#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "base/stoppable_lock.h"
#include "base/suggest.h"
#include "base/system/interruption.h"
#include "plan/guarded_kernel.h"
#include "session/background_compile.h"
#include "session/background_run.h"

namespace sdx::session {
namespace {

// More would make a report of a provider that comes and goes for weeks unreadable.
constexpr std::size_t kMostEvents = 100;
// The longest pause between two tries, in pauses of the first.
constexpr int kLongestPause = 20;

double seconds(std::chrono::steady_clock::duration d) { return std::chrono::duration<double>(d).count(); }

// Errors that end a run without saying anything about its provider.
bool blameless(ErrorCode code) { return code == ErrorCode::cancelled || code == ErrorCode::deadline_exceeded; }

// The present exception as an Error: a vendor's library may throw anything.
Error caught() {
  try {
    throw;
  } catch (const Error& e) {
    return e;
  } catch (const std::bad_alloc&) {
    return {ErrorCode::out_of_memory, "the machine ran out of memory"};
  } catch (const std::exception& e) {
    return {ErrorCode::internal, e.what()};
  } catch (...) {
    return {ErrorCode::internal, "something other than a C++ exception class was thrown"};
  }
}

}  // namespace

Failover::Failover(std::shared_ptr<SessionContext> context, Selection selection)
    : context_(std::move(context)), selection_(std::move(selection)) {
  breakers_.resize(selection_.chain.size());
  for (std::size_t i = 0; i < breakers_.size(); ++i) {
    breakers_[i].guarded = selection_.chain[i]->compiles_regions();
    plain_ = plain_ && !breakers_[i].guarded;
    all_ |= Mask{1} << i;
  }
}

// The thread in the background holds the failover: where it is still there, this is it.
Failover::~Failover() {
  if (background_.joinable()) background_.detach();
}

void Failover::close() {
  std::unique_lock lock(mutex_);
  if (!background_.joinable()) return;
  const auto over = [this] { return !compiling_; };
  const std::chrono::milliseconds limit = context_->options.provider_timeout;
  if (limit.count() <= 0) {
    compiled_.wait(lock, over);
  } else if (!compiled_.wait_for(lock, limit, over)) {
    return;  // left behind
  }
  lock.unlock();
  background_.join();
}

void Failover::open(std::shared_ptr<const CompiledChain> ready) {
  allowed_ = all_;
  if (ready) slot(all_).chain = std::move(ready);
  if (!context_->options.start_on.empty() && !plain_ && !slot(all_).chain) {
    const std::string start = canonical_provider(context_->options.start_on);
    std::size_t first = 0;
    while (first < selection_.chain.size() && selection_.chain[first]->name() != start) ++first;
    if (first == selection_.chain.size()) {
      fail(ErrorCode::invalid_argument, "cannot start on '{}': it is not in the chain {}", start, label_of(selection_));
    }
    if (first > 0) {
      allowed_ = all_ & ~((Mask{1} << first) - 1);
      const auto start_time = Clock::now();
      try {
        chain_of(allowed_);
        const std::lock_guard lock(mutex_);
        note(fmt::format("started on {} after {:.3f} s; {} compiles in the background", start, seconds(Clock::now() - start_time),
                         name_of(0)));
        compiling_ = true;
        background_ = std::thread([self = shared_from_this()] { self->compile_rest(); });
        return;
      } catch (const Error& e) {
        log::warning("cannot start on {}: {}. Waiting for {}", start, e.what(), name_of(0));
        allowed_ = all_;
      }
    }
  }
  for (Mask mask = all_; !only_;) {
    Failure failure;
    try {
      only_ = chain_of(mask, &failure);
    } catch (const Error& e) {
      if (failure.provider < 0 || context_->options.strict) throw;
      failure.reason = e.message();
      mask &= ~(Mask{1} << failure.provider);
      trip(failure, "opening", label_of(subset(mask)));
      const std::lock_guard lock(mutex_);
      fallbacks_.push_back(
          fmt::format("requested {}, using {}: {}", name_of(failure.provider), label_of(subset(mask)), e.message()));
    }
  }
}

void Failover::compile_rest() {
  const auto start = Clock::now();
  std::optional<Error> broken;
  try {
    chain_of(all_);
  } catch (...) {
    broken = caught();
  }
  const std::string problem = broken ? broken->what() : "";
  std::unique_lock lock(mutex_);
  compiling_ = false;
  const std::uint64_t runs = slot(allowed_).runs;
  if (!broken) {
    allowed_ = all_;
    note(fmt::format("{} takes over after {:.3f} s and {} runs", slot(all_).chain->label(), seconds(Clock::now() - start), runs));
  } else {
    slot(all_).problem = problem;
    if (context_->options.strict) broken_ = broken;
    note(fmt::format("{} could not be compiled in the background: {}", name_of(0), problem));
  }
  const std::string said = events_.back();
  compiled_.notify_all();
  lock.unlock();  // whoever listens may ask for a report
  log::emit(broken ? log::Level::warning : log::Level::info, "{}", said);
}

Selection Failover::subset(Mask mask) const {
  Selection s;
  s.why = selection_.why;
  for (std::size_t i = 0; i < selection_.chain.size(); ++i) {
    if ((mask >> i & 1) == 0) continue;
    s.chain.push_back(selection_.chain[i]);
    s.devices.push_back(selection_.devices[i]);
  }
  return s;
}

Failover::Slot& Failover::slot(Mask mask) {
  auto& made = slots_[mask];
  if (!made) made = std::make_unique<Slot>();
  return *made;
}

// Whoever needs a chain first compiles it; others wait for that.
// Without `failure` however long that takes; else within the time that a provider has, or `failure` says which one took longer.
std::shared_ptr<const CompiledChain> Failover::chain_of(Mask mask, Failure* failure, const StopCondition& stop) {
  Slot* s = nullptr;
  {
    const std::lock_guard lock(mutex_);
    s = &slot(mask);
    if (s->chain) return s->chain;
  }
  const std::unique_lock compiling = lock_unless_stopped(s->compiling, stop);
  {
    const std::lock_guard lock(mutex_);
    if (s->chain) return s->chain;
  }
  auto made = failure == nullptr ? std::make_shared<const CompiledChain>(context_, subset(mask)) : compile(mask, *failure);
  const std::lock_guard lock(mutex_);
  s->chain = made;
  return made;
}

std::shared_ptr<const CompiledChain> Failover::compile(Mask mask, Failure& failure) {
  std::vector<std::size_t> places;  // of the subset's providers in the chain
  for (std::size_t i = 0; i < breakers_.size(); ++i) {
    if ((mask >> i & 1) != 0) places.push_back(i);
  }
  LateProvider late;
  const auto over = [self = shared_from_this(), mask, places](int index, std::shared_ptr<const CompiledChain> chain) {
    const std::lock_guard lock(self->mutex_);
    --self->breakers_[places[static_cast<std::size_t>(index)]].hung;
    Slot& s = self->slot(mask);
    if (!chain) s.problem = "its compiler returned no result";
    if (!s.chain) s.chain = std::move(chain);  // a late chain serves the next try
  };
  try {
    return compile_in_time(context_, subset(mask), late, over);
  } catch (const Error&) {
    if (late.index < 0) throw;
    failure.provider = static_cast<int>(places[static_cast<std::size_t>(late.index)]);
    failure.hung = true;
    const std::lock_guard lock(mutex_);
    if (late.left_behind) ++breakers_[static_cast<std::size_t>(failure.provider)].hung;
    throw;
  }
}

Failover::Pick Failover::pick(Mask excluded, bool may_try) {
  const std::lock_guard lock(mutex_);
  if (broken_) throw Error(*broken_);
  Pick p;
  for (std::size_t i = 0; i < breakers_.size(); ++i) {
    const Mask bit = Mask{1} << i;
    Breaker& b = breakers_[i];
    if ((excluded & bit) != 0 || (allowed_ & bit) == 0) continue;
    if (b.open) {
      const bool again = may_try && p.trial < 0 && context_->options.provider_retry.count() > 0 && !b.probing && b.hung == 0 &&
                         Clock::now() >= b.retry_at;
      if (!again) continue;
      b.probing = true;
      p.trial = static_cast<int>(i);
    }
    p.mask |= bit;
  }
  return p;
}

int Failover::index_of(const std::string* provider) const {
  for (std::size_t i = 0; provider != nullptr && i < selection_.chain.size(); ++i) {
    if (breakers_[i].guarded && selection_.chain[i]->name() == *provider) return static_cast<int>(i);
  }
  return -1;
}

std::vector<Value> Failover::attempt(const std::shared_ptr<const CompiledChain>& chain, const Request& request,
                                     Failure& failure) {
  plan::RunEnv env;
  env.stop = request.stop;
  try {
    return chain->run(request, env);
  } catch (...) {
    failure.provider = index_of(env.provider.load(std::memory_order_relaxed));
    throw;
  }
}

// The same on a thread of its own, which is left behind when a provider takes longer than it may.
std::vector<Value> Failover::attempt_in_time(const std::shared_ptr<const CompiledChain>& chain, const Request& request,
                                             Failure& failure) {
  BackgroundRun run(chain, request);
  int late = -1;
  switch (run.wait(Clock::now() + context_->options.provider_timeout,
                   [&](const std::string* provider) { return (late = index_of(provider)) >= 0; })) {
    case BackgroundRun::Outcome::done: try { return run.results();
      } catch (...) {
        failure.provider = index_of(run.provider());
        throw;
      }
    case BackgroundRun::Outcome::stopped:
      run.abandon(nullptr);
      request.stop.check();
      check_interruption();
      fail(ErrorCode::deadline_exceeded, "the run took longer than its deadline allows");
    case BackgroundRun::Outcome::late: break;
  }
  failure.provider = late;
  failure.hung = true;
  {
    const std::lock_guard lock(mutex_);
    ++breakers_[static_cast<std::size_t>(late)].hung;
  }
  run.abandon([self = shared_from_this(), late] {
    const std::lock_guard lock(self->mutex_);
    --self->breakers_[static_cast<std::size_t>(late)].hung;
  });
  fail(ErrorCode::runtime_failure, "{} has not answered after {:.3f} s", name_of(late),
       seconds(context_->options.provider_timeout));
}

std::vector<Value> Failover::run(const Request& request, std::shared_ptr<const CompiledChain>* answered_by) {
  if (plain_) {
    Failure unused;
    if (answered_by != nullptr) *answered_by = only_;
    return attempt(only_, request, unused);
  }
  Mask excluded = 0;
  std::vector<Failure> failures;
  while (true) {
    const Pick p = pick(excluded, failures.empty());
    Failure failure;
    bool compiled = false;
    try {
      const std::shared_ptr<const CompiledChain> e = chain_of(p.mask, &failure, request.stop);
      compiled = true;
      const Mask guarded = p.mask & ~(Mask{1} << (breakers_.size() - 1));
      const bool timed = context_->options.provider_timeout.count() > 0 && guarded != 0;
      std::vector<Value> results = timed ? attempt_in_time(e, request, failure) : attempt(e, request, failure);
      succeeded(p, failures, request, results);
      if (answered_by != nullptr) *answered_by = e;
      return results;
    } catch (const Error& e) {
      const bool again = failure.provider >= 0 && !blameless(e.code()) && !context_->options.strict;
      if (!again) {
        undecided(p, failures);
        if (compiled || failures.empty()) throw;
        fail(ErrorCode::runtime_failure, "{}; the next provider cannot take over: {}", failures.front().reason, e.what());
      }
      if (failure.provider != p.trial) undecided(p, {});
      failure.reason = e.message();
    } catch (...) {
      undecided(p, failures);
      throw;
    }
    excluded |= Mask{1} << failure.provider;
    {
      const std::lock_guard lock(mutex_);
      ++slot(p.mask).failures;
    }
    // A provider that hangs costs every run its time, so it is dropped at once, whatever the outcome of this run.
    if (failure.hung) trip(failure, fmt::format("run {}", request.number + 1), "the next of the chain");
    failures.push_back(std::move(failure));
  }
}

// Trials that said nothing about their providers: the next run may try.
void Failover::undecided(const Pick& p, const std::vector<Failure>& failures) {
  if (p.trial < 0 && failures.empty()) return;
  const std::lock_guard lock(mutex_);
  if (p.trial >= 0) breakers_[static_cast<std::size_t>(p.trial)].probing = false;
  for (const Failure& f : failures) breakers_[static_cast<std::size_t>(f.provider)].probing = false;
}

void Failover::succeeded(const Pick& p, const std::vector<Failure>& failures, const Request& request,
                         const std::vector<Value>& results) {
  const bool nan = context_->reject_nan && !failures.empty() && std::any_of(results.begin(), results.end(), plan::has_nan);
  std::string taken;
  {
    const std::lock_guard lock(mutex_);
    Slot& s = slot(p.mask);
    ++s.runs;
    if (p.trial >= 0) {
      Breaker& b = breakers_[static_cast<std::size_t>(p.trial)];
      b.open = b.probing = false;
      b.trips = 0;
      note(fmt::format("run {}: {} works again", request.number + 1, name_of(p.trial)));
    }
    if (failures.empty()) return;
    taken = s.chain->label();
    if (nan) {
      // The model itself produces NaN for this input, so the provider that did was right.
      context_->reject_nan->store(false, std::memory_order_relaxed);
      note(fmt::format("run {}: NaN comes from the model, not from {}; from now on it does not count as a failure",
                       request.number + 1, name_of(failures.front().provider)));
      for (const Failure& f : failures) breakers_[static_cast<std::size_t>(f.provider)].probing = false;
      return;
    }
  }
  for (const Failure& f : failures) {
    if (!f.hung) trip(f, fmt::format("run {}", request.number + 1), taken);
  }
}

void Failover::trip(const Failure& f, const std::string& when, const std::string& taken) {
  std::string said;
  {
    const std::lock_guard lock(mutex_);
    Breaker& b = breakers_[static_cast<std::size_t>(f.provider)];
    const bool first = !b.open;
    // Runs that were under way when it opened fail too; only the first of them, and then each trial, counts.
    if (!first && !b.probing) return;
    b.open = true;
    b.probing = false;
    b.trips = std::min(b.trips + 1, 30);
    const auto pause = context_->options.provider_retry * std::min(1 << std::min(b.trips - 1, 10), kLongestPause);
    b.retry_at = Clock::now() + pause;
    const std::string next = pause.count() > 0 ? fmt::format("it is retried in {:.3g} s", seconds(pause)) : "it is not retried";
    if (first) {
      said =
          fmt::format("{}: {} failed and is dropped; answered by {}; {} ({})", when, name_of(f.provider), taken, next, f.reason);
      note(said);
    } else {
      note(fmt::format("{}: {} was retried and failed; {}", when, name_of(f.provider), next));
    }
  }
  // Called without the lock, because the listener may ask for a report.
  if (!said.empty()) log::warning("{}", said);
}

void Failover::note(std::string event) {
  events_.push_back(std::move(event));
  if (events_.size() <= kMostEvents) return;
  events_.erase(events_.begin() + kMostEvents / 2);  // how it began and how it went on of late say most
  ++forgotten_events_;
}

std::shared_ptr<const CompiledChain> Failover::current() const {
  const std::lock_guard lock(mutex_);
  Mask mask = 0;
  for (std::size_t i = 0; i < breakers_.size(); ++i) {
    if (!breakers_[i].open) mask |= allowed_ & (Mask{1} << i);
  }
  if (const auto it = slots_.find(mask); it != slots_.end() && it->second->chain) return it->second->chain;
  for (const auto& [m, s] : slots_) {
    if (s->chain) return s->chain;
  }
  return only_;
}

void Failover::describe(Report& report) const {
  const std::shared_ptr<const CompiledChain> now = current();
  const std::lock_guard lock(mutex_);
  for (auto it = slots_.rbegin(); it != slots_.rend(); ++it) {
    const auto& [mask, s] = *it;
    ChainReport c;
    for (const Provider* p : subset(mask).chain) c.providers.emplace_back(p->name());
    c.runs = plain_ ? context_->runs.load(std::memory_order_relaxed) : s->runs;
    c.failures = s->failures;
    c.state = s->chain == now ? "in use" : "standby";
    for (std::size_t i = 0; i < breakers_.size(); ++i) {
      if ((mask >> i & 1) == 0 || !breakers_[i].open || s->chain == now) continue;
      const double left = seconds(breakers_[i].retry_at - Clock::now());
      c.state = context_->options.provider_retry.count() == 0 ? "dropped"
                : left > 0                                    ? fmt::format("dropped, next try in {:.3g} s", left)
                                                              : "dropped, the next run tries it";
    }
    if (!s->chain) c.state = s->problem.empty() ? "compiling" : "failed: " + s->problem;
    if (s->chain) {
      const std::vector<std::string> failures = s->chain->failures();
      for (const std::string& f : failures) {
        if (std::find(report.fallbacks.begin(), report.fallbacks.end(), f) == report.fallbacks.end())
          report.fallbacks.push_back(f);
      }
    }
    report.chains.push_back(std::move(c));
  }
  report.fallbacks.insert(report.fallbacks.end(), fallbacks_.begin(), fallbacks_.end());
  report.events.insert(report.events.end(), events_.begin(), events_.end());
  if (forgotten_events_ > 0) report.events.push_back(fmt::format("{} events in the middle are omitted", forgotten_events_));
}

}  // namespace sdx::session
