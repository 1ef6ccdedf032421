#pragma once
// Statuses: NULL is success; others belong to the program, which frees them with ReleaseStatus.

#include <sdx/error.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "dropin/abi.h"

namespace sdx::dropin {

// Never throws: where there is no memory, a status that is kept for that is returned.
OrtStatus* make_status(OrtErrorCode code, std::string_view message) noexcept;
void release_status(OrtStatus* status) noexcept;
OrtErrorCode status_code(const OrtStatus* status) noexcept;
const char* status_message(const OrtStatus* status) noexcept;

// The code that ONNX Runtime would answer with.
OrtErrorCode ort_code(ErrorCode code) noexcept;
// Turns the exception that is being handled into a status: call it only in a catch (...).
OrtStatus* status_of_exception() noexcept;

// An error with ONNX Runtime's code, where ours do not say enough. Caught by guarded().
struct OrtError {
  OrtErrorCode code;
  std::string message;
};
[[noreturn]] void fail_ort(OrtErrorCode code, std::string message);

// Runs `function`; an exception becomes a status. All functions of the table that return a status use this.
template <class F>
OrtStatus* guarded(F&& function) noexcept {
  try {
    std::forward<F>(function)();
    return nullptr;
  } catch (...) {
    return status_of_exception();
  }
}

// ORT_INVALID_ARGUMENT where a pointer that must be given is NULL.
template <class T>
T& require(T* pointer, const char* what) {
  if (pointer == nullptr) fail_ort(ORT_INVALID_ARGUMENT, std::string(what) + " must not be NULL");
  return *pointer;
}

inline void require_memory(const void* pointer, const char* what) {
  if (pointer == nullptr) fail_ort(ORT_INVALID_ARGUMENT, std::string(what) + " must not be NULL");
}

}  // namespace sdx::dropin
