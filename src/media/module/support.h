#pragma once
// Shared by the modules.

#include <cstdio>
#include <exception>
#include <new>

#include "media/module_api.h"

namespace sdx::media {

// The message goes to the other side; so does the outcome.
inline Outcome say(ModuleText error, Outcome outcome, const char* why) {
  std::snprintf(error.text, error.size, "%s", why);
  return outcome;
}

// Nothing is thrown across the border.
template <class F>
Outcome guarded(ModuleText error, F&& f) {
  try {
    return f();
  } catch (const std::bad_alloc&) {
    return say(error, Outcome::failed, "there is not enough memory");
  } catch (const std::exception& e) {
    return say(error, Outcome::failed, e.what());
  } catch (...) {
    return say(error, Outcome::failed, "an unknown failure");
  }
}

}  // namespace sdx::media
