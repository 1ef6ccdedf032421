#include "base/error.h"

namespace sdx {

std::string_view name(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::ok: return "ok";
    case ErrorCode::invalid_model: return "invalid_model";
    case ErrorCode::invalid_argument: return "invalid_argument";
    case ErrorCode::not_implemented: return "not_implemented";
    case ErrorCode::provider_unavailable: return "provider_unavailable";
    case ErrorCode::out_of_memory: return "out_of_memory";
    case ErrorCode::io: return "io";
    case ErrorCode::runtime_failure: return "runtime_failure";
    case ErrorCode::cancelled: return "cancelled";
    case ErrorCode::deadline_exceeded: return "deadline_exceeded";
    case ErrorCode::internal: return "internal";
  }
  return "unknown";
}

Error::Error(ErrorCode code, std::string message) : code_(code), message_(std::move(message)), text_(message_) {}

Error& Error::add_context(std::string line) {
  text_ += "\n  ";
  text_ += line;
  context_.push_back(std::move(line));
  return *this;
}

}  // namespace sdx
