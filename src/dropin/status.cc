#include "dropin/status.h"

#include <cstring>
#include <new>

#include "dropin/table.h"

namespace sdx::dropin {

// The text lies behind it in the same block.
struct OrtStatus {
  OrtErrorCode code;
  char message[1];
};

namespace {

OrtStatus kNoMemory{ORT_FAIL, {'\0'}};

}  // namespace

OrtStatus* make_status(OrtErrorCode code, std::string_view message) noexcept {
  void* const block = ::operator new(sizeof(OrtStatus) + message.size(), std::nothrow);
  if (block == nullptr) return &kNoMemory;
  auto* const status = new (block) OrtStatus{code, {'\0'}};
  char* const text = static_cast<char*>(block) + offsetof(OrtStatus, message);
  if (!message.empty()) std::memcpy(text, message.data(), message.size());
  text[message.size()] = '\0';
  return status;
}

void release_status(OrtStatus* status) noexcept {
  if (status != &kNoMemory) ::operator delete(status);
}

OrtErrorCode status_code(const OrtStatus* status) noexcept { return status == nullptr ? ORT_OK : status->code; }

const char* status_message(const OrtStatus* status) noexcept {
  return status == nullptr ? "" : reinterpret_cast<const char*>(status) + offsetof(OrtStatus, message);
}

OrtErrorCode ort_code(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::ok: return ORT_OK;
    case ErrorCode::invalid_model: return ORT_INVALID_GRAPH;
    case ErrorCode::invalid_argument: return ORT_INVALID_ARGUMENT;
    case ErrorCode::not_implemented: return ORT_NOT_IMPLEMENTED;
    case ErrorCode::provider_unavailable: return ORT_EP_FAIL;
    case ErrorCode::io: return ORT_NO_SUCHFILE;
    case ErrorCode::runtime_failure: return ORT_RUNTIME_EXCEPTION;
    case ErrorCode::out_of_memory:
    case ErrorCode::cancelled:
    case ErrorCode::deadline_exceeded:
    case ErrorCode::internal: break;
  }
  return ORT_FAIL;
}

OrtStatus* status_of_exception() noexcept {
  try {
    throw;
  } catch (const OrtError& error) {
    return make_status(error.code, error.message);
  } catch (const Error& error) {
    return make_status(ort_code(error.code()), error.what());
  } catch (const std::bad_alloc&) {
    return make_status(ORT_FAIL, "bad allocation");
  } catch (const std::exception& error) {
    return make_status(ORT_RUNTIME_EXCEPTION, error.what());
  } catch (...) {
    return make_status(ORT_FAIL, "Unknown Exception");
  }
}

void fail_ort(OrtErrorCode code, std::string message) { throw OrtError{code, std::move(message)}; }

namespace {

OrtStatus* create_status(OrtErrorCode code, const char* message) noexcept {
  return make_status(code, message == nullptr ? std::string_view() : message);
}

}  // namespace

void fill_status(Table& table) {
  table.set(Slot::CreateStatus, &create_status);
  table.set(Slot::GetErrorCode, &status_code);
  table.set(Slot::GetErrorMessage, &status_message);
  table.set(Slot::ReleaseStatus, &release_status);
}

}  // namespace sdx::dropin
