// Chooses the part of the chain that answers, if the first run measures it.

#include "base/error.h"
#include "base/log.h"
#include "base/stoppable_lock.h"
#include "session/impl/impl.h"
#include "session/observe/measure.h"

namespace sdx {

using namespace session;

void Session::Impl::open_measured() {
  const std::size_t last = selection.chain.size() - 1;
  if (last == 0) {
    measures = false;
    return use_chain_from(0, nullptr, {}, "measured: cpu is the only candidate");
  }
  if (!decision.empty()) {
    if (std::optional<cache::Decision> m = decision_for(decision, selection)) {
      const std::string how = fmt::format("measured on {} with {}: {}", m->when, m->inputs, summary(*m));
      std::size_t first = 0;
      while (selection.chain[first]->name() != m->chosen) ++first;
      return use_chain_from(first, nullptr, std::move(*m), how);
    }
  }
  try {
    use_chain_from(last, nullptr, {}, "not measured yet: the first run measures " + label_of(selection));
    undecided = true;
  } catch (const Error& e) {
    if (e.code() != ErrorCode::not_implemented) throw;
    use_chain_from(0, nullptr, {},
                   fmt::format("{}; not measured, because cpu cannot run the whole model: {}", selection.why, e.message()));
  }
}

// Switches to the part of the chain that begins with provider number `first`.
void Session::Impl::use_chain_from(std::size_t first, std::shared_ptr<const CompiledChain> ready, cache::Decision found,
                                   const std::string& how) {
  auto made = std::make_shared<Failover>(context, chain_from(selection, first));
  made->open(std::move(ready));
  const std::lock_guard lock(mutex);
  failover = std::move(made);
  measurement = std::move(found);
  why = how;
}

// Runs that come while the first one measures wait for it.
void Session::Impl::decide(const Request& request) {
  const std::unique_lock only_one = lock_unless_stopped(deciding, request.stop);
  if (!undecided) return;
  std::shared_ptr<const CompiledChain> winner;
  cache::Decision m = measure_providers(context, selection, request, winner);
  std::size_t first = 0;
  while (selection.chain[first]->name() != m.chosen) ++first;
  std::string kept;
  if (!decision.empty()) {
    try {
      cache::write_decision(decision, m);
      kept = "; remembered in " + decision.string();
    } catch (const Error& e) {
      kept = fmt::format("; not remembered: {}", e.message());
    }
  }
  const std::string how = fmt::format("measured with {}: {}{}", m.inputs, summary(m), kept);
  log::info("{}", how);
  use_chain_from(first, std::move(winner), std::move(m), how);
  undecided = false;
}

std::shared_ptr<Failover> Session::Impl::current_failover() const {
  if (!measures) return failover;
  const std::lock_guard lock(mutex);
  return failover;
}

}  // namespace sdx
