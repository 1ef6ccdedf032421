#include "calls.h"

namespace sdx::serve {
namespace {

using grpc::CallbackServerContext;
using grpc::StatusCode;

StatusCode code_of(int status) {
  switch (status) {
    case 400: return StatusCode::INVALID_ARGUMENT;
    case 401: return StatusCode::UNAUTHENTICATED;
    case 403: return StatusCode::PERMISSION_DENIED;
    case 404: return StatusCode::NOT_FOUND;
    case 413:
    case 429: return StatusCode::RESOURCE_EXHAUSTED;
    case 499: return StatusCode::CANCELLED;
    case 501: return StatusCode::UNIMPLEMENTED;
    case 503: return StatusCode::UNAVAILABLE;
    case 504: return StatusCode::DEADLINE_EXCEEDED;
    default: return StatusCode::INTERNAL;
  }
}

std::optional<std::chrono::milliseconds> time_left(const CallbackServerContext& context) {
  const auto deadline = context.deadline();
  if (deadline == std::chrono::system_clock::time_point::max()) return std::nullopt;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::system_clock::now());
  return std::max(left, std::chrono::milliseconds(1));
}

}  // namespace

grpc::Status status_of(const GrpcError& error) { return {code_of(error.status), error.message}; }

std::optional<grpc::Status> Calls::refused(const grpc::CallbackServerContext& context, GrpcCall& call, bool health) const {
  if (!host.guard) return std::nullopt;
  call.peer = context.peer();
  call.health = health;
  const auto at = context.client_metadata().find("authorization");
  if (at != context.client_metadata().end()) call.authorization.assign(at->second.data(), at->second.size());
  const std::optional<GrpcError> error = host.guard(call);
  return error ? std::optional(status_of(*error)) : std::nullopt;
}

void limit_time(InferRequest& request, const CallbackServerContext& context) {
  if (const auto left = time_left(context)) request.run.timeout = std::min(request.run.timeout.value_or(*left), *left);
}

}  // namespace sdx::serve
