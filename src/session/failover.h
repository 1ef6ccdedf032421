#pragma once
// Chooses the chain of providers that answers a run: starts on a part of the chain and switches later, drops providers that fail,
// and tries them again.

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <sdx/session.hpp>

#include "session/compiled_chain.h"

namespace sdx::session {

// Thread-safe. Hold it by shared_ptr: a run that hangs keeps it alive after its session is gone.
//
// Each provider of the chain but `cpu` has a circuit breaker (after M. Nygard, "Release It!"): closed, runs use it. A run that it
// fails is repeated without it; if that works out the breaker opens, and runs leave the provider out. Was the input to blame, the
// repetition fails as well, and nothing is held against the provider. After a pause one run tries it again (half-open): the
// breaker closes, or the next pause is twice as long.
class Failover : public std::enable_shared_from_this<Failover> {
 public:
  Failover(std::shared_ptr<SessionContext> context, Selection selection);
  ~Failover();
  Failover(const Failover&) = delete;
  Failover& operator=(const Failover&) = delete;

  // Compiles the chain, or with SessionOptions::start_on its part from that provider on while the whole compiles in the
  // background.
  // `ready`: the whole chain compiled already, or null.
  void open(std::shared_ptr<const CompiledChain> ready = nullptr);
  // Waits for a compilation in the background, because vendors' compilers cannot be interrupted: as long as
  // SessionOptions::provider_timeout says, where it says something. Call it before letting go.
  void close();
  // `answered_by`, if not null, receives the chain whose results are returned.
  std::vector<Value> run(const Request& request, std::shared_ptr<const CompiledChain>* answered_by = nullptr);

  // The chain that the next run would use if nothing changes.
  std::shared_ptr<const CompiledChain> current() const;
  // Fills chains and events, and adds what providers could not compile to the fallbacks.
  void describe(Report& report) const;

 private:
  using Clock = std::chrono::steady_clock;
  using Mask = std::uint64_t;  // bit i: provider i of the chain takes part

  struct Breaker {
    bool guarded = false;  // false: our own engine, whose failures are the model's or the input's
    bool open = false;
    bool probing = false;  // a run tries it right now
    int hung = 0;          // runs that have not come back yet
    int trips = 0;         // in a row
    Clock::time_point retry_at;
  };
  struct Slot {
    std::mutex compiling;
    std::shared_ptr<const CompiledChain> chain;  // guarded by Failover::mutex_
    std::string problem;                         // why it could not be compiled
    std::uint64_t runs = 0, failures = 0;
  };
  struct Pick {
    Mask mask = 0;
    int trial = -1;  // the provider that this run tries again
  };
  struct Failure {
    int provider = -1;
    std::string reason;
    bool hung = false;
  };

  Pick pick(Mask excluded, bool may_try);
  Slot& slot(Mask mask);  // the caller holds mutex_
  std::shared_ptr<const CompiledChain> chain_of(Mask mask, Failure* failure = nullptr, const StopCondition& stop = {});
  std::shared_ptr<const CompiledChain> compile(Mask mask, Failure& failure);
  Selection subset(Mask mask) const;
  std::vector<Value> attempt(const std::shared_ptr<const CompiledChain>& chain, const Request& request, Failure& failure);
  std::vector<Value> attempt_in_time(const std::shared_ptr<const CompiledChain>& chain, const Request& request, Failure& failure);
  void succeeded(const Pick& pick, const std::vector<Failure>& failures, const Request& request,
                 const std::vector<Value>& results);
  void trip(const Failure& failure, const std::string& when, const std::string& taken);
  void undecided(const Pick& pick, const std::vector<Failure>& failures);
  int index_of(const std::string* provider) const;
  void compile_rest();
  void note(std::string event);  // the caller holds mutex_
  std::string name_of(int provider) const { return std::string(selection_.chain[static_cast<std::size_t>(provider)]->name()); }

  std::shared_ptr<SessionContext> context_;
  Selection selection_;
  bool plain_ = true;  // nothing to guard: no provider but our own engine
  Mask all_ = 0;
  std::shared_ptr<const CompiledChain> only_;  // the chain compiled first; the only one of a plain failover

  mutable std::mutex mutex_;  // guards all below
  Mask allowed_ = 0;          // those that are compiled
  std::vector<Breaker> breakers_;
  std::map<Mask, std::unique_ptr<Slot>> slots_;
  std::vector<std::string> fallbacks_;  // of opening
  std::deque<std::string> events_;
  std::uint64_t forgotten_events_ = 0;
  std::optional<Error> broken_;  // strict: the exception of the background compilation; each run gets a copy of its own
  bool compiling_ = false;
  std::condition_variable compiled_;
  std::thread background_;
};

}  // namespace sdx::session
