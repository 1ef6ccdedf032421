#pragma once
// Shared by implementations of the C interface, here and in the libraries of products.

#include <sdx/sdx.h>

#include <new>
#include <sdx/session.hpp>

#include "base/error.h"
#include "base/tools_api.h"

struct sdx_options {
  sdx::SessionOptions options;
};
struct sdx_tensor {
  sdx::Tensor tensor;
};

namespace sdx::session {

// Sets the message that sdx_last_error() returns on this thread.
SDX_TOOLS_API void set_last_error(const char* message) noexcept;

// Runs `fn`; an exception becomes a status and a message.
template <class F>
sdx_status guarded(F&& fn) noexcept {
  try {
    fn();
    return SDX_OK;
  } catch (const Error& e) {
    set_last_error(e.what());
    return static_cast<sdx_status>(e.code());
  } catch (const std::bad_alloc&) {
    set_last_error("");
    return SDX_OUT_OF_MEMORY;
  } catch (const std::exception& e) {
    set_last_error(e.what());
    return SDX_INTERNAL;
  } catch (...) {
    set_last_error("");
    return SDX_INTERNAL;
  }
}

template <class T>
T& require(T* pointer, const char* what) {
  if (pointer == nullptr) fail(ErrorCode::invalid_argument, "{} must not be NULL", what);
  return *pointer;
}

}  // namespace sdx::session
