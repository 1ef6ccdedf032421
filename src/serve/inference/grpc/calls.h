#pragma once
// What the calls of the protocol share: who may ask, threads, errors as statuses, deadlines.

#include <grpcpp/grpcpp.h>

#include <optional>

#include "serve/grpc_api.h"
#include "serve/http/handler_pool.h"
#include "serve/inference/infer.h"

namespace sdx::serve {

grpc::Status status_of(const GrpcError& error);

// Of all calls of a server.
class Calls {
 public:
  Calls(GrpcHost host, int threads, int waiting) : host(std::move(host)), pool(threads, waiting) {}

  GrpcHost host;
  HandlerPool pool;

  // What the guard says of a call; nothing where it may go on.
  std::optional<grpc::Status> refused(const grpc::CallbackServerContext& context, GrpcCall& call, bool health) const;

  // What `work` throws, as a status.
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
