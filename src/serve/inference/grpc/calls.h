#pragma once
// Shared by the calls of the protocol: access, threads, errors as statuses, deadlines.

#include <grpcpp/grpcpp.h>

#include <optional>

#include "serve/grpc_api.h"
#include "serve/http/handler_pool.h"
#include "serve/inference/infer.h"

namespace sdx::serve {

grpc::Status status_of(const GrpcError& error);

// State of all calls of a server.
class Calls {
 public:
  Calls(GrpcHost host, int threads, int waiting) : host(std::move(host)), pool(threads, waiting) {}

  GrpcHost host;
  HandlerPool pool;

  // The guard's refusal of a call; nothing if it may proceed.
  std::optional<grpc::Status> refused(const grpc::CallbackServerContext& context, GrpcCall& call, bool health) const;

  // Runs `work`; an exception becomes a status.
  template <class Work>
  grpc::Status attempt(const Work& work) const {
    try {
      work();
      return grpc::Status::OK;
    } catch (...) {
      return status_of(host.meaning(std::current_exception()));
    }
  }
};

// The call's deadline counts as well as the request's own.
void limit_time(InferRequest& request, const grpc::CallbackServerContext& context);

}  // namespace sdx::serve
