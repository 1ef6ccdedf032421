#include "base/system/interrupt.h"

#include <signal.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <ctime>

namespace sdx {
namespace {

// A signal sent to a process and to its group comes twice, as timeout(1) sends it: that is one wish.
constexpr std::int64_t kOneWishNs = 300'000'000;

// Atomic without locks: other threads read it, and handlers may use nothing else.
std::atomic<std::int64_t> first_ns{0};
std::atomic<int> first_number{SIGINT};
struct sigaction before_int {
}, before_term{};
static_assert(std::atomic<std::int64_t>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

std::int64_t now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

void on_signal(int number) {
  const int error = errno;
  std::int64_t before = 0;
  const std::int64_t now = now_ns();
  if (first_ns.compare_exchange_strong(before, now)) {
    first_number = number;
  } else if (now - before > kOneWishNs) {
    ::signal(number, SIG_DFL);
    ::raise(number);  // comes when the handler is left
  }
  errno = error;
}

}  // namespace

Interrupt::Interrupt() {
  first_ns = 0;
  struct sigaction action {};
  action.sa_handler = on_signal;  // without SA_RESTART: reading and waiting are interrupted
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGINT, &action, &before_int);
  ::sigaction(SIGTERM, &action, &before_term);
}

Interrupt::~Interrupt() {
  if (requested()) return;  // the process is about to end in good order, which the wish's second signal must not spoil
  ::sigaction(SIGINT, &before_int, nullptr);
  ::sigaction(SIGTERM, &before_term, nullptr);
}

bool Interrupt::requested() noexcept { return first_ns != 0; }
int Interrupt::exit_code() noexcept { return 128 + first_number; }

}  // namespace sdx
