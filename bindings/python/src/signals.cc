#include "signals.h"

#include <unistd.h>

namespace sdx::python {

bool is_main_thread() {
  static thread_local const bool is = ::gettid() == ::getpid();  // asks the system once
  return is;
}

bool handle_signals(void* raised) {
  const PyGILState_STATE state = or_stay([] { return PyGILState_Ensure(); });
  bool& found = *static_cast<bool*>(raised);
  found = PyErr_Occurred() != nullptr || PyErr_CheckSignals() != 0;
  PyGILState_Release(state);
  return found;
}

}  // namespace sdx::python
