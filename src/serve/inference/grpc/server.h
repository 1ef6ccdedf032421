#pragma once
// The protocol's gRPC service.

#include <memory>

#include "serve/grpc_api.h"

namespace sdx::serve {

std::unique_ptr<GrpcServer> serve_grpc(const GrpcOptions& options, GrpcHost host);

}  // namespace sdx::serve
