#include "base/system/interrupt.h"

#include <atomic>
#include <cstdint>

#include "base/system/windows/api.h"

namespace sdx {
namespace {

// A wish that comes twice at once is one, as on POSIX.
constexpr std::int64_t kOneWishMs = 300;
constexpr int kInterrupt = 2, kTerminate = 15;  // POSIX's numbers of the signals, for exit_code()

std::atomic<std::int64_t> first_ms{0};
std::atomic<int> first_number{kInterrupt};

// Called in a thread of its own. FALSE: the handler before this one decides, at last the system's, which ends the process.
BOOL WINAPI on_event(DWORD event) {
  const bool ends = event == CTRL_CLOSE_EVENT || event == CTRL_LOGOFF_EVENT || event == CTRL_SHUTDOWN_EVENT;
  const std::int64_t now = static_cast<std::int64_t>(::GetTickCount64()) + 1;
  std::int64_t before = 0;
  if (first_ms.compare_exchange_strong(before, now)) {
    first_number = event == CTRL_C_EVENT ? kInterrupt : kTerminate;
  } else if (!ends && now - before > kOneWishMs) {
    return FALSE;
  }
  // When the handler returns, the system ends the process at once; it allows five seconds.
  if (ends) ::Sleep(INFINITE);
  return TRUE;
}

}  // namespace

Interrupt::Interrupt() {
  first_ms = 0;
  ::SetConsoleCtrlHandler(on_event, TRUE);
}

Interrupt::~Interrupt() {
  if (requested()) return;  // the process is about to end in good order, which the wish's second event must not spoil
  ::SetConsoleCtrlHandler(on_event, FALSE);
}

bool Interrupt::requested() noexcept { return first_ms != 0; }
int Interrupt::exit_code() noexcept { return 128 + first_number; }

}  // namespace sdx
