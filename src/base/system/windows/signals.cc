#include "base/system/processes/signals.h"

#include <atomic>

#include "base/system/windows/api.h"

namespace sdx {
namespace {

std::atomic<bool> broken{false};

BOOL WINAPI on_break(DWORD event) {
  if (event != CTRL_C_EVENT) return FALSE;
  broken = true;
  return TRUE;
}

}  // namespace

void catch_break() noexcept { ::SetConsoleCtrlHandler(on_break, TRUE); }
bool break_seen() noexcept { return broken; }
void forget_break() noexcept { broken = false; }

ReloadRequests::ReloadRequests() = default;
ReloadRequests::~ReloadRequests() = default;
bool ReloadRequests::take() noexcept { return false; }

}  // namespace sdx
