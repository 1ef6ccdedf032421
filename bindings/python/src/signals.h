#pragma once
// Signals while the engine computes: Ctrl-C ends a run.

#include <type_traits>

#include "base/error.h"
#include "base/system/interruption.h"
#include "object.h"

namespace sdx::python {

// Whether this is the thread that handles signals.
bool is_main_thread();

// Handles the signals that have come: true, with Python's error set, where a handler raised one. `raised`: a bool that says so
// too.
bool handle_signals(void* raised);

// unlocked(compute), with signals handled meanwhile where this is the main thread: between the steps of a run. Throws Raised
// where a handler raised an error.
template <class Compute>
auto interruptible(const Compute& compute) {
  bool raised = false;
  const auto with_signals = [&] {
    if (!is_main_thread()) return compute();
    Interruption signals(&handle_signals, &raised);
    const InterruptionScope scope(&signals);
    return compute();
  };
  try {
    if constexpr (std::is_void_v<decltype(compute())>) {
      unlocked(with_signals);
      if (raised) throw Raised();
    } else {
      auto result = unlocked(with_signals);
      if (raised) throw Raised();
      return result;
    }
  } catch (const Error&) {
    if (raised) throw Raised();
    throw;
  }
}

}  // namespace sdx::python
