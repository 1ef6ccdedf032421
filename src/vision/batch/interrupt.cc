#include "vision/batch/interrupt.h"

#include <csignal>

namespace sdx::vision::batch {
namespace {

volatile std::sig_atomic_t interrupted = 0;

void on_signal(int) { interrupted = 1; }

}  // namespace

Interrupt::Interrupt() {
  interrupted = 0;
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = static_cast<int>(SA_RESETHAND);  // the second one ends the process; reading and waiting are interrupted
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGINT, &action, &before_int_);
  ::sigaction(SIGTERM, &action, &before_term_);
}

Interrupt::~Interrupt() {
  ::sigaction(SIGINT, &before_int_, nullptr);
  ::sigaction(SIGTERM, &before_term_, nullptr);
}

bool Interrupt::requested() noexcept { return interrupted != 0; }

}  // namespace sdx::vision::batch
