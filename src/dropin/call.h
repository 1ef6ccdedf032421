#pragma once
// Calls through a function table as programs make them, for tests and measurements.

#include <dropin/slots.h>

#include "dropin/abi.h"

namespace sdx::dropin {

class Caller {
 public:
  explicit Caller(const OrtApi* api) : functions_(reinterpret_cast<const void* const*>(api)) {}

  // The types of the arguments must be those of the function.
  template <class R = OrtStatus*, class... Args>
  R call(Slot slot, Args... args) const {
    return reinterpret_cast<R (*)(Args...)>(const_cast<void*>(functions_[static_cast<unsigned>(slot)]))(args...);
  }

 private:
  const void* const* functions_;
};

}  // namespace sdx::dropin
