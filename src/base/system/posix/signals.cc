#include "base/system/processes/signals.h"

#include <signal.h>

#include <atomic>

namespace sdx {
namespace {

std::atomic<bool> broken{false}, reload_wanted{false};
static_assert(std::atomic<bool>::is_always_lock_free);
struct sigaction before_reload {};

}  // namespace

void catch_break() noexcept {
  struct sigaction action {};
  action.sa_handler = [](int) { broken = true; };  // without SA_RESTART
  ::sigaction(SIGINT, &action, nullptr);
}

bool break_seen() noexcept { return broken; }
void forget_break() noexcept { broken = false; }

ReloadRequests::ReloadRequests() {
  struct sigaction action {};
  action.sa_handler = [](int) { reload_wanted = true; };
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGHUP, &action, &before_reload);
}

ReloadRequests::~ReloadRequests() { ::sigaction(SIGHUP, &before_reload, nullptr); }

bool ReloadRequests::take() noexcept { return reload_wanted.exchange(false); }

}  // namespace sdx
